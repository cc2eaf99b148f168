"""Take a second factor as proof, each use of it once.

That nothing works twice does not rest on a read: each write has the condition that the code, the counter or the
challenge is a later one than what is stored.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from portal import clock
from portal.dynamo.repository import Action, Transaction
from portal.errors import ConditionFailed, Invalid, TransactionRefused
from portal.mailing import outgoing
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.identity import accounts
from tenants.identity.models import User
from tenants.second_factors import (
    authenticator,
    factor_notices,
    factor_store,
    passkey_ceremony,
    recovery_codes,
    sealing,
)
from tenants.second_factors.factor_store import Factors
from tenants.second_factors.items import AuthenticatorItem, PasskeyItem, RecoveryItem
from tenants.second_factors.passkey_ceremony import PasskeySite

log = logging.getLogger("pooldesk.second_factors")
_NOT_TAKEN: Final = "This passkey was not accepted. Try again."
_COPIED: Final = (
    "The counter of this passkey went back, as that of a copy does. It was not accepted. Sign in with something else, "
    "and remove it."
)


def by_code(user: User, code: str, *, origin: str) -> bool:
    """Tell whether this is a code of the person's authenticator app, or a recovery code that is left; it is used up."""
    found = factor_store.factors_of(user.id)
    if recovery_codes.is_one(code):
        return _by_recovery_code(user, found, code, origin=origin)
    app = found.authenticator
    if app is None:
        return False
    try:
        secret = sealing.opened(app.sealed, of=user.id)
    except Invalid:
        log.exception("The secret of an authenticator app cannot be opened: is a key missing in ENCRYPTION_KEYS?")
        return False
    step = authenticator.step_of(secret, code, after=int(app.last_step))
    if step is None:
        return False
    actions: list[Action] = [AuthenticatorItem.last_step.set(step), AuthenticatorItem.used_at.set(clock.stamp())]
    if not sealing.is_current(app.sealed):
        actions.append(AuthenticatorItem.sealed.set(sealing.seal(secret, of=user.id)))
    unused = (AuthenticatorItem.last_step < step) & (AuthenticatorItem.sealed == app.sealed)
    try:
        app.update(actions=actions, condition=unused)
    except ConditionFailed:
        return False
    return True


def _by_recovery_code(user: User, found: Factors, code: str, *, origin: str) -> bool:
    hashed = recovery_codes.hash_of(code, user_id=user.id)
    if found.recovery is None or hashed not in (found.recovery.hashes or ()) or not found.kinds:
        return False
    left = found.codes_left - 1
    entry = AuditEntry(
        recording.PLATFORM,
        AuditAction.USER_RECOVERY_CODE_USED,
        Actor(user.id, user.email, origin),
        "user",
        user.id,
        user.email,
        after={"codes left": left},
    )
    transaction = Transaction()
    transaction.update(
        found.recovery, [RecoveryItem.hashes.delete({hashed})], condition=RecoveryItem.hashes.contains(hashed)
    )
    unsent = outgoing.join(transaction, [factor_notices.mail(user, AuditAction.USER_RECOVERY_CODE_USED, left=left)])
    try:
        recording.commit(transaction, [entry])
    except TransactionRefused:
        return False
    outgoing.send_all(unsent)
    return True


def by_passkey(site: PasskeySite, answer: str, token: str, *, of: str = "") -> User:
    """Return who signed a challenge with a passkey; `of` is the id of the one person who may, "" for anybody.

    One Query of the factors, one GetItem of the account, and the write. Raises Invalid, with a sentence for the person.
    """
    stored: dict[str, PasskeyItem] = {}

    def credential_of(user_id: str, passkey_id: str) -> str | None:
        if of and user_id != of:
            return None
        try:
            item = factor_store.factors_of(user_id).passkey(passkey_id)
        except ValueError:
            return None
        if item is not None:
            stored[user_id] = item
        return item.credential if item is not None else None

    assertion = passkey_ceremony.signed(site, answer, token, credential_of)
    item = stored[assertion.user_id]
    if assertion.uses <= item.uses and (assertion.uses or item.uses):
        raise Invalid(_COPIED)
    newer: Any = PasskeyItem.challenged_at < assertion.challenged_at
    newer &= PasskeyItem.uses < assertion.uses if assertion.uses else PasskeyItem.uses == 0
    actions: list[Action] = [
        PasskeyItem.uses.set(assertion.uses),
        PasskeyItem.challenged_at.set(assertion.challenged_at),
        PasskeyItem.used_at.set(clock.stamp()),
    ]
    user = accounts.find_by_id(assertion.user_id)
    if user is None or not user.is_active:
        raise Invalid(_NOT_TAKEN)
    try:
        item.update(actions=actions, condition=newer)
    except ConditionFailed as error:
        raise Invalid(_NOT_TAKEN) from error
    return user
