"""The tickets' stream in the hands of a test, which applies it when and as often as it likes."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from portal import quotas
from portal.dynamo.store import Store
from portal.schema.registry import Table
from portal.streams import positions, shards
from portal.streams.batch import Batch, BatchResult, Handler, Record, batch_of, parse
from portal.streams.poller import Poller
from tenants.tenancy.context import TenantContext
from tests.support.waiting import PATIENCE
from tickets.counting import coding, contributions, dead_letters, merge, stored, stream_handler
from tickets.counting import stored_counts as storing
from tickets.counting.contributions import Contribution, Kind, Part
from tickets.counting.record_changes import Change
from tickets.counting.stored import Recent
from tickets.counting.stream_handler import handle
from tickets.following import ticket_stream
from tickets.ticket import stored as ticket_keys
from tickets.ticket.stored import TICKETS, SummaryItem
from tickets.verification import recount

ARN = "arn:aws:dynamodb:eu-central-1:000000000000:table/made-up/stream/1"


class Follower:
    """Reads a stream, the tickets' or another table's, from its beginning. `all` is what it has read so far."""

    def __init__(self, table: Table = TICKETS, handler: Handler = handle) -> None:
        self._handler = handler
        self.arn = shards.arn(table)
        (shard,) = shards.listing(self.arn).shards
        self.shard_id = shard.id
        self._iterator = shards.iterator(self.arn, shard.id)
        self.all: list[Record] = []
        self._lock = threading.Lock()

    def new(self) -> list[Record]:
        found: list[Record] = []
        while True:
            answer = shards.read(self._iterator)
            assert answer.next is not None
            self._iterator = answer.next
            if not answer.records:
                self.all += found
                return found
            found += answer.records

    def batch(self) -> Batch:
        """What is new, as a poller hands it on."""
        return Batch(self.arn, self.shard_id, tuple(self.new()))

    def fold(self) -> BatchResult:
        """Apply what is new, and say that it is applied, as a poller does."""
        with self._lock:
            records = self.new()
            result = self.apply(records)
            positions.advance_behind(Batch(self.arn, self.shard_id, tuple(records)), result)
        return result

    @contextmanager
    def following(self) -> Iterator[None]:
        """Apply what comes, while `with` lasts."""
        with in_background(lambda _: self.fold(), pause=0.03):
            yield

    def apply(self, records: Sequence[Record]) -> BatchResult:
        return self._handler(Batch(self.arn, self.shard_id, tuple(records)))


@contextmanager
def poller() -> Iterator[Poller]:
    """A real poller in a thread, while `with` lasts."""
    running, started = threading.Event(), Poller(TICKETS, handle, lease_seconds=1)
    running.set()
    thread = threading.Thread(target=started.run, args=(running.is_set,))
    thread.start()
    try:
        yield started
    finally:
        running.clear()
        thread.join(PATIENCE)
        assert not thread.is_alive()


@contextmanager
def in_background(work: Callable[[int], object], *, pause: float = 0) -> Iterator[None]:
    """`work` is called over and over with 0, 1, 2 ... while `with` lasts. What it raises fails the test.

    `pause`: seconds between two calls, for what mostly finds nothing to do and would take the processor meanwhile.
    """
    ended, failures = threading.Event(), []

    def run() -> None:
        turn = 0
        try:
            while not ended.wait(pause if turn else 0):
                work(turn)
                turn += 1
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(PATIENCE)
    assert not failures, failures


def remember_nothing() -> None:
    """Forget what this process knows of the tenants, as a new one would: for an engine that was made empty."""
    for cache in list(quotas._caches):
        cache.clear()
    dead_letters.noted.clear()
    for known in (ticket_stream.merges._due, ticket_stream.merges._graves):
        known.clear()


# --- what is stored ---


def kept_counts(tenant: TenantContext | str) -> Contribution:
    """All counts of a tenant by part, wherever they lie."""
    return storing.read(store_of(tenant) if isinstance(tenant, str) else tenant.repository).counts


def recounted(tenant: TenantContext) -> Contribution:
    return contributions.difference(recount.recount(tenant.repository).counts, {})


def numbers(tenant: TenantContext) -> dict[str, int]:
    """All counts as a reader sees them, epochs added up: "open.normal", "tag open.vpn", "2026-11-20 created"."""
    found: dict[str, int] = {}
    for (kind, day), counts in contributions.merged(kept_counts(tenant)).items():
        prefix = {"TOTALS": "", "PEOPLE": "r.", "TAGS": "tag ", "DAY": f"{day} ", "MONTH": f"{day} "}[kind]
        found |= {prefix + name: n for name, n in counts.items() if n}
    return found


def store_of(tenant: TenantContext | str) -> Store:
    """The store in which a stream worker counts a tenant's tickets."""
    return Store("worker", tenant if isinstance(tenant, str) else tenant.tenant_id)


def recent(tenant: TenantContext | str) -> Recent:
    return stored.recent(store_of(tenant))


def merge_all(tenant: TenantContext | str) -> None:
    """Move everything out of RECENT."""
    position = stream_handler.Positions(ARN)
    while (state := recent(tenant)).counts:
        assert merge.merge(store_of(tenant), state, position=position)


def plant(tenant: TenantContext, kind: Kind, day: str = "", *, epoch: int = 0, **counts: int) -> None:
    """Make an aggregate wrong, as an error of ours would: `plant(acme, "TOTALS", open_normal=3)`."""
    plant_all(tenant, {Part(kind, day, epoch): counts})


def plant_all(tenant: TenantContext, parts: Mapping[Part, Mapping[str, int]]) -> None:
    """Some parts at once, of no more counts than a request may name."""
    coded = coding.coded(
        {part: Counter({name.replace("_", "."): n for name, n in counts.items()}) for part, counts in parts.items()}
    )
    store = store_of(tenant)
    store.update(stored.blank(store), stored.adding(coded))


def put_aside(tenant_id: str, number: int, raw: dict[str, Any] | None = None) -> str:
    """Keep a dead letter that no worker has written; its id in the operators' admin."""
    data = {"Keys": {}, "NewImage": {}, **(raw or {}).get("dynamodb", {}), "SequenceNumber": str(number)}
    record = parse({"dynamodb": data})
    store = store_of(tenant_id) if tenant_id else None
    dead_letters.keep(Batch(ARN, "shard", ()), store, [Change(record.sequence, record, reason="no such status")])
    sort_key = stored.dead_letter(f"{ARN}/shard", record.sequence)
    return f"{tenant_id or stored.NO_TENANT}/{sort_key}"


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


def apply(records: Sequence[dict[str, Any]], shard_id: str = "shard") -> BatchResult:
    return handle(batch_of(ARN, shard_id, records))


def contribution(image: dict[str, Any]) -> Contribution:
    """What a raw summary contributes."""
    single = recount.Recount()
    single.add(image)
    return dict(single.counts)
