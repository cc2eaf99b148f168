"""The tickets' stream in the hands of a test, which applies it when and as often as it likes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from portal.streams import shards
from portal.streams.poller import Poller
from tenants.tenancy.context import TenantContext
from tickets.counting import aggregate_store, aggregates, fold, verify
from tickets.counting import keys as aggregate_keys
from tickets.counting.aggregates import Contribution
from tickets.counting.stream_handler import handle
from tickets.ticket import keys as ticket_keys
from tickets.ticket.items import SummaryItem
from tickets.ticket.tables import TICKETS


class Follower:
    """Reads the stream from its beginning. `all` are the records that it has read so far."""

    def __init__(self) -> None:
        self.arn = shards.arn(TICKETS)
        (shard,) = shards.listing(self.arn).shards
        self.shard = shards.name_of(self.arn, shard.id)
        self._iterator = shards.iterator(self.arn, shard.id)
        self.all: list[dict[str, Any]] = []

    def new(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while True:
            batch = shards.read(self._iterator)
            assert batch.next is not None
            self._iterator = batch.next
            if not batch.records:
                self.all += found
                return found
            found += [dict(record.raw) for record in batch.records]

    def fold(self) -> fold.Outcome:
        """Apply what is new."""
        return self.apply(self.new())

    def apply(self, records: list[dict[str, Any]]) -> fold.Outcome:
        return fold.process(records, shard=self.shard, read_at=time.monotonic())


@contextmanager
def poller() -> Iterator[Poller]:
    """A real poller in a thread, while `with` lasts."""
    running, made = threading.Event(), Poller(TICKETS, handle, lease_seconds=1)
    running.set()
    thread = threading.Thread(target=made.run, args=(running.is_set,))
    thread.start()
    try:
        yield made
    finally:
        running.clear()
        thread.join(timeout=30)
        assert not thread.is_alive()


@contextmanager
def in_background(work: Callable[[int], object]) -> Iterator[None]:
    """`work` is called over and over with 0, 1, 2 ... while `with` lasts. What it raises fails the test."""
    running, failures = threading.Event(), []
    running.set()

    def run() -> None:
        turn = 0
        try:
            while running.is_set():
                work(turn)
                turn += 1
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        running.clear()
        thread.join(timeout=30)
    assert not failures, failures


def stored(tenant: TenantContext | str) -> Contribution:
    """The counts of every aggregate item that has some, by sort key."""
    tenant_id = tenant if isinstance(tenant, str) else tenant.tenant_id
    found = {raw["sk"]["S"]: aggregates.counts_of(raw) for raw in aggregate_store.aggregates(tenant_id)}
    return {
        sort_key: counts for sort_key, counts in found.items() if counts and aggregate_keys.aggregate_parts(sort_key)
    }


def recounted(tenant: TenantContext) -> Contribution:
    return aggregates.difference(verify.recount(tenant.repository).counts, {})


def numbers(tenant: TenantContext) -> dict[str, int]:
    """Totals, tags and days as a reader sees them, epochs added up: "open.normal", "open.vpn", "2026-11-20 created"."""
    found: dict[str, int] = {}
    for kind, day, counts in aggregates.merged(aggregate_store.aggregates(tenant.tenant_id)):
        prefix = {"TOTALS": "", "TAGS": "tag ", "DAY": f"{day} "}[kind]
        found |= {prefix + name: n for name, n in counts.items() if n}
    return found


def plant(tenant: TenantContext, sort_key: str, **counts: int) -> None:
    """Make an aggregate wrong, as an error of ours would: `plant(acme, keys.totals(0), open_normal=3)`."""
    adding = fold.additions(aggregates.Counter({name.replace("_", "."): n for name, n in counts.items()}))
    aggregate_store.update(
        tenant.tenant_id,
        sort_key,
        UpdateExpression=adding["expression"].strip(),
        ExpressionAttributeNames=adding["names"],
        ExpressionAttributeValues=adding["values"],
    )


# --- made-up records ---


def image(tenant_id: str, number: int, **changed: Any) -> dict[str, Any]:
    """A summary as the stream shows it. `changed` are attributes as the model has them."""
    values: dict[str, Any] = {
        "number": number, "title": f"Ticket {number}", "status": "open", "priority": "normal",
        "requester_name": "Alice", "created_at": "2026-11-18T10:00:00.000000Z",
        "updated_at": "2026-11-18T10:00:00.000000Z", "tenant_status": "", "resolver_updated": "",
    } | changed  # fmt: skip
    return SummaryItem(ticket_keys.ticket(tenant_id, number), ticket_keys.SUMMARY, **values).serialize()


def record(sequence: int, old: dict[str, Any] | None, new: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    """What the stream says of a summary that was `old` and is `new`; None for one that is not there."""
    some = new or old
    assert some is not None
    data: dict[str, Any] = {"Keys": {"pk": some["pk"], "sk": some["sk"]}, "SequenceNumber": str(sequence)}
    data |= {name: value for name, value in (("OldImage", old), ("NewImage", new)) if value is not None}
    name = "MODIFY" if old and new else "INSERT" if new else "REMOVE"
    return {"eventName": name, "dynamodb": data, **more}


def created(tenant_id: str, numbers: range, **changed: Any) -> list[dict[str, Any]]:
    """Records of as many new tickets, their sequence numbers the tickets' own."""
    return [record(n, None, image(tenant_id, n, **changed)) for n in numbers]


def apply(records: list[dict[str, Any]], shard: str = "shard") -> fold.Outcome:
    return fold.process(records, shard=shard, read_at=time.monotonic())
