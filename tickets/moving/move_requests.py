"""Begin, cancel and roll back moves and discard old copies as an operator, each act with its audit row; show them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from contextlib import suppress

from django.utils.translation import gettext_noop

from portal import clock, plain_text
from portal.dynamo import placement as placing
from portal.dynamo import provisioning
from portal.dynamo.placement import POOL, Placement
from portal.dynamo.store import Transaction
from portal.errors import Conflict, Invalid, NotFound, Unavailable
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction
from tenants.tenancy import placements, tenant_directory
from tenants.tenancy.stored import TenantItem
from tickets.moving import place_changes, stored
from tickets.moving.stored import MoveItem
from tickets.sharding import reshard_requests

GRACE_DAYS = 7


def begin(
    tenant: TenantItem, *, to: Placement, grace_days: int = GRACE_DAYS, reason: str = "", by: Actor, holder: str = ""
) -> None:
    """Ask for a move of a tenant as stored. Raises Invalid, and Conflict while something else is under way with it."""
    where = placements.location(tenant)
    for place in (where.placement, to):
        _check_site(place)
    tenant_directory.refuse_closed(tenant)
    tenant_directory.refuse_arriving(tenant)
    if to == where.placement:
        raise Conflict(f"{tenant.name} lies there already.", field="to")
    if where.former not in (None, to):
        raise Conflict(
            f"An old copy of {tenant.name} is kept {where.former.in_words}. Discard it first, or go back to it."
        )
    last = place_changes.MOVES.last(tenant.tenant_id)
    if place_changes.MOVES.goes_on(last):
        raise Conflict(f"{tenant.name} is being moved already. Wait for its end, or roll it back.")
    if to != POOL:
        with suppress(Unavailable):  # the move itself counts again
            provisioning.refuse_without_room(tenant.tenant_id, to)
    transaction = Transaction()
    if last is not None:
        place_changes.keep(transaction, last)
    item = place_changes.MOVES.new(
        tenant, move_id=uuid.uuid4().hex[:16], from_place=str(where.placement), to_place=str(to), reason=reason,
        by=by.email or by.origin, state=place_changes.RUNNING, phase=place_changes.FIRST_PHASE, grace_days=grace_days,
        holder=holder, begun_at=clock.stamp(),
    )  # fmt: skip
    unchanged = MoveItem.move_id == last.move_id if last else MoveItem.move_id.does_not_exist()
    transaction.put(item, condition=unchanged & (MoveItem.state == last.state) if last else unchanged)
    rests = TenantItem.move.does_not_exist() & TenantItem.moving_to.does_not_exist()
    transaction.check(
        TenantItem(tenant.tenant_id), rests & place_changes.lies_at(where.placement) & place_changes.is_to_stay()
    )
    resharding = reshard_requests.RESHARDINGS
    transaction.check(resharding.of(tenant.tenant_id), resharding.free())
    before = {"placement": str(where.placement)}
    after = {"placement": str(to)} | ({"reason": reason} if reason else {})
    _commit(transaction, item, AuditAction.TENANT_MOVE_BEGUN, by, before, after)


def roll_back(tenant: TenantItem, *, lost: bool = False, reason: str = "", by: Actor, holder: str = "") -> bool:
    """End a move that has not switched, or begin one back to the old copy. Tell whether it is the latter.

    With `lost` and a reason, what such a move has left at its destination is given up: nobody can reach that place any
    more. Raises Invalid without the reason, and Conflict where there is nothing to go back to.
    """
    _refuse_unexplained(lost, reason)
    last = place_changes.MOVES.last(tenant.tenant_id)
    stuck = last is not None and last.state == place_changes.CANCELLING and lost
    if last is not None and (stuck or (last.state == place_changes.RUNNING and not last.switched_at)):
        transaction = Transaction()
        still = (MoveItem.state == last.state) & (MoveItem.switched_at == "")
        transaction.update(
            place_changes.MOVES.of(tenant.tenant_id),
            place_changes.MOVES.actions(state=place_changes.CANCELLING, lost=lost),
            condition=still,
        )
        _commit(transaction, last, AuditAction.TENANT_MOVE_CANCELLED, by, {}, _given_up(False, lost, reason))
        return False
    if lost:
        raise Conflict(f"No move of {tenant.name} has left anything at a place that could be given up.")
    if last is not None and last.state == place_changes.RUNNING:
        raise Conflict(
            f"{tenant.name} has moved already, and both copies are being compared. It can go back when that has ended."
        )
    former = placements.location(tenant).former
    if former is None:
        raise Conflict(f"There is no old copy of {tenant.name} to go back to.")
    begin(tenant, to=former, reason=reason, by=by, holder=holder)
    return True


def discard(
    tenant: TenantItem,
    *,
    early: bool = False,
    unchecked: bool = False,
    lost: bool = False,
    reason: str = "",
    by: Actor,
    holder: str = "",
) -> None:
    """Ask for an end of the old copy. Where that is under way, nothing more than what is given up is asked for.

    For a reason, with `unchecked` it is deleted although it has something that the new place lacks, and with `lost` it
    is forgotten, because nobody can reach its place any more. Raises Invalid without the reason, NotFound, and Conflict
    before the end of its grace, unless `early`.
    """
    _refuse_unexplained(unchecked or lost, reason)
    last = place_changes.MOVES.last(tenant.tenant_id)
    if last is not None and last.state == place_changes.DISCARDING and not (unchecked or lost):
        return
    kept = kept_copy(tenant, last)
    if last is None or kept is None:
        raise NotFound(f"There is no old copy of {tenant.name}.")
    if not early and kept.kept_until > clock.stamp():
        raise Conflict(
            f"The old copy of {tenant.name} is kept until {kept.kept_until[:10]}. Before that: --discard --now."
        )
    transaction = Transaction()
    if last.move_id != kept.move_id:
        place_changes.keep(transaction, last)
    still = (MoveItem.move_id == last.move_id) & (MoveItem.state == last.state)
    kept.kind, kept.name, kept.counter = stored.MOVES, tenant.tenant_id, int(last.counter) + 1
    kept.state, kept.phase = place_changes.DISCARDING, place_changes.FIRST_OF_DISCARD
    kept.holder, kept.trouble = holder, ""
    kept.unchecked, kept.lost = unchecked, lost
    transaction.put(kept, condition=still)
    after = _given_up(unchecked, lost, reason)
    _commit(transaction, kept, AuditAction.TENANT_DISCARD_ORDERED, by, {"copy": kept.from_place}, after)


def _refuse_unexplained(gives_up: bool, reason: str) -> None:
    if gives_up and not plain_text.has_visible_text(reason):
        raise Invalid("Say why: --unchecked and --lost need --reason TEXT.", field="reason")


def _given_up(unchecked: bool, lost: bool, reason: str) -> dict[str, str]:
    what = gettext_noop("its place") if lost else gettext_noop("what it alone has") if unchecked else ""
    return {"given_up": what, "reason": reason} if what else {}


def kept_copy(tenant: TenantItem, last: MoveItem | None) -> MoveItem | None:
    """Return the move that has left the tenant's old copy, None where there is none.

    `last` is the tenant's last move: mostly that one. A way back that was called off before its switch has left the
    copy as it was; then it is looked up in the history, by one Query.
    """
    if last is None or last.state in (place_changes.KEPT, place_changes.DISCARDING):
        return last
    where = placements.location(tenant)
    if last.state != place_changes.CANCELLED or where.former is None:
        return None
    left = (str(where.former), str(where.placement))
    return next(
        (move for move in place_changes.MOVES.history(tenant.tenant_id) if (move.from_place, move.to_place) == left),
        None,
    )


def _check_site(to: Placement) -> None:
    try:
        placing.site(to.site)
    except Unavailable as unknown:
        raise Invalid(unknown.message, field="to") from unknown


def _commit(
    transaction: Transaction,
    item: MoveItem,
    action: AuditAction,
    by: Actor,
    before: Mapping[str, object],
    after: Mapping[str, object],
) -> None:
    refused = Conflict(f"{item.title} is being moved or resharded by somebody else. Look again.")
    recording.commit(transaction, [place_changes.entry(item, action, by, before, after)], refused=refused)
