"""The dashboard as templates show it: each number with the list that explains it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import accumulate
from types import MappingProxyType
from typing import Any, Final

from django.urls import reverse
from django.utils.translation import gettext as _

from portal.web import locales
from tenants.tenancy.context import TenantContext
from tickets.counting.leaders import Outside
from tickets.custom_fields import definitions
from tickets.dashboards import verify_runs
from tickets.dashboards.dashboard import PERIODS, AgentNumbers, Dashboard, GroupLoad, Load, Week
from tickets.dashboards.durations import Durations
from tickets.desk.lists import READ_LIMIT
from tickets.desk.ticket_presenters import queue_url
from tickets.desk_setup import setup
from tickets.sla import policy_versions
from tickets.ticket.due_marks import OVERDUE, STATES
from tickets.ticket.fields import GROUP, UNRESOLVED, Priority, Rating, Status

UNRESOLVED_LIST, ANY = "unresolved", "any"  # what the queue calls these statuses
SHOWN_LOADS: Final = 12  # people, and tags, with a bar; the others are in the table that opens
OLD: Final = timedelta(days=28)


@dataclass(frozen=True)
class Number:
    """A count and the list of exactly what was counted; without an address where no list shows that."""

    count: int
    url: str = ""


_NO_TICKETS: Final = Number(0)


@dataclass(frozen=True)
class Tile:
    """A number with its name and perhaps a note, or a duration in seconds in place of the number."""

    id: str
    label: str
    number: Number | None = None
    seconds: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Line:
    """A row of a chart that is a table: a name, and numbers under the table's headings."""

    id: str
    name: str
    numbers: list[Number]
    total: int = 0
    is_me: bool = False
    hue: str = ""


def dashboard(tenant: TenantContext, found: Dashboard) -> dict[str, Any]:
    """Return the context of the page of admins and owners."""
    shown, to_read = found.period, _changed_since(found)
    return {
        "days": shown.days,
        "period": shown,
        "periods": [{"days": n, "url": f"{reverse('tickets:dashboard')}?days={n}"} for n in PERIODS],
        "freshness": found.freshness,
        "is_empty": found.is_empty,
        "now": [
            _tile("open", Status.OPEN.label, found.of_status(Status.OPEN), status=Status.OPEN),
            _tile("pending", Status.PENDING.label, found.of_status(Status.PENDING), status=Status.PENDING),
            _tile("unassigned", _("Unassigned"), found.unassigned, status=UNRESOLVED_LIST, resolver="none"),
            *_targets(tenant, found.states),
        ],
        "lately": _lately(found),
        "daily": _daily(found, to_read),
        "statuses": [s.label for s in Status],
        "ages": _ages(found),
        "ages_largest": max(age.count for age in found.ages),
        "priorities": [p.label for p in Priority],
        "matrix": _matrix(found),
        "channels": _channels(found, to_read[shown.first]),
        "ratings": _ratings(found, to_read[shown.first]),
        "groups": _groups(tenant, found.groups, found.of_status),
        "rated_people": _rated_people(tenant, found),
        "loads": _lines(found.loads, lambda load: _resolver(tenant, load), "load", others=found.other_people),
        "tags": _lines(
            found.tags,
            lambda load: {"tag": load.key},
            "tag",
            others=found.other_tags,
            among=found,
            colours=setup.colours_of(tenant),
        ),
        "durations": [
            _durations("first", _("First answer"), found.first, Number(found.first.count)),
            _durations(
                "done",
                _("Time to resolve"),
                found.done,
                _number(found.done.count, status=ANY, resolved=str(shown)),
            ),
        ],
        "weeks": [_week(week, to_read[week.period.first]) for week in found.weeks],
        "verified": verify_runs.VerifyState(found.verified),
        "price": sum(found.matrix.values()),
    }


def share(tenant: TenantContext, numbers: AgentNumbers) -> dict[str, Any]:
    mine, others = numbers.mine.unresolved, numbers.unresolved - numbers.mine.unresolved - numbers.unassigned
    labels = [s for s in Status if s is not Status.CLOSED]
    return {
        "freshness": numbers.freshness,
        "mine": [_tile(s.value, s.label, numbers.mine.statuses[s], status=s, resolver="me") for s in labels],
        "unresolved": _number(numbers.unresolved, status=UNRESOLVED_LIST),
        "percent": round(100 * mine / numbers.unresolved) if numbers.unresolved else 0,
        "share": [
            Line("share-mine", _("You"), [_number(mine, status=UNRESOLVED_LIST, resolver="me")]),
            Line("share-others", _("Other people"), [Number(others)]),
            Line("share-nobody", _("Nobody"), [_number(numbers.unassigned, status=UNRESOLVED_LIST, resolver="none")]),
        ],
        "statuses": [s.label for s in Status],
        "targets": _targets(tenant, numbers.states),
        "late_url": queue_url(status=UNRESOLVED_LIST, resolver="me", sla=OVERDUE),
        "groups": _groups(tenant, numbers.groups, lambda *statuses: READ_LIMIT),
        "old_url": queue_url(status=UNRESOLVED_LIST, resolver="me", created=_days(None, numbers.today - OLD)),
        "old_days": OLD.days,
    }


def _lately(found: Dashboard) -> list[Tile]:
    """Return the figures of the period. It ends today, so the last such event of each ticket that is counted lies in it
    too: the lists hold these tickets, page by page, however many there are."""
    days = str(found.period)
    sums = {
        what: sum(getattr(d, what) for d in found.days)
        for what in ("created", "resolved", "reopened", "commented", "received")
    }
    return [
        Tile("created", _("Opened"), _number(sums["created"], status=ANY, created=days)),
        Tile("resolved", _("Resolved"), _number(sums["resolved"], status=ANY, resolved=days)),
        Tile("reopened", _("Reopened"), _number(sums["reopened"], status=ANY, reopened=days)),
        Tile("commented", _("Comments"), _number(sums["commented"], status=ANY, commented=days), note=_received(sums)),
        Tile("first", _("First answer"), seconds=found.first.median, note=_("median")),
        Tile("done", _("Time to resolve"), seconds=found.done.median, note=_("median")),
    ]


def _targets(tenant: TenantContext, states: Mapping[str, int]) -> list[Tile]:
    """Return what is due and what was missed, for a desk that has targets or had some."""
    if not policy_versions.latest(tenant):
        return []
    return [_tile(state, _(STATES[state]), count, status=UNRESOLVED_LIST, sla=state) for state, count in states.items()]


def _received(sums: Mapping[str, int]) -> str:
    received = sums["received"]
    return _("%(num)s from outside") % {"num": locales.current().number(received)} if received else ""


def _daily(found: Dashboard, to_read: dict[date, int]) -> list[Line]:
    return [
        Line(
            f"day-{day.date}",
            locales.current().short_day(day.date),
            [
                _number(day.created, among=to_read[day.date], status=ANY, created=str(day.date)),
                _number(day.resolved, among=to_read[day.date], status=ANY, resolved=str(day.date)),
                # Events, of which a ticket may have several: a list has each ticket once, by the last of them.
                Number(day.reopened),
                Number(day.commented),
            ],
        )
        for day in found.days
    ]


def _changed_since(found: Dashboard) -> dict[date, int]:
    """Count for each day the tickets that a list by latest change may have to read to reach it."""
    latest_first = sorted(found.days, key=lambda day: day.date, reverse=True)
    events = accumulate(day.created + day.resolved + day.reopened + day.commented + day.rated for day in latest_first)
    tickets = found.of_status(*Status)
    return {day.date: min(tickets, count) for day, count in zip(latest_first, events, strict=True)}


def _ages(found: Dashboard) -> list[Line]:
    """Return the ages of unresolved tickets, with their numbers."""
    among = found.of_status(*UNRESOLVED)
    return [
        Line(
            f"age-{i}",
            _(age.label),
            [_number(age.count, among=among, status=UNRESOLVED_LIST, created=_days(age.first, age.last))],
        )
        for i, age in enumerate(found.ages)
    ]


def _matrix(found: Dashboard) -> list[Line]:
    """Return statuses by priority, each row with its sum."""
    return [
        Line(
            f"matrix-{s}",
            s.label,
            [
                *(_number(found.matrix[s, p], among=found.of_status(s), status=s, priority=p) for p in Priority),
                _number(found.of_status(s), status=s),
            ],
        )
        for s in Status
    ]


def _channels(found: Dashboard, to_read: int) -> list[Line]:
    """Return channels by status, each row with the tickets opened in the period at its end."""
    return [
        Line(
            f"channel-{one.channel}",
            one.channel.label,
            [
                *(
                    _number(one.statuses[s], among=found.of_status(s), status=s, channel=one.channel.value)
                    for s in Status
                ),
                _number(one.created, among=to_read, status=ANY, channel=one.channel.value, created=str(found.period)),
            ],
        )
        for one in found.channels
    ]


def _ratings(found: Dashboard, to_read: int) -> list[Line]:
    """Return ratings by status, each row with the tickets rated in the period at its end; nothing where there are
    none."""
    if not any(one.total for one in found.ratings):
        return []
    return [
        Line(
            f"rating-{one.rating}",
            one.rating.label,
            [
                *(
                    _number(one.statuses[s], among=found.of_status(s), status=s, rating=one.rating.value)
                    for s in Status
                ),
                _number(one.lately, among=to_read, status=ANY, rating=one.rating.value, rated=str(found.period)),
            ],
        )
        for one in found.ratings
    ]


def _groups(tenant: TenantContext, groups: list[GroupLoad], among: Callable[..., int]) -> list[Line]:
    """Return groups by status, each row with the unresolved tickets that nobody has at its end."""
    names = definitions.of(tenant)
    return [
        Line(
            f"group-{one.id}",
            names.name(GROUP, one.id),
            [
                *(_number(one.statuses[s], among=among(s), status=s, group=one.id) for s in Status),
                _number(one.free, among=among(*UNRESOLVED), status=UNRESOLVED_LIST, resolver="none", group=one.id),
            ],
        )
        for one in groups
    ]


def _rated_people(tenant: TenantContext, found: Dashboard) -> list[Line]:
    """Return the assignees of rated tickets, with how many of those are rated good and bad."""
    return [
        Line(
            f"rated-{load.key}",
            load.name,
            [
                _number(
                    load.ratings.get(one, 0), among=load.total, status=ANY, rating=one.value, **_resolver(tenant, load)
                )
                for one in Rating
            ],
        )
        for load in found.loads
        if any(load.ratings.values())
    ]


def _lines(
    loads: list[Load],
    params: Callable[[Load], Any],
    prefix: str,
    *,
    others: Outside,
    among: Dashboard | None = None,
    colours: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return rows with one number per status: those that get a bar, all that the table lists, and what is known of
    others.

    `others` are counted in none of the loads. `among` are the numbers of all tickets, where no key serves the lists of
    these.
    """
    read = {s: among.of_status(s) if among else 0 for s in Status}
    lines = [
        Line(
            f"{prefix}-{load.key or 'none'}",
            load.name,
            [_number(load.statuses[s], among=read[s], status=s, **params(load)) for s in Status],
            total=load.unresolved,
            is_me="me" in params(load).values(),
            hue=colours.get(load.key, ""),
        )
        for load in loads
    ]
    busy = [line for line in lines if line.total][:SHOWN_LOADS]
    return {
        "busy": busy,
        "largest": max((line.total for line in busy), default=0),
        "more": sum(1 for load in loads if load.unresolved) - len(busy),
        "all": lines,
        "others": others,
    }


def _resolver(tenant: TenantContext, load: Load) -> dict[str, str]:
    if not load.key:
        return {"resolver": "none"}
    if load.key == tenant.user_id:
        return {"resolver": "me"}
    return {"resolver": load.key, "name": load.name}


def _durations(name: str, title: str, of: Durations, number: Number) -> dict[str, Any]:
    """Return a histogram from the first bucket with something in it to the last one."""
    full = [i for i, bucket in enumerate(of.buckets) if bucket.count]
    rows = of.buckets[full[0] : full[-1] + 1] if full else []
    largest = max((row.count for row in rows), default=0)
    return {"id": name, "title": title, "of": of, "number": number, "rows": rows, "largest": largest}


def _week(week: Week, to_read: int) -> dict[str, Any]:
    return {
        "period": week.period,
        # True for the first one, where the period cuts it.
        "begins_late": week.period.first.weekday() != locales.current().first_weekday,
        "first": week.first,
        "done": week.done,
        "resolved": _number(
            week.done.count,
            among=to_read,
            status=ANY,
            resolved=str(week.period),
        ),
    }


def _tile(name: str, label: str, count: int, **params: Any) -> Tile:
    return Tile(name, label, _number(count, **params))


def _number(count: int, *, among: int = 0, **params: Any) -> Number:
    """Return a count with its list, if a page of that list can read as many tickets as it has to be picked from.

    `among` is that number, 0 where a key serves the list.
    """
    if not count:
        return _NO_TICKETS
    return Number(count, queue_url(**params) if among <= READ_LIMIT else "")


def _days(first: date | None, last: date | None) -> str:
    return f"{first or ''}..{last or ''}"
