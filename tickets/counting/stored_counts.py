"""Read a tenant's aggregates back as counts, wherever they lie now."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from portal.dynamo.store import Store
from portal.errors import Throttled
from tickets.counting import coding, contributions, leaders, stored
from tickets.counting.contributions import Contribution, Counts, Kind, Part
from tickets.counting.stored import AGGREGATES, AggregateItem, CountsItem, PartItem, Recent, VerifiedItem

_TRIES: Final = 30  # to read all items between two merges

Group = tuple[Kind, str]  # kind and date of a part, all epochs taken together
Stands = tuple[int, int, int]  # of a part: its epoch, the last merge that touched it, and the touches in RECENT
Aggregates = list[AggregateItem | VerifiedItem]


@dataclass(frozen=True)
class Stored:
    """All counts of a tenant. `touches` says for each group what has touched it so far: as long as it stays the same,
    nothing in the group has moved. `weeks_from` is the first week that is still held by itself. `dashboard` is what of
    them a dashboard reads, in `read` alone."""

    counts: Contribution
    touches: Mapping[Group, frozenset[Stands]]
    last_touches: Mapping[Part, int]  # the last merge that touched a part
    recent: Recent
    weeks_from: str
    dashboard: Stored | None = None


def read(store: Store) -> Stored:
    """Read all aggregate items consistently, and as they were together: between two merges. Raises Throttled."""
    before = stored.recent(store)
    for _ in range(_TRIES):
        found = list(store.query_all(AGGREGATES, stored.aggregate, consistent=True))
        after = stored.recent(store)
        if (before.merges, before.runs_from) == (after.merges, after.runs_from):
            seen = [item for item in found if item.sk >= stored.LEADERS]
            return replace(of(found, after), dashboard=_shown(seen, after))
        before = after
    raise Throttled("The aggregates are being written too fast to be read.")


def shown(found: Aggregates) -> Stored:
    """Add up the items from a dashboard's range of keys: of people and tags the leaders alone, and these wholly."""
    return _shown(found, _recent_among(found))


def _recent_among(found: Aggregates) -> Recent:
    return next((item for item in found if isinstance(item, Recent)), None) or Recent()


def _shown(found: Aggregates, recent: Recent) -> Stored:
    """Leave out of RECENT what belongs to no leader, and say of those outside how they are with it."""
    if recent.has_tail:
        led = {coding.entity(c) for item in found if item.sk == stored.LEADERS for c in _counts(item)}
        unseen = {c: n for c, n in recent.counts.items() if coding.is_wide(c) and coding.entity(c) not in led}
        people, tags = (recent.outside(family).after(leaders.of_family(unseen, family)) for family in "PG")
        seen = Counter({c: n for c, n in recent.counts.items() if c not in unseen})
        recent = recent.changed(counts=seen, people=people, tags=tags)
    return of(found, recent)


def _counts(item: AggregateItem | VerifiedItem) -> Counts:
    return item.counts if isinstance(item, CountsItem) else Counts()


def people(store: Store) -> dict[str, Counts]:
    """Return the counts by status of everybody who has tickets, leader or not, by user id: two Queries, which grow with
    all who ever had any."""
    found = [*_between(store, stored.RUNS, stored.after_pages()), *_between(store, stored.LEADERS, stored.RECENT)]
    counted = contributions.merged(of(found, _recent_among(found)).counts).get(("PEOPLE", ""), Counter())
    by_person: defaultdict[str, Counts] = defaultdict(Counter)
    for name, n in counted.items():
        person, _, status = name.rpartition(".")
        by_person[person][status] = n
    return dict(by_person)


def of_dashboard(store: Store, first: str) -> Aggregates:
    """Read what a dashboard shows, from a sort key on: one Query."""
    return _between(store, first, stored.VERIFIED)


def _between(store: Store, first: str, last: str) -> Aggregates:
    """Return the items between two sort keys, both included."""
    return list(store.query_all(AGGREGATES, stored.aggregate, between=(first, last)))


def of(found: Iterable[AggregateItem | VerifiedItem], recent: Recent) -> Stored:
    """Add up stored items, with RECENT as it was read beside them."""
    counts: defaultdict[Part, Counts] = defaultdict(Counter)
    last: dict[Part, int] = {}  # merge that touched the part
    by_code = [recent.counts]
    weeks_from = ""
    for item in found:
        if isinstance(item, PartItem):
            last |= item.last_touches()
            counts[item.part].update(coding.known(item.by_name()))
            weeks_from = max(weeks_from, item.weeks_from or "")
        elif isinstance(item, CountsItem) and (item.sk == stored.LEADERS or recent.holds(item)):
            by_code.append(item.counts)
    for part, some in coding.decoded(coding.added(*by_code)).items():
        counts[part].update(coding.known(some))
    touches: defaultdict[Group, set[Stands]] = defaultdict(set)
    for part in counts.keys() | last.keys():
        stands = (part.epoch, last.get(part, 0), counts[part].pop(coding.TOUCHES, 0))
        if any(stands[1:]):
            touches[part.kind, part.date].add(stands)
    without_zeros = {part: kept for part, some in counts.items() if (kept := coding.nonzero(some))}
    return Stored(without_zeros, {g: frozenset(some) for g, some in touches.items()}, last, recent, weeks_from)
