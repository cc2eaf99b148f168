"""The report of a month as templates and the file show it: each number with the list that explains it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.dates import MONTHS, WEEKDAYS
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from portal.web import locales
from tenants.membership.mail_choices import MailedReport
from tenants.tenancy.context import TenantContext
from tickets.counting.months import MonthScope
from tickets.custom_fields import definitions
from tickets.dashboards.dashboard import FORMER_MEMBER
from tickets.dashboards.durations import Durations
from tickets.dashboards.presenters import ANY, UNRESOLVED_LIST, Number, Tile
from tickets.desk.ticket_presenters import queue_url
from tickets.desk_setup import setup
from tickets.reports import report as reports
from tickets.reports.report import MonthNumbers, Report
from tickets.sla import policy_versions
from tickets.ticket.due_marks import MISSED
from tickets.ticket.fields import GROUP, Channel, Rating

# The words by which addresses name what the rows of a report are.
BY: Final = {
    "group": MonthScope.GROUP,
    "assignee": MonthScope.PERSON,
    "channel": MonthScope.CHANNEL,
    "tag": MonthScope.TAG,
}
LABELS: Final = {
    "group": gettext_lazy("Group"),
    "assignee": gettext_lazy("Assignee"),
    "channel": gettext_lazy("Channel"),
    "tag": gettext_lazy("Tag"),
}
TITLES: Final = {
    "group": gettext_lazy("By group"),
    "assignee": gettext_lazy("By assignee"),
    "channel": gettext_lazy("By channel"),
    "tag": gettext_lazy("By tag"),
}
_NONE: Final = {
    "group": gettext_lazy("No ticket of this month has a group."),
    "assignee": gettext_lazy("No ticket of this month is assigned to anybody."),
    "channel": gettext_lazy("No ticket of this month came by any channel."),
    "tag": gettext_lazy("No ticket of this month has a tag."),
}
WHY: Final = "#about-first"  # where the page says why no list shows first answers
_SHADES: Final = 5  # of the hours, beside none


@dataclass(frozen=True)
class ReportRow:
    """A line of a table: `url` leads to the report of its own, `numbers` to lists."""

    name: str
    url: str
    created: Number
    unresolved: Number
    answered: Number
    first: Durations
    resolved: Number
    done: Durations
    missed: Number
    ratings: list[Number]
    hue: str = ""


@dataclass(frozen=True)
class Hour:
    """A cell of the hours: `shade` is 0 for none, up to 5."""

    count: int
    shade: int
    title: str


def page(tenant: TenantContext, found: Report, *, by: str) -> dict[str, Any]:
    names = _Names(tenant, found)
    return {
        **_links(tenant, found, by),
        "title": month_name(found.now.month),
        "by": by,
        "by_label": LABELS[by],
        "by_title": TITLES[by],
        "none": _NONE[by],
        "options": LABELS.items(),
        "value": found.value,
        "value_name": names.of(found.value) if found.value else "",
        "freshness": found.freshness,
        "missing": found.missing,
        "wants_weekly": MailedReport.WEEKLY in found.wanted,
        "wants_monthly": MailedReport.MONTHLY in found.wanted,
        "tickets": found.tickets,
        "is_empty": all(one.is_empty for one in found.trend),
        "tiles": _tiles(tenant, found, names),
        "has_targets": bool(policy_versions.latest(tenant)),
        "rows": _rows(found, names, by),
        "trend": _trend(found, names, by),
        "trend_largest": max(one.unresolved for one in found.trend),
        "earlier": _earlier(found),
        "hours": _hours(found.now),
        "hour_names": [f"{hour}" for hour in range(24)],
        "busiest": _busiest(found.now),
    }


def _links(tenant: TenantContext, found: Report, by: str) -> dict[str, str]:
    month, latest = found.now.month, reports.this_month(tenant)
    return {
        "latest": latest,
        "all_url": address(month, by),
        "previous": address(reports.shifted(month, -1), by, found.value),
        "next": address(reports.shifted(month, 1), by, found.value) if month < latest else "",
        "csv_url": f"{reverse('tickets:report-file')}?{_query(month, by, found.value)}",
        "more_url": address(month, by, after=found.more) if found.more else "",
    }


def _rows(found: Report, names: _Names, by: str) -> list[ReportRow]:
    return [
        _row(
            row,
            names.of(row.value),
            address(row.month, by, row.value) if row.value else "",
            names.params(row.value),
            names.hue(row.value),
        )
        for row in found.rows
    ]


def _trend(found: Report, names: _Names, by: str) -> list[ReportRow]:
    params = names.params(found.value) if found.value else {}
    return [_row(one, month_name(one.month), address(one.month, by, found.value), params) for one in found.trend]


def address(month: str, by: str, value: str = "", after: str = "") -> str:
    return f"{reverse('tickets:reports')}?{_query(month, by, value, after)}"


def _query(month: str, by: str, value: str = "", after: str = "") -> str:
    given = {"month": month, "by": by, "value": value, "after": after}
    return urlencode({name: text for name, text in given.items() if text})


def month_name(month: str) -> str:
    """Write a month: "November 2026"."""
    return f"{MONTHS[int(month[5:])]} {month[:4]}"


class _Names:
    """Name the values of a report, and give the filters of lists that show their tickets."""

    def __init__(self, tenant: TenantContext, found: Report) -> None:
        self._tenant, self._scope, self._people = tenant, found.scope, found.names
        self._groups = definitions.of(tenant)
        self._colours = setup.colours_of(tenant)

    def of(self, value: str) -> str:
        if self._scope is MonthScope.PERSON:
            return self._people.get(value, FORMER_MEMBER) if value else _("Unassigned")
        if self._scope is MonthScope.GROUP:
            return self._groups.name(GROUP, value)
        if self._scope is MonthScope.CHANNEL and value in list(Channel):
            return str(Channel(value).label)
        return value

    def hue(self, value: str) -> str:
        return self._colours.get(value, "") if self._scope is MonthScope.TAG else ""

    def params(self, value: str) -> dict[str, str]:
        if self._scope is MonthScope.PERSON:
            return {"resolver": value, "name": self.of(value)} if value else {"resolver": "none"}
        names = {MonthScope.GROUP: "group", MonthScope.CHANNEL: "channel", MonthScope.TAG: "tag"}
        return {names[self._scope]: value}


def _row(row: MonthNumbers, name: str, url: str, params: dict[str, str], hue: str = "") -> ReportRow:
    first, last = reports.days_of(row.month)
    days = f"{first}..{last}"

    def number(count: int, **only: str) -> Number:
        return Number(count, queue_url(**({"status": ANY} | only | params)) if count else "")

    return ReportRow(
        name=name,
        url=url,
        created=number(row.created, created=days),
        unresolved=number(row.unresolved, status=UNRESOLVED_LIST, created=days),
        answered=Number(row.first.count, WHY if row.first.count else ""),
        first=row.first,
        resolved=number(row.done.count, resolved=days),
        done=row.done,
        missed=number(row.missed, created=days, sla=MISSED),
        ratings=[number(row.ratings[one], rated=days, rating=one.value) for one in Rating],
        hue=hue,
    )


def _tiles(tenant: TenantContext, found: Report, names: _Names) -> list[Tile]:
    row = _row(found.now, "", "", names.params(found.value) if found.value else {})
    tiles = [
        Tile("created", _("Opened"), row.created),
        Tile("unresolved", _("Still unresolved"), row.unresolved),
        Tile("resolved", _("Resolved"), row.resolved),
        Tile("first", _("First answer"), seconds=row.first.median, note=_("median")),
        Tile("done", _("Time to resolve"), seconds=row.done.median, note=_("median")),
    ]
    if policy_versions.latest(tenant) or row.missed.count:
        tiles.append(Tile("missed", _("Missed a target"), row.missed, note=_share(row.missed.count, row.created.count)))
    rated = sum(one.count for one in row.ratings)
    if any(sum(one.ratings.values()) for one in found.trend):  # the letter says none of a month after one with some
        tiles += [
            Tile(
                f"rated-{one}", _("Rated: %(rating)s") % {"rating": one.label}, number, note=_share(number.count, rated)
            )
            for one, number in zip(Rating, row.ratings, strict=True)
        ]
    return tiles


def _share(count: int, of: int) -> str:
    return _("%(percent)s%%") % {"percent": round(100 * count / of)} if of else ""


def _earlier(found: Report) -> Number | None:
    if found.earlier is None or found.missing:
        return None
    last = reports.days_of(reports.shifted(found.now.month, -reports.TREND))[1]
    url = queue_url(status=UNRESOLVED_LIST, created=f"..{last}") if found.earlier else ""
    return Number(found.earlier, url)


def _hours(now: MonthNumbers) -> list[dict[str, Any]]:
    """Return the days of the week from the reader's first one on, each with its hours."""
    most, start = max(now.hours.values()), locales.current().first_weekday
    return [
        {
            "name": WEEKDAYS[day],
            "hours": [_hour(day, hour, now.hours[day, hour], most) for hour in range(24)],
            "total": sum(now.hours[day, hour] for hour in range(24)),
        }
        for day in ((start + n) % 7 for n in range(7))
    ]


def _hour(day: int, hour: int, count: int, most: int) -> Hour:
    title = _("%(day)s, %(hour)s to %(end)s: %(count)s") % {
        "day": WEEKDAYS[day], "hour": f"{hour}:00", "end": f"{hour + 1}:00", "count": locales.current().number(count),
    }  # fmt: skip
    return Hour(count, -(-_SHADES * count // most) if count else 0, title)


def _busiest(now: MonthNumbers) -> str:
    (day, hour), count = max(now.hours.items(), key=lambda one: one[1])
    if not count:
        return ""
    return _("Busiest: %(day)s from %(hour)s to %(end)s, with %(count)s of %(all)s tickets.") % {
        "day": WEEKDAYS[day], "hour": f"{hour}:00", "end": f"{hour + 1}:00",
        "count": locales.current().number(count), "all": locales.current().number(now.created),
    }  # fmt: skip


# --- the file ---


def columns(by: str) -> list[str]:
    """Return the names of the columns of the file; times are in seconds."""
    return [
        _("Month"),
        str(LABELS[by]),
        _("Opened"),
        _("Still unresolved"),
        _("Missed a target"),
        _("Answered first"),
        _("First answer, median (seconds)"),
        _("First answer, 95% (seconds)"),
        _("Resolved"),
        _("Time to resolve, median (seconds)"),
        _("Time to resolve, 95% (seconds)"),
        *(_("Rated: %(rating)s") % {"rating": one.label} for one in Rating),
    ]


def file_rows(tenant: TenantContext, *, month: str, by: str, value: str) -> Iterator[list[str]]:
    """Yield the rows of the file: those of all values in a month, or of all months of one value."""
    scope = BY[by]
    if value:
        pages: Iterable[Report] = [reports.read(tenant, month=month, scope=scope, value=value)]
    else:
        pages = reports.all_pages(tenant, month=month, scope=scope)
    for found in pages:
        names = _Names(tenant, found)
        yield from (_cells(row, names.of(row.value)) for row in (found.trend if value else found.rows))


def _cells(row: MonthNumbers, name: str) -> list[str]:
    times = ([str(d.count), _seconds(d.median), _seconds(d.p95)] for d in (row.first, row.done))
    counts = map(str, (row.created, row.unresolved, row.missed))
    return [row.month, name, *counts, *(cell for some in times for cell in some), *map(str, row.ratings.values())]


def _seconds(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return _("over 90 days") if seconds == float("inf") else str(round(seconds))
