"""Declare what counting stores: aggregates and what lies beside them, markers of barriers, and dead letters.

The items of a dashboard are adjacent: days, LEADERS, RECENT, TOTALS and VERIFIED, in this order. All else that a
tenant's counting needs sorts before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from portal.schema import keys
from portal.schema.holdings import Holding, Reader, Stage, StoredItem, declare_holding
from portal.schema.registry import Grant, declare
from portal.schema.tables import Table
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
_PAGE: Final = "BUCKET"
_RUN: Final = "BACKLOG"
ALL_AGGREGATES: Final = keys.of_any_tenant(_AGGREGATE)
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


def first_day(date: str) -> str:
    """Return the bound from which on a Query meets the days from this one on, and all else that a dashboard reads."""
    return day(date, 0)


def aggregate_parts(sort_key: str) -> tuple[str, str, int] | None:
    """Return kind ("TOTALS" or "DAY"), date ("" where there is none) and epoch; None for another sort key."""
    kind, *parts = keys.split(sort_key)
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
