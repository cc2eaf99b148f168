"""Accounts: people who can sign in. Each write is one transaction that keeps the e-mail address unique."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import ClassVar, Final

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.hashers import make_password
from django.db import models
from django.utils.crypto import salted_hmac
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy, gettext_noop
from django.utils.translation import gettext as _

from portal import clock, plain_text
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Action as UpdateAction
from portal.dynamo.store import Condition, Transaction
from portal.errors import ConditionFailed, Conflict, Invalid, NotFound, TransactionRefused
from portal.nosql import session_store
from portal.nosql.planner.facade import Facade, FacadeManager
from portal.web import locales
from portal.web.locales import Locale
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.sign_in.stored import AccountItem, UniqueItem, email_key, folded, user_key

DESK: Final = "desk"  # as a zone: that of the desk, whatever the browser says
# Each language is named in itself, and so not marked.
LANGUAGES: Final[dict[str, str | Promise]] = {"": gettext_lazy("As the desk has it"), **dict(settings.LANGUAGES)}
WEEK_STARTS: Final = {"0": gettext_lazy("Monday"), "5": gettext_lazy("Saturday"), "6": gettext_lazy("Sunday")}
DATE_FORMS: Final[dict[str, str | Promise]] = {
    "words": gettext_lazy("26 Nov 2026, 15:04"),
    "dots": "26.11.2026, 15:04",
    "slashes": "26/11/2026, 15:04",
    "us": "11/26/2026, 3:04 pm",
    "iso": "2026-11-26, 15:04",
}
NUMBER_FORMS: Final = {
    "": gettext_lazy("As the language has it"),
    "comma": "1,234.5",
    "dot": "1.234,5",
    "space": "1 234,5",
    "apostrophe": "1\u2019234.5",
}

_CHOICES: Final[Mapping[str, Collection[str]]] = {
    "date_form": DATE_FORMS,
    "number_form": NUMBER_FORMS,
    "first_weekday": WEEK_STARTS,
    "language": LANGUAGES,
}


@dataclass(frozen=True)
class Profile:
    """Hold the choices of a person.

    `zone` is "" until one is chosen or found, and DESK for that of the desk; `language` is "" for that of the desk, and
    `number_form` for that of the language; `first_weekday` is 0 for Monday.
    """

    zone: str = ""
    date_form: str = "words"
    number_form: str = ""
    first_weekday: str = "0"
    language: str = ""

    @classmethod
    def parse(cls, text: str | None) -> Profile:
        """Read what `str` makes; None is a person who has chosen nothing. Values of a later version are left out."""
        return _parsed(text) if text else _NONE

    def __str__(self) -> str:
        """Write what differs from the profile of somebody who has chosen nothing, "" where nothing does."""
        chosen = {name: value for name, value in asdict(self).items() if value != getattr(_NONE, name)}
        return json.dumps(chosen, separators=(",", ":"), sort_keys=True) if chosen else ""

    def in_zone(self, zone: str) -> Profile:
        return replace(self, zone=zone)

    def check(self) -> None:
        """Raise Invalid, with the field, for a value that is no choice."""
        if self.zone not in ("", DESK) and self.zone not in clock.zone_names():
            raise Invalid(gettext("Choose a time zone from the list."), field="zone")
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise Invalid(gettext("Choose a value from the list."), field=name)

    @property
    def own_zone(self) -> str:
        """Return the zone that is the person's own, "" where that of the desk holds."""
        return "" if self.zone == DESK else self.zone

    def locale(self, desk_zone: str = "", language: str = locales.ENGLISH) -> Locale:
        """Return how pages of a desk in this zone, "" for one that has chosen none, are written for the person.

        `language` is that of a person who has chosen none.
        """
        return _locale(
            self.own_zone or desk_zone,
            self.date_form,
            self.number_form,
            self.first_weekday,
            self.language or language or locales.ENGLISH,
        )


_NONE: Final = Profile()


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Profile:
    told = json.loads(text)
    known = {name: value for name, value in told.items() if value in _CHOICES.get(name, ())}
    zone = told.get("zone", "")
    return Profile(zone=zone if zone == DESK or zone in clock.zone_names() else "", **known)


@lru_cache(maxsize=1024)
def _locale(zone: str, date_form: str, number_form: str, first_weekday: str, language: str) -> Locale:
    return Locale(zone or clock.UTC_NAME, date_form, number_form, int(first_weekday), not zone, language)


class User(AbstractBaseUser, Facade):
    """The account as Django's auth sees it: a facade over `AccountItem`."""

    id = models.CharField(primary_key=True, max_length=32)
    email = models.EmailField(unique=True)
    name = models.CharField(max_length=100)
    is_active = models.BooleanField(default=True)
    is_operator = models.BooleanField(default=False)
    session_epoch = models.PositiveIntegerField(default=0)
    signed_in_at = models.CharField(max_length=40, default="")
    second_factors = models.CharField(max_length=40, default="")
    profile = models.CharField(max_length=400, default="")  # a Profile, as text
    # Removes the field: `signed_in_at` stands for it, and is written by accounts.py.
    last_login = None

    objects: ClassVar[FacadeManager] = FacadeManager()
    stored_password = ""  # as it was read, while `password` may be made anew

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = ["name"]

    class Meta:
        managed = False

    @classmethod
    def from_item(cls, item: AccountItem) -> User:
        stored = ((field, item.attribute_values.get(field.attname)) for field in cls._meta.concrete_fields)
        values = {field.attname: field.to_python(value) for field, value in stored if value is not None}
        user = cls(id=item.user_id, **values)
        user._state.adding = False
        user.stored_password = item.password
        return user

    def save(self, *args: object, **kwargs: object) -> None:
        # check_password() saves a hash made with outdated parameters; whatever else changes is written by accounts.py.
        if kwargs.get("update_fields") == ["password"]:
            # A password that was changed meanwhile stays: the hash is of the one before.
            with suppress(ConditionFailed):
                PLATFORM.update(
                    AccountItem(user_key(self.id)),
                    [AccountItem.password.set(self.password)],
                    condition=AccountItem.password == self.stored_password,
                )
                self.stored_password = self.password
            return
        Facade.save(self)

    def _get_session_auth_hash(self, secret: str | None = None) -> str:
        # The epoch makes "sign out everywhere" one write: sessions made before it no longer match.
        return salted_hmac(
            "tenants.User.session", f"{self.password}|{self.session_epoch}", secret=secret, algorithm="sha256"
        ).hexdigest()


DISABLED: Final = "DISABLED"  # the partition of the index that lists accounts which may not sign in
_NOBODY: Final = "0" * 32  # an id that no account has
_GONE: Final = gettext_noop("This account no longer exists.")
ACCOUNT: Final = "account"  # names the members of a transaction that are about the account itself


def new_id() -> str:
    """Return a fresh user or tenant id: 32 lower-case hex digits."""
    return uuid.uuid4().hex


def normal_address(address: str) -> str:
    """Return an address as it is stored and compared. Raises Invalid, at the field "email", for what is none."""
    try:
        return folded(address)
    except ValueError as error:
        raise Invalid(str(error), field="email") from error


def _stored(user_id: str) -> AccountItem | None:
    return PLATFORM.get(AccountItem, user_key(user_id), consistent=True)


def find_by_id(user_id: str) -> User | None:
    try:
        item = _stored(user_id)
    except ValueError:
        return None
    return User.from_item(item) if item else None


def find_by_email(address: str) -> User | None:
    """Find an account by two GetItems, one after the other, whether there is such an account or not."""
    return find_by_id(id_of(address) or _NOBODY)


def id_of(address: str) -> str | None:
    """Return the id of the account that has this address: one GetItem."""
    try:
        found = PLATFORM.get(UniqueItem, email_key(address), consistent=True)
    except ValueError:
        return None
    return found.owner if found else None


def ids_of(addresses: Sequence[str]) -> dict[str, str]:
    """Return the ids of the accounts that have these addresses, by address: a BatchGetItem for every hundred."""
    found = PLATFORM.get_all([(UniqueItem, email_key(one), None) for one in addresses])
    return {one: item.owner for one, item in zip(addresses, found, strict=True) if item is not None}


def find_all(user_ids: Sequence[str]) -> dict[str, User]:
    """Return those of these accounts that there are, by id: a BatchGetItem for every hundred."""
    found = PLATFORM.get_all([(AccountItem, user_key(one), None) for one in user_ids])
    return {item.user_id: User.from_item(item) for item in found if item is not None}


def create(
    *, email: str, name: str, password: str | None, is_operator: bool = False, user_id: str | None = None, by: Actor
) -> User:
    """Create an account, with a new id if none is given, and its row in the platform's audit trail.

    Raises Conflict when the address or the id is taken, Invalid when it is not an address.
    """
    account = draft(email=email, name=name, password=password, is_operator=is_operator, user_id=user_id)
    after = {"name": account.name, "operator": is_operator}
    entry = AuditEntry.of_user(account.user_id, account.email, AuditAction.USER_CREATED, by, after=after)
    return _commit_new(account, [entry])


def seed(*, email: str, name: str, password_hash: str, user_id: str | None = None, is_operator: bool = False) -> User:
    """Create an account of sample data: without an audit row, and with a hash that many share. Raises as `create`."""
    account = draft(email=email, name=name, password_hash=password_hash, user_id=user_id, is_operator=is_operator)
    return _commit_new(account, [])


def _commit_new(account: AccountItem, entries: list[AuditEntry]) -> User:
    transaction = Transaction()
    add_to(transaction, account)
    taken = Conflict(_("%(email)s has an account already.") % {"email": account.email}, field="email")
    recording.commit(transaction, entries, refused=taken)
    return User.from_item(account)


def draft(
    *,
    email: str,
    name: str,
    password: str | None = None,
    is_operator: bool = False,
    user_id: str | None = None,
    password_hash: str | None = None,
) -> AccountItem:
    """Return an account that is not yet written. Raises Invalid for an address or a name that cannot be one."""
    address = normal_address(email)
    name = " ".join(name.split()) or email.split("@")[0]
    if fault := plain_text.name_fault(name):
        raise Invalid(fault, field="name")
    user_id = user_id or new_id()
    return AccountItem(
        user_key(user_id),
        user_id=user_id,
        email=address,
        name=name,
        password=password_hash or make_password(password),
        is_active=True,
        is_operator=is_operator,
        session_epoch=0,
        created_at=clock.stamp(),
    )


def add_to(transaction: Transaction, account: AccountItem) -> None:
    """Write what `draft` made, if neither the address nor the id is taken."""
    unique = UniqueItem(email_key(account.email), owner=account.user_id)
    transaction.put(unique, name=ACCOUNT, condition=UniqueItem.pk.does_not_exist())
    transaction.put(account, name=ACCOUNT, condition=AccountItem.pk.does_not_exist())


def set_password(user_id: str, password: str, *, by: Actor, instead_of: str | None = None) -> User:
    """Store a new password. Every session of the account ends, because sessions carry a hash of the password.

    `instead_of` is the stored hash that the new one replaces; raises Conflict where another one has replaced it.
    """
    condition = None if instead_of is None else AccountItem.password == instead_of
    actions = [AccountItem.password.set(make_password(password))]
    user = _update(user_id, actions, AuditAction.USER_PASSWORD_SET, by, condition=condition, already="changed")
    session_store.forget(user_id)
    return user


def note_sign_in(user_id: str) -> None:
    """Remember that the person signed in just now, which ends the reset links sent before: one update."""
    with suppress(ConditionFailed):  # the account was removed meanwhile
        item, condition = AccountItem(user_key(user_id)), AccountItem.pk.exists()
        PLATFORM.update(item, [AccountItem.signed_in_at.set(clock.stamp())], condition=condition)


def set_profile(user_id: str, *, name: str, profile: Profile, by: Actor, made_from: User | None = None) -> User:
    """Store a person's name and profile, with what changed in the platform's own audit trail.

    `made_from` is the account from which a change was computed that nobody made by hand: it holds for that one alone.
    Raises Invalid with the field, NotFound where the account is gone, and Conflict where somebody else was faster.
    """
    name = " ".join(name.split())
    if not name or (fault := plain_text.name_fault(name)):
        raise Invalid(fault if name else _("Write your name."), field="name")
    profile.check()
    if (stored := _stored(user_id)) is None:
        raise NotFound(_(_GONE))
    refused = Conflict(_("Your profile has just been changed elsewhere. Please check and try again."))
    if made_from is not None and (made_from.name, made_from.profile) != (stored.name, stored.profile or ""):
        raise refused
    text = str(profile)
    before = {"name": stored.name, **asdict(Profile.parse(stored.profile))}
    after = {"name": name, **asdict(profile)}
    changed = [one for one in after if after[one] != before[one]]
    if not changed:
        return User.from_item(stored)
    kept: UpdateAction = AccountItem.profile.set(text) if text else AccountItem.profile.remove()
    actions = [AccountItem.name.set(name), kept]
    seen = AccountItem.name == stored.name
    seen &= AccountItem.profile == stored.profile if stored.profile else AccountItem.profile.does_not_exist()
    transaction = Transaction()
    transaction.update(AccountItem(stored.pk), actions, name=ACCOUNT, condition=AccountItem.pk.exists() & seen)
    told = [{one: some[one] for one in changed} for some in (before, after)]
    entry = AuditEntry.of_user(user_id, stored.email, AuditAction.USER_PROFILE_CHANGED, by, *told)
    recording.commit(transaction, [entry], refused=refused)
    stored.name, stored.profile = name, text
    return User.from_item(stored)


def sign_out_everywhere(user_id: str, *, by: Actor) -> int:
    """End every session of the account with one write; afterwards their items are cleared away. Returns how many."""
    _update(user_id, [AccountItem.session_epoch.add(1)], AuditAction.USER_SIGNED_OUT_EVERYWHERE, by)
    return session_store.forget(user_id)


def add_factor_change(transaction: Transaction, user: User, *, kinds: str) -> None:
    """Note in a transaction which kinds of second factors an account has now, and end every session of it.

    The part is named ACCOUNT, and refused where sessions have been ended since the account was read.
    """
    noted = AccountItem.second_factors.set(kinds) if kinds else AccountItem.second_factors.remove()
    unchanged = AccountItem.session_epoch == user.session_epoch
    item = AccountItem(user_key(user.id))
    transaction.update(item, [noted, AccountItem.session_epoch.add(1)], name=ACCOUNT, condition=unchanged)


def set_active(user_id: str, active: bool, *, by: Actor, reason: str = "") -> User:
    """Disable an account, which ends at the person's next click, or enable it again; the audit row keeps the reason.

    Raises NotFound, and Conflict where it is so already or the account is the actor's own.
    """
    if user_id == by.id:
        raise Conflict("Nobody disables their own account.")
    listed = AccountItem.disabled.remove() if active else AccountItem.disabled.set(DISABLED)
    user = _update(
        user_id,
        [AccountItem.is_active.set(active), listed],
        AuditAction.USER_ENABLED if active else AuditAction.USER_DISABLED,
        by,
        condition=AccountItem.is_active == (not active),
        already="enabled" if active else "disabled",
        reason=reason,
    )
    if not active:
        session_store.forget(user_id)
    return user


def set_operator(user_id: str, operator: bool, *, by: Actor, reason: str = "") -> User:
    """Make somebody an operator, or end it. Raises NotFound, and Conflict as `set_active` does."""
    if user_id == by.id:
        raise Conflict("Nobody ends their own operatorship.")
    return _update(
        user_id,
        [AccountItem.is_operator.set(operator)],
        AuditAction.USER_MADE_OPERATOR if operator else AuditAction.USER_OPERATOR_ENDED,
        by,
        condition=AccountItem.is_operator == (not operator),
        already="so" if operator else "no operator",
        reason=reason,
    )


def _update(
    user_id: str,
    actions: Sequence[UpdateAction],
    action: AuditAction,
    by: Actor,
    *,
    condition: Condition | None = None,
    already: str = "",
    reason: str = "",
) -> User:
    """Update an account. `already` names its state where the condition does not hold any more."""
    gone = NotFound(_(_GONE))
    if (account := _stored(user_id)) is None:
        raise gone
    stands = AccountItem.pk.exists() if condition is None else AccountItem.pk.exists() & condition
    transaction = Transaction()
    transaction.update(AccountItem(account.pk), [*actions], name=ACCOUNT, condition=stands)
    after = {"reason": reason} if reason else {}
    try:
        recording.commit(transaction, [AuditEntry.of_user(user_id, account.email, action, by, after=after)])
    except TransactionRefused as error:
        refused = error.reason(ACCOUNT)
        if condition is None or refused is None or refused.item is None:
            raise gone from error
        raise Conflict(f"The account is {already} already.") from error
    if (changed := _stored(user_id)) is None:
        raise gone
    return User.from_item(changed)
