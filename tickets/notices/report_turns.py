"""Let members of a desk get reports by mail, each week or month, and wait for the next turn while anybody wants it.

One row of the due index waits for a desk and a report. A member's choice writes it, and the work of each turn writes
the next one. The same turn has the same row, so that it does not matter how often. tickets/reports/mailing.py does
the work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

from delivery.timers import due
from portal import clock
from portal.dynamo.store import Transaction
from tenants.membership import mail_choices
from tenants.membership.mail_choices import MailedReport
from tenants.tenancy.context import Role, TenantContext
from tickets.notices.stored import InboxItem

KIND: Final = "report"  # of the due index
HOUR: Final = 7  # of the first day, at the desk


@dataclass(frozen=True)
class ReportTurn:
    """When a report is due, and who may get it. `entity` is what its rows of the due index are about.

    `begun` is the first day of the period that a day is in, which is when the report of the period before is due;
    `longest` is more than a period and less than two. After `latest` a mail is worth nothing any more. `noted` is the
    attribute that holds the first day of the turn that a member got last, and `role` the least one that may get it.
    """

    report: MailedReport
    entity: str
    begun: Callable[[date], date]
    longest: timedelta
    latest: timedelta
    noted: Any
    role: Role

    def next(self, now: datetime, zone: str) -> tuple[date, datetime]:
        """Return the next first day whose HOUR, by the clocks of a zone, comes after a moment, and that hour in UTC."""
        this = self.begun(now.astimezone(clock.zone_of(zone)).date())
        days = (this, self.begun(this + self.longest))
        return next((day, at) for day in days if (at := _at(day, zone)) > now)


TURNS: Final = {
    turn.report: turn
    for turn in (
        ReportTurn(
            MailedReport.WEEKLY,
            "desk",
            begun=lambda day: day - timedelta(days=day.weekday()),
            longest=timedelta(days=7),
            latest=timedelta(days=4),
            noted=InboxItem.reported,
            role=Role.ADMIN,
        ),
        ReportTurn(
            MailedReport.MONTHLY,
            "month",
            begun=lambda day: day.replace(day=1),
            longest=timedelta(days=31),
            latest=timedelta(days=20),
            noted=InboxItem.month_reported,
            role=Role.OWNER,
        ),
    )
}


def of_entity(entity: str) -> ReportTurn | None:
    """Return the turn of a row of the due index, None for one of a newer version."""
    return next((turn for turn in TURNS.values() if turn.entity == entity), None)


def choose(tenant: TenantContext, user_id: str, report: MailedReport, *, wanted: bool) -> None:
    """Let a member get a report, or not any more. Raises NotFound for who is no member. Three writes at most.

    The row is written before the choice, so that a process that ends in between leaves no choice without one, and after
    it, because the work of this turn may have found nobody in between and taken the row.
    """
    if wanted:
        wait(tenant, TURNS[report])
    mail_choices.want_report(tenant.repository, user_id, report, wanted=wanted)
    if wanted:
        wait(tenant, TURNS[report])


def wait(tenant: TenantContext, turn: ReportTurn) -> None:
    """Wait for the next turn, in the morning at the desk: one write."""
    first, at = turn.next(clock.now(), tenant.zone)
    transaction = Transaction()
    due.put(transaction, tenant, at, KIND, turn.entity, first.isoformat())
    tenant.repository.transact(transaction)


def _at(day: date, zone: str) -> datetime:
    return datetime.combine(day, time(HOUR), clock.zone_of(zone)).astimezone(UTC)
