"""Kill writers, dispatchers and consumers anywhere, and ask whether every event has arrived at a receiver.

The expected events follow from the tickets' timelines, which a transaction writes together with the outbox. Three
things are asked: has each event arrived; do those that arrived twice have the same id; is anything still pending.
The seed decides what each writer does, and not how the processes meet. Rows of the outbox stay until their TTL.
"""

from __future__ import annotations

import json
import random
import threading
import urllib.error
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Final

from delivery.outbox import destinations, outbox_rows, publisher
from delivery.outbox.destinations import Outcome
from delivery.outbox.outbox_rows import CERTAINLY_ANSWERED, Work
from delivery.outbox.stored import SHARDS, row_parts
from delivery.queues.consumer import Consumer
from delivery.queues.message_handling import MessageHandler
from delivery.queues.queue_transport import QueueTransport
from portal import clock
from portal.dynamo.store import Store
from proofs import stored
from proofs.forked import Journal
from proofs.harness import Torture, TortureFailed, count, patiently
from proofs.scenarios import load
from tickets.ticket.stored import ActivityItem

EventKey = tuple[str, int, str, str]  # tenant id, ticket, type, and the version or the moment that tells it from others

DESTINATION: Final = "torture_receiver"
_PORTIONS: Final = 8  # in which a writer writes its share, each by a process of its own
_LEAST: Final = 40  # events of a portion: each begins by opening tickets, and changes them only then
ROLES: Final = ("writer", "dispatcher", "consumer")
SLOTS: Final = 8  # deliveries of one consumer at a time
# Seconds without any progress, after which it is given up. An event whose message failed comes again from its row.
PATIENCE: Final = CERTAINLY_ANSWERED.total_seconds() + 120.0
REFUSED: Final = 0.01  # share of deliveries that the receiver answers with an error, and does not remember
_PENDING_LOOK: Final = 1000  # keys of each shard of the index that are looked at
_OF_ONE_FIELD: Final = {"status": "ticket.status_changed", "resolver": "ticket.assigned"}
_OF_TEXTS: Final = {"comment": "ticket.commented", "note": "ticket.note_added"}


def write(told: Journal, seed: int, *, tenants: list[str], events: int) -> None:
    """Change tickets until so many have been changed, each change announced to the receiver."""
    subscribed = {kind.name: (DESTINATION,) for kind in publisher.declared_types()}
    desks = load.desks(tenants)
    for desk in desks:
        desk.customer, desk.agent = (replace(who, subscriptions=subscribed) for who in (desk.customer, desk.agent))
    writer = load.Writer(random.Random(seed), desks)  # noqa: S311  # it has to be repeatable
    writer.run(events, lambda: told.write(events=writer.events))


def consume(told: Journal, seed: int, *, address: str, visible: int) -> None:
    load.see_again_after(visible)

    def deliver(work: Work) -> Outcome:
        body = json.dumps(publisher.envelope(work.row, work.index)).encode()
        request = urllib.request.Request(address, body, {"Content-Type": "application/json"})  # noqa: S310  # ours
        try:
            urllib.request.urlopen(request, timeout=10).close()  # noqa: S310
        except (urllib.error.URLError, OSError) as error:
            return Outcome("failed", retry_after=1.0, note=str(error))
        return Outcome("answered")

    destinations.declare_destination(DESTINATION, deliver)
    transport = QueueTransport()
    worker = Consumer(transport, MessageHandler().handle, range(transport.queues), slots=SLOTS, poll_seconds=1)
    worker.start()
    worker.failed.wait()


class EventReceiver:
    """Receive events as a system outside would: count arrivals by id, and collect the ids of each event."""

    def __init__(self) -> None:
        self.arrivals: Counter[str] = Counter()
        self.ids: dict[EventKey, set[str]] = defaultdict(set)
        self.refused = 0
        self._chance = random.Random()  # noqa: S311  # which delivery fails is no secret
        self._lock = threading.Lock()

    def take(self, event: dict[str, Any]) -> bool:
        """Remember an event. False where it is refused, now and then, as receivers do."""
        with self._lock:
            if self._chance.random() < REFUSED:
                self.refused += 1
                return False
            self.arrivals[event["id"]] += 1
            self.ids[key_of(event)].add(event["id"])
            return True

    @contextmanager
    def serving(self) -> Iterator[str]:
        """Serve on this machine while the context lasts. Yields the address."""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                body = self.rfile.read(length)
                if len(body) < length:  # its sender has been killed
                    self.close_connection = True
                    return
                self.send_response(204 if receiver.take(json.loads(body)) else 503)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args: object) -> None:
                """Say nothing."""

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, daemon=True).start()
            try:
                yield f"http://127.0.0.1:{server.server_port}/"
            finally:
                server.shutdown()


def key_of(event: dict[str, Any]) -> EventKey:
    """Return what identifies an event: of a change its version, of a comment its moment."""
    data = event["data"]
    return event["tenant"]["id"], int(data["number"]), event["type"], str(data.get("at") or event["sequence"])


def expected(tenant_id: str) -> set[EventKey]:
    """Return the events of a tenant's tickets, from their timelines alone: the outbox has no part in it."""
    found: set[EventKey] = set()
    for number, items in stored.collections(Store("tenant", tenant_id)):
        version = 1
        for item in (item for item in items if isinstance(item, ActivityItem)):  # the oldest first
            changed = {change.field for change in item.changes}
            version += bool(changed)
            if item.kind in _OF_TEXTS:
                found.add((tenant_id, number, _OF_TEXTS[item.kind], item.at))
            else:
                kinds = {_OF_ONE_FIELD.get(field, "ticket.changed") for field in changed} or {"ticket.created"}
                found |= {(tenant_id, number, kind, str(version)) for kind in kinds}
    return found


class Delivery(Torture):
    options: ClassVar = {
        "events": count(2_000, "N", "to write"),
        "kills": count(12, "K", "of all processes", 0),
        "tenants": count(6, "T", "to write in"),
        "writers": count(2, "W", "at a time"),
        "dispatchers": count(2, "D", "at a time"),
        "consumers": count(2, "C", "at a time"),
        "visible": load.VISIBLE,
    }
    must_be_empty = ("lost", "unexpected", "under_two_ids", "pending", "doubles_too_many")
    kept = "Each event has arrived, and nothing is pending."

    def work(self) -> None:
        plan, self.receiver, self.pending = self.plan, EventReceiver(), 0
        QueueTransport().create_all()
        self.make_tenants(plan.tenants)
        with self.receiver.serving() as address:
            portion = max(_LEAST, plan.events // plan.writers // _PORTIONS)
            writers = {"writer": (plan.writers, write, {"tenants": self.ids, "events": portion})}
            self.start_all(
                **writers,
                dispatcher=(plan.dispatchers, load.dispatch, {}),
                consumer=(plan.consumers, consume, {"address": address, "visible": plan.visible}),
            )

            def go_on(written: int) -> bool:
                if any(one.poll() for one in self.running["writer"]):
                    raise TortureFailed(f"A writer failed: {self.printed('writer')}")
                if written < plan.events:
                    self.end("writer")
                    self.start_all(**writers)
                return bool(written < plan.events)

            with self.stage("Writing", plan.events) as progress:
                kills, replace = self.kills_in_turn(ROLES), ROLES[1:]
                self.inject(kills, "writer", plan.events, progress.advance, replace=replace, go_on=go_on)
                self.wait_while_it_moves(self._look, progress.label, *replace, seconds=PATIENCE)
            self.end(*ROLES)
        self.expected = set[EventKey]().union(*(patiently(partial(expected, one)) for one in self.ids))

    def _look(self) -> tuple[bool, object]:
        self.pending = patiently(self._pending)
        return not self.pending, f"{self.pending} rows are pending, {self.receiver.arrivals.total()} arrived"

    def _pending(self) -> int:
        far = clock.stamp(clock.now().replace(year=9999))
        found = [key for n in range(SHARDS) for key in outbox_rows.due(n, until=far, limit=_PENDING_LOOK)]
        return sum(row_parts(key.event_id)[0] in self.ids for key in found)

    def figures(self) -> dict[str, Any]:
        ids, arrivals = self.receiver.ids, self.receiver.arrivals
        doubles = arrivals.total() - len(arrivals)
        # 1 %; in a small torture what the killed consumers had in hand, and a batch of each dispatcher.
        allowed = max(len(self.expected) // 100, (self.kills["consumer"] + self.kills["dispatcher"]) * 10 * SLOTS)
        return {
            "events": len(self.expected),
            "arrivals": arrivals.total(),
            "refused_by_the_receiver": self.receiver.refused,
            "doubles": doubles,
            "doubles_too_many": max(0, doubles - allowed),
            "lost": sorted(map(list, self.expected - ids.keys()))[:100],
            "unexpected": sorted(map(list, ids.keys() - self.expected))[:100],
            "under_two_ids": sorted(list(key) for key, several in ids.items() if len(several) > 1)[:100],
            "pending": self.pending,
            "kills": dict(self.kills),
        }
