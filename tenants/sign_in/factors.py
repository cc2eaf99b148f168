"""Second factors of accounts: read them, accept each code or signature once, add, remove and reset them.

No factor works twice: each write has the condition that the code, the counter or the challenge is later than the stored
one. Each change ends the person's sessions, is audited, and is mailed to the person.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal import clock, plain_text
from portal.dynamo.client import fan_out
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Action, Transaction
from portal.errors import ConditionFailed, Conflict, Invalid, NotFound, TransactionRefused
from portal.mailing import outgoing
from portal.mailing.outgoing import OutgoingMail
from portal.nosql import session_store
from portal.web import locales
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.sign_in import accounts, factor_secrets, passkey_ceremony
from tenants.sign_in.accounts import Profile, User
from tenants.sign_in.passkey_ceremony import PasskeySite
from tenants.sign_in.stored import (
    AUTHENTICATOR_KEY,
    FACTOR_ITEMS,
    RECOVERY_KEY,
    AuthenticatorItem,
    PasskeyItem,
    RecoveryItem,
    factors_key,
    passkey_key,
)

AUTHENTICATOR: Final = "authenticator"
PASSKEY: Final = "passkey"


@dataclass(frozen=True)
class Factors:
    """The second factors of one person, as stored now."""

    authenticator: AuthenticatorItem | None
    passkeys: Sequence[PasskeyItem]
    recovery: RecoveryItem | None

    @property
    def kinds(self) -> str:
        """Name what there is, for the account: "authenticator passkey", "" for nothing. Codes alone are nothing."""
        return " ".join([AUTHENTICATOR] * (self.authenticator is not None) + [PASSKEY] * bool(self.passkeys))

    @property
    def codes_left(self) -> int:
        return len(self.recovery.hashes or ()) if self.recovery else 0

    def passkey(self, passkey_id: str) -> PasskeyItem | None:
        """Return the passkey of this id, None where the person has no such passkey."""
        try:
            factor = passkey_key(passkey_id)
        except ValueError:
            return None
        return next((item for item in self.passkeys if item.factor == factor), None)


def factors_of(user_id: str) -> Factors:
    """Read all factors of a person: one consistent Query."""
    found = Factors(None, [], None)
    for item in PLATFORM.query(FACTOR_ITEMS, factors_key(user_id), consistent=True).items:
        match item:
            case AuthenticatorItem():
                found = replace(found, authenticator=item)
            case PasskeyItem():
                found = replace(found, passkeys=sorted([*found.passkeys, item], key=lambda one: str(one.created_at)))
            case RecoveryItem():
                found = replace(found, recovery=item)
    return found


NAME_LIMIT: Final = 60  # characters of a passkey's name
_REASON_LIMIT: Final = 300  # characters of an operator's reason
_WHAT: Final = {
    AuditAction.USER_FACTOR_ADDED: gettext_noop("%(factor)s was added to your account."),
    AuditAction.USER_FACTOR_REMOVED: gettext_noop("%(factor)s was removed from your account."),
    AuditAction.USER_RECOVERY_CODES_RENEWED: gettext_noop("Your recovery codes were replaced by new ones."),
    AuditAction.USER_RECOVERY_CODE_USED: gettext_noop(
        "A recovery code of yours was used to sign in. %(left)s of them are left."
    ),
    AuditAction.USER_FACTORS_RESET: gettext_noop(
        "An operator of the platform removed all second factors from your account."
    ),
}
_CALLED: Final = {
    "authenticator app": gettext_noop("The authenticator app"),
    "passkey": gettext_noop("The passkey"),
}
_AFTER: Final = (
    gettext_noop("If it was you, there is nothing to do."),
    gettext_noop(
        "If it was not you, somebody else can sign in as you: set a new password now, look at the page Security of "
        "your account, and tell whoever runs this installation of Pooldesk."
    ),
)


def change_mail(
    user: User, action: AuditAction, *, factor: str = "", name: str = "", left: int = 0, reason: str = ""
) -> OutgoingMail:
    """Write the mail about one change; `factor` and `name` say of which factor, `left` how many codes there are, and
    `reason` why an operator did it."""
    with locales.shown_in(Profile.parse(user.profile).locale()):
        what = _(_CALLED[factor]) if factor else ""
        if name:
            what = _("The passkey “%(name)s”") % {"name": plain_text.named(name, limit=NAME_LIMIT)}
        done = _(_WHAT[action]) % {"factor": what, "left": left}
        lines = (
            _("Hello %(name)s,") % {"name": plain_text.named(user.name, limit=NAME_LIMIT)},
            _("%(done)s The account is %(email)s.") % {"done": done, "email": user.email},
            *(_after_reset(reason) if action is AuditAction.USER_FACTORS_RESET else map(_, _AFTER)),
        )
        subject = (
            _("The second factor of your Pooldesk account has changed")
            if action is not AuditAction.USER_RECOVERY_CODE_USED
            else _("A recovery code of your Pooldesk account was used")
        )
    return OutgoingMail(
        to=user.email,
        subject=subject,
        text="\n\n".join(lines) + "\n",
        kind="second_factor",
        about=f"account/{user.id}",
    )


def _after_reset(reason: str) -> Sequence[str]:
    told = (
        (_("The reason given: %(reason)s") % {"reason": plain_text.without_controls(reason, limit=_REASON_LIMIT)},)
        if reason
        else ()
    )
    return (
        *told,
        _(
            "Your recovery codes no longer work, and you are signed out everywhere. Until you add a second factor "
            "again, your password alone signs you in: add one on the page Security of your account. Desks that ask for "
            "a second factor let you in once you have."
        ),
        _("If you did not ask for this, tell whoever runs this installation of Pooldesk, and set a new password now."),
    )


log = logging.getLogger("pooldesk.second_factors")
_NOT_TAKEN: Final = gettext_noop("This passkey was not accepted. Try again.")
_COPIED: Final = gettext_noop(
    "The counter of this passkey went back, as that of a copy does. It was not accepted. Sign in with something else, "
    "and remove it."
)


def by_code(user: User, code: str, *, origin: str) -> bool:
    """Tell whether this is a code of the person's authenticator app, or a recovery code that is left; it is used up."""
    found = factors_of(user.id)
    if factor_secrets.is_recovery_code(code):
        return _by_recovery_code(user, found, code, origin=origin)
    app = found.authenticator
    if app is None:
        return False
    try:
        secret = factor_secrets.opened(app.sealed, of=user.id)
    except Invalid:
        log.exception("The secret of an authenticator app cannot be opened: is a key missing in ENCRYPTION_KEYS?")
        return False
    step = factor_secrets.step_of(secret, code, after=int(app.last_step))
    if step is None:
        return False
    actions: list[Action] = [AuthenticatorItem.last_step.set(step), AuthenticatorItem.used_at.set(clock.stamp())]
    if not factor_secrets.is_sealed_with_current_key(app.sealed):
        actions.append(AuthenticatorItem.sealed.set(factor_secrets.seal(secret, of=user.id)))
    unused = (AuthenticatorItem.last_step < step) & (AuthenticatorItem.sealed == app.sealed)
    try:
        PLATFORM.update(app, actions, condition=unused)
    except ConditionFailed:
        return False
    return True


def _by_recovery_code(user: User, found: Factors, code: str, *, origin: str) -> bool:
    hashed = factor_secrets.hash_of_code(code, user_id=user.id)
    if found.recovery is None or hashed not in (found.recovery.hashes or ()) or not found.kinds:
        return False
    left = found.codes_left - 1
    by, after = Actor(user.id, user.email, origin), {"codes left": left}
    entry = AuditEntry.of_user(user.id, user.email, AuditAction.USER_RECOVERY_CODE_USED, by, after=after)
    transaction, unused = Transaction(), RecoveryItem.hashes.contains(hashed)
    transaction.update(found.recovery, [RecoveryItem.hashes.delete({hashed})], condition=unused)
    unsent = outgoing.join(transaction, [change_mail(user, AuditAction.USER_RECOVERY_CODE_USED, left=left)])
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
        try:
            found = factors_of(user_id).passkey(passkey_id) if of in ("", user_id) else None
        except ValueError:  # the browser named no person
            return None
        if found is None:
            return None
        stored[user_id] = found
        return str(found.credential)

    assertion = passkey_ceremony.signed(site, answer, token, credential_of)
    item = stored[assertion.user_id]
    if assertion.uses <= item.uses and (assertion.uses or item.uses):
        raise Invalid(_(_COPIED))
    newer: Any = PasskeyItem.challenged_at < assertion.challenged_at
    newer &= PasskeyItem.uses < assertion.uses if assertion.uses else PasskeyItem.uses == 0
    actions: list[Action] = [
        PasskeyItem.uses.set(assertion.uses),
        PasskeyItem.challenged_at.set(assertion.challenged_at),
        PasskeyItem.used_at.set(clock.stamp()),
    ]
    user = accounts.find_by_id(assertion.user_id)
    if user is None or not user.is_active:
        raise Invalid(_(_NOT_TAKEN))
    try:
        PLATFORM.update(item, actions, condition=newer)
    except ConditionFailed as error:
        raise Invalid(_(_NOT_TAKEN)) from error
    return user


PASSKEY_LIMIT: Final = 20  # of one account
APP: Final = "authenticator app"
NO_APP: Final = gettext_noop("Your account has no authenticator app.")
NO_PASSKEY: Final = gettext_noop("Your account has no such passkey.")


@dataclass(frozen=True)
class FactorChange:
    """The account after a change, whose sessions have ended, and the new recovery codes, to be shown once."""

    user: User
    codes: Sequence[str] = ()


class _Change:
    """One change under way: what there was, and the transaction that it is written in."""

    def __init__(self, user_id: str, by: Actor) -> None:
        read: list[Callable[[], Any]] = [partial(ask, user_id) for ask in (accounts.find_by_id, factors_of)]
        user, found = fan_out(read)
        if user is None:
            raise NotFound(_("This account no longer exists."))
        self.user: User = user
        self.found: Factors = found
        self.by, self.transaction = by, Transaction()
        self.codes: list[str] = []

    def make_codes(self) -> None:
        self.codes = factor_secrets.new_codes()
        hashes = {factor_secrets.hash_of_code(code, user_id=self.user.id) for code in self.codes}
        item = RecoveryItem(self.user.id, RECOVERY_KEY, hashes=hashes, created_at=clock.stamp())
        self.transaction.put(item)

    def commit(
        self, left: Factors, action: AuditAction, *, factor: str = "", name: str = "", reason: str = ""
    ) -> FactorChange:
        """Write everything. `left` is what there is afterwards. Raises Conflict where something else has changed."""
        kinds = left.kinds
        if kinds and not self.found.kinds:
            self.make_codes()
        if not kinds and self.found.recovery is not None:
            self.transaction.delete(self.found.recovery)
        accounts.add_factor_change(self.transaction, self.user, kinds=kinds)
        after = {k: v for k, v in (("factor", factor), ("name", name), ("reason", reason)) if v}
        user = self.user
        entry = AuditEntry.of_user(user.id, user.email, action, self.by, after=after)
        unsent = outgoing.join(self.transaction, [change_mail(user, action, factor=factor, name=name, reason=reason)])
        changed = Conflict(_("Your account has changed at the same moment. Try again."))
        recording.commit(self.transaction, [entry], refused=changed)
        session_store.forget(user.id)
        outgoing.send_all(unsent)
        user.session_epoch, user.second_factors = user.session_epoch + 1, kinds
        return FactorChange(user, tuple(self.codes))


def add_authenticator(user_id: str, *, secret: str, code: str, by: Actor) -> FactorChange:
    """Add an authenticator app that shows this code for this secret.

    Raises Invalid for a wrong code, and Conflict where there is an app already.
    """
    step = factor_secrets.step_of(secret, code)
    if step is None:
        raise Invalid(_("That is not the code that the app shows now."), field="one_time_code")
    change = _Change(user_id, by)
    sealed, item = factor_secrets.seal(secret, of=user_id), AuthenticatorItem(user_id, AUTHENTICATOR_KEY)
    if change.found.authenticator is not None:
        raise Conflict(_("Your account has an authenticator app already. Remove it first."))
    item.sealed, item.last_step, item.created_at = sealed, step, clock.stamp()
    change.transaction.put(item, condition=AuthenticatorItem.user_id.does_not_exist())
    return change.commit(replace(change.found, authenticator=item), AuditAction.USER_FACTOR_ADDED, factor=APP)


def remove_authenticator(user_id: str, *, by: Actor) -> FactorChange:
    """Remove the authenticator app. Raises NotFound where there is none."""
    change = _Change(user_id, by)
    if change.found.authenticator is None:
        raise NotFound(_(NO_APP))
    change.transaction.delete(change.found.authenticator)
    return change.commit(replace(change.found, authenticator=None), AuditAction.USER_FACTOR_REMOVED, factor=APP)


def add_passkey(user_id: str, *, credential: str, name: str, by: Actor) -> FactorChange:
    """Add a passkey by its credential, in hex. Raises Invalid for its name, Conflict for one that is there already."""
    name = " ".join(name.split())
    if not plain_text.has_visible_text(name) or len(name) > NAME_LIMIT:
        raise Invalid(_("Use 1-%(limit)s characters that can be seen.") % {"limit": NAME_LIMIT}, field="name")
    if fault := plain_text.name_fault(name):
        raise Invalid(fault, field="name")
    change = _Change(user_id, by)
    passkey_id = passkey_ceremony.passkey_id(credential)
    if len(change.found.passkeys) >= PASSKEY_LIMIT:
        raise Conflict(_("An account has up to %(limit)s passkeys. Remove one first.") % {"limit": PASSKEY_LIMIT})
    if change.found.passkey(passkey_id) is not None:
        raise Conflict(_("Your account has this passkey already."))
    item = PasskeyItem(user_id, passkey_key(passkey_id), name=name, credential=credential, created_at=clock.stamp())
    change.transaction.put(item, condition=PasskeyItem.user_id.does_not_exist())
    return change.commit(
        replace(change.found, passkeys=[item]), AuditAction.USER_FACTOR_ADDED, factor="passkey", name=name
    )


def remove_passkey(user_id: str, *, passkey_id: str, by: Actor) -> FactorChange:
    """Remove one passkey. Raises NotFound where the person has none of this id."""
    change = _Change(user_id, by)
    item = change.found.passkey(passkey_id)
    if item is None:
        raise NotFound(_(NO_PASSKEY))
    change.transaction.delete(item)
    left = replace(change.found, passkeys=[one for one in change.found.passkeys if one is not item])
    return change.commit(left, AuditAction.USER_FACTOR_REMOVED, factor="passkey", name=item.name)


def renew_codes(user_id: str, *, by: Actor) -> FactorChange:
    """Replace the recovery codes. Raises Conflict where there is nothing that they would stand in for."""
    change = _Change(user_id, by)
    if not change.found.kinds:
        raise Conflict(_("Recovery codes come with a second factor. Add one first."))
    change.make_codes()
    return change.commit(change.found, AuditAction.USER_RECOVERY_CODES_RENEWED)


def reset(user_id: str, *, reason: str, by: Actor) -> FactorChange:
    """Remove all second factors of somebody who has lost them. Raises NotFound, and Conflict where there are none
    or they are the actor's own, and Invalid for a reason that nobody could read."""
    if not plain_text.has_visible_text(reason):
        raise Invalid(_("Say why: the audit trail keeps it."), field="reason")
    if user_id == by.id:
        raise Conflict(_("Nobody resets their own second factors: the page Security removes them."))
    change = _Change(user_id, by)
    if not change.found.kinds:
        raise Conflict(_("This account has no second factor."))
    for item in (change.found.authenticator, *change.found.passkeys):
        if item is not None:
            change.transaction.delete(item)
    return change.commit(Factors(None, (), None), AuditAction.USER_FACTORS_RESET, reason=reason)
