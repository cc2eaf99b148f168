"""Read the numbers of the past week, those of the week before it, and those of now, for a mail."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

from tenants.tenancy.context import TenantContext
from tickets.dashboards import dashboard
from tickets.dashboards.dashboard import Dashboard
from tickets.dashboards.durations import Durations


@dataclass(frozen=True)
class WeekNumbers:
    """The numbers of seven days from a Monday on."""

    first: date
    created: int
    resolved: int
    commented: int
    answers: Durations
    solutions: Durations

    @property
    def days(self) -> str:
        return f"{self.first}..{self.first + timedelta(days=6)}"


@dataclass(frozen=True)
class WeekReport:
    """The week of a report, the one before it, and the numbers of now."""

    week: WeekNumbers
    before: WeekNumbers
    now: Dashboard


def read(tenant: TenantContext, monday: date) -> WeekReport:
    """Return the report of the week before a Monday. Costs what a dashboard of some three weeks does."""
    starts = monday - timedelta(days=7), monday - timedelta(days=14)
    found = dashboard.read(tenant, days=max(1, (tenant.today - starts[1]).days + 1))
    return WeekReport(_week(found, starts[0]), _week(found, starts[1]), found)


def _week(found: Dashboard, first: date) -> WeekNumbers:
    days = [day for day in found.days if first <= day.date < first + timedelta(days=7)]
    took = next((week for week in found.weeks if week.period.first == first), None)
    created, resolved, commented = (
        sum(getattr(day, of) for day in days) for of in ("created", "resolved", "commented")
    )
    return WeekNumbers(
        first, created, resolved, commented, took.first if took else Durations(), took.done if took else Durations()
    )
