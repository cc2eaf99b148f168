"""Say what every ticket adds to its tenant's numbers, as pure functions.

An aggregate is a sum over tickets: `contribution` says what one summary adds to it, from that item alone. A change
of a summary therefore changes the aggregates by the contribution of its new image minus that of its old one, a
deletion takes back all that the ticket ever added, and a recount adds up the contributions of the stored summaries.
Nothing else needs to be known, whatever wrote the ticket and however often a batch is delivered.

Source: AWS, "Amazon DynamoDB data modeling for Multi-Tenancy, part 2", aggregations by DynamoDB Streams. Its filter,
on the resolver in the new image, misses deletions and, by `exists`, nothing else; ours is on the sort key.

A part is a group of counts. Names of the counts in each kind of part:

    TOTALS   <status>.<priority>          tickets
             unassigned.<status>          tickets that nobody has
             w.<monday>                   unresolved tickets that were opened in this week, see `coding.WEEKS_KEPT`
    PEOPLE   <resolver>.<status>          tickets of a user id
    TAGS     <status>.<tag>               tickets
    DAY      created resolved reopened commented          events of this day; a ticket may be resolved more than once
             first.n first.sum first.<bucket>             first responses: number, seconds, histogram
             done.n done.sum done.<bucket>                resolutions that still hold, likewise
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final, Literal, NamedTuple

from portal import clock
from tickets.counting.histogram import bucket_of
from tickets.ticket.fields import Priority, Status

Kind = Literal["TOTALS", "PEOPLE", "TAGS", "DAY"]
TOTALS: Final = "TOTALS"
TAGS: Final = "TAGS"
DAY: Final = "DAY"

UNRESOLVED: Final = (Status.OPEN, Status.PENDING)
UNASSIGNED: Final = "unassigned"
COMMENTED, RESOLVED, REOPENED = "c", "r", "o"  # kinds of events in a summary's `days`
_EVENTS: Final = {COMMENTED: "commented", RESOLVED: "resolved", REOPENED: "reopened"}

# Raised by `contribution` for an image that no rule of ours writes.
UNCOUNTABLE: Final = (KeyError, ValueError, TypeError, AttributeError, IndexError, InvalidOperation)


class Part(NamedTuple):
    """A group of counts that are verified together. `date` is "" except for a DAY. An epoch begins with each rebuild;
    readers add all epochs up."""

    kind: Kind
    date: str
    epoch: int


Image = Mapping[str, Any]  # a summary in plain Python: {"status": "open", "days": {"2026-11-20c": Decimal(1)}, ...}
Counts = Counter[str]  # of one part, by name
Contribution = dict[Part, Counts]


def day_count(kind: str, at: str) -> str:
    """The name under which a summary's `days` counts an event: "2026-11-20c"."""
    return at[:10] + kind


def is_unresolved(status: str) -> bool:
    return status in UNRESOLVED


def contribution(image: Image) -> Contribution:
    """Add up what the summary with this image adds to the aggregates of its tenant. Zero counts are left out.

    Raises one of UNCOUNTABLE for an image that no rule of ours writes.
    """
    status, priority = Status(image["status"]), Priority(image["priority"])
    epoch = _whole(image.get("epoch", 0))
    created_at = clock.parse(image["created_at"])
    counted: Contribution = defaultdict(Counter)
    totals = counted[Part("TOTALS", "", epoch)]
    totals[f"{status}.{priority}"] += 1
    if resolver := _text(image["resolver"]):
        counted[Part("PEOPLE", "", epoch)][f"{resolver}.{status}"] += 1
    else:
        totals[f"{UNASSIGNED}.{status}"] += 1
    if is_unresolved(status):
        totals[f"w.{monday(created_at.date())}"] += 1
    for tag in _list(image.get("tags", [])):
        counted[Part("TAGS", "", epoch)][f"{status}.{_text(tag)}"] += 1
    counted[_day(created_at.date().isoformat(), epoch)]["created"] += 1
    for name, count in image.get("days", {}).items():
        counted[_day(name[:-1], epoch)][_EVENTS[name[-1]]] += _whole(count)
    for what, attribute in (("first", "responded_at"), ("done", "resolved_at")):
        if attribute in image:
            _add_duration(counted, what, created_at, clock.parse(image[attribute]), epoch)
    return dict(counted)


def _add_duration(counted: Contribution, what: str, start: datetime, end: datetime, epoch: int) -> None:
    seconds = max(0, round((end - start).total_seconds()))  # clocks of two machines may differ
    bucket = bucket_of(seconds)
    counts = counted[_day(end.date().isoformat(), epoch)]
    counts.update({f"{what}.n": 1, f"{what}.sum": seconds, f"{what}.{bucket}": 1})


def _day(day: str, epoch: int) -> Part:
    return Part("DAY", date.fromisoformat(day).isoformat(), epoch)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is no list")
    return value


def _whole(value: Any) -> int:
    if not isinstance(value, int | Decimal) or value != int(value):
        raise TypeError(f"{value!r} is no whole number")
    return int(value)


def monday(day: date) -> str:
    """The first day of its week."""
    return (day - timedelta(days=day.weekday())).isoformat()


def difference(new: Contribution, old: Contribution) -> Contribution:
    """Subtract: new - old, without zeros."""
    changed: Contribution = {}
    for part in new.keys() | old.keys():
        counts = Counter(new.get(part, {}))
        counts.subtract(old.get(part, {}))
        if kept := Counter({name: n for name, n in counts.items() if n}):
            changed[part] = kept
    return changed


def total(contributions: Iterable[Contribution]) -> Contribution:
    """Add up, without zeros."""
    added: Contribution = defaultdict(Counter)
    for one in contributions:
        for part, counts in one.items():
            added[part].update(counts)
    return difference(added, {})


def merged(counts: Contribution) -> dict[tuple[Kind, str], Counts]:
    """Add the epochs up: counts by kind and date, as readers want them."""
    added: dict[tuple[Kind, str], Counts] = defaultdict(Counter)
    for part, one in counts.items():
        added[part.kind, part.date].update(one)
    return dict(added)
