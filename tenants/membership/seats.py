"""Keep a tenant within its limit of members, which counts members and valid pending invitations together.

There is no counter that could drift. If there is a limit, whoever takes a seat counts what is stored, consistently, and
writes on condition that nobody took one meanwhile: the tenant's item has a number that each taken seat raises. Of
several people at the same moment one succeeds, and the others count again. Leaving only makes room, and needs none of
this. Without a limit nothing is counted, and that there is none is a condition as well.

A count alone could still miss a seat: a Query is not serialisable with a transaction committed just before, whose items
may still be arriving. So the tenant's item also names the seat that was taken last, and the transaction checks that
this one is stored as it was counted.

Source: AWS, "Amazon DynamoDB transactions: how it works", isolation levels: a Query is read-committed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from portal import clock
from portal.dynamo.store import Condition, Store, Transaction
from portal.errors import Conflict
from portal.schema import keys
from tenants.audit_trail import recording
from tenants.audit_trail.recording import AuditEntry
from tenants.membership.stored import InviteItem, MemberItem
from tenants.tenancy import tenant_directory
from tenants.tenancy.context import Role
from tenants.tenancy.stored import TenantItem

# Members of the transaction that depend on what was counted.
_LIMIT, _LAST_SEAT = "limit", "last seat"
_MEMBER: Final = "member"


@dataclass(frozen=True)
class Seat:
    """A place that is taken: by a member, `id` being a user id, or by a pending invitation, `id` being its own."""

    kind: str
    id: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.id}"


# The stored seats, each with the time stamp at which it expires: "" for members, who do not.
_Stored = Mapping[Seat, str]


def member(user_id: str) -> Seat:
    return Seat(_MEMBER, user_id)


def invite(invite_id: str) -> Seat:
    return Seat("invite", invite_id)


def commit(
    transaction: Transaction,
    entries: Sequence[AuditEntry],
    *,
    tenant_id: str,
    seat: Seat,
    instead_of: Seat | None = None,
    status: str | None = None,
) -> None:
    """Write a change that takes a seat, with its audit rows, if there is room. The given transaction is not altered: a
    copy of it is made for each attempt, in which the room is counted anew.

    Somebody who accepts an invitation gives its seat up, `instead_of`, and is refused only if the limit has been
    lowered below the number of members since. If `status` is given, the tenant must have it. Raises Conflict with a
    sentence for people, NotFound, and what `recording.commit` raises.
    """

    def build() -> Transaction:
        copy = transaction.copy()
        _take(copy, tenant_directory.get(tenant_id), seat, instead_of, status)
        return copy

    recording.commit_built(build, entries, depending=[_LIMIT, _LAST_SEAT])


def _take(
    transaction: Transaction, tenant: TenantItem, seat: Seat, instead_of: Seat | None, status: str | None
) -> None:
    """Make the transaction depend on the limit and on what was counted. Raises Conflict if there is no room."""
    if status is not None and tenant.status != status:
        raise Conflict(_("This desk cannot take new members at the moment."))
    unchanged = _is(TenantItem.member_limit, tenant.member_limit)
    if status is not None:
        unchanged &= TenantItem.status == status
    if not tenant.member_limit:
        transaction.check(tenant, unchanged, name=_LIMIT)
        return
    stored = _stored(tenant.tenant_id)
    _refuse_if_full(int(tenant.member_limit), stored, seat, instead_of)
    unchanged &= _is(TenantItem.seatings, tenant.seatings)
    transaction.update(
        tenant,
        [TenantItem.seatings.set(int(tenant.seatings or 0) + 1), TenantItem.last_seat.set(str(seat))],
        name=_LIMIT,
        condition=unchanged,
    )
    # The transaction itself writes or deletes the other two, with conditions of its own.
    if tenant.last_seat and tenant.last_seat not in (str(seat), str(instead_of)):
        _check_as_counted(transaction, tenant.tenant_id, Seat(*tenant.last_seat.split("/")), stored)


def _refuse_if_full(limit: int, stored: _Stored, seat: Seat, instead_of: Seat | None) -> None:
    now, room = clock.stamp(), ngettext("%(num)s member", "%(num)s members", limit) % {"num": limit}
    people = {one for one in stored if one.kind == _MEMBER}
    invited = {one for one, expires in stored.items() if one.kind != _MEMBER and expires > now}
    if instead_of is not None:
        if len(people | {seat}) > limit:
            raise Conflict(
                _("This desk is full (%(room)s). Ask the person who invited you to make room.") % {"room": room}
            )
    elif len(people | invited | {seat}) > limit:
        counts = {"room": room, "num": len(invited), "people": len(people)}
        full = (
            ngettext(
                "This desk may have %(room)s and has %(people)s and %(num)s pending invitation.",
                "This desk may have %(room)s and has %(people)s and %(num)s pending invitations.",
                len(invited),
            )
            if invited
            else _("This desk may have %(room)s and has %(people)s.")
        )
        mend = _("Remove a member, revoke an invitation, or ask your Pooldesk provider for a higher limit.")
        raise Conflict(f"{full % counts} {mend}")


def _check_as_counted(transaction: Transaction, tenant_id: str, last: Seat, stored: _Stored) -> None:
    """Add the condition that the seat that was taken last is stored as it was counted, or is not stored."""
    if last.kind != _MEMBER:
        as_counted = _is(InviteItem.expires_at, stored.get(last))
        transaction.check(InviteItem(tenant_id, last.id), as_counted, name=_LAST_SEAT)
    elif last in stored:
        transaction.check(MemberItem(tenant_id, last.id), MemberItem.user_id.exists(), name=_LAST_SEAT)
    else:
        transaction.check(MemberItem(tenant_id, last.id), MemberItem.user_id.does_not_exist(), name=_LAST_SEAT)


def _stored(tenant_id: str) -> dict[Seat, str]:
    """Return all seats that are stored, expired invitations too: consistent Queries of members and invitations. That
    of an auditor takes no seat."""
    repository = Store("tenant", tenant_id)
    people = repository.query_all(MemberItem, keys.tenant, consistent=True)
    invited = repository.query_all(InviteItem, keys.tenant, consistent=True)
    return {member(one.user_id): "" for one in people} | {
        invite(one.invite_id): one.expires_at for one in invited if one.role != Role.AUDITOR
    }


def _is(attribute: Any, value: Any) -> Condition:
    condition: Condition = attribute.does_not_exist() if value is None else attribute == value
    return condition
