"""Write to people what has changed in how they sign in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from portal import plain_text
from portal.mailing.outgoing import OutgoingMail
from tenants.audit_trail.recording import AuditAction
from tenants.identity.models import User

_NAME_LIMIT: Final = 60  # characters of a passkey's name
_REASON_LIMIT: Final = 300  # characters of an operator's reason
_WHAT: Final = {
    AuditAction.USER_FACTOR_ADDED: "{factor} was added to your account.",
    AuditAction.USER_FACTOR_REMOVED: "{factor} was removed from your account.",
    AuditAction.USER_RECOVERY_CODES_RENEWED: "Your recovery codes were replaced by new ones.",
    AuditAction.USER_RECOVERY_CODE_USED: "A recovery code of yours was used to sign in. {left} of them are left.",
    AuditAction.USER_FACTORS_RESET: "An operator of the platform removed all second factors from your account.",
}
_AFTER: Final = (
    "If it was you, there is nothing to do.",
    "If it was not you, somebody else can sign in as you: set a new password now, look at the page Security of "
    "your account, and tell whoever runs this installation of Pooldesk.",
)


def mail(
    user: User, action: AuditAction, *, factor: str = "", name: str = "", left: int = 0, reason: str = ""
) -> OutgoingMail:
    """Write the mail about one change; `factor` and `name` say of which factor, `left` how many codes there are, and
    `reason` why an operator did it."""
    what = f"The {factor}" if not name else f"The {factor} “{plain_text.named(name, limit=_NAME_LIMIT)}”"
    lines = (
        f"Hello {plain_text.named(user.name, limit=_NAME_LIMIT)},",
        f"{_WHAT[action].format(factor=what, left=left)} The account is {user.email}.",
        *(_after_reset(reason) if action is AuditAction.USER_FACTORS_RESET else _AFTER),
    )
    return OutgoingMail(
        to=user.email,
        subject="The second factor of your Pooldesk account has changed"
        if action is not AuditAction.USER_RECOVERY_CODE_USED
        else "A recovery code of your Pooldesk account was used",
        text="\n\n".join(lines) + "\n",
        kind="second_factor",
        about=f"account/{user.id}",
    )


def _after_reset(reason: str) -> Sequence[str]:
    told = (f"The reason given: {plain_text.without_controls(reason, limit=_REASON_LIMIT)}",) if reason else ()
    return (
        *told,
        "Your recovery codes no longer work, and you are signed out everywhere. Until you add a second factor again, "
        "your password alone signs you in: add one on the page Security of your account. Desks that ask for a second "
        "factor let you in once you have.",
        "If you did not ask for this, tell whoever runs this installation of Pooldesk, and set a new password now.",
    )
