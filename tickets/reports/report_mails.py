"""Write the mails about the numbers of a week, and the monthly letter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from email.utils import formataddr, parseaddr
from typing import Any, Final

from django.conf import settings
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext as _

from portal import plain_text
from portal.mailing.outgoing import OutgoingMail
from portal.web import desk_prefix, locales
from tenants.membership.mail_choices import MailedReport
from tenants.membership.members import Member
from tenants.tenancy.context import TenantContext
from tenants.tenancy.request import page_for_mail
from tickets.dashboards import dashboard
from tickets.dashboards.charts import duration
from tickets.dashboards.dashboard import Dashboard
from tickets.dashboards.durations import Durations
from tickets.dashboards.presenters import ANY, UNRESOLVED_LIST
from tickets.desk.ticket_presenters import queue_url
from tickets.notices.following import MuteLink
from tickets.reports import letter_presenters, monthly
from tickets.reports.letter_presenters import Figure
from tickets.reports.mailing import Read, Write
from tickets.reports.monthly import MonthlyLetter
from tickets.reports.presenters import month_name
from tickets.ticket.fields import UNRESOLVED


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


_NAME_LIMIT: Final = 60  # characters

Page = dict[str, Any]


def _weekly(tenant: TenantContext, monday: date) -> Write:
    found = read(tenant, monday)
    return lambda person: _mail(tenant, person, MailedReport.WEEKLY, lambda desk: _week_page(desk, found))


def _monthly(tenant: TenantContext, first: date) -> Write:
    found = monthly.read(tenant, monthly.month_before(first))
    return lambda person: _mail(tenant, person, MailedReport.MONTHLY, lambda desk: _month_page(desk, found))


READ: Final[Mapping[MailedReport, Read]] = {MailedReport.WEEKLY: _weekly, MailedReport.MONTHLY: _monthly}


def _mail(
    tenant: TenantContext, person: Member, report: MailedReport, write: Callable[[str], tuple[str, Page]]
) -> OutgoingMail:
    """Return the mail to a member, in their language. Its text and its HTML say the same."""
    desk = plain_text.named(tenant.name, limit=_NAME_LIMIT)
    stop = MuteLink(tenant.tenant_id, person.id, report=report)
    with desk_prefix.addresses_of(tenant.slug), locales.shown_in(person.locale_at(tenant)):
        stop_url = page_for_mail(reverse("tickets:mute", args=[stop.token]))
        subject, page = write(desk)
        page |= {
            "desk": desk,
            "name": plain_text.named(person.name, limit=_NAME_LIMIT),
            "stop_url": stop_url,
            "language": locales.current().language,
        }
        text, html = (render_to_string(f"reports/mail/report.{ending}", page) for ending in ("txt", "html"))
        written = OutgoingMail(
            to=person.email,
            subject=subject,
            text=text,
            html=html,
            kind=report.value,
            about=f"member/{person.id}",
            tenant_id=tenant.tenant_id,
            queues=tenant.queues,
        )
    written.from_email = formataddr((desk, parseaddr(settings.DEFAULT_FROM_EMAIL)[1]))
    written.extra_headers |= {"Auto-Submitted": "auto-generated", "X-Auto-Response-Suppress": "All"}
    if stop_url.startswith("http"):
        written.extra_headers |= {
            "List-Unsubscribe": f"<{stop_url}>",
            "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
        }
    return written


# --- the week ---


def _week_page(desk: str, found: WeekReport) -> tuple[str, Page]:
    """Return the subject of the weekly report, and what it says."""
    locale = locales.current()
    days = {"first": locale.short_day(found.week.first), "last": locale.day(found.week.first + timedelta(days=6))}
    numbers = {"created": locale.number(found.week.created), "resolved": locale.number(found.week.resolved)}
    return _("[%(desk)s] The week: %(created)s opened, %(resolved)s resolved") % {"desk": desk, **numbers}, {
        "days": _("%(first)s to %(last)s") % days,
        "column": _("Week"),
        "rows": _rows(found),
        "promises": [],
        "more": _("Reports by month, group, assignee, channel and tag"),
        "more_url": page_for_mail(reverse("tickets:reports")),
        "why": _("You get this mail on Mondays because you asked for it on the page of reports."),
    }


def _rows(found: WeekReport) -> list[dict[str, Any]]:
    """Return what the mail says: each number beside that of the week before, with the list of its tickets."""
    now, before = found.week, found.before
    unresolved = found.now.of_status(*UNRESOLVED)
    counts = (
        (_("Opened"), now.created, before.created, {"created": now.days}),
        (_("Resolved"), now.resolved, before.resolved, {"resolved": now.days}),
        (_("Comments"), now.commented, before.commented, None),
    )
    number = locales.current().number
    rows = [_row(label, number(one), number(other), params if one else None) for label, one, other, params in counts]
    rows += [
        _row(_("First answer, median"), duration(now.answers.median), duration(before.answers.median)),
        _row(_("Time to resolve, median"), duration(now.solutions.median), duration(before.solutions.median)),
        _row(_("Unresolved now"), number(unresolved), "", {"status": UNRESOLVED_LIST} if unresolved else None),
        _row(
            _("Nobody has it now"),
            number(found.now.unassigned),
            "",
            {"status": UNRESOLVED_LIST, "resolver": "none"} if found.now.unassigned else None,
        ),
    ]
    return rows


def _row(label: str, now: str, before: str, params: dict[str, str] | None = None) -> dict[str, str]:
    url = page_for_mail(queue_url(**({"status": ANY} | params))) if params else ""
    return {"label": label, "now": now, "before": before, "url": url}


# --- the month ---


def _month_page(desk: str, found: MonthlyLetter) -> tuple[str, Page]:
    title = month_name(found.month)
    return _("[%(desk)s] The letter of %(month)s") % {"desk": desk, "month": title}, {
        "days": title,
        "column": _("Month"),
        "rows": _with_pages(letter_presenters.numbers(found)),
        "promises": _with_pages(letter_presenters.promises(found)),
        "head": found.head.text,
        "more": _("This letter on the desk, with an explanation of each figure"),
        "more_url": page_for_mail(letter_presenters.address(found.month)),
        "why": _("You get this mail each month because you asked for it at your desk."),
    }


def _with_pages(figures: list[Figure]) -> list[dict[str, str]]:
    return [asdict(one) | {"url": page_for_mail(one.url)} for one in figures]
