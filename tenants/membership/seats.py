"""How many people a tenant may have: members and pending invitations together, expired ones too until revoked.

There is no counter that could drift: where there is a limit, whoever seats somebody counts what is stored,
consistently, and writes on condition that nobody was seated meanwhile. For that the tenant's item has a number, which
each seating raises; of several at the same moment one wins, and the others count again. Leaving only makes room, and
tells nobody.

One thing a count can miss: a Query is not serialisable with a transaction committed just before, whose items may still
be arriving. So the tenant's item also names the seat that was taken last, and the transaction checks that this one is
there, or is not, as counted. Without a limit nothing is counted; that there is none is a condition as well.

Source: AWS, "Amazon DynamoDB transactions: how it works", isolation levels: a Query is read-committed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from portal.dynamo import platform
from portal.dynamo.repository import Condition, TenantRepository, Transaction
from portal.dynamo.retry import retrying
from portal.errors import Conflict, NotFound, Throttled, TransactionRefused
from portal.schema import keys
from portal.schema.tables import Table
from tenants.audit_trail import recording
from tenants.audit_trail.recording import AuditEntry
from tenants.membership.items import InviteItem, MemberItem
from tenants.membership.tables import INVITES, MEMBERS
from tenants.tenancy.items import TenantItem

_ATTEMPTS: Final = 40  # of which each lets one of several simultaneous ones through, or moves the audit chain on
# Members of the transaction that depend on what was counted.
_LIMIT, _LAST_SEAT = "limit", "last seat"


@dataclass(frozen=True)
class Seat:
    """What takes a place: a member by user id, or a pending invitation by its own id."""

    kind: str
    id: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.id}"

    def item(self, tenant_id: str) -> tuple[Any, Any]:
        """The item that stands for it, and the attribute that every such item has."""
        if self.kind == "member":
            return MemberItem(tenant_id, self.id), MemberItem.user_id
        return InviteItem(tenant_id, self.id), InviteItem.invite_id


def member(user_id: str) -> Seat:
    return Seat("member", user_id)


def invite(invite_id: str) -> Seat:
    return Seat("invite", invite_id)


def commit(
    transaction: Transaction,
    entries: Sequence[AuditEntry],
    *,
    tenant_id: str,
    seat: Seat,
    for_invite: Seat | None = None,
    status: str | None = None,
) -> None:
    """`audit.commit` of what seats somebody, if there is room. The given transaction is not altered.

    Who comes by an invitation has had a seat, `for_invite`, and is refused only where the limit was lowered below the
    number of members since. With `status`, the tenant must have it. Raises Conflict with a sentence for people,
    NotFound, Throttled, and TransactionRefused where a member of the caller's was refused.
    """

    def attempt() -> None:
        whole = transaction.copy()
        _reserve(whole, _tenant(tenant_id), seat, for_invite, status)
        recording.commit(whole, entries)

    retrying(
        attempt,
        again=lambda error: isinstance(error, TransactionRefused) and error.is_passing(_LIMIT, _LAST_SEAT),
        attempts=_ATTEMPTS,
        given_up=Throttled("Too much is being changed at the same time."),
    )


def _tenant(tenant_id: str) -> TenantItem:
    tenant: TenantItem | None = platform.get_all([(TenantItem, keys.tenant(tenant_id), None)], consistent=True)[0]
    if tenant is None:
        raise NotFound("There is no such tenant.")
    return tenant


def _reserve(
    transaction: Transaction, tenant: TenantItem, seat: Seat, for_invite: Seat | None, status: str | None
) -> None:
    """Add what makes the transaction depend on what was counted. Raises Conflict where there is no room."""
    if status is not None and tenant.status != status:
        raise Conflict("This desk takes nobody in at the moment.")
    stands = _is(TenantItem.member_limit, tenant.member_limit)
    if status is not None:
        stands &= TenantItem.status == status
    if not tenant.member_limit:
        transaction.check(tenant, stands, name=_LIMIT)
        return
    taken = _taken(tenant.tenant_id)
    _refuse_where_full(int(tenant.member_limit), taken, seat, for_invite)
    stands &= _is(TenantItem.seatings, tenant.seatings)
    transaction.update(
        tenant,
        [TenantItem.seatings.set(int(tenant.seatings or 0) + 1), TenantItem.last_seat.set(str(seat))],
        name=_LIMIT,
        condition=stands,
    )
    if tenant.last_seat and tenant.last_seat not in (str(seat), str(for_invite)):
        last = Seat(*tenant.last_seat.split("/"))
        item, key = last.item(tenant.tenant_id)
        transaction.check(item, key.exists() if last in taken else key.does_not_exist(), name=_LAST_SEAT)


def _refuse_where_full(limit: int, taken: set[Seat], seat: Seat, for_invite: Seat | None) -> None:
    inside = {one for one in taken if one.kind == "member"}
    if for_invite is not None:
        if len(inside | {seat}) > limit:
            raise Conflict(f"This desk may have {_members(limit)} and is full. Ask whoever invited you to make room.")
    elif len(taken | {seat}) > limit:
        invited = len(taken) - len(inside)
        waiting = f"{len(inside)} are in it and {invited} invited" if invited else f"{len(inside)} are in it"
        raise Conflict(
            f"This desk may have {_members(limit)}; {waiting}. Remove a member, revoke an invitation, or ask the "
            "platform's operators for more."
        )


def _members(number: int) -> str:
    return f"{number} member{'s' * (number != 1)}"


def _taken(tenant_id: str) -> set[Seat]:
    """Everybody who has a seat: consistent Queries of the tenant's members and of its invitations."""
    repository = TenantRepository(tenant_id)
    return {member(user_id) for user_id in _ids(repository, MEMBERS)} | {
        invite(invite_id) for invite_id in _ids(repository, INVITES)
    }


def _ids(repository: TenantRepository, table: Table) -> list[str]:
    return [raw[str(table.range)]["S"] for raw in repository.query_all(table, keys.tenant, consistent=True)]


def _is(attribute: Any, value: Any) -> Condition:
    condition: Condition = attribute.does_not_exist() if value is None else attribute == value
    return condition
