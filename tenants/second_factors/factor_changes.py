"""Add and remove second factors. Each change ends the person's sessions, is audited, and is mailed to the person."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from portal import clock, plain_text
from portal.dynamo.client import fan_out
from portal.dynamo.repository import Transaction
from portal.errors import Conflict, Invalid, NotFound, TransactionRefused
from portal.mailing import outgoing
from portal.nosql import session_store
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.identity import accounts
from tenants.identity.models import User
from tenants.second_factors import (
    authenticator,
    factor_notices,
    factor_store,
    keys,
    passkey_ceremony,
    recovery_codes,
    sealing,
)
from tenants.second_factors.factor_store import Factors
from tenants.second_factors.items import AuthenticatorItem, PasskeyItem, RecoveryItem

PASSKEYS: Final = 20  # of one account
NAME_LIMIT: Final = 60  # characters of a passkey's name
APP: Final = "authenticator app"
NO_APP: Final = "Your account has no authenticator app."
NO_PASSKEY: Final = "Your account has no such passkey."


@dataclass(frozen=True)
class FactorChange:
    """The account after a change, whose sessions have ended, and the new recovery codes, to be shown once."""

    user: User
    codes: Sequence[str] = ()


class _Change:
    """One change under way: what there was, and the transaction that it is written in."""

    def __init__(self, user_id: str, by: Actor) -> None:
        read: list[Callable[[], Any]] = [
            partial(ask, user_id) for ask in (accounts.find_by_id, factor_store.factors_of)
        ]
        user, found = fan_out(read)
        if user is None:
            raise NotFound("This account no longer exists.")
        self.user: User = user
        self.found: Factors = found
        self.by, self.transaction = by, Transaction()
        self.codes: list[str] = []

    def make_codes(self) -> None:
        """Replace the recovery codes."""
        self.codes = recovery_codes.new_codes()
        hashes = {recovery_codes.hash_of(code, user_id=self.user.id) for code in self.codes}
        item = RecoveryItem(self.user.id, keys.RECOVERY, hashes=hashes, created_at=clock.stamp())
        self.transaction.put(item)

    def commit(
        self, kinds: str, action: AuditAction, *, factor: str = "", name: str = "", reason: str = ""
    ) -> FactorChange:
        """Write everything. `kinds` is what there is afterwards. Raises Conflict where something else has changed."""
        if kinds and not self.found.kinds:
            self.make_codes()
        if not kinds and self.found.recovery is not None:
            self.transaction.delete(self.found.recovery)
        accounts.add_factor_change(self.transaction, self.user, kinds=kinds)
        after = {k: v for k, v in (("factor", factor), ("name", name), ("reason", reason)) if v}
        user = self.user
        entry = AuditEntry(recording.PLATFORM, action, self.by, "user", user.id, user.email, after=after)
        unsent = outgoing.join(
            self.transaction, [factor_notices.mail(user, action, factor=factor, name=name, reason=reason)]
        )
        try:
            recording.commit(self.transaction, [entry])
        except TransactionRefused as error:
            raise Conflict("Your account has changed at the same moment. Try again.") from error
        session_store.forget(user.id)
        outgoing.send_all(unsent)
        user.session_epoch, user.second_factors = user.session_epoch + 1, kinds
        return FactorChange(user, tuple(self.codes))


def add_authenticator(user_id: str, *, secret: str, code: str, by: Actor) -> FactorChange:
    """Add an authenticator app that shows this code for this secret.

    Raises Invalid for a wrong code, and Conflict where there is an app already.
    """
    step = authenticator.step_of(secret, code)
    if step is None:
        raise Invalid("That is not the code that the app shows now.", field="one_time_code")
    change = _Change(user_id, by)
    sealed, item = sealing.seal(secret, of=user_id), AuthenticatorItem(user_id, keys.AUTHENTICATOR)
    if change.found.authenticator is not None:
        raise Conflict("Your account has an authenticator app already. Remove it first.")
    item.sealed, item.last_step, item.created_at = sealed, step, clock.stamp()
    change.transaction.put(item, condition=AuthenticatorItem.user_id.does_not_exist())
    kinds = factor_store.kinds(True, bool(change.found.passkeys))
    return change.commit(kinds, AuditAction.USER_FACTOR_ADDED, factor=APP)


def remove_authenticator(user_id: str, *, by: Actor) -> FactorChange:
    """Remove the authenticator app. Raises NotFound where there is none."""
    change = _Change(user_id, by)
    if change.found.authenticator is None:
        raise NotFound(NO_APP)
    change.transaction.delete(change.found.authenticator)
    kinds = factor_store.kinds(False, bool(change.found.passkeys))
    return change.commit(kinds, AuditAction.USER_FACTOR_REMOVED, factor=APP)


def add_passkey(user_id: str, *, credential: str, name: str, by: Actor) -> FactorChange:
    """Add a passkey by its credential, in hex. Raises Invalid for its name, Conflict for one that is there already."""
    name = " ".join(name.split())
    if not plain_text.has_visible_text(name) or len(name) > NAME_LIMIT:
        raise Invalid(f"Use 1-{NAME_LIMIT} characters that can be seen.", field="name")
    if fault := plain_text.name_fault(name):
        raise Invalid(fault, field="name")
    change = _Change(user_id, by)
    passkey_id = passkey_ceremony.passkey_id(credential)
    if len(change.found.passkeys) >= PASSKEYS:
        raise Conflict(f"An account has up to {PASSKEYS} passkeys. Remove one first.")
    if change.found.passkey(passkey_id) is not None:
        raise Conflict("Your account has this passkey already.")
    item = PasskeyItem(user_id, keys.passkey(passkey_id), name=name, credential=credential, created_at=clock.stamp())
    change.transaction.put(item, condition=PasskeyItem.user_id.does_not_exist())
    kinds = factor_store.kinds(change.found.authenticator is not None, True)
    return change.commit(kinds, AuditAction.USER_FACTOR_ADDED, factor="passkey", name=name)


def remove_passkey(user_id: str, *, passkey_id: str, by: Actor) -> FactorChange:
    """Remove one passkey. Raises NotFound where the person has none of this id."""
    change = _Change(user_id, by)
    try:
        item = change.found.passkey(passkey_id)
    except ValueError:
        item = None
    if item is None:
        raise NotFound(NO_PASSKEY)
    change.transaction.delete(item)
    kinds = factor_store.kinds(change.found.authenticator is not None, len(change.found.passkeys) > 1)
    return change.commit(kinds, AuditAction.USER_FACTOR_REMOVED, factor="passkey", name=item.name)


def renew_codes(user_id: str, *, by: Actor) -> FactorChange:
    """Replace the recovery codes. Raises Conflict where there is nothing that they would stand in for."""
    change = _Change(user_id, by)
    if not change.found.kinds:
        raise Conflict("Recovery codes come with a second factor. Add one first.")
    change.make_codes()
    return change.commit(change.found.kinds, AuditAction.USER_RECOVERY_CODES_RENEWED)


def reset(user_id: str, *, reason: str, by: Actor) -> FactorChange:
    """Remove all second factors of somebody who has lost them. Raises NotFound, and Conflict where there are none
    or they are the actor's own, and Invalid for a reason that nobody could read."""
    if not plain_text.has_visible_text(reason):
        raise Invalid("Say why: the audit trail keeps it.", field="reason")
    if user_id == by.id:
        raise Conflict("Nobody resets their own second factors: the page Security removes them.")
    change = _Change(user_id, by)
    if not change.found.kinds:
        raise Conflict("This account has no second factor.")
    for item in (change.found.authenticator, *change.found.passkeys):
        if item is not None:
            change.transaction.delete(item)
    return change.commit("", AuditAction.USER_FACTORS_RESET, reason=reason)
