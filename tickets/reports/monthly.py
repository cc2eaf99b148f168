"""Read the monthly letter of a desk: what a month was like, and what can be proved of it.

It is written once the month is over. Numbers of tickets are those of the reports, which change with the tickets; the
rest is about what was recorded until the month's end, so that the page of a letter says what its mail said.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any, Final

from django.utils.translation import gettext as _

from portal import clock
from portal.dynamo.client import fan_out
from portal.errors import Invalid
from portal.load import incidents
from portal.load.incidents import Disturbances
from tenants.audit_trail import chain, drills
from tenants.audit_trail.chain import Head
from tenants.audit_trail.drills import Drill
from tenants.tenancy import tenant_directory
from tenants.tenancy.context import TenantContext
from tickets.costs import statement
from tickets.costs.statement import Statement
from tickets.isolation_runs import platform_proofs, run_requests
from tickets.isolation_runs.stored import IsolationRunItem, PlatformProofItem
from tickets.reports import report as reports
from tickets.reports.report import MonthNumbers
from tickets.sla import policy_versions

LEAST_DESKS: Final = 20  # of an installation, for numbers about others: below, they could tell of one of them
_ROUNDED: Final = 10  # minutes, of what others are told
_FIRST_ZONE: Final = "Pacific/Kiritimati"  # where each day begins first: a month that is over at a desk is over there


@dataclass(frozen=True)
class MonthlyLetter:
    """A month and the one `before`; `costs` are of both, by months of UTC. `drill` is the last restore drill that
    covered this desk, with its end, None if there was none. `unfelt` are minutes in which others were refused and this
    desk was not disturbed, rounded up; None where there are too few desks to tell.
    """

    month: str
    numbers: MonthNumbers
    before: MonthNumbers
    has_targets: bool
    head: Head
    drill: tuple[datetime, Drill] | None
    disturbances: Disturbances
    unfelt: int | None
    costs: tuple[Statement, Statement]
    attacks: list[IsolationRunItem]  # on this desk in the month, by its owners, the last one first
    proof: PlatformProofItem | None  # the last one of the operators


def last_month(tenant: TenantContext) -> str:
    return reports.shifted(reports.this_month(tenant), -1)


def clean_month(tenant: TenantContext, text: str) -> str:
    """Return the month that was asked for, or the last one that is over. Raises Invalid."""
    month = reports.clean_month(tenant, text) if text else last_month(tenant)
    if not "2001" < month <= last_month(tenant):
        raise Invalid(_("The letter of a month is written when the month is over."), field="month")
    return month


def read(tenant: TenantContext, month: str) -> MonthlyLetter:
    """Return the letter of a month that is over: some twelve Queries at the same time, for desks of any size;
    and SAMPLE of tickets/costs/statement.py, where what is stored was not measured for the month. Raises
    Throttled, Unavailable."""
    first, last = reports.days_of(month)
    begins, ends = (clock.day_begins(day, tenant.zone) for day in (first, last + timedelta(days=1)))
    # The same minutes for all desks: who could move them, by another time zone, would learn when others were refused.
    others = (clock.day_begins(first, _FIRST_ZONE), clock.day_begins(last + timedelta(days=1), _FIRST_ZONE))
    reads: list[Callable[[], Any]] = [
        partial(reports.two_months, tenant, month),
        partial(chain.head_of, tenant.repository, ends),
        partial(drills.latest, before=ends),
        partial(incidents.read, tenant.repository, first=begins, end=ends, others=others),
        partial(tenant_directory.has_at_least, LEAST_DESKS),
        partial(statement.of, tenant, month),  # as its page does, which measures what is stored if that was not done
        partial(statement.stored_of, tenant.tenant_id, reports.shifted(month, -1), tenant.created_at),
    ]
    reads += [
        partial(run_requests.former, tenant),
        partial(platform_proofs.last, before=clock.stamp(ends)),
    ]
    numbers, head, drill, disturbances, has_many, costs, costs_before, runs, proof = fan_out(reads)
    return MonthlyLetter(
        month=month,
        numbers=numbers[0],
        before=numbers[1],
        has_targets=bool(policy_versions.latest(tenant)),
        head=head,
        drill=None if tenant.placement.kind == "silo" else drill,  # its tables are in another account
        disturbances=disturbances,
        costs=(costs, costs_before),
        attacks=[one for one in runs if clock.stamp(begins) <= one.begun_at < clock.stamp(ends)],
        proof=proof,
        unfelt=_rounded(disturbances.unfelt) if has_many else None,
    )


def _rounded(minutes: int) -> int:
    """Round up to tens, so that less can be learned from two desks about a third one."""
    return -(-minutes // _ROUNDED) * _ROUNDED


def month_before(first: date) -> str:
    """Return the month that is over on its next month's first day."""
    return reports.shifted(first.isoformat()[:7], -1)
