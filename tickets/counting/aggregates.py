"""What every ticket adds to its tenant's numbers, as pure functions.

An aggregate is a sum over tickets: `contribution` says what one summary adds to it, from that item alone. A change
of a summary therefore changes the aggregates by the contribution of its new image minus that of its old one, a
deletion takes back all that the ticket ever added, and a recount adds up the contributions of the stored summaries.
Nothing else needs to be known, whatever wrote the ticket and however often a batch is delivered.

Source: AWS, "Amazon DynamoDB data modeling for Multi-Tenancy, part 2", aggregations by DynamoDB Streams. Its filter,
on the resolver in the new image, misses deletions and, by `exists`, nothing else; ours is on the sort key.

Names of the counts, which are the attributes of the aggregate items:

    TOTALS   <status>.<priority>          tickets
             r.<resolver>.<status>        tickets of a user id, or of UNASSIGNED
             w.<monday>                   unresolved tickets that were opened in this week
    TAGS     <status>.<tag>               tickets
    DAY      created resolved reopened commented          events of this day; a ticket may be resolved more than once
             first.n first.sum first.<bucket>             first responses: number, seconds, histogram
             done.n done.sum done.<bucket>                resolutions that still hold, likewise
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, Final

from portal import clock
from tickets.counting import keys as aggregate_keys
from tickets.ticket import keys as ticket_keys
from tickets.ticket.fields import Priority, Status

UNRESOLVED: Final = (Status.OPEN, Status.PENDING)
COMMENTED, RESOLVED, REOPENED = "c", "r", "o"  # kinds of events in a summary's `days`
_EVENTS: Final = {COMMENTED: "commented", RESOLVED: "resolved", REOPENED: "reopened"}
# Upper bounds of the histograms in seconds, some two to a factor of four; above the last is "over".
BUCKETS: Final = (
    300, 900, 1800, 3600, 7200, 14400, 28800, 57600, 86400,
    172800, 345600, 604800, 1209600, 2592000, 7776000,
)  # fmt: skip
OVER: Final = "over"

# What `contribution` raises for an image that no rule of ours writes.
UNCOUNTABLE: Final = (KeyError, ValueError, TypeError, AttributeError, IndexError)

Image = Mapping[str, Any]  # an item as DynamoDB writes it: {"status": {"S": "open"}, ...}
Counts = Counter[str]  # of one aggregate item, by attribute
Contribution = dict[str, Counts]  # by sort key of the aggregate item


def day_count(kind: str, at: str) -> str:
    """The name under which a summary's `days` counts an event: "2026-11-20c"."""
    return at[:10] + kind


def is_unresolved(status: str) -> bool:
    return status in UNRESOLVED


def contribution(image: Image) -> Contribution:
    """What the summary with this image adds to the aggregates of its tenant. Zero counts are left out.

    Raises one of UNCOUNTABLE for an image that no rule of ours writes.
    """
    status, priority = Status(image["status"]["S"]), Priority(image["priority"]["S"])
    epoch = int(image["epoch"]["N"]) if "epoch" in image else 0
    created_at = clock.parse(image["created_at"]["S"])
    found: dict[str, Counts] = defaultdict(Counter)
    totals = found[aggregate_keys.totals(epoch)]
    totals[f"{status}.{priority}"] += 1
    totals[f"r.{image['resolver']['S'] or ticket_keys.UNASSIGNED}.{status}"] += 1
    if is_unresolved(status):
        totals[f"w.{monday(created_at.date())}"] += 1
    for tag in image["tags"]["L"] if "tags" in image else ():
        found[aggregate_keys.tags(epoch)][f"{status}.{tag['S']}"] += 1
    found[aggregate_keys.day(created_at.date().isoformat(), epoch)]["created"] += 1
    for name, count in (image["days"]["M"] if "days" in image else {}).items():
        found[aggregate_keys.day(name[:-1], epoch)][_EVENTS[name[-1]]] += int(count["N"])
    for what, attribute in (("first", "responded_at"), ("done", "resolved_at")):
        if attribute in image:
            _add_duration(found, what, created_at, clock.parse(image[attribute]["S"]), epoch)
    return dict(found)


def _add_duration(found: dict[str, Counts], what: str, start: datetime, end: datetime, epoch: int) -> None:
    seconds = max(0, round((end - start).total_seconds()))  # clocks of two machines may differ
    bucket = next((str(bound) for bound in BUCKETS if seconds <= bound), OVER)
    counts = found[aggregate_keys.day(end.date().isoformat(), epoch)]
    counts.update({f"{what}.n": 1, f"{what}.sum": seconds, f"{what}.{bucket}": 1})


def monday(day: date) -> str:
    """The first day of its week."""
    return (day - timedelta(days=day.weekday())).isoformat()


def difference(new: Contribution, old: Contribution) -> Contribution:
    """new - old, without zeros."""
    changed: Contribution = {}
    for sort_key in new.keys() | old.keys():
        counts = Counter(new.get(sort_key, {}))
        counts.subtract(old.get(sort_key, {}))
        if kept := Counter({name: n for name, n in counts.items() if n}):
            changed[sort_key] = kept
    return changed


def total(contributions: Iterable[Contribution]) -> Contribution:
    """Their sum, without zeros."""
    found: dict[str, Counts] = defaultdict(Counter)
    for one in contributions:
        for sort_key, counts in one.items():
            found[sort_key].update(counts)
    return difference(found, {})


# --- the fold ---


@dataclass(frozen=True)
class Change:
    """What one stream record changes. `sequence` is padded, so that text is ordered as numbers are."""

    sequence: str
    tenant_id: str
    counts: Contribution
    record: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Poison:
    """A record that cannot be folded, and why. `tenant_id` is "" where it names none."""

    sequence: str
    tenant_id: str
    reason: str
    record: Mapping[str, Any] = field(repr=False)


@dataclass
class Fold:
    """A batch, taken apart. Changes are in the order of the stream; those that change nothing are left out."""

    changes: dict[str, list[Change]]  # by tenant
    poison: list[Poison]
    events: int  # records about summaries, among them those that change nothing


def fold(records: Iterable[Mapping[str, Any]]) -> Fold:
    """Stream records of one shard, in their order, as changes per tenant. Records about other items are passed over.

    Shape of a record: AWS, "Record" in the DynamoDB Streams API reference; the same in a Lambda event.
    """
    found = Fold(defaultdict(list), [], 0)
    for record in records:
        data = record["dynamodb"]
        if data["Keys"].get("sk", {}).get("S") != ticket_keys.SUMMARY:
            continue
        found.events += 1
        sequence = pad(data["SequenceNumber"])
        owner = ticket_keys.owner_of(data["Keys"]["pk"].get("S", ""))
        if owner is None:
            found.poison.append(Poison(sequence, "", "the partition key is no ticket's", record))
            continue
        try:
            old, new = (contribution(data[name]) if name in data else {} for name in ("OldImage", "NewImage"))
        except UNCOUNTABLE as error:
            reason = f"{type(error).__name__}: {error}"[:300]
            found.poison.append(Poison(sequence, owner[0], reason, record))
            continue
        if counts := difference(new, old):
            found.changes[owner[0]].append(Change(sequence, owner[0], counts, record))
    return found


def pad(sequence: str) -> str:
    """A sequence number, of up to 40 digits, as text of one width."""
    if not sequence.isascii() or not sequence.isdigit() or len(sequence) > 40:
        raise ValueError("a sequence number has up to 40 digits")
    return sequence.zfill(40)


def by_item(changes: Iterable[Change]) -> dict[str, list[tuple[str, Counts]]]:
    """The changes of one tenant by sort key of the aggregate item, each with its sequence, in order."""
    found: dict[str, list[tuple[str, Counts]]] = defaultdict(list)
    for change in changes:
        for sort_key, counts in change.counts.items():
            found[sort_key].append((change.sequence, counts))
    return found


# --- reading them ---

_BOOKKEEPING: Final = {"pk", "sk", "applied_at", "expires_at"}
MARK_PREFIX: Final = "s_"  # of the attributes that hold the last sequence applied of a stream shard


def counts_of(raw: Image) -> Counts:
    """The counts in a stored aggregate item, without zeros."""
    return Counter(
        {
            name: int(value["N"])
            for name, value in raw.items()
            if name not in _BOOKKEEPING and not name.startswith(MARK_PREFIX) and value.get("N", "0") != "0"
        }
    )


def merged(items: Iterable[Image]) -> Iterator[tuple[str, str, Counts]]:
    """Kind, date and counts of stored aggregate items, epochs added up, in the order in which they came."""
    found: dict[tuple[str, str], Counts] = defaultdict(Counter)
    for raw in items:
        if parts := aggregate_keys.aggregate_parts(raw["sk"]["S"]):
            found[parts[0], parts[1]].update(counts_of(raw))
    for (kind, day), counts in found.items():
        yield kind, day, counts
