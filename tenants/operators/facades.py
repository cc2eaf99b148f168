"""Declare facades over accounts, sessions, tenants, members and the audit trail for the operators' admin."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.core.exceptions import ValidationError
from django.db import models

from portal import clock
from portal.dynamo.paging import Pager
from portal.dynamo.store import BATCH_GET_LIMIT
from portal.errors import Invalid
from portal.nosql.planner.facade import Facade
from portal.nosql.planner.patterns import CustomListing, Get, Lookup, Query, ResultPage
from portal.nosql.stored import SessionByUser, SessionItem
from portal.schema import keys
from tenants.audit_trail import recording
from tenants.audit_trail.stored import (
    AuditByActor,
    AuditByEntity,
    AuditItem,
    audit_actor_key,
    audit_entity_key,
    audited_at_key,
)
from tenants.lifecycle import tenant_lifecycle
from tenants.membership.stored import InviteItem, MemberItem
from tenants.sign_in import accounts, session_lifecycle
from tenants.sign_in.stored import AccountItem, DisabledAccount, user_key
from tenants.tenancy import placements, tenant_directory
from tenants.tenancy.context import MEMBER_ROLES
from tenants.tenancy.stored import DirectoryItem, MembershipItem, TenantItem, TenantStatus

if TYPE_CHECKING:  # only the stubs know what it is generic in
    _EmailField = models.EmailField[str, str]
else:
    _EmailField = models.EmailField


def valid_id(value: str) -> str:
    """Return the partition of a person's memberships, or of a session. Raises ValueError for what is no id."""
    if not keys.USER_ID.match(value):
        raise ValueError("an id is 32 lower-case hex digits")
    return value


def _disabled(state: str) -> str:
    """Return the partition of accounts that may not sign in. Raises Invalid for all others, which no list holds."""
    if state != accounts.DISABLED:
        raise Invalid("Of users, only those who may not sign in are listed.")
    return state


class AddressField(_EmailField):
    """Hold a mail address in the one form in which addresses are stored and compared."""

    def to_python(self, value: Any) -> Any:
        try:
            return accounts.normal_address(value) if value and isinstance(value, str) else value
        except Invalid as error:
            raise ValidationError(error.message) from error


class Account(Facade):
    """Somebody who can sign in."""

    user_id = models.CharField("id", primary_key=True, max_length=32)
    email = AddressField("e-mail")
    name = models.CharField(max_length=100)
    is_active = models.BooleanField("active", default=True)
    is_operator = models.BooleanField("operator", default=False)
    second_factors = models.CharField(max_length=40, blank=True, default="")
    session_epoch = models.PositiveIntegerField("signed out everywhere", default=0, help_text="how often")
    created_at = models.DateTimeField("created")

    disabled = models.CharField(
        "sign-in", max_length=10, blank=True, choices=[(accounts.DISABLED, "may not sign in")], default=""
    )

    patterns = (
        Lookup("by e-mail", "email", accounts.id_of),
        Get(AccountItem, ("user_id",), user_key),
        Query("if they may not sign in", DisabledAccount, ("disabled",), _disabled, "email"),
    )
    content = ("email", "name")
    address = ""  # the e-mail, also where it is hidden: what mail is about

    class Meta(Facade.Meta):
        verbose_name = "user"

    @classmethod
    def from_item(cls, item: Any) -> Any:
        account = super().from_item(item)
        account.address = account.email
        return account

    def __str__(self) -> str:
        return self.user_id if self.is_hidden else self.email

    def entity(self) -> tuple[str, str, str]:
        return recording.PLATFORM, "user", self.user_id


class Session(Facade):
    """A signed-in browser, by the hash that its key is stored under. When it was last used is not noted."""

    session_key = models.CharField("id", primary_key=True, max_length=32)
    user_id = models.CharField("user", max_length=32)
    started_at = models.DateTimeField("started")
    address = models.CharField("from", max_length=45)
    agent = models.CharField("browser", max_length=200)
    tenant_id = models.CharField("tenant", max_length=32)
    until = models.DateTimeField(null=True)

    patterns = (
        Get(SessionItem, ("session_key",), valid_id),
        Query("by user", SessionByUser, ("user_id",), valid_id, "started_at", newest_first=True),
    )
    content = ("address", "agent", "user_name")

    @classmethod
    def from_item(cls, item: Any) -> Any:
        session = super().from_item(item)
        session.until = datetime.fromtimestamp(int(item.expires_at), UTC)
        return session

    def __str__(self) -> str:
        return session_lifecycle.browser_of(self.agent or "")

    def entity(self) -> tuple[str, str, str]:
        return recording.PLATFORM, "user", self.user_id


_ROLES: Final = [(role.value, role.label) for role in MEMBER_ROLES]
_STATUSES: Final = [
    (status, status)
    for status in (
        TenantStatus.ACTIVE,
        TenantStatus.SUSPENDED,
        TenantStatus.CLOSING,
        TenantStatus.PURGING,
    )
]


# Beside the pool, which is listed by no partition of its own.
_OWN_PLACEMENTS: Final = [(str(placement), str(placement)) for placement in placements.beside_the_pool()]


def _placed_at(values: dict[str, Any], *, after: str | None, size: int) -> ResultPage:
    """List the tenants whose content lies at a placement: one Query, and a BatchGetItem for each hundred of them."""
    pager = Pager("", ("tenants by placement", values["placement"]))
    last = str(pager.place(after, size=1).position[0]) if after else ""
    ids = [placed.tenant_id for placed in placements.listed() if str(placed.placement) == values["placement"]]
    hundreds = (ids[start : start + BATCH_GET_LIMIT] for start in range(0, len(ids), BATCH_GET_LIMIT))
    found = [tenant for some in hundreds for tenant in tenant_directory.get_many(some)]
    # An old copy is listed as well, and is not where the content lies.
    listed = sorted((t for t in found if t.placement == values["placement"] and t.slug > last), key=lambda t: t.slug)
    shown = [Tenant.from_item(tenant) for tenant in listed[:size]]
    if len(listed) <= size:
        return ResultPage(shown, len(ids))
    return ResultPage(shown, len(ids), pager.links(None, begin=[""], end=[shown[-1].slug], more=True).next)


class Tenant(Facade):
    """A tenant. In lists it is its directory item, on its own page its configuration."""

    tenant_id = models.CharField("id", primary_key=True, max_length=32)
    slug = models.CharField(max_length=40, blank=True)
    name = models.CharField(max_length=80)
    status = models.CharField(max_length=10, choices=_STATUSES, default=TenantStatus.ACTIVE)
    plan = models.CharField(max_length=40, default=tenant_lifecycle.STANDARD, help_text="a-z, 0-9 and hyphens")
    member_limit = models.PositiveIntegerField(
        "limit of members",
        null=True,
        blank=True,
        help_text="Members and pending invitations together. Empty: none. A limit below the present number "
        "removes nobody, and keeps others from joining.",
    )
    request_rate = models.PositiveIntegerField(
        "units a second",
        null=True,
        blank=True,
        help_text="That its people may ask for together: a page is one unit, a change five. Empty: its plan's.",
    )
    shards = models.PositiveSmallIntegerField(
        default=1,
        help_text="Partitions per status in the ticket indexes, 1 to 16. More for a tenant with some 1,000 writes per "
        "second. They are changed later on the page Shards.",
    )
    closes_at = models.DateTimeField("may be deleted from", null=True)
    placement = models.CharField("placement outside the pool", max_length=50, choices=_OWN_PLACEMENTS, blank=True)
    former_placement = models.CharField("old copy", max_length=50, blank=True)
    created_at = models.DateTimeField("created")

    patterns = (
        CustomListing("by placement", ("placement",), "slug", _placed_at),
        Get(TenantItem, ("tenant_id",), keys.tenant, tenant=False),
        Query(
            "by slug",
            DirectoryItem,
            (),
            lambda: tenant_directory.TENANTS,
            order="slug",
            prefix=lambda text: text.casefold(),
        ),
    )
    filters = ("status",)
    searched = ("name",)

    @classmethod
    def from_item(cls, item: Any) -> Any:
        tenant = super().from_item(item)
        if isinstance(item, DirectoryItem):
            tenant.slug, tenant.name = item.name, item.title
        return tenant

    def __str__(self) -> str:
        return f"{self.name} ({self.slug})" if self.slug else self.name

    def entity(self) -> tuple[str, str, str]:
        return self.tenant_id, "tenant", self.tenant_id


class Membership(Facade):
    """One person in one tenant: read as the person's, or as the tenant's."""

    id = models.CharField(primary_key=True, max_length=65)
    tenant_id = models.CharField("tenant", max_length=32)
    user_id = models.CharField("user", max_length=32)
    role = models.CharField(max_length=10, choices=_ROLES)
    get_role_display: Callable[[], str]  # which Django makes from the choices
    name = models.CharField(max_length=100, blank=True)
    email = models.EmailField("e-mail", blank=True)
    created_at = models.DateTimeField("since")

    patterns = (
        Get(MemberItem, ("tenant_id", "user_id"), keys.tenant),
        Query("by user", MembershipItem, ("user_id",), valid_id, order="tenant_id"),
        Query("by tenant", MemberItem, ("tenant_id",), keys.tenant, order="user_id"),
    )
    filters = ("role",)
    content = ("name", "email", "user_name")

    @classmethod
    def from_item(cls, item: Any) -> Any:
        membership = super().from_item(item)
        if isinstance(item, MembershipItem):
            membership.user_id, membership.tenant_name = item.platform_user_id, item.tenant_name
            membership.pk = f"{membership.tenant_id}/{membership.user_id}"
        else:
            membership.user_name = f"{membership.name}, {membership.email}"
        return membership

    def __str__(self) -> str:
        return f"{self.name or self.user_id}, {self.get_role_display()}"

    def entity(self) -> tuple[str, str, str]:
        return self.tenant_id, "user", self.user_id


class Invitation(Facade):
    """A pending invitation to a tenant; its secret is in the mail alone."""

    id = models.CharField(primary_key=True, max_length=65)
    tenant_id = models.CharField("tenant", max_length=32)
    invite_id = models.CharField(max_length=32)
    email = models.EmailField("e-mail")
    role = models.CharField(max_length=10, choices=_ROLES)
    get_role_display: Callable[[], str]  # which Django makes from the choices
    invited_by_name = models.CharField("invited by", max_length=100)
    created_at = models.DateTimeField("first sent")
    sent_at = models.DateTimeField("sent")
    expires_at = models.DateTimeField("good until")

    patterns = (
        Get(InviteItem, ("tenant_id", "invite_id"), keys.tenant),
        Query("by tenant", InviteItem, ("tenant_id",), keys.tenant, order="invite_id"),
    )
    filters = ("role",)
    content = ("email", "invited_by_name")

    def __str__(self) -> str:
        return f"{self.email}, {self.get_role_display()}"

    def entity(self) -> tuple[str, str, str]:
        return self.tenant_id, "invitation", self.invite_id


class AuditRow(Facade):
    """An event of the audit trail."""

    id = models.CharField(primary_key=True, max_length=120)
    tenant_id = models.CharField("tenant", max_length=32)
    timestamp_event_id = models.CharField(max_length=80)
    at = models.DateTimeField("when", null=True)
    actor_id = models.CharField("actor", max_length=40)
    actor_email = models.CharField("who", max_length=254)
    origin = models.CharField("from", max_length=100)
    action = models.CharField(max_length=60, choices=[(a.value, a.value) for a in recording.AuditAction])
    entity_type = models.CharField("object type", max_length=40)
    entity_id = models.CharField("object id", max_length=100)
    entity_name = models.CharField("object", max_length=254)
    before = models.TextField()
    after = models.TextField()

    patterns = (
        Get(AuditItem, ("tenant_id", "timestamp_event_id"), keys.tenant),
        Query("by tenant", AuditItem, ("tenant_id",), keys.tenant, order="timestamp_event_id", newest_first=True),
        Query(
            "by tenant and actor",
            AuditByActor,
            ("tenant_id", "actor_id"),
            audit_actor_key,
            order="timestamp_event_id",
            newest_first=True,
        ),
        Query(
            "by tenant and object",
            AuditByEntity,
            ("tenant_id", "entity_type", "entity_id"),
            audit_entity_key,
            order="timestamp_event_id",
            newest_first=True,
        ),
    )
    filters: ClassVar[tuple[str, ...]] = ("action",)
    content = ("actor_email", "origin", "entity_name", "before", "after")

    class Meta(Facade.Meta):
        verbose_name = "audit row"
        verbose_name_plural = "audit trail"

    @classmethod
    def from_item(cls, item: Any) -> Any:
        row = super().from_item(item)
        row.at = clock.parse(audited_at_key(item.timestamp_event_id))
        row.before, row.after = _as_text(item.before), _as_text(item.after)
        return row

    def __str__(self) -> str:
        return f"{self.action} {self.entity_name}"

    @property
    def words(self) -> str:
        """Say what was done, to stand before the object's name."""
        return recording.words_of(self.action)

    @property
    def actor(self) -> str:
        """Return the person who did it, and where from."""
        who = self.actor_email or self.actor_id
        return f"{who}, {self.origin}" if self.origin else who


def _as_text(stored: str | None) -> str:
    """Return the JSON object of a row as text: "role: viewer, name: Bob"."""
    told = json.loads(stored) if stored else {}
    return ", ".join(f"{name.replace('_', ' ')}: {clock.in_words(str(value))}" for name, value in told.items())
