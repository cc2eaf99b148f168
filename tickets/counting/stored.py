"""Declare what counting stores: aggregates and what lies beside them, markers of barriers, and dead letters.

The counts of an aggregate are attributes of their own, named by code (coding.py).

The items of a dashboard are adjacent: days, LEADERS, RECENT, TOTALS and VERIFIED, in this order. All else that a
tenant's counting needs sorts before it, also the months of reports.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from copy import copy
from functools import cached_property, lru_cache
from typing import Any, Final, Self

from pynamodb.attributes import Attribute, NumberAttribute, UnicodeAttribute
from pynamodb.expressions.operand import Path

from portal.dynamo.meter import item_size
from portal.dynamo.store import Action, Item, Kinds, Store
from portal.schema import keys
from portal.schema.access_patterns import declare_keys
from portal.schema.holdings import Holding, Reader, Stage, StoredItem, declare_holding
from portal.schema.registry import Grant, Table, declare
from tickets.counting import coding, months
from tickets.counting.contributions import Counts, Kind, Part
from tickets.counting.leaders import UNKNOWN, Outside
from tickets.counting.months import MonthScope
from tickets.ticket.stored import TICKETS

RECENT: Final = "RECENT"
LEADERS: Final = "LEADERS"
VERIFIED: Final = "VERIFIED"  # sorts behind all aggregates
VERIFYING: Final = "CHECK"  # the lease of whoever verifies; sorts before what a dashboard reads
MARKER: Final = "MARKER"
NO_TENANT: Final = keys.PLATFORM  # partition of the dead letters that name no tenant
DEAD_LETTER_TENANTS: Final = "TENANTS"  # partition of the tenants that may have dead letters
_AGGREGATE: Final = "AGGREGATE"
_BARRIER: Final = "BARRIER"
_MONTH: Final = "CALENDAR"
_PAGE: Final = "BUCKET"
_RUN: Final = "BACKLOG"
ALL_AGGREGATES: Final = keys.of_any_tenant(_AGGREGATE)
_WHOLE: Final = "-"  # stands for no value
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}\Z")


def aggregate(tenant_id: str) -> str:
    """Return the partition key of what the stream worker maintains."""
    return keys.collection(tenant_id, _AGGREGATE)


def totals(epoch: int) -> str:
    """Return the sort key of the counts of all tickets. An epoch begins with each rebuild; readers add all of them
    up."""
    return keys.joined("TOTALS", keys.whole_number(epoch, "an epoch"))


def day(date: str, epoch: int) -> str:
    """Return the sort key of what happened on one day, "2026-11-20" in UTC."""
    if not _DAY.match(date):
        raise ValueError("a day is written as 2026-11-20")
    return keys.joined("DAY", date, keys.whole_number(epoch, "an epoch"))


def month(place: str, epoch: int) -> str:
    """Return the sort key of what happened in one month, at a place that months.py wrote."""
    scope, date, value = place.split("/")
    return keys.joined(_MONTH, scope, date, value or _WHOLE, keys.whole_number(epoch, "an epoch"))


def month_values(scope: MonthScope, date: str, value: str = "") -> str:
    """Return the beginning of the sort keys of all values of a scope in a month, or of one of them."""
    return keys.beginning(_MONTH, scope, months.checked(date), *([months.escaped(value)] if value else []))


def month_behind(scope: MonthScope, date: str, value: str) -> str:
    """Return a bound behind the sort keys of one value of a scope in a month; before those of all for the value ""."""
    if not value:
        return month_values(scope, date)
    return keys.joined(_MONTH, scope, months.checked(date), months.escaped(value), "~")


def month_after(scope: MonthScope, date: str) -> str:
    """Return a bound behind all sort keys of a scope up to this month, and before those of the next one."""
    return keys.joined(_MONTH, scope, months.checked(date) + "~")


def first_day(date: str) -> str:
    """Return the bound from which on a Query meets the days from this one on, and all else that a dashboard reads."""
    return day(date, 0)


def aggregate_parts(sort_key: str) -> tuple[str, str, int] | None:
    """Return kind ("TOTALS", "DAY" or "MONTH"), date or place ("" where there is none) and epoch; None for another sort
    key."""
    kind, *parts = keys.split(sort_key)
    if kind == _MONTH and len(parts) == 4 and parts[-1].isdigit():
        scope, date, value, epoch = parts
        return "MONTH", f"{scope}/{date}/{'' if scope == MonthScope.ALL else value}", int(epoch)
    if kind not in ("TOTALS", "DAY") or len(parts) != 1 + (kind == "DAY") or not parts[-1].isdigit():
        return None
    return kind, "".join(parts[:-1]), int(parts[-1])


# --- people and tags that are no leaders ---


def page(generation: str, first: str) -> str:
    """Return the sort key of a page of counts, which begins with the code `first`."""
    return keys.labelled(_PAGE, f"{keys.part(generation)}:{first}")


def pages(generation: str = "") -> str:
    """Return the beginning of the sort keys of all pages, or of those of one generation."""
    return keys.labelled(_PAGE, f"{keys.part(generation)}:" if generation else "")


def after_pages() -> str:
    """Return a bound behind all runs and pages, and before everything else."""
    return keys.part("C")


def run(number: int) -> str:
    """Return the sort key of the counts that the merge of this number has put aside for the next pages."""
    return keys.joined(_RUN, f"{number:012}")


RUNS: Final = keys.beginning(_RUN)


def run_number(sort_key: str) -> int:
    """Return the number in what `run` made."""
    return int(keys.split(sort_key)[1])


# --- barriers ---


def marker(tenant_id: str, barrier: str, number: int) -> str:
    """Return the partition key of a marker: each lies in a partition of its own, so that markers spread over the
    shards."""
    return keys.collection(tenant_id, MARKER, barrier, keys.whole_number(number, "a marker's number"))


def markers_seen(barrier: str) -> str:
    """Return the beginning of the sort keys, beside the aggregates, under which the worker says which markers it has
    met."""
    return keys.beginning(_BARRIER, barrier)


BARRIERS: Final = keys.beginning(_BARRIER)  # the beginning of those of all barriers


def marker_met(tenant_id: str, sort_key: str) -> str:
    """Return the partition key of the marker that the worker has answered under this sort key."""
    _, barrier, number = keys.split(sort_key)
    return marker(tenant_id, barrier, int(number))


def marker_of(stored: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return tenant, and sort key to answer under, of a marker's key; None for the key of anything else."""
    if stored.get("sk") != MARKER:
        return None
    parts = keys.collection_parts(str(stored.get("pk", "")))
    return (parts[0], keys.joined(_BARRIER, *parts[2])) if parts and parts[1] == MARKER else None


# --- dead letters ---


def dead_letter(shard: str, sequence: str) -> str:
    """Return the sort key of a dead letter within its tenant: a shard's digest and a padded sequence number."""
    return keys.joined(keys.digest(shard, size=4), sequence)


def replayed(dead_letter_key: str) -> str:
    """Return the sort key, beside the aggregates, of the note that a dead letter has been counted there."""
    return keys.joined("COUNTED", *keys.split(dead_letter_key))


def dead_letter_id(sort_key: str) -> str:
    """Return the name that a person calls a dead letter by."""
    shard, sequence = keys.split(sort_key)
    return f"{shard}-{sequence.lstrip('0') or '0'}"


DEAD_LETTERS = Table(
    "Streams.DeadLetters",
    "worker",
    "owner",
    "sequence",
    shared="an unreadable record may name no tenant, and operators list all",
)

declare(
    DEAD_LETTERS,
    grants=(
        Grant(
            "worker",
            TICKETS,
            ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"),
            "ReadStream",
            stream=True,
        ),
        Grant(
            "worker",
            TICKETS,
            ("BatchGetItem", "DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem"),
            "MaintainAggregates",
            leading_keys=ALL_AGGREGATES,
        ),
        Grant("worker", DEAD_LETTERS, ("DeleteItem", "PutItem", "Query"), "KeepDeadLetters"),
        Grant("platform", DEAD_LETTERS, ("BatchGetItem", "DeleteItem", "GetItem", "Query")),
        # A verification, which the web process runs, waits until the stream is applied: it lists shards, reads none.
        Grant("platform", TICKETS, ("DescribeStream", "ListStreams"), "ListShards", stream=True),
        # An operator who replays a dead letter counts it: in aggregates, and in no ticket.
        Grant("platform", TICKETS, ("UpdateItem",), "ReplayDeadLetters", leading_keys=ALL_AGGREGATES),
    ),
)


class DeadLetterItem(Item):
    """A stream record that could not be counted: `record` is its JSON. `owner` is its tenant's id, or
    `keys.NO_TENANT`; `sequence` is a digest of its shard and its sequence number. `placement` says in which of the
    tenant's aggregates it is missing, missing for those in the table of all.

    In the partition `keys.DEAD_LETTER_TENANTS`, where `sequence` is an owner: there were dead letters of that one.
    """

    table = DEAD_LETTERS

    owner = UnicodeAttribute(hash_key=True)
    sequence = UnicodeAttribute(range_key=True)
    tenant_id = UnicodeAttribute(default="")
    reason = UnicodeAttribute()
    record = UnicodeAttribute()
    at = UnicodeAttribute()
    placement = UnicodeAttribute(null=True)


class MarkerItem(Item):
    """A marker that a barrier sends through the stream. It goes by TTL."""

    table = TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    expires_at = NumberAttribute()


class VerifyLeaseItem(Item):
    """The lease of a verification or repair of the tenant's aggregates.

    `holder` is "" for nobody, `by` a person's name.
    """

    table = TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    holder = UnicodeAttribute(default="")
    by = UnicodeAttribute(default="")
    renewed_at = UnicodeAttribute(default="")


class VerifiedItem(Item):
    """The last verification of a tenant's aggregates that a person asked for, beside the aggregates themselves.

    `state` is running, ok, drift or unknown. `reached` is the ticket number that a run has come to which goes on or was
    broken off. `run` tells a verification from one that took its place. `found` is the JSON of the first differences,
    each [item, count, stored, recounted], and `more` says how many there were beyond.
    """

    table = TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    run = UnicodeAttribute(default="")
    state = UnicodeAttribute()
    started_at = UnicodeAttribute()
    finished_at = UnicodeAttribute(default="")
    by_name = UnicodeAttribute(default="")
    tickets = NumberAttribute(default=0)
    reached = NumberAttribute(default=0)
    why = UnicodeAttribute(default="")
    found = UnicodeAttribute(default="[]")
    more = NumberAttribute(default=0)


# --- aggregates ---


MARK: Final = "s"  # begins the names of marks
_LETTERS: Final = "oprc"  # of the statuses


class AggregateItem(Item):
    """Any item beside a tenant's aggregates: base of those that hold counts, and the model of what readers pass by."""

    table = TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)


class BarrierAnswerItem(AggregateItem):
    """The worker's answer to a barrier: it has met the marker, at this place of the stream. It goes by TTL."""

    shard = UnicodeAttribute()
    sequence = UnicodeAttribute()
    expires_at = NumberAttribute()


class ReplayedItem(AggregateItem):
    """Says that a dead letter of a silo has been counted, by a replay that has not removed it yet."""

    applied_at = UnicodeAttribute()


class CountsItem(AggregateItem):
    """Counts by code: LEADERS, and the runs and pages of those who are no leaders."""

    counts: Counts

    def __init__(self, *key: Any, counts: Mapping[str, int] | None = None, **attributes: Any) -> None:
        super().__init__(*key, **attributes)
        self.counts = Counts(counts or {})

    @classmethod
    def from_raw_data(cls, data: dict[str, Any]) -> Self:
        """Return an instance made of a raw item: every number that is no attribute of the model is a count."""
        item, declared = super().from_raw_data(data), _declared(cls)
        item.counts = Counts({n: int(v["N"]) for n, v in data.items() if "N" in v and n not in declared})
        item.unknown = {name: value for name, value in item.unknown.items() if "N" not in value}
        return item

    def serialize(self, null_check: bool = True) -> dict[str, dict[str, Any]]:
        return super().serialize(null_check) | {name: {"N": str(n)} for name, n in self.counts.items()}

    def changed(self, **attributes: Any) -> Self:
        """Return a copy with other attributes: instances are remembered, and never changed."""
        other = copy(self)
        other.attribute_values = dict(self.attribute_values)
        for name, value in attributes.items():
            setattr(other, name, value)
        return other

    @property
    def size(self) -> int:
        """Return the bytes that AWS counts for the item without its key."""
        return item_size({n: v for n, v in self.serialize().items() if n not in TICKETS.key_names})


@lru_cache
def _declared(model: type[CountsItem]) -> frozenset[str]:
    return frozenset(attribute.attr_name for attribute in model.get_attributes().values())


class PartItem(CountsItem):
    """TOTALS, a DAY or a MONTH of one epoch. Its counts are by `coding.short`.

    Says of its own part, and TOTALS of people and tags, which merge touched it last. `weeks_from` is the first week of
    TOTALS that is held by itself.
    """

    touched = NumberAttribute(attr_name="n", null=True)
    people_touched = NumberAttribute(attr_name="nP", null=True)
    tags_touched = NumberAttribute(attr_name="nG", null=True)
    weeks_from = UnicodeAttribute(attr_name="wf", null=True)

    @cached_property
    def part(self) -> Part:
        kind, date, epoch = aggregate_parts(self.sk) or ("", "", 0)
        return Part(_PART_KINDS.get(kind, "TOTALS"), date, epoch)

    def last_touches(self) -> dict[Part, int]:
        part = self.part
        wide = {part._replace(kind=kind): getattr(self, TOUCHED[kind]) for kind in WIDE}
        return {part: int(self.touched or 0)} | {one: int(last) for one, last in wide.items() if last is not None}

    def by_name(self) -> Counts:
        kind = self.part.kind
        return Counts({coding.long(kind, code): n for code, n in self.counts.items()})


_PART_KINDS: Final[Mapping[str, Kind]] = {"DAY": "DAY", "MONTH": "MONTH"}
WIDE: Final[tuple[Kind, ...]] = ("PEOPLE", "TAGS")  # kinds of parts of which a tenant may have any number of counts
TOUCHED: Final[Mapping[Kind, str]] = {
    "TOTALS": "touched", "DAY": "touched", "MONTH": "touched", "PEOPLE": "people_touched", "TAGS": "tags_touched",
}  # fmt: skip


class OutsideAttribute(Attribute[Outside]):
    """Store what is known of people, or tags, that are no leaders, as numbers in one text."""

    attr_type = "S"

    def serialize(self, value: Outside) -> str:
        tickets = (value.tickets.get(letter, 0) for letter in _LETTERS)
        return " ".join(map(str, (value.bound, value.least, value.most, value.floor, *tickets)))

    def deserialize(self, value: str) -> Outside:
        bound, least, most, floor, *tickets = map(int, value.split())
        return Outside(bound, least, most, floor, dict(zip(_LETTERS, tickets, strict=False)))

    def get_value(self, value: dict[str, Any]) -> str:
        """Take what an older version wrote, a number, for unknown."""
        return value.get("S") or self.serialize(UNKNOWN)


class Recent(CountsItem):
    """RECENT: the latest changes by code, and the marks of stream shards (exactly_once.py).

    `version` grows with every write, `merges` with every merge. `correction` is the token of the last correction by a
    rebuild. `marks` are by the name that `exactly_once.mark_name` gives a shard. Kept in memory only: `floors`,
    likewise, are sequences that are known to be applied under this very number of merges, by positions or marks that
    this process has pruned itself; `kept` are the marks that the last merge could not prune.

    The counts of people and tags that are no leaders lie in the pages of `generation`, "" for none, and in the runs of
    the merges from `runs_from` on. `new_bytes` is the size of the runs since the leaders were chosen.
    """

    version = NumberAttribute(default=0)
    merges = NumberAttribute(default=0)
    applied_at = UnicodeAttribute(null=True)
    correction = UnicodeAttribute(null=True)
    generation = UnicodeAttribute(null=True)
    runs_from = NumberAttribute(default=1)
    run_bytes = NumberAttribute(default=0)
    page_bytes = NumberAttribute(default=0)
    new_bytes = NumberAttribute(default=0)
    people = OutsideAttribute(null=True)
    tags = OutsideAttribute(null=True)

    marks: Mapping[str, str]
    floors: Mapping[str, str]
    kept: frozenset[str]

    def __init__(self, *key: Any, **attributes: Any) -> None:
        super().__init__(*key, **attributes)
        self.marks, self.floors, self.kept = {}, {}, frozenset()

    @classmethod
    def from_raw_data(cls, data: dict[str, Any]) -> Self:
        """Return an instance made of a raw item."""
        item = super().from_raw_data(data)
        item.marks = {name: value["S"] for name, value in data.items() if is_mark(name)}
        item.unknown = {name: value for name, value in item.unknown.items() if not is_mark(name)}
        item.floors, item.kept = {}, frozenset()
        return item

    def serialize(self, null_check: bool = True) -> dict[str, dict[str, Any]]:
        """Return the item as DynamoDB takes it."""
        return super().serialize(null_check) | {name: {"S": sequence} for name, sequence in self.marks.items()}

    def learnt(self, former: Recent | None) -> Recent:
        """Return the same with what was known of RECENT before: valid while the number of merges is unchanged."""
        if former is None or former.merges != self.merges:
            return self
        return self.changed(floors=former.floors, kept=former.kept)

    def floor(self, mark: str) -> str | None:
        """Return the sequence up to which this tenant's records of the shard are applied, None where it has to be
        asked.

        Before the first merge no mark was ever pruned, so one that is not there never was.
        """
        known = [source[mark] for source in (self.marks, self.floors) if mark in source]
        return max(known) if known else None if self.merges else ""

    def knowing(self, mark: str, sequence: str) -> Recent:
        return self.changed(floors={**self.floors, mark: sequence})

    @property
    def has_tail(self) -> bool:
        """Tell whether there are people or tags that are no leaders."""
        return bool(self.run_bytes or self.page_bytes)

    def outside(self, family: str) -> Outside:
        """Return what is known of those of a family, "P" or "G", that are no leaders."""
        return ((self.people if family == "P" else self.tags) or UNKNOWN) if self.has_tail else Outside()

    def holds(self, item: CountsItem) -> bool:
        """Tell whether a run or page is current: others belong to the past, or to a compaction that came too late."""
        if item.sk.startswith(RUNS):
            return run_number(item.sk) >= self.runs_from
        return bool(self.generation) and item.sk.startswith(pages(self.generation))


def is_mark(attribute: str) -> bool:
    return attribute.startswith(MARK) and attribute[5:6] in ("~", "=")


# What a Query of the aggregates' partition gives.
AGGREGATES: Final = Kinds[AggregateItem | VerifiedItem](
    {
        "": AggregateItem, "TOTALS": PartItem, "DAY": PartItem, _MONTH: PartItem, LEADERS: CountsItem, RECENT: Recent,
        RUNS: CountsItem, pages(): CountsItem, VERIFIED: VerifiedItem,
    }
)  # fmt: skip


def blank(store: Store) -> Recent:
    """Return RECENT of a tenant of which nothing is counted yet; also its key, for an update."""
    return Recent(store.key(aggregate), RECENT)


def recent(store: Store) -> Recent:
    """Read RECENT consistently."""
    return store.get(Recent, aggregate, sort=RECENT, consistent=True) or blank(store)


# --- updates ---


class _Named(Path):
    """An attribute by its name. PynamoDB takes brackets in a name, such as a tag's, for an index."""

    def _serialize_value(self, value: list[str], placeholder_names: dict[str, str], _: dict[str, str]) -> str:
        return placeholder_names.setdefault(value[0], f"#{len(placeholder_names)}")


def named(attribute: str) -> Path:
    """Return an attribute for an action or a condition, by its name."""
    return _Named([attribute])


def adding(counts: Mapping[str, int]) -> list[Action]:
    return [Recent.version.add(1), *(named(code).add(n) for code, n in sorted(counts.items()))]


# --- holdings ---


_COUNTED_AGAIN = "the stream of the imported tickets makes it again"


def _aggregates(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(TICKETS, aggregate(reader.tenant_id))


def _markers(reader: Reader) -> Iterator[StoredItem]:
    met = reader.query(TICKETS, aggregate(reader.tenant_id), begins_with=BARRIERS)
    wanted = [(marker_met(reader.tenant_id, stored.item["sk"]["S"]), MARKER) for stored in met]
    return reader.get(TICKETS, *wanted)


def _dead_letters(reader: Reader) -> Iterator[StoredItem]:
    yield from reader.query(DEAD_LETTERS, reader.tenant_id)
    yield from reader.get(DEAD_LETTERS, (DEAD_LETTER_TENANTS, reader.tenant_id))


declare_holding(
    Holding("aggregates", (TICKETS,), _aggregates, Stage.BESIDE, left_out=_COUNTED_AGAIN),
    Holding("markers of barriers", (TICKETS,), _markers, Stage.DERIVED, left_out="each is forgotten after a day"),
    Holding(
        "dead letters", (DEAD_LETTERS,), _dead_letters, Stage.BESIDE, left_out="their tickets are exported and counted"
    ),
)


declare_keys(
    TICKETS,
    {"aggregate": "TENANT#<tenant>|AGGREGATE, <part>", "marker": "TENANT#<tenant>|MARKER#<barrier>#<number>, <part>"},
)
declare_keys(DEAD_LETTERS, {"dead letter": ""})
