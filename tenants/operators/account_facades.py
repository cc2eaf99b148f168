"""Declare facades over accounts and their sessions for the operators' admin, and how each can be read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.db import models

from portal.errors import Invalid
from portal.nosql.planner.facade import Facade
from portal.nosql.planner.patterns import Get, Lookup, Query
from portal.nosql.stored import SessionByUser, SessionItem
from portal.schema import keys
from tenants.audit_trail import recording
from tenants.sign_in import accounts, session_lifecycle
from tenants.sign_in.stored import AccountItem, DisabledAccount, user_key

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
        app_label = "tenants"
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

    class Meta(Facade.Meta):
        app_label = "tenants"

    @classmethod
    def from_item(cls, item: Any) -> Any:
        session = super().from_item(item)
        session.until = datetime.fromtimestamp(int(item.expires_at), UTC)
        return session

    def __str__(self) -> str:
        return session_lifecycle.browser_of(self.agent or "")

    def entity(self) -> tuple[str, str, str]:
        return recording.PLATFORM, "user", self.user_id
