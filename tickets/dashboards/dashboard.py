"""A tenant's numbers, from what the stream worker maintains: the same price for ten tickets and for ten million.

One sequential round trip of three reads sent together:

    the aggregates   one Query: a day's item has some 300 bytes, so that 30 days, totals and tags cost some 2 units
                     and 90 days 4; they grow with people and tags, not with tickets
    the watermark    one GetItem, 0.5 units: up to when these numbers are complete
    the members      one Query, 0.5 units per 4 KB, which is some 25 members: their names

All days are in UTC. Counts below zero, the trace of an error until it is repaired, are shown as zero.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from typing import Any, Final

from portal import clock
from portal.dynamo.client import fan_out
from portal.streams import watermark
from tenants.membership import members
from tenants.tenancy.context import TenantContext
from tickets.counting import aggregates
from tickets.counting import keys as aggregate_keys
from tickets.counting.aggregates import UNRESOLVED, Counts
from tickets.dashboards.durations import Durations
from tickets.dashboards.freshness import Freshness
from tickets.ticket import keys as ticket_keys
from tickets.ticket.fields import Priority, Status
from tickets.ticket.tables import TICKETS

PERIODS: Final = (30, 90)  # days, today among them
UNASSIGNED: Final = "Unassigned"
FORMER_MEMBER: Final = "Former member"

_Statuses = dict[str, dict[Status, int]]  # by key


@dataclass(frozen=True)
class Period:
    """Days from `first` to `last`, both included."""

    first: date
    last: date

    @property
    def days(self) -> int:
        return (self.last - self.first).days + 1

    def __str__(self) -> str:
        """As an address has it: 2026-10-22..2026-11-20."""
        return f"{self.first}..{self.last}"

    def dates(self) -> list[date]:
        return [self.first + timedelta(days=n) for n in range(self.days)]


@dataclass(frozen=True)
class Day:
    """What happened on a day. `resolved` are resolutions that still hold, as the list of resolved tickets has them;
    `reopened` and `commented` are events, of which a ticket may have several."""

    date: date
    created: int
    resolved: int
    reopened: int
    commented: int


@dataclass(frozen=True)
class Age:
    """Unresolved tickets opened between two days, both included; None for an open end."""

    label: str
    first: date | None
    last: date | None
    count: int


@dataclass(frozen=True)
class Load:
    """Tickets by status: of a resolver ("" for nobody), or with a tag."""

    key: str
    name: str
    statuses: Mapping[Status, int]

    @property
    def unresolved(self) -> int:
        return sum(self.statuses[s] for s in UNRESOLVED)

    @property
    def total(self) -> int:
        return sum(self.statuses.values())


@dataclass(frozen=True)
class Week:
    """First answers and resolutions of one week, from its Monday, as far as it lies in the period."""

    period: Period
    first: Durations
    done: Durations


@dataclass(frozen=True)
class Dashboard:
    """All numbers of a tenant. `verified` is the stored outcome of the last verification, raw."""

    period: Period
    freshness: Freshness
    matrix: Mapping[tuple[Status, Priority], int]
    days: list[Day]
    ages: list[Age]
    loads: list[Load]  # most unresolved first
    tags: list[Load]  # likewise
    first: Durations
    done: Durations
    weeks: list[Week]  # latest first
    verified: dict[str, Any] | None

    def of_status(self, *statuses: Status) -> int:
        return sum(n for (status, _), n in self.matrix.items() if status in statuses)

    @property
    def unassigned(self) -> int:
        return sum(load.unresolved for load in self.loads if not load.key)

    @property
    def is_empty(self) -> bool:
        return not any(self.matrix.values()) and not any(d.created or d.commented for d in self.days)


@dataclass(frozen=True)
class Share:
    """What an agent sees: the own tickets, and what all members and nobody have that is unresolved."""

    freshness: Freshness
    mine: Load
    unresolved: int
    unassigned: int
    today: date


def period(days: int) -> Period:
    today = clock.now().date()
    return Period(today - timedelta(days=days - 1), today)


def read(tenant: TenantContext, *, days: int) -> Dashboard:
    """All numbers of the last `days` days. Raises Throttled, Unavailable."""
    shown = period(days)
    reads: list[Callable[[], Any]] = [
        lambda: _stored(tenant, aggregate_keys.first_day(shown.first.isoformat())),
        partial(watermark.read, TICKETS),
        lambda: members.members_of(tenant.repository),
    ]
    stored, beat, people = fan_out(reads)
    totals, tags, by_day = _sorted_out(stored)
    names = {m.id: m.name for m in people}
    durations = {d: (Durations.of(by_day[d], "first"), Durations.of(by_day[d], "done")) for d in shown.dates()}
    return Dashboard(
        period=shown,
        freshness=Freshness.of(beat, stored),
        matrix={(s, p): max(0, totals[f"{s}.{p}"]) for s in Status for p in Priority},
        days=[_day(d, by_day[d]) for d in shown.dates()],
        ages=_ages(totals, shown.last),
        loads=_loads(totals, names),
        tags=_tags(tags),
        first=Durations.total(first for first, _ in durations.values()),
        done=Durations.total(done for _, done in durations.values()),
        weeks=_weeks(shown, durations),
        verified=next((raw for raw in stored if raw["sk"]["S"] == aggregate_keys.VERIFIED), None),
    )


def share(tenant: TenantContext) -> Share:
    """An agent's own numbers, from the totals alone: two reads sent together. Raises Throttled, Unavailable."""
    reads: list[Callable[[], Any]] = [
        lambda: _stored(tenant, aggregate_keys.totals(0)),
        partial(watermark.read, TICKETS),
    ]
    stored, beat = fan_out(reads)
    totals, _, _ = _sorted_out(stored)
    loads = _loads(totals, {tenant.user_id: tenant.user_name})
    nothing = Load(tenant.user_id, tenant.user_name, dict.fromkeys(Status, 0))
    return Share(
        freshness=Freshness.of(beat, stored),
        mine=next((load for load in loads if load.key == tenant.user_id), nothing),
        unresolved=sum(load.unresolved for load in loads),
        unassigned=sum(load.unresolved for load in loads if not load.key),
        today=clock.now().date(),
    )


def _stored(tenant: TenantContext, lowest: str) -> list[dict[str, Any]]:
    """The aggregate items from a sort key on: one Query, then one more for each further 1 MB, which tags may reach."""
    between = (lowest, aggregate_keys.VERIFIED)
    return list(tenant.repository.query_all(TICKETS, aggregate_keys.aggregate, between=between))


def _sorted_out(stored: Iterable[Mapping[str, Any]]) -> tuple[Counts, Counts, Mapping[date, Counts]]:
    totals: Counts = Counter()
    tags: Counts = Counter()
    by_day: defaultdict[date, Counts] = defaultdict(Counter)
    for kind, day, counts in aggregates.merged(stored):
        if kind == "DAY":
            by_day[date.fromisoformat(day)] = counts
        elif kind == "TOTALS":
            totals = counts
        else:
            tags = counts
    return totals, tags, by_day


def _day(day: date, counts: Counts) -> Day:
    numbers = (max(0, counts[name]) for name in ("created", "done.n", "reopened", "commented"))
    return Day(day, *numbers)


# Whole weeks, counted back from the current one: exact, because tickets are counted by the Monday of their week.
_AGES: Final = (("This week", 0), ("Last week", 1), ("2 to 4 weeks ago", 4), ("5 to 13 weeks ago", 13))
_OLDER: Final = "Earlier"


def _ages(totals: Counts, today: date) -> list[Age]:
    weeks = {date.fromisoformat(name[2:]): n for name, n in totals.items() if name.startswith("w.") and n > 0}
    monday = date.fromisoformat(aggregates.monday(today))
    found: list[Age] = []
    last: date | None = None  # the current week also takes what a fast clock dated into the next one
    for label, back in _AGES:
        first = monday - timedelta(weeks=back)
        count = sum(n for week, n in weeks.items() if week >= first and (last is None or week <= last))
        found.append(Age(label, first, last, count))
        last = first - timedelta(days=1)
    older = sum(n for week, n in weeks.items() if last is not None and week <= last)
    return [*found, Age(_OLDER, None, last, older)]


def _loads(totals: Counts, names: Mapping[str, str]) -> list[Load]:
    """Who has which tickets, nobody with the key "" among them."""
    found: _Statuses = {}
    for name, n in totals.items():
        if name.startswith("r."):
            who, _, status = name[2:].rpartition(".")
            found.setdefault("" if who == ticket_keys.UNASSIGNED else who, {})[Status(status)] = n
    names = {"": UNASSIGNED, **names}
    return _ranked(found, {who: names.get(who, FORMER_MEMBER) for who in found})


def _tags(counts: Counts) -> list[Load]:
    found: _Statuses = {}
    for name, n in counts.items():
        status, _, tag = name.partition(".")
        found.setdefault(tag, {})[Status(status)] = n
    return _ranked(found, {tag: tag for tag in found})


def _ranked(found: _Statuses, names: Mapping[str, str]) -> list[Load]:
    """Most unresolved first; what has no ticket is left out."""
    loads = [Load(key, names[key], {s: max(0, counts.get(s, 0)) for s in Status}) for key, counts in found.items()]
    return sorted((x for x in loads if x.total), key=lambda x: (-x.unresolved, -x.total, x.name.casefold(), x.key))


def _weeks(shown: Period, durations: Mapping[date, tuple[Durations, Durations]]) -> list[Week]:
    by_monday: dict[str, list[date]] = {}
    for day in shown.dates():
        by_monday.setdefault(aggregates.monday(day), []).append(day)
    return [
        Week(
            Period(days[0], days[-1]),
            Durations.total(durations[d][0] for d in days),
            Durations.total(durations[d][1] for d in days),
        )
        for days in reversed(by_monday.values())
    ]
