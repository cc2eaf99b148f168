"""Mail the numbers of the past week to those who want them, on Monday morning.

The work of a row of the due index. Each person's mail is written together with the note of the Monday for which it is:
doing the work again sends nobody a second one. weekly_mails.py writes the mail.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from portal.dynamo.store import Condition, Transaction
from portal.errors import TransactionRefused
from portal.mailing import outgoing
from portal.mailing.outgoing import OutgoingMail
from tenants.membership import members
from tenants.membership.members import Member
from tenants.tenancy.context import TenantContext
from tenants.tenancy.roles import Role
from tickets.dashboards import dashboard
from tickets.dashboards.dashboard import Dashboard
from tickets.dashboards.durations import Durations
from tickets.notices import stored, weekly_turns
from tickets.notices.stored import InboxItem

_LATEST: Final = timedelta(days=4)  # after its Monday a mail is worth nothing any more
_TOLD: Final = "told"


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


Write = Callable[[TenantContext, Member, WeekReport], OutgoingMail]


def come_due(tenant: TenantContext, version: str, *, write: Write) -> None:
    """Send the report of the week before this Monday to those who want it, and wait for the next Monday.

    Waits no longer where nobody has chosen it. Costs what a dashboard of some three weeks does, a Query of the members,
    and for each mail a transaction of two items.
    """
    monday = date.fromisoformat(version)
    people = members.members_of(tenant.repository, consistent=True)
    choosing = [one for one in people if one.choices.weekly_report]
    if not choosing:
        return
    weekly_turns.wait(tenant)  # also of a suspended desk, and for those who are no admin now: their choice stands
    wanting = [one for one in choosing if one.role.at_least(Role.ADMIN)]
    if not wanting or tenant.suspended or tenant.today - monday > _LATEST:
        return
    found = _read(tenant, monday)
    for person in wanting:
        _send(tenant, person, write(tenant, person, found), monday)


def _read(tenant: TenantContext, monday: date) -> WeekReport:
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


def _send(tenant: TenantContext, person: Member, mail: OutgoingMail, monday: date) -> None:
    """Send a mail unless the person has got that of this Monday."""
    transaction, item = Transaction(), stored.of_member(tenant.tenant_id, person.id)
    is_new: Condition = InboxItem.reported.does_not_exist() | (InboxItem.reported < monday.isoformat())
    transaction.update(item, [InboxItem.reported.set(monday.isoformat())], name=_TOLD, condition=is_new)
    left = outgoing.join(transaction, [mail])
    try:
        tenant.repository.transact(transaction)
    except TransactionRefused as refused:
        if refused.reason(_TOLD) is None:
            raise
        return
    outgoing.send_all(left)
