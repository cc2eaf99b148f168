"""Send somebody a link for a new password, as an operator: to them, with a reason, and where their desks can see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from portal.dynamo.store import Transaction
from portal.errors import Conflict, Forbidden, NotFound
from portal.mailing import outgoing
from portal.mailing.outgoing import OutgoingMail
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.membership import members
from tenants.sign_in import accounts
from tenants.sign_in.accounts import User

_ROWS: Final = 20  # of a transaction: a person may be in more desks than one can hold


def send(user_id: str, *, write: Callable[[User], OutgoingMail], reason: str, by: Actor) -> None:
    """Mail the person a link that works once; `write` writes the mail.

    The platform's trail and that of each of the person's desks get a row first. Raises NotFound, Conflict for an
    account that may not sign in, and Forbidden for an operator's: who has it could do everything here under another
    name.
    """
    user = accounts.find_by_id(user_id)
    if user is None:
        raise NotFound("This account no longer exists.")
    if user.is_operator:
        raise Forbidden("Operators choose a new password themselves: nobody sends them a link.")
    if not user.is_active:
        raise Conflict("This account may not sign in. Enable it first.")
    desks = [recording.PLATFORM, *(membership.tenant_id for membership in members.memberships_of(user.id))]
    entries = [
        AuditEntry(tenant_id, AuditAction.USER_RESET_LINK_SENT, by, "user", user.id, user.email, {}, {"reason": reason})
        for tenant_id in desks
    ]
    for start in range(_ROWS, len(entries), _ROWS):
        recording.commit(Transaction(), entries[start : start + _ROWS])
    transaction = Transaction()
    later = outgoing.join(transaction, [write(user)])
    recording.commit(transaction, entries[:_ROWS])
    outgoing.send_all(later)
