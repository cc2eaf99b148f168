"""A tenant's numbers, from what the stream worker maintains: the same price for ten tickets and for ten million.

One sequential round trip of three reads sent together:

    the aggregates   one Query: a day's item has some 300 bytes, so that 30 days, totals and tags cost some 2 units
                     and 90 days 4; they grow with people and tags, not with tickets
    the watermark    one GetItem, 0.5 units: up to when these numbers are complete
    the members      one Query, 0.5 units per 4 KB, which is some 25 members: their names

Days are those of the desk's time zone. Counts below zero, the trace of an error until it is repaired, are shown as
zero.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any, Final, Literal

from django.utils.translation import gettext, gettext_noop

from portal import clock
from portal.dynamo.client import fan_out
from portal.streams import watermark
from portal.streams.watermark import LATE_SECONDS, Watermark
from tenants.membership import members
from tenants.tenancy.context import TenantContext
from tickets.counting import contributions, stored_counts
from tickets.counting import stored as aggregate_keys
from tickets.counting.contributions import COUNTED_CHANNELS, Counts
from tickets.counting.leaders import Outside
from tickets.counting.stored import VerifiedItem
from tickets.counting.stored_counts import Aggregates, Stored
from tickets.dashboards.durations import Durations
from tickets.ticket.custom_values import MOST_IDS
from tickets.ticket.due_marks import STATES
from tickets.ticket.fields import UNRESOLVED, Channel, Priority, Rating, Status
from tickets.ticket.stored import TICKETS

State = Literal["current", "behind", "stopped", "unknown"]


@dataclass(frozen=True)
class Freshness:
    """Up to when the numbers are complete. `seconds` is how long ago that was, at the moment of reading.

    unknown: nobody says up to when, because no worker ever ran. Then `as_of` is when
    the last change was counted, None if none ever was.
    """

    state: State
    as_of: datetime | None
    seconds: int

    @classmethod
    def of(cls, watermark: Watermark | None, changed_at: str | None = None) -> Freshness:
        """Judge aggregates that were read now by the watermark, or without one by when they were last changed."""
        now = clock.now()
        if watermark is None:
            as_of = clock.parse(changed_at) if changed_at else None
            return cls("unknown", as_of, _seconds(now, as_of) if as_of else 0)
        state: State = "current"
        if _seconds(now, watermark.written_at) > LATE_SECONDS:
            state = "stopped"
        elif _seconds(now, watermark.as_of) > LATE_SECONDS:
            state = "behind"
        return cls(state, watermark.as_of, _seconds(now, watermark.as_of))


def _seconds(now: datetime, then: datetime) -> int:
    return max(0, round((now - then).total_seconds()))  # clocks of two machines may differ


# --- who and what has how many tickets ---


UNASSIGNED: Final = gettext_noop("Unassigned")
FORMER_MEMBER: Final = gettext_noop("Former member")

_Statuses = dict[str, dict[Status, int]]  # by key
_RATINGS: Final = frozenset(rating.value for rating in Rating)


@dataclass(frozen=True)
class Load:
    """Tickets by status: of a resolver ("" for nobody), with how their requesters rated them, or with a tag."""

    key: str
    name: str
    statuses: Mapping[Status, int]
    ratings: Mapping[Rating, int] = field(default_factory=dict)

    @property
    def unresolved(self) -> int:
        return sum(self.statuses[s] for s in UNRESOLVED)

    @property
    def total(self) -> int:
        return sum(self.statuses.values())


def of_people(totals: Counts, people: Counts, names: Mapping[str, str]) -> list[Load]:
    """Return the loads of all who have tickets; the key "" stands for nobody."""
    statuses: _Statuses = {"": {s: totals[f"{contributions.UNASSIGNED}.{s}"] for s in Status}}
    ratings: defaultdict[str, dict[Rating, int]] = defaultdict(dict)
    for name, n in people.items():
        who, _, word = name.rpartition(".")
        if word in _RATINGS:
            ratings[who][Rating(word)] = max(0, n)
        else:
            statuses.setdefault(who, {})[Status(word)] = n
    names = {"": gettext(UNASSIGNED), **names}
    loads = _ranked(statuses, {who: names.get(who, gettext(FORMER_MEMBER)) for who in statuses})
    return [replace(load, ratings=ratings[load.key]) for load in loads]


def of_tags(counts: Counts) -> list[Load]:
    statuses: _Statuses = {}
    for name, n in counts.items():
        status, _, tag = name.partition(".")
        statuses.setdefault(tag, {})[Status(status)] = n
    return _ranked(statuses, {tag: tag for tag in statuses})


def _ranked(statuses: _Statuses, names: Mapping[str, str]) -> list[Load]:
    """Return the loads, most unresolved first; what has no ticket is left out."""
    loads = [Load(key, names[key], {s: max(0, counts.get(s, 0)) for s in Status}) for key, counts in statuses.items()]
    return sorted((x for x in loads if x.total), key=lambda x: (-x.unresolved, -x.total, x.name.casefold(), x.key))


# --- the dashboard ---


PERIODS: Final = (30, 90)  # days, today among them


@dataclass(frozen=True)
class Period:
    """Days from `first` to `last`, both included."""

    first: date
    last: date

    @property
    def days(self) -> int:
        return (self.last - self.first).days + 1

    def __str__(self) -> str:
        """Write it as an address does: 2026-10-22..2026-11-20."""
        return f"{self.first}..{self.last}"

    def dates(self) -> list[date]:
        return [self.first + timedelta(days=n) for n in range(self.days)]


@dataclass(frozen=True)
class Day:
    """The events of a day. `resolved` are resolutions that still hold, as the list of resolved tickets has them;
    `reopened` and `commented` are events, of which a ticket may have several."""

    date: date
    created: int
    resolved: int
    reopened: int
    commented: int
    received: int  # those of the comments that people outside the desk wrote
    rated: int  # tickets that were last rated on this day


@dataclass(frozen=True)
class ChannelLoad:
    """Tickets by the way they came: all by status, and those that were opened in the period."""

    channel: Channel
    statuses: Mapping[Status, int]
    created: int


@dataclass(frozen=True)
class Rated:
    """Tickets whose requesters gave them this rating: all by status, and those that were last rated in the period."""

    rating: Rating
    statuses: Mapping[Status, int]
    lately: int

    @property
    def total(self) -> int:
        return sum(self.statuses.values())


@dataclass(frozen=True)
class GroupLoad:
    """Tickets of a group by status, and the unresolved ones of them that nobody has."""

    id: str
    statuses: Mapping[Status, int]
    free: int


@dataclass(frozen=True)
class Age:
    """Unresolved tickets opened between two days, both included; None for an open end. The label is in English."""

    label: str
    first: date | None
    last: date | None
    count: int


@dataclass(frozen=True)
class Week:
    """First answers and resolutions of one week, from its first day, as far as it lies in the period."""

    period: Period
    first: Durations
    done: Durations


@dataclass(frozen=True)
class Dashboard:
    """All numbers of a tenant. `verified` is the stored outcome of the last verification."""

    period: Period
    freshness: Freshness
    matrix: Mapping[tuple[Status, Priority], int]
    days: list[Day]
    ages: list[Age]
    channels: list[ChannelLoad]
    ratings: list[Rated]
    groups: list[GroupLoad]  # that have tickets
    states: Mapping[str, int]  # unresolved tickets by due_marks.STATES
    loads: list[Load]  # most unresolved first: nobody, and the people who lead
    tags: list[Load]  # likewise
    other_people: Outside  # who have tickets and are not among `loads`
    other_tags: Outside  # likewise
    first: Durations
    done: Durations
    weeks: list[Week]  # latest first
    verified: VerifiedItem | None

    def of_status(self, *statuses: Status) -> int:
        return sum(n for (status, _), n in self.matrix.items() if status in statuses)

    @property
    def unassigned(self) -> int:
        return sum(load.unresolved for load in self.loads if not load.key)

    @property
    def is_empty(self) -> bool:
        return not any(self.matrix.values()) and not any(d.created or d.commented for d in self.days)


@dataclass(frozen=True)
class AgentNumbers:
    """The numbers for an agent: the own tickets, and the unresolved ones of all members and of nobody."""

    freshness: Freshness
    mine: Load
    unresolved: int
    unassigned: int
    groups: list[GroupLoad]
    states: Mapping[str, int]  # unresolved tickets of the desk by due_marks.STATES
    today: date


@dataclass(frozen=True)
class TagNumbers:
    """The tags, most unresolved tickets first, and what is known of the others."""

    freshness: Freshness
    tags: list[Load]
    others: Outside


def period(tenant: TenantContext, days: int) -> Period:
    """Return the last days, today at the desk among them."""
    today = tenant.today
    return Period(today - timedelta(days=days - 1), today)


def _aggregates(
    tenant: TenantContext, first: str, *others: Callable[[], Any]
) -> tuple[Stored, Freshness, Aggregates, list[Any]]:
    """Read the aggregates from a sort key on, how old they are, and beside them what else is wanted."""
    reads: list[Callable[[], Any]] = [
        lambda: stored_counts.of_dashboard(tenant.repository, first),
        partial(watermark.read, TICKETS, tenant.repository),
        *others,
    ]
    items, written, *found = fan_out(reads)
    seen = stored_counts.shown(items)
    return seen, Freshness.of(written, seen.recent.applied_at), items, found


def read(tenant: TenantContext, *, days: int, first_weekday: int = 0) -> Dashboard:
    """Return all numbers of the last `days` days, with weeks that begin on this weekday, 0 for Monday.

    Raises Throttled, Unavailable.
    """
    shown = period(tenant, days)
    first = aggregate_keys.first_day(shown.first.isoformat())
    seen, freshness, items, (people,) = _aggregates(tenant, first, lambda: members.at_hand(tenant))
    totals, persons, tags, by_day = _sorted_out(seen)
    names = members.names_of(tenant.repository, people, _counted(persons))
    durations = {d: (Durations.of(by_day[d], "first"), Durations.of(by_day[d], "done")) for d in shown.dates()}
    return Dashboard(
        period=shown,
        freshness=freshness,
        matrix=_matrix(totals),
        days=[_day(d, by_day[d]) for d in shown.dates()],
        ages=_ages(totals, shown.last),
        channels=_channels(totals, [by_day[d] for d in shown.dates()]),
        ratings=_ratings(totals, [by_day[d] for d in shown.dates()]),
        groups=of_groups(totals),
        states=_states(totals),
        loads=of_people(totals, persons, names),
        tags=of_tags(tags),
        other_people=seen.recent.outside("P"),
        other_tags=seen.recent.outside("G"),
        first=Durations.total(first for first, _ in durations.values()),
        done=Durations.total(done for _, done in durations.values()),
        weeks=_weeks(shown, durations, first_weekday),
        verified=next((item for item in items if isinstance(item, VerifiedItem)), None),
    )


def share(tenant: TenantContext) -> AgentNumbers:
    """Return an agent's own numbers: two reads sent together, and two more for an agent who is no leader of many.

    Raises Throttled, Unavailable.
    """
    seen, freshness, _, _ = _aggregates(tenant, aggregate_keys.LEADERS)
    totals, persons, _, _ = _sorted_out(seen)
    if seen.recent.has_tail and not any(name.startswith(tenant.user_id) for name in persons):
        own = stored_counts.people(tenant.repository).get(tenant.user_id, Counter())
        persons.update({f"{tenant.user_id}.{status}": n for status, n in own.items()})
    loads = of_people(totals, persons, {tenant.user_id: tenant.user_name})
    nothing = Load(tenant.user_id, tenant.user_name, dict.fromkeys(Status, 0))
    matrix = _matrix(totals)
    return AgentNumbers(
        freshness=freshness,
        mine=next((load for load in loads if load.key == tenant.user_id), nothing),
        unresolved=sum(n for (status, _), n in matrix.items() if status in UNRESOLVED),
        unassigned=sum(load.unresolved for load in loads if not load.key),
        groups=of_groups(totals),
        states=_states(totals),
        today=tenant.today,
    )


def tags(tenant: TenantContext) -> TagNumbers:
    """Return the tags of tickets with how many have them: two reads sent together. Raises Throttled, Unavailable."""
    seen, freshness, _, _ = _aggregates(tenant, aggregate_keys.LEADERS)
    _, _, counts, _ = _sorted_out(seen)
    return TagNumbers(freshness, of_tags(counts), seen.recent.outside("G"))


def _sorted_out(seen: Stored) -> tuple[Counts, Counts, Counts, Mapping[date, Counts]]:
    """Return counts of totals, people and tags, and by day."""
    merged = contributions.merged(seen.counts)
    by_day: defaultdict[date, Counts] = defaultdict(Counter)
    by_day |= {date.fromisoformat(day): counts for (kind, day), counts in merged.items() if kind == contributions.DAY}
    totals, people, tags = (merged.get((kind, ""), Counter()) for kind in ("TOTALS", "PEOPLE", "TAGS"))
    return totals, people, tags, by_day


def _counted(persons: Counts) -> set[str]:
    return {name.partition(".")[0] for name, n in persons.items() if n > 0}


def _states(totals: Counts) -> dict[str, int]:
    return {state: sum(max(0, totals[f"{state}.{s}"]) for s in UNRESOLVED) for state in STATES}


def _matrix(totals: Counts) -> dict[tuple[Status, Priority], int]:
    return {(s, p): max(0, totals[f"{s}.{p}"]) for s in Status for p in Priority}


_RATED: Final = tuple(f"rated.{rating}" for rating in Rating)


def _day(day: date, counts: Counts) -> Day:
    names = ("created", "done.n", "reopened", "commented", "received")
    created, resolved, reopened, commented, received = (max(0, counts[name]) for name in names)
    rated = sum(max(0, counts[name]) for name in _RATED)
    return Day(day, created, resolved, reopened, commented, received, rated)


def _channels(totals: Counts, days: Sequence[Counts]) -> list[ChannelLoad]:
    """Return the tickets of each channel. Those made by hand are the ones that came by no other."""
    all_tickets = {s: sum(totals[f"{s}.{p}"] for p in Priority) for s in Status}
    statuses = {channel: {s: max(0, totals[f"{channel}.{s}"]) for s in Status} for channel in COUNTED_CHANNELS}
    created = {channel: max(0, sum(day[f"created.{channel}"] for day in days)) for channel in COUNTED_CHANNELS}
    statuses[Channel.HAND] = {s: max(0, n - sum(one[s] for one in statuses.values())) for s, n in all_tickets.items()}
    created[Channel.HAND] = max(0, sum(day["created"] for day in days) - sum(created.values()))
    return [ChannelLoad(channel, statuses[channel], created[channel]) for channel in Channel]


def _ratings(totals: Counts, days: Sequence[Counts]) -> list[Rated]:
    return [
        Rated(
            rating,
            {s: max(0, totals[f"{rating}.{s}"]) for s in Status},
            max(0, sum(day[f"rated.{rating}"] for day in days)),
        )
        for rating in Rating
    ]


def of_groups(totals: Counts) -> list[GroupLoad]:
    counted = {name.partition(".")[0] for name in totals}
    found = (one for n in range(1, MOST_IDS + 1) if (one := f"group_{n}") in counted)
    loads = [
        GroupLoad(
            one,
            {s: max(0, totals[f"{one}.{s}"]) for s in Status},
            max(0, sum(totals[f"{contributions.FREE}{one}.{s}"] for s in UNRESOLVED)),
        )
        for one in found
    ]
    return [load for load in loads if any(load.statuses.values())]


# Whole weeks, counted back from the current one: exact, because tickets are counted by the Monday of their week.
_AGES: Final = (
    (gettext_noop("This week"), 0),
    (gettext_noop("Last week"), 1),
    (gettext_noop("2 to 4 weeks ago"), 4),
    (gettext_noop("5 to 13 weeks ago"), 13),
)
_OLDER: Final = gettext_noop("Earlier")


def _ages(totals: Counts, today: date) -> list[Age]:
    held = {name[2:]: n for name, n in totals.items() if name.startswith("w.") and n > 0}
    long_ago = held.pop("", 0)
    weeks = {date.fromisoformat(week): n for week, n in held.items()}
    monday = date.fromisoformat(contributions.monday(today))
    ages: list[Age] = []
    last: date | None = None  # the current week also takes what a fast clock dated into the next one
    for label, back in _AGES:
        first = monday - timedelta(weeks=back)
        count = sum(n for week, n in weeks.items() if week >= first and (last is None or week <= last))
        ages.append(Age(label, first, last, count))
        last = first - timedelta(days=1)
    older = long_ago + sum(n for week, n in weeks.items() if last is not None and week <= last)
    return [*ages, Age(_OLDER, None, last, older)]


def _weeks(shown: Period, durations: Mapping[date, tuple[Durations, Durations]], first_weekday: int) -> list[Week]:
    by_start: dict[date, list[date]] = {}
    for day in shown.dates():
        by_start.setdefault(day - timedelta(days=(day.weekday() - first_weekday) % 7), []).append(day)
    return [
        Week(
            Period(days[0], days[-1]),
            Durations.total(durations[d][0] for d in days),
            Durations.total(durations[d][1] for d in days),
        )
        for days in reversed(by_start.values())
    ]
