"""Hold one person at work in one tenant, and their role: what rules are given first, and reach the tenant's data
through."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol

from django.conf import settings
from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.translation import gettext, gettext_noop

from portal import clock
from portal.dynamo.client import Item
from portal.dynamo.placement import Location, Placement
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Store, Transaction, Wanted
from portal.load import tenant_limiter
from portal.schema import keys
from portal.web import locales
from tenants.sign_in.accounts import User
from tenants.tenancy import placements, tenant_directory
from tenants.tenancy.placements import FreshRead, ShardLayout
from tenants.tenancy.stored import MembershipItem, TenantItem, TenantStatus

ZONE: Final = "time_zone"  # among the defaults of a desk
LANGUAGE: Final = "language"  # likewise
RULES: Final = "rules"  # the destination of events for which rules of the desk are


_ORDER = ("viewer", "agent", "admin", "owner")
_LABELS = {
    "auditor": gettext_noop("Auditor"),
    "viewer": gettext_noop("Viewer"),
    "agent": gettext_noop("Agent"),
    "admin": gettext_noop("Admin"),
    "owner": gettext_noop("Owner"),
}
_NOUNS = {
    "auditor": gettext_noop("an auditor"),
    "viewer": gettext_noop("a viewer"),
    "agent": gettext_noop("an agent"),
    "admin": gettext_noop("an admin"),
    "owner": gettext_noop("an owner"),
}
_ABILITIES = {
    "auditor": gettext_noop("read the audit trail and its proofs, and no tickets"),
    "viewer": gettext_noop("read tickets"),
    "agent": gettext_noop("work on tickets"),
    "admin": gettext_noop("work on tickets and manage members"),
    "owner": gettext_noop("do everything, including changing the desk's settings"),
}


class Role(StrEnum):
    """The four roles of members, each including the ones below: owner > admin > agent > viewer; and the auditor.

    An auditor is no member: a named outsider who sees, for a time, the pages that are marked for auditors, and nothing
    else. The role has no place in the order, so that no page that asks for any role of members lets one in.
    """

    VIEWER = "viewer"  # reads tickets, not internal notes
    AGENT = "agent"  # works tickets
    ADMIN = "admin"  # runs the tenant
    OWNER = "owner"  # the last one cannot leave
    AUDITOR = "auditor"  # reads the audit pages, for a time

    def at_least(self, other: Role) -> bool:
        """Tell whether this role includes the other one. Only owners include the auditor, and an auditor no member."""
        if Role.AUDITOR in (self, other):
            return other is Role.AUDITOR and self in (Role.AUDITOR, Role.OWNER)
        return _ORDER.index(self) >= _ORDER.index(other)

    @property
    def abilities(self) -> str:
        """Return what people of this role can do, as the rest of a sentence that begins with "can"."""
        return gettext(_ABILITIES[self.value])

    @property
    def label(self) -> str:
        return gettext(_LABELS[self.value])

    @property
    def with_article(self) -> str:
        """Return the role as a noun in a sentence: "an agent", "a viewer"."""
        return gettext(_NOUNS[self.value])


MEMBER_ROLES: Final = tuple(role for role in Role if role is not Role.AUDITOR)


class Standing(Protocol):
    """Answer for a system of the tenant that is at work, in the place of a membership."""

    def require(self, transaction: Transaction, *, name: str) -> None:
        """Make a transaction depend on its being good still, by a part of this name."""

    def blame(self) -> None:
        """Raise why it is not good any more; return where it is."""


@dataclass(frozen=True)
class TenantContext:
    """One person at work in one tenant, for one request. Immutable; all data of the tenant is reached through it.

    A system of the tenant that calls by a key is at work in the same way: its id and name stand for the person's, and
    its transactions depend on its `standing`, which is its key, as a person's depend on their membership.
    `shards`, `write_shards`, `moving_to` and `shard_epoch` are what was stored at `entered_at`, by the monotonic clock.
    Reads and writes take `layout`, which is never too old.
    """

    tenant_id: str
    name: str
    slug: str
    role: Role
    user_id: str
    user_name: str
    shards: int = 1
    shard_epoch: int = 0
    suspended: bool = False
    closes_at: str = ""  # when the grace of a desk ends that is closing; until then it can be read
    needs_second_factor: bool = False  # members without one are kept out
    former_slug: str = ""  # its name in addresses before the last renaming
    defaults: str | None = None  # as stored; tenants/lifecycle/desk_settings.py reads it
    erased: str | None = None  # as stored; tenants/audit_trail/erased_people.py reads it
    subscriptions: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)  # destinations by event type
    counts_months: bool = False  # since its first ticket
    units_per_second: float = tenant_limiter.UNLIMITED  # that it may ask for
    queues: tuple[int, ...] = ()  # the numbers of its queues, through which all that leaves the desk goes
    write_shards: int = 0  # 0: as many as `shards`
    moving_to: int = 0
    where: Location = field(default=Location(), compare=False)
    standing: Standing | None = field(default=None, compare=False, repr=False)
    # Items of the desk that each of its pages needs, by name, None for one that is not stored; see `declare_item`.
    items: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    cause: str = ""  # of changes that a rule makes; see tickets/ticket/causes.py
    acted_by: str = ""  # the name of the operator who acts in this person's place
    created_at: str = ""  # the desk, as stored
    entered_at: float = field(default_factory=time.monotonic, compare=False, repr=False)

    @property
    def layout(self) -> ShardLayout:
        """Say over which partitions the tickets are spread: read anew once this context is some seconds old."""
        return self._layout_lease.current()

    @cached_property
    def _layout_lease(self) -> FreshRead[ShardLayout]:
        return FreshRead(
            ShardLayout.of(self), lambda: ShardLayout.of(tenant_directory.get(self.tenant_id)), self.entered_at
        )

    @cached_property
    def repository(self) -> Store:
        return Store("tenant", self.tenant_id, placements.MoveLease(self.tenant_id, self.where, self.entered_at))

    @property
    def placement(self) -> Placement:
        """Where its content lies now."""
        return self.repository.placement

    @property
    def author_name(self) -> str:
        """Return whom a ticket's history names for what is done here."""
        return f"{self.acted_by} as {self.user_name}" if self.acted_by else self.user_name

    @cached_property
    def chosen_zone(self) -> str:
        """Return the time zone that the desk has chosen, "" where it has chosen none."""
        chosen = json.loads(self.defaults).get(ZONE, "") if self.defaults else ""
        return chosen if chosen in clock.zone_names() else ""

    @cached_property
    def chosen_language(self) -> str:
        """Return the language that the desk has chosen for its members, "" where each one's browser decides."""
        chosen = json.loads(self.defaults).get(LANGUAGE, "") if self.defaults else ""
        return chosen if chosen in locales.LANGUAGES else ""

    @property
    def zone(self) -> str:
        """Return the time zone of the desk's days, reports and "today"."""
        return self.chosen_zone or clock.UTC_NAME

    @property
    def today(self) -> date:
        return clock.today(self.zone)

    @property
    def deleted_on(self) -> datetime | None:
        """Return the moment from which a desk that is closing may be deleted, None for any other."""
        return clock.parse(self.closes_at) if self.closes_at else None

    @property
    def has_grace(self) -> bool:
        """Tell whether a closing desk stays for a while yet."""
        return bool(self.closes_at) and self.closes_at > clock.stamp()

    @property
    def role_label(self) -> str:
        return self.role.label

    @cached_property
    def is_agent(self) -> bool:
        return self.role.at_least(Role.AGENT)

    @cached_property
    def is_admin(self) -> bool:
        return self.role.at_least(Role.ADMIN)

    @property
    def is_owner(self) -> bool:
        return self.role is Role.OWNER

    @property
    def is_auditor(self) -> bool:
        return self.role is Role.AUDITOR

    @cached_property
    def page_mark(self) -> str:
        return page_mark_of(self.user_id, self.tenant_id)


_NO_ITEMS: Final[Mapping[str, Any]] = MappingProxyType({})


def is_over(membership: MembershipItem) -> bool:
    """Tell whether a membership has an end that has come: that of an auditor."""
    return bool(membership.ends_at) and bool(membership.ends_at <= clock.stamp())


def of_items(
    user: User, membership: Any, tenant: Any, items: Mapping[str, Any] = _NO_ITEMS, *, acted_by: str = ""
) -> TenantContext | None:
    """Make the context of what was read, or None where the person is no member, or no auditor any more, or the tenant
    is gone. `items` are those that `wanted_items` names."""
    if membership is None or is_over(membership) or tenant is None:
        return None
    role = Role(membership.role)
    return of_tenant(tenant, role=role, user_id=user.id, user_name=user.name, acted_by=acted_by, items=dict(items))


def of_tenant(
    tenant: TenantItem,
    *,
    role: Role,
    user_id: str,
    user_name: str,
    acted_by: str = "",
    standing: Standing | None = None,
    items: dict[str, Any] | None = None,
) -> TenantContext:
    """Make the context of a tenant as stored, for whoever the caller has found to be at work in it."""
    layout = ShardLayout.of(tenant)
    subscriptions = {
        kind: tuple(destinations)
        for kind, destinations in (json.loads(tenant.subscriptions) if tenant.subscriptions else {}).items()
    }
    if tenant.rule_events:
        for kind in filter(None, tenant.rule_events.partition(":")[2].split(",")):
            subscriptions[kind] = (*subscriptions.get(kind, ()), RULES)
    return TenantContext(
        tenant_id=tenant.tenant_id,
        name=tenant.name,
        slug=tenant.slug,
        former_slug=tenant.former_slug or "",
        role=role,
        user_id=user_id,
        user_name=user_name,
        acted_by=acted_by,
        standing=standing,
        suspended=_keeps_people_out(tenant),
        created_at=tenant.created_at,
        closes_at=(tenant.closes_at or "") if tenant.status == TenantStatus.CLOSING else "",
        needs_second_factor=bool(tenant.needs_second_factor),
        defaults=tenant.defaults,
        erased=tenant.erased,
        shards=layout.readers,
        shard_epoch=layout.epoch,
        write_shards=layout.writers,
        moving_to=layout.moving_to,
        units_per_second=tenant_limiter.of(tenant.plan, tenant.request_rate),
        subscriptions=subscriptions,
        counts_months=bool(tenant.counts_months),
        queues=tuple(json.loads(tenant.queues)) if tenant.queues else (),
        where=placements.location(tenant),
        items=items or {},
    )


def _keeps_people_out(tenant: TenantItem) -> bool:
    """Tell whether nobody gets in. A desk that was suspended does not open by being closed."""
    status = tenant.status_before if tenant.status == TenantStatus.CLOSING else tenant.status
    return status != TenantStatus.ACTIVE


class _Declared(NamedTuple):
    model: type[Item]
    sort: str
    at: str


_items: Final[dict[str, _Declared]] = {}


def declare_item(name: str, model: type[Item], sort: str, *, at: str = "") -> None:
    """Let contexts have an item of the desk that each of its pages needs, such as the number of letters that wait: the
    one with this sort key, or with the id of the person where that is empty. It is read with the desk itself, in no
    round trip more, and costs half a unit each time. With `at`, such as "tickets/", only that page needs it, whole."""
    _items[name] = _Declared(model, sort, at)


def wanted_items(tenant_id: str, user_id: str, page: str) -> dict[str, Wanted]:
    """Name these items of a desk for `Store.get_all`. `page` is the address behind the desk's name, "" for a piece."""
    tenant_key = keys.tenant(tenant_id)
    wanted = [(name, one) for name, one in _items.items() if one.at in ("", page)]
    return {name: (one.model, tenant_key, one.sort or user_id) for name, one in wanted}


def enter(user: User, tenant_id: str) -> TenantContext | None:
    """Return the context of this person in this tenant, or None: membership and tenant by one consistent
    BatchGetItem."""
    if not keys.TENANT_ID.match(tenant_id):
        return None
    wanted: list[Any] = [(MembershipItem, user.id, tenant_id), (TenantItem, keys.tenant(tenant_id), None)]
    also = wanted_items(tenant_id, user.id, "")
    membership, tenant, *items = PLATFORM.get_all([*wanted, *also.values()], consistent=True)
    return of_items(user, membership, tenant, dict(zip(also, items, strict=True)))


def for_system(tenant: TenantItem, *, name: str = "Pooldesk") -> TenantContext:
    """Return the context in which a command writes: no person, the tenant as stored."""
    return of_tenant(tenant, role=Role.OWNER, user_id="", user_name=name)


def page_mark_of(user_id: str, tenant_id: str) -> str:
    """Return the mark of pages made for this person in this tenant. It can be compared, not read back."""
    return _page_mark(user_id, tenant_id, settings.SECRET_KEY)


@lru_cache(maxsize=2048)
def _page_mark(user_id: str, tenant_id: str, secret: str) -> str:
    value = f"{user_id}|{tenant_id}"
    return salted_hmac("tenants.page-mark", value, secret=secret, algorithm="sha256").hexdigest()[:24]


def is_page_mark(mark: str, user_id: str, tenant_id: str) -> bool:
    """Tell whether a mark is that of pages made for this person in this tenant."""
    return constant_time_compare(mark, page_mark_of(user_id, tenant_id))
