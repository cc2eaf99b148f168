"""Let members of a desk get its weekly report by mail, and wait for the next Monday while anybody wants it.

One row of the due index waits for a desk. A member's choice writes it, and each Monday's work writes the next one. The
same Monday has the same row, so that it does not matter how often. The mail itself is tickets/reports/weekly.py.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from delivery.timers import due
from portal import clock, zones
from portal.dynamo.store import Transaction
from tenants.membership import mail_choices
from tenants.tenancy.context import TenantContext

KIND: Final = "report"  # of the due index
ENTITY: Final = "desk"
HOUR: Final = 7  # of Monday, at the desk


def choose(tenant: TenantContext, user_id: str, *, wanted: bool) -> None:
    """Let a member get the weekly report, or not any more. Raises NotFound for who is no member. Three writes at most.

    The row is written before the choice, so that a process that ends in between leaves no choice without one, and after
    it, because the work of this Monday may have found nobody in between and taken the row.
    """
    if wanted:
        wait(tenant)
    mail_choices.want_report(tenant.repository, user_id, wanted=wanted)
    if wanted:
        wait(tenant)


def wait(tenant: TenantContext) -> None:
    """Wait for the next Monday morning at the desk: one write."""
    monday, at = next_turn(clock.now(), tenant.zone)
    transaction = Transaction()
    due.put(transaction, tenant, at, KIND, ENTITY, monday.isoformat())
    tenant.repository.transact(transaction)


def next_turn(now: datetime, zone: str) -> tuple[date, datetime]:
    """Return the first Monday whose HOUR, by the clocks of a zone, comes after a moment, and that hour in UTC."""
    local = now.astimezone(zones.zone_of(zone))
    monday = local.date() - timedelta(days=local.weekday())
    turns = ((day, _at(day, zone)) for day in (monday, monday + timedelta(days=7)))
    return next((day, at) for day, at in turns if at > now)


def _at(day: date, zone: str) -> datetime:
    return datetime.combine(day, time(HOUR), zones.zone_of(zone)).astimezone(UTC)
