"""Read a tenant's aggregates back as counts, wherever they lie now."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from portal.dynamo.repository import TenantRepository
from portal.errors import Throttled
from tickets.counting import coding, contributions, leaders, merge, stored
from tickets.counting.contributions import Contribution, Counts, Kind, Part
from tickets.counting.exactly_once import Recent
from tickets.counting.leaders import Leaders
from tickets.ticket.stored import TICKETS

_TRIES: Final = 30  # to read all items between two merges

Group = tuple[Kind, str]  # kind and date of a part, all epochs taken together


@dataclass(frozen=True)
class Stored:
    """All counts of a tenant. `touches` says for each group what has touched it so far: as long as it stays the same,
    nothing in the group has moved. `weeks_from` is the first week that is still held by itself. `dashboard` is what of
    them a dashboard reads, in `read` alone."""

    counts: Contribution
    touches: Mapping[Group, frozenset[tuple[int, int, int]]]
    last_touches: Mapping[Part, int]  # the last merge that touched a part
    recent: Recent
    weeks_from: str
    dashboard: Stored | None = None


def read(repository: TenantRepository) -> Stored:
    """Read all aggregate items consistently, and as they were together: between two merges. Raises Throttled."""
    before = recent(repository)
    for _ in range(_TRIES):
        items = list(repository.query_all(TICKETS, stored.aggregate, consistent=True))
        after = recent(repository)
        if (before.merges, before.tail.runs_from) == (after.merges, after.tail.runs_from):
            seen = [raw for raw in items if raw["sk"]["S"] >= stored.LEADERS]
            return replace(of(items, after), dashboard=_shown(seen, after))
        before = after
    raise Throttled("The aggregates are being written too fast to be read.")


def shown(items: Iterable[Mapping[str, Any]]) -> Stored:
    """Add up the items from a dashboard's range of keys: of people and tags the leaders alone, and these wholly."""
    by_key = {raw["sk"]["S"]: raw for raw in items}
    return _shown(by_key.values(), Recent.of(by_key.get(stored.RECENT, {})))


def _shown(items: Iterable[Mapping[str, Any]], recent: Recent) -> Stored:
    """Leave out of RECENT what belongs to no leader, and say of those outside how they are with it."""
    items, tail = list(items), recent.tail
    led = Leaders.of(next((raw for raw in items if raw["sk"]["S"] == stored.LEADERS), {})).entities
    if not tail.is_empty:
        unseen = {c: n for c, n in recent.counts.items() if coding.is_wide(c) and coding.entity(c) not in led}
        people, tags = (leaders.of_family(unseen, family) for family in "PG")
        tail = replace(tail, people=tail.people.after(people), tags=tail.tags.after(tags))
        counts = {c: n for c, n in recent.counts.items() if c not in unseen}
        recent = replace(recent, counts=counts, tail=tail)
    return of(items, recent)


def people(repository: TenantRepository) -> dict[str, Counts]:
    """Return the counts by status of everybody who has tickets, leader or not, by user id: two Queries, which grow with
    all who ever had any."""
    outside = _range(repository, stored.RUNS, stored.after_pages())
    items = [*outside, *_range(repository, stored.LEADERS, stored.RECENT)]
    recent = Recent.of(next((raw for raw in items if raw["sk"]["S"] == stored.RECENT), {}))
    counted = contributions.merged(of(items, recent).counts).get(("PEOPLE", ""), Counter())
    by_person: defaultdict[str, Counts] = defaultdict(Counter)
    for name, n in counted.items():
        person, _, status = name.rpartition(".")
        by_person[person][status] = n
    return dict(by_person)


def _range(repository: TenantRepository, first: str, last: str) -> list[dict[str, Any]]:
    """Return the items between two sort keys, both included."""
    return list(repository.query_all(TICKETS, stored.aggregate, between=(first, last)))


def of_dashboard(repository: TenantRepository, first: str) -> list[dict[str, Any]]:
    """Read what a dashboard shows, from a sort key on: one Query."""
    return _range(repository, first, stored.VERIFIED)


def recent(repository: TenantRepository) -> Recent:
    """Return RECENT alone, read consistently."""
    page = repository.query(TICKETS, stored.aggregate, begins_with=stored.RECENT, consistent=True)
    return Recent.of(page.items[0] if page.items else {})


def of(items: Iterable[Mapping[str, Any]], recent: Recent) -> Stored:
    """Add up stored items, with RECENT as it was read beside them."""
    counts: defaultdict[Part, Counts] = defaultdict(Counter)
    last: dict[Part, int] = {}  # merge that touched the part
    wide: Counter[str] = Counter()
    weeks_from = ""
    rest = []
    for raw in items:
        sort_key = raw["sk"]["S"]
        if parts := stored.aggregate_parts(sort_key):
            part = Part("DAY" if parts[0] == "DAY" else "TOTALS", parts[1], parts[2])
            numbers = coding.numbers(raw)
            last[part] = numbers.pop(merge.TOUCHED, 0)
            for kind, attribute in merge.WIDE_TOUCHED.items():
                last[Part(kind, "", part.epoch)] = numbers.pop(attribute, 0)
            counts[part].update({coding.long(part.kind, name): n for name, n in numbers.items()})
            weeks_from = max(weeks_from, raw.get(coding.WEEKS_FROM, {}).get("S", ""))
        elif sort_key == stored.LEADERS:
            wide.update({name: n for name, n in coding.numbers(raw).items() if coding.decode(name)})
        else:
            rest.append(raw)
    wide.update(merge.total(rest, recent.tail))
    for added in (wide, recent.counts):
        for part, some in coding.decoded(added).items():
            counts[part].update(some)
    return Stored(_without_touches(counts), _touches(counts, last), last, recent, weeks_from)


def _without_touches(counts: Contribution) -> Contribution:
    counted = {}
    for part, some in counts.items():
        if kept := Counter({name: n for name, n in some.items() if n and name != coding.TOUCHES}):
            counted[part] = kept
    return counted


def _touches(counts: Contribution, last: Mapping[Part, int]) -> dict[Group, frozenset[tuple[int, int, int]]]:
    by_group: defaultdict[Group, set[tuple[int, int, int]]] = defaultdict(set)
    for part in counts.keys() | last.keys():
        stands = (part.epoch, last.get(part, 0), counts.get(part, Counter())[coding.TOUCHES])
        if any(stands[1:]):
            by_group[part.kind, part.date].add(stands)
    return {group: frozenset(stands) for group, stands in by_group.items()}
