"""Send what the outbox holds: new rows of the stream at once, and by a sweep of the index what the stream missed.

Sending comes first and the note of it second: a dispatcher that dies in between has sent a message that is sent again,
and none is noted that was never sent. One dispatcher may have any number of threads. Of several dispatchers one follows
the stream and sweeps, also the outboxes of tenants that have their own: each message says in which its row is.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import timedelta
from functools import partial
from typing import Final

from delivery.outbox import outbox_rows, publisher
from delivery.outbox.outbox_rows import RowKey
from delivery.outbox.stored import SHARDS, OutboxItem, pending_of, row_parts
from delivery.queues import limits
from delivery.queues.holds import HoldCache, Verdict
from delivery.queues.limits import LimitsOf
from delivery.queues.queue_transport import Message
from delivery.queues.sender import Offer, Sender, Taken
from portal import clock
from portal.dynamo.client import fan_out
from portal.dynamo.library_errors import is_missing
from portal.dynamo.placement import Placement, at
from portal.errors import Unavailable
from portal.load import measurement
from portal.load.measurement import NoiseTally
from portal.streams.batch import Batch, BatchResult, Record

log = logging.getLogger("pooldesk.delivery")

IF_LOST: Final = "Nothing is to be done: the sweeper finds their rows in the index of pending ones, and sends them."
LATE: Final = timedelta(seconds=2)  # a row that comes so long after it was written may have been sent already
WATCHED_SECONDS: Final = 10.0  # after which a message that nobody has answered is looked up, and each time again


_Failures = dict[RowKey, Unavailable]  # of the rows that a change was made to


class Dispatcher:
    """Bring rows to the sender, and note what it sent. `handle` is a handler of the outbox's stream."""

    def __init__(self, sender: Sender, *, holds: HoldCache | None = None) -> None:
        self._sender, self._holds = sender, holds or HoldCache()

    def handle(self, batch: Batch) -> BatchResult:
        """Send the new rows of a batch, and free the units of those that have been answered.

        Rows of which the database took no note come back as deferred: they come again, and are not sent twice by the
        same sender. Raises Unavailable where it took no note of any, or cannot be read; then all of the batch does.
        """
        fresh: dict[RowKey, OutboxItem] = {}
        over = 0
        for record in batch.records:
            key = _key_of(record)
            new = outbox_rows.of_image(record.raw["dynamodb"].get("NewImage"))
            old = outbox_rows.of_image(record.raw["dynamodb"].get("OldImage"))
            if old is not None:
                fresh.pop(key, None)  # whoever changed it had it before us
                over += self._note_over(old, new)
            if new is not None and (old is None or _is_back(old, new)):
                fresh[key] = new
        rows = self._unsent(fresh)
        taken, failed = self._send(rows)
        if len(failed) == len(rows):
            _raise_first(failed)
        deferred = tuple(one for one in batch.records if _key_of(one) in failed)
        later = self.pump() if over else 0
        sent, waiting, left = len(taken.sent) + later, len(taken.waiting), len(taken.left)
        return BatchResult(deferred, {"sent": sent, "waiting": waiting, "left": left, "answers": over})

    def send(self, rows: Collection[OutboxItem]) -> Taken:
        """Offer what is due of these rows to the sender, and note what it sent. Messages held by an operator are put
        aside.

        Raises Unavailable where the database did not take all of it.
        """
        taken, failed = self._send(rows)
        _raise_first(failed)
        return taken

    def pump(self) -> int:
        """Send what waited and may go now, of all outboxes. Return how many messages went. Raises Unavailable."""
        taken = self._sender.pump()
        failed = self._note_sent(taken.sent)
        # Of an outbox that is away nobody else has to hear: what is not noted there is sent again by the sweep.
        here = outbox_rows.here()
        _raise_first({key: error for key, error in failed.items() if key.placement in ("", here)})
        return len(taken.sent)

    def look_up(self, *, older_than: float = WATCHED_SECONDS) -> int:
        """Free the units whose answer came by a shard of the stream that another dispatcher reads. Return how many."""
        by_placement: dict[str, list[Offer]] = defaultdict(list)
        for offer in self._sender.unanswered(older_than=older_than):
            by_placement[offer.message.placement].append(offer)
        return sum(self._look_up(where, waiting) for where, waiting in sorted(by_placement.items()))

    # --- inside ---

    def _look_up(self, where: str, waiting: list[Offer]) -> int:
        rows: dict[RowKey, OutboxItem] = {}
        try:
            rows = outbox_rows.read(_row_of(offer) for offer in waiting)
        except Unavailable as error:
            if not where:
                raise
            if not is_missing(error):  # what was in an outbox that is no more has ended
                log.warning("Messages of tenants on %s are looked up later: %s", where, error.message)
                return 0
        ended = [offer for offer in waiting if _has_ended(offer, rows.get(_row_of(offer)))]
        for offer in ended:
            self._sender.over(*offer.key)
        return len(ended)

    def _send(self, rows: Collection[OutboxItem]) -> tuple[Taken, _Failures]:
        free, failed = self._free_to_go(rows)
        seconds = {outbox_rows.key_of(row): outbox_rows.hold_seconds(row) for row in free}
        offers = [(offer, seconds[outbox_rows.key_of(row)]) for row in free for offer in _offers(row)]
        held = self._sender.send_held([(offer, hold) for offer, hold in offers if hold])
        taken = self._sender.offer([offer for offer, hold in offers if not hold])
        taken = Taken([*taken.sent, *held], taken.waiting, taken.left)
        for offer in (*taken.waiting, *taken.left):
            measurement.note(offer.message.tenant_id, NoiseTally(put_off=1))
        return taken, failed | self._note_sent(taken.sent)

    def _free_to_go(self, rows: Collection[OutboxItem]) -> tuple[list[OutboxItem], _Failures]:
        """Return the rows that no operator holds; put aside those that are to wait, and close those to be dropped."""
        by_verdict: dict[Verdict, list[OutboxItem]] = {"go": [], "wait": [], "drop": []}
        for row in rows:
            by_verdict[self._holds.verdict(row_parts(row.event_id)[0], row.timestamp)].append(row)
        for row in by_verdict["wait"]:
            measurement.note(row_parts(row.event_id)[0], NoiseTally(held=1))
        failed = _each(
            {outbox_rows.key_of(row): partial(outbox_rows.hold, row) for row in by_verdict["wait"]}
            | {outbox_rows.key_of(row): partial(outbox_rows.drop, row) for row in by_verdict["drop"]}
        )
        return by_verdict["go"], failed

    def _unsent(self, fresh: Mapping[RowKey, OutboxItem]) -> list[OutboxItem]:
        late = clock.stamp(clock.now() - LATE)
        old = {key for key in fresh if key.timestamp < late}
        stored = outbox_rows.read(old) if old else {}
        rows = [stored.get(key) if key in old else row for key, row in fresh.items()]
        return [row for row in rows if row is not None and _is_pending(row)]

    def _note_sent(self, sent: Iterable[Offer]) -> _Failures:
        rows: dict[RowKey, OutboxItem] = {}
        members: dict[RowKey, set[str]] = defaultdict(set)
        for offer in sent:
            rows[_row_of(offer)] = offer.row
            members[_row_of(offer)].add(_member(offer))
        return _each({key: partial(outbox_rows.sent, row, members[key]) for key, row in rows.items()})

    def _note_over(self, old: OutboxItem, new: OutboxItem | None) -> int:
        """Free the units of messages that this change of a row ended. Return how many."""
        ended = [
            member
            for member in old.open or ()
            if new is None
            or not _is_pending(new)
            or member not in (new.open or ())
            or outbox_rows.tried(new, member).ended > outbox_rows.tried(old, member).ended
        ]
        for member in ended:
            failed = new is not None and member in (new.open or ())
            self._sender.over(old.event_id, *publisher.member_parts(member), failed=failed)
        return len(ended)


def _each(changes: Mapping[RowKey, Callable[[], object]]) -> _Failures:
    """Make the changes at the same time, each where its row stands. Return why those failed that the database did not
    take."""

    def attempt(key: RowKey, change: Callable[[], object]) -> Unavailable | None:
        try:
            with at(Placement.parse(key.placement)):
                change()
        except Unavailable as error:
            return error
        return None

    errors = fan_out([partial(attempt, key, change) for key, change in changes.items()])
    return {key: error for key, error in zip(changes, errors, strict=True) if error is not None}


def _has_ended(offer: Offer, row: OutboxItem | None) -> bool:
    member = _member(offer)
    return row is None or member not in (row.open or ()) or outbox_rows.tried(row, member).ended >= offer.attempt


def _raise_first(failed: _Failures) -> None:
    if failed:
        raise next(iter(failed.values()))


def _is_pending(row: OutboxItem) -> bool:
    """Tell whether a row waits to be sent or answered, and no operator holds it."""
    return row.pending == pending_of(row_parts(row.event_id)[1])


def _is_back(old: OutboxItem, new: OutboxItem) -> bool:
    """Tell whether an operator has let a row go again, or somebody has opened it anew or does not want to wait."""
    hastened = any(outbox_rows.tried(new, one).n < outbox_rows.tried(old, one).n for one in new.open or ())
    opened = not (new.open or set()) <= (old.open or set())
    return _is_pending(new) and (not _is_pending(old) or opened or hastened)


def _offers(row: OutboxItem) -> list[Offer]:
    tenant_id = row_parts(row.event_id)[0]
    offers = []
    for member in sorted(outbox_rows.due_members(row)):
        index, destination = publisher.member_parts(member)
        where = outbox_rows.here()
        message = Message(
            *(tenant_id, row.event_id, row.timestamp, index, destination), placement=where, request=row.request or ""
        )
        queues = [int(number) for number in row.queues]
        offers.append(Offer(message, queues, outbox_rows.tried(row, member).ended + 1, row))
    return offers


def _key_of(record: Record) -> RowKey:
    return RowKey(record.keys["event_id"], record.keys["timestamp"], outbox_rows.here())


def _row_of(offer: Offer) -> RowKey:
    return RowKey(offer.message.event_id, offer.message.timestamp, offer.message.placement)


def _member(offer: Offer) -> str:
    return publisher.member(offer.message.index, offer.message.destination)


# --- the sweep ---
#
# It finds what the stream missed, what is to be tried again, and what SQS lost, over the sparse index. A row is in that
# index while anything of it is open, by the moment at which it has to be looked at. What a tenant's limits leave behind
# is put off to about the time when its turn comes: so a long backlog of one tenant is not looked at again and again and
# does not stand before the others.

GRACE: Final = timedelta(seconds=10)  # in which the stream sends a row
ROWS: Final = 100  # of each shard of the index, in one sweep
PUT_OFF: Final = timedelta(seconds=60)  # of what waits in the sender, and is in no list if the sender dies


class Sweeper:
    """Look at what is due, a part at a time. One sweeper at a time is enough; two send a message twice now and then."""

    def __init__(self, dispatcher: Dispatcher, *, limits_of: LimitsOf = limits.of_all) -> None:
        self._dispatcher, self._limits_of = dispatcher, limits_of
        self._turns: dict[str, float] = {}  # seconds since the epoch: when the last row that was put off comes

    def sweep(self, *, grace: timedelta = GRACE) -> dict[str, int]:
        """Send what has been due for `grace`, up to ROWS of each shard. Returns how many rows were due, and how many
        messages were sent, wait, or are left.

        Costs a Query for each shard, and a read of each row that is due. Raises Unavailable.
        """
        until = clock.stamp(clock.now() - grace)
        shards = fan_out([partial(outbox_rows.due, shard, until=until, limit=ROWS) for shard in range(SHARDS)])
        found = [key for shard in shards for key in shard]
        if not found:
            return dict.fromkeys(("due", "sent", "waiting", "left"), 0)
        rows = outbox_rows.read(found)
        ready, early = list[OutboxItem](), list[OutboxItem]()
        for row in rows.values():
            if row.pending:
                (ready if outbox_rows.due_members(row) else early).append(row)
        fan_out([partial(outbox_rows.settle, row) for row in early])
        taken = self._dispatcher.send(ready)
        self._put_off(taken.waiting, taken.left)
        return {
            "due": len(found),
            "sent": len(taken.sent),
            "waiting": len(taken.waiting),
            "left": len(taken.left),
        }

    def _put_off(self, waiting: Iterable[Offer], left: Iterable[Offer]) -> None:
        moments: dict[RowKey, tuple[OutboxItem, str]] = {}
        for offer in left:
            key = outbox_rows.key_of(offer.row)
            if key not in moments:
                moments[key] = offer.row, self._turn(offer.message.tenant_id)
        soon = clock.stamp(clock.now() + PUT_OFF)
        for offer in waiting:
            moments.setdefault(outbox_rows.key_of(offer.row), (offer.row, soon))
        fan_out([partial(outbox_rows.put_off, row, at) for row, at in moments.values()])

    def _turn(self, tenant_id: str) -> str:
        """Return when another row of this tenant may come: one after the other, as fast as its limits let them go."""
        now = time.time()
        last = max(self._turns.get(tenant_id, 0.0), now)
        self._turns[tenant_id] = last + 1 / self._limits_of(tenant_id).per_second
        return clock.stamp(clock.now() + timedelta(seconds=self._turns[tenant_id] - now))
