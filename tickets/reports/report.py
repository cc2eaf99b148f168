"""The numbers of a month, from what the stream worker maintains: the same price for ten tickets and for ten million.

A report is read by requests that are sent together:

    the months       one Query: the desk in the twelve months up to this one; for a single value a Query for each
    its values       one Query: up to MOST groups, assignees, channels or tags of the month, in the order of their keys
    what is recent   one Query: totals, leaders, and what no merge has moved yet
    the watermark    one GetItem
    the members      one Query: their names; in a large desk a BatchGetItem for those among the values
    oneself          one GetItem: whether the report of each week is wanted

An event counts in the month in which it happened, in the zone of the desk; whether a ticket is solved and whether it
has missed a target count in the month in which it was opened. Counts below zero, the trace of an error until it is
repaired, are shown as zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from typing import Any, Final

from django.utils.translation import gettext as _

from portal.dynamo.client import fan_out
from portal.dynamo.store import Store
from portal.errors import Invalid
from portal.streams import watermark
from tenants.membership import members
from tenants.membership.mail_choices import MailedReport
from tenants.tenancy.context import TenantContext
from tickets.counting import contributions, months, stored, stored_counts
from tickets.counting.contributions import BUCKET_NAMES, MISSED, MONTH, REPORTED, SOLVED, Contribution, Counts
from tickets.counting.months import MonthPlace, MonthScope
from tickets.counting.stored import AGGREGATES, PartItem, Recent
from tickets.dashboards.dashboard import Freshness
from tickets.dashboards.durations import Durations
from tickets.ticket.fields import UNRESOLVED, Priority, Rating, Status
from tickets.ticket.stored import TICKETS

TREND: Final = 12  # months
MOST: Final = 100  # values of a scope in one report; a link leads to the next ones


@dataclass(frozen=True)
class MonthNumbers:
    """Hold what happened in a month, to tickets of the desk or of one `value`.

    `solved` and `missed` are of the tickets that were `created` in it; `hours` are these by weekday, 0 for Monday, and
    hour.
    """

    month: str
    value: str
    created: int
    solved: int
    missed: int
    first: Durations
    done: Durations
    ratings: Mapping[Rating, int]
    hours: Mapping[tuple[int, int], int]

    @classmethod
    def of(cls, month: str, value: str, counts: Counts) -> MonthNumbers:
        hours = {(day, hour): max(0, counts[f"h.{day}.{hour}"]) for day in range(7) for hour in range(24)}
        return cls(
            month=month,
            value=value,
            created=sum(hours.values()),
            solved=max(0, counts[SOLVED]),
            missed=max(0, counts[MISSED]),
            first=_durations(counts, "first"),
            done=_durations(counts, "done"),
            ratings={rating: max(0, counts[f"rated.{rating}"]) for rating in Rating},
            hours=hours,
        )

    @property
    def unresolved(self) -> int:
        """Return how many tickets that were opened in this month are not resolved now."""
        return max(0, self.created - self.solved)

    @property
    def is_empty(self) -> bool:
        return not (self.created or self.first.count or self.done.count or any(self.ratings.values()))


def _durations(counts: Counts, what: str) -> Durations:
    histogram = tuple(max(0, counts[f"{what}.{name}"]) for name in BUCKET_NAMES)
    return Durations(sum(histogram), 0, histogram)


@dataclass(frozen=True)
class Report:
    """A month of the desk, or of one value of a scope. `trend` are the months up to this one, latest first, and `rows`
    the values of the scope, most opened first. `more` is the value behind which others come, "" where all are here.
    Of people, where all are here, the last row has the value "": the tickets that nobody has. `earlier` are unresolved
    tickets of before the trend, None where that is not known. Of `tickets` altogether only
    `counted` are in reports."""

    scope: MonthScope
    value: str
    trend: list[MonthNumbers]
    rows: list[MonthNumbers]
    more: str
    earlier: int | None
    tickets: int
    counted: int
    freshness: Freshness
    names: Mapping[str, str]  # of members
    wanted: frozenset[MailedReport]  # of whoever reads this, by mail

    @property
    def now(self) -> MonthNumbers:
        return self.trend[0]

    @property
    def missing(self) -> int:
        return max(0, self.tickets - self.counted)


def this_month(tenant: TenantContext) -> str:
    return tenant.today.isoformat()[:7]


def clean_month(tenant: TenantContext, text: str) -> str:
    """Return the month that was asked for, or that of today. Raises Invalid."""
    if not text:
        return this_month(tenant)
    try:
        if not "1900" < text < "9999":  # so far that all months of a report, and their days, are in the calendar
            raise ValueError
        return months.checked(text)
    except ValueError:
        raise Invalid(_("Write a month as 2026-11."), field="month") from None


def shifted(month: str, by: int) -> str:
    """Return the month so many months later."""
    number = int(month[:4]) * 12 + int(month[5:]) - 1 + by
    return f"{number // 12:04}-{number % 12 + 1:02}"


def days_of(month: str) -> tuple[date, date]:
    first = date.fromisoformat(f"{month}-01")
    return first, date.fromisoformat(f"{shifted(month, 1)}-01") - timedelta(days=1)


def read(tenant: TenantContext, *, month: str, scope: MonthScope, value: str = "", after: str = "") -> Report:
    """Return the report of a month: of the desk with the values of this scope, from behind the value `after` on, or of
    one value. Raises Throttled, Unavailable."""
    repository = tenant.repository
    wanted = [shifted(month, -back) for back in range(TREND)]
    reads: list[Callable[[], Any]] = [
        partial(stored_counts.of_dashboard, repository, stored.LEADERS),
        partial(watermark.read, TICKETS, repository),
        partial(members.at_hand, tenant),
        partial(members.member, repository, tenant.user_id),
    ]
    if value:
        reads += [partial(_items, repository, begins_with=stored.month_values(scope, one, value)) for one in wanted]
    else:
        ends = (stored.month_values(MonthScope.ALL, wanted[-1]), stored.month_after(MonthScope.ALL, month))
        reads += [partial(_items, repository, between=ends), partial(_values, repository, month, scope, after)]
    found, written, people, myself, *items = fan_out(reads)
    seen = stored_counts.shown(found)
    of_values, more = Contribution(), ""
    if not value:
        listed, more = items.pop()
        of_values = contributions.total([listed, _recent(seen.counts, month, scope, after, more)])
    rows = sorted(_rows(of_values, month), key=lambda row: (-row.created, -row.done.count, row.value))
    of = MonthScope.ALL if not value else scope
    by_place = contributions.merged(contributions.total([*items, seen.counts]))
    if scope is MonthScope.PERSON and rows and not after and not more:
        rows += _without_value(by_place.get((MONTH, str(MonthPlace(of, month, ""))), Counts()), of_values, month)
    trend = [
        MonthNumbers.of(one, value, by_place.get((MONTH, str(MonthPlace(of, one, value))), Counts())) for one in wanted
    ]
    named = {value, *(row.value for row in rows)} - {""} if scope is MonthScope.PERSON else set[str]()
    totals = contributions.merged(seen.counts).get((contributions.TOTALS, ""), Counts())
    return Report(
        scope=scope,
        value=value,
        trend=trend,
        rows=rows,
        more=more,
        earlier=_earlier(totals, trend) if month == this_month(tenant) and not value else None,
        tickets=sum(max(0, totals[f"{s}.{p}"]) for s in Status for p in Priority),
        counted=max(0, totals[REPORTED]),
        freshness=Freshness.of(written, seen.recent.applied_at),
        names=members.names_of(repository, people, named),
        wanted=myself.choices.reports if myself else frozenset(),
    )


def two_months(tenant: TenantContext, month: str) -> tuple[MonthNumbers, MonthNumbers]:
    """Return the numbers of the desk in a month and in the one before it: two Queries, whatever the desk has. Raises
    Throttled, Unavailable."""
    repository, wanted = tenant.repository, (month, shifted(month, -1))
    ends = (stored.month_values(MonthScope.ALL, wanted[1]), stored.month_after(MonthScope.ALL, month))
    reads: list[Callable[[], Any]] = [
        partial(stored_counts.of_dashboard, repository, stored.LEADERS),
        partial(_items, repository, between=ends),
    ]
    found, items = fan_out(reads)
    by_place = contributions.merged(contributions.total([items, stored_counts.shown(found).counts]))
    of, before = (
        MonthNumbers.of(one, "", by_place.get((MONTH, str(MonthPlace(MonthScope.ALL, one, ""))), Counts()))
        for one in wanted
    )
    return of, before


def all_pages(tenant: TenantContext, *, month: str, scope: MonthScope) -> Iterator[Report]:
    """Yield the reports of a month that together have all values of a scope, MOST in each."""
    after, is_first = "", True
    while is_first or after:
        report = read(tenant, month=month, scope=scope, after=after)
        yield report
        after, is_first = report.more, False


def _items(repository: Store, **keys: Any) -> Contribution:
    return stored_counts.of(repository.query_all(AGGREGATES, stored.aggregate, **keys), Recent()).counts


def _values(repository: Store, month: str, scope: MonthScope, after: str) -> tuple[Contribution, str]:
    """Return the counts of up to MOST values behind one, and the last of them where more come."""
    ends = (stored.month_behind(scope, month, after), stored.month_after(scope, month))
    page = repository.query(AGGREGATES, stored.aggregate, between=ends, limit=MOST + 1)
    found = stored_counts.of(page.items, Recent()).counts
    if page.last_key is None:
        return found, ""
    *places, last = [item.part.date for item in page.items if isinstance(item, PartItem)]
    kept = {part: counts for part, counts in found.items() if part.date != last}  # epochs of it may be missing
    return kept, MonthPlace.parse(next(place for place in reversed(places) if place != last)).value


def _order(place: str) -> bytes:
    """Return by what keys of a scope in a month are sorted."""
    return stored.month(place, 0).encode()


def _recent(counts: Contribution, month: str, scope: MonthScope, after: str, last: str) -> Contribution:
    """Return of what no merge has moved yet the values behind `after`, up to `last`."""
    low, high = (_order(str(MonthPlace(scope, month, value))) for value in (after, last))
    beginning = f"{scope}/{month}/"
    return {
        part: some
        for part, some in counts.items()
        if part.kind == MONTH and part.date.startswith(beginning)
        if (not after or _order(part.date) > low) and (not last or _order(part.date) <= high)
    }


def _rows(counts: Contribution, month: str) -> list[MonthNumbers]:
    rows = [
        MonthNumbers.of(month, MonthPlace.parse(place).value, some)
        for (_, place), some in contributions.merged(counts).items()
    ]
    return [row for row in rows if not row.is_empty]


def _without_value(whole: Counts, of_values: Contribution, month: str) -> list[MonthNumbers]:
    """Return the row of the tickets that have no value, where each has one at most: all but those of the values."""
    rest = Counts(whole)
    for some in contributions.merged(of_values).values():
        rest.subtract(some)
    row = MonthNumbers.of(month, "", rest)
    return [] if row.is_empty else [row]


def _earlier(totals: Counts, trend: list[MonthNumbers]) -> int | None:
    """Return the unresolved tickets of before the trend: all that is left of the totals."""
    unresolved = sum(totals[f"{s}.{p}"] for s in UNRESOLVED for p in Priority)
    return max(0, unresolved - sum(month.unresolved for month in trend))
