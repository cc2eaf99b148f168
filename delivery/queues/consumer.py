"""Deliver what a worker's queues bring: a thread for each queue that waits for messages, and one for each slot.

A queue is asked only while a slot is free. Received messages wait in a short list until a slot takes them, from the
queue with the fewest running first. A message over its tenant's limits is set aside for a moment and then put behind
others, so that it never delays another tenant's.

Messages are kept invisible during the work, and deleted afterwards in batches (`Receipts`). A worker that is killed
leaves nothing behind: its messages are seen again after VISIBILITY_SECONDS, as is one that SQS refuses to delete, whose
row then says that there is nothing to do.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from delivery.queues import limits, message_handling
from delivery.queues.limits import HANGS_SECONDS, LimitsOf, Schedule
from delivery.queues.message_handling import Handled
from delivery.queues.queue_transport import BATCH, Message, QueueTransport, Received
from portal.dynamo import retry
from portal.errors import PortalError

log = logging.getLogger("pooldesk.delivery")

# A poll is not cancelled, so stopping takes as long; and each is paid for.
POLL_SECONDS = 5
# That what runs may take to finish, longer than any delivery; what hangs is seen again by others.
# Less than service managers wait. A delivery that takes longer is made again by another worker.
STOP_SECONDS: Final = 16.0
# What is over its tenant's cap waits here for so long, since a unit is often free again soon; then others may have it.
ASIDE_SECONDS: Final = 0.5
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 10.0  # seconds, while the queues are away
VISIBILITY_SECONDS: Final = 30  # after which what a dead worker had is seen by another
EXTEND_SECONDS: Final = 10.0
_DELETE_SECONDS: Final = 0.1
_TRIES: Final = 5

Handle = Callable[[Received], Handled]


class Consumer:
    """One worker, with the queues that it serves."""

    def __init__(
        self,
        transport: QueueTransport,
        handle: Handle,
        queues: Sequence[int],
        *,
        slots: int,
        limits_of: LimitsOf = limits.of_all,
        poll_seconds: int | None = None,
    ) -> None:
        self._transport, self._handle, self._queues, self._slots = transport, handle, queues, slots
        self._poll_seconds = poll_seconds or POLL_SECONDS
        self._schedule = Schedule(slots, limits_of=limits_of)
        self._receipts = Receipts(transport)
        self._changed = threading.Condition()
        self._hands: dict[int, deque[Received]] = {queue: deque() for queue in queues}
        self._aside: deque[tuple[float, Received]] = deque()  # what is over a cap, each with when it is put off
        self._alone: Received | None = None  # for which nothing else begins
        self._appetite = dict.fromkeys(queues, 1)  # how many messages the next poll asks for
        self._asked: Counter[int] = Counter()
        self._counts: Counter[str] = Counter()
        self._stopping = False
        self._polling: list[threading.Thread] = []
        self._working: list[threading.Thread] = []
        self._finished = threading.Event()
        # Set by an error that nobody expected. The worker then works with less than it has; it should be started anew.
        self.failed = threading.Event()

    def start(self) -> None:
        self._polling = [self._thread(self._poll, queue) for queue in self._queues]
        self._working = [self._thread(self._work) for _ in range(self._slots)]
        self._working.append(self._thread(self._let_go))
        self._keeping = self._thread(self._receipts.run, lambda: not self._finished.is_set())

    def stop(self, *, seconds: float = STOP_SECONDS) -> bool:
        """Finish what runs and give back what has not begun. Return whether all of it has ended within the time."""
        deadline = time.monotonic() + seconds
        with self._changed:
            self._stopping = True
            left = [waiting for hand in self._hands.values() for waiting in hand]
            left += [waiting for _, waiting in self._aside]
            for hand in self._hands.values():
                hand.clear()
            self._aside.clear()
            left += [self._alone] if self._alone else []
            self._alone = None
            self._changed.notify_all()
        self._give_back(left)
        for thread in [*self._polling, *self._working]:
            thread.join(max(0.0, deadline - time.monotonic()))
        self._finished.set()
        self._keeping.join(max(1.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in [*self._polling, *self._working, self._keeping])

    def report(self) -> dict[str, int]:
        """Return what was done since the start, by word, and how many deliveries run and wait now."""
        with self._changed:
            waiting = sum(map(len, self._hands.values())) + len(self._aside) + (self._alone is not None)
            return {**self._counts, "running": self._schedule.running, "waiting": waiting}

    def _thread(self, target: Callable[..., object], *args: object) -> threading.Thread:
        def run() -> None:
            try:
                target(*args)
            except BaseException:
                log.exception("A thread of the worker ended by an error")
                self.failed.set()

        # A daemon: a delivery that hangs must not keep the process from ending.
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    # --- receiving ---

    def _poll(self, queue: int) -> None:
        failures = 0
        while most := self._ask(queue):
            received: list[Received] = []
            try:
                received = self._transport.receive(
                    queue, most=most, wait=self._poll_seconds, visibility=VISIBILITY_SECONDS
                )
                failures = 0
            except PortalError as error:
                failures += 1
                log.warning("Queue %s could not be read: %s", queue, error.message)
            self._take_in(queue, most, received)
            if failures:
                self._wait(retry.pause(failures, first=_FIRST_PAUSE, longest=_LONGEST_PAUSE))

    def _ask(self, queue: int) -> int:
        """Wait until a slot is free, and the hand of the queue is empty. Return how many to ask for, 0 at the end."""
        with self._changed:
            while not self._stopping and (self._hands[queue] or self._schedule.free < 1):
                self._changed.wait()
            if self._stopping:
                return 0
            spare = self._schedule.free - self._asked.total() - sum(map(len, self._hands.values()))
            self._asked[queue] = max(1, min(self._appetite[queue], spare, BATCH))
            return self._asked[queue]

    def _take_in(self, queue: int, most: int, received: list[Received]) -> None:
        self._receipts.hold(received)
        waiting = []
        for one in received:
            if message_handling.is_readable(one):
                waiting.append(one)
            else:
                self._conclude(one, Handled("refused"))
        with self._changed:
            self._asked[queue] = 0
            self._appetite[queue] = min(2 * most, BATCH) if len(received) == most else 1
            self._counts["received"] += len(received)
            if not self._stopping:
                self._hands[queue].extend(waiting)
                waiting = []
            self._changed.notify_all()
        self._give_back(waiting)

    def _wait(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._stopping, seconds)

    # --- delivering ---

    def _work(self) -> None:
        while (taken := self._take()) is not None:
            waiting, seconds = taken
            if seconds:
                self._put_off(waiting, seconds)
                continue
            self._receipts.begin(waiting)
            self._conclude(waiting, self._handle(waiting))
            with self._changed:
                self._schedule.end(waiting.queue, waiting.message.tenant_id, is_suspect=waiting.strikes > 0)
                if _goes_alone(waiting) and self._alone is None:
                    self._schedule.open()
                self._changed.notify_all()

    def _take(self) -> tuple[Received, float] | None:
        """Wait for the next message. Return it, and the seconds by which it has to be put off; None at the end."""
        with self._changed:
            while not self._stopping:
                taken = self._take_alone() if self._alone else None
                if taken is None and self._schedule.free and (waiting := self._next()):
                    taken = waiting, self._begin(waiting)
                if taken:
                    self._changed.notify_all()
                    return taken
                if not (self._alone and not self._schedule.running):
                    self._wait_for_change()
        return None

    def _wait_for_change(self) -> None:
        reserved = self._schedule.is_reserved
        self._changed.wait(limits.ALONE_SECONDS if reserved else None)
        if reserved and not self._schedule.is_reserved:
            self._changed.notify_all()  # nothing else tells those who ask the queues

    def _begin(self, waiting: Received) -> float:
        return self._schedule.begin(waiting.queue, waiting.message.tenant_id, is_suspect=waiting.strikes > 0)

    def _take_alone(self) -> tuple[Received, float] | None:
        """Take the message for which nothing else begins: to begin, once nothing runs, or to put off, after a while."""
        waiting = self._alone
        if waiting is None or (self._schedule.running and self._schedule.is_reserved):
            return None
        self._alone = None
        seconds = limits.SUSPECT_SECONDS if self._schedule.running else self._begin(waiting)
        if seconds:
            self._schedule.open()
        else:
            self._schedule.reserve()
        return waiting, seconds

    def _next(self) -> Received | None:
        """Take the message whose turn it is out of a hand, or one that was set aside and may begin now."""
        for queue in self._schedule.in_turn(queue for queue, hand in self._hands.items() if hand):
            waiting = self._hands[queue].popleft()
            if _goes_alone(waiting):
                self._alone = waiting
                self._schedule.reserve()
                self._changed.notify_all()
                return None
            if len(self._aside) >= self._slots or self._schedule.has_room(waiting.message.tenant_id):
                return waiting
            self._aside.append((time.monotonic() + ASIDE_SECONDS, waiting))
            self._changed.notify_all()
        for place, (_, waiting) in enumerate(self._aside):
            if self._schedule.has_room(waiting.message.tenant_id):
                del self._aside[place]
                return waiting
        return None

    def _let_go(self) -> None:
        """Put off what was set aside and found no room."""
        while not self._stopping:
            with self._changed:
                now = time.monotonic()
                late = [waiting for until, waiting in self._aside if until <= now]
                self._aside = deque((until, waiting) for until, waiting in self._aside if until > now)
                if not late:
                    self._changed.wait(self._aside[0][0] - now if self._aside else None)
            for waiting in late:
                self._put_off(waiting, limits.OVER_CAP_SECONDS)

    # --- letting go ---

    def _give_back(self, left: list[Received]) -> None:
        """Let others have what has not begun, at once. As a new message: that it was received here is no strike."""
        for waiting in left:
            self._put_off(waiting, 0)

    def _put_off(self, waiting: Received, seconds: float) -> None:
        self._conclude(waiting, message_handling.postponed(waiting, seconds=seconds))

    def _conclude(self, received: Received, handled: Handled) -> None:
        """Delete the message, after what is to be sent in its place has been sent. Without that it comes again."""
        with self._changed:
            self._counts[handled.did] += 1
        if handled.again is None or self._sent(received.queue, handled.again, handled.delay):
            self._receipts.done(received)
        else:
            self._receipts.let_go(received)

    def _sent(self, queue: int, message: Message, delay: int) -> bool:
        try:
            return not self._transport.send(queue, [message], delay=delay)
        except PortalError as error:
            log.warning("A message could not be put off: %s", error.message)
            return False


def _goes_alone(received: Received) -> bool:
    return received.strikes >= limits.ALONE_STRIKES


# --- receipts ---


@dataclass
class _Held:
    queue: int
    until: float  # the moment after which it is not extended any more; begins with the work
    extended_at: float


class Receipts:
    """The receipts of one worker. `step` is called by one thread, the rest by any."""

    def __init__(self, transport: QueueTransport, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._transport, self._clock = transport, clock
        self._lock = threading.Lock()
        self._held: dict[str, _Held] = {}
        self._done: dict[int, dict[str, int]] = defaultdict(dict)  # by queue, handles and how often they were refused

    def hold(self, received: list[Received]) -> None:
        with self._lock:
            for one in received:
                self._held[one.handle] = _Held(one.queue, float("inf"), self._clock())

    def begin(self, received: Received) -> None:
        with self._lock:
            if received.handle in self._held:
                self._held[received.handle].until = self._clock() + HANGS_SECONDS

    def done(self, received: Received) -> None:
        with self._lock:
            self._held.pop(received.handle, None)
            self._done[received.queue][received.handle] = 0

    def let_go(self, received: Received) -> None:
        with self._lock:
            self._held.pop(received.handle, None)

    def step(self) -> None:
        """Send the deletes that have come together, and extend what is due."""
        with self._lock:
            done, self._done = self._done, defaultdict(dict)
        for queue, handles in done.items():
            self._delete(queue, handles)
        now = self._clock()
        due: dict[int, list[str]] = defaultdict(list)
        with self._lock:
            for handle, held in list(self._held.items()):
                if now > held.until:
                    del self._held[handle]
                elif now - held.extended_at >= EXTEND_SECONDS:
                    held.extended_at = now
                    due[held.queue].append(handle)
        for queue, handles_due in due.items():
            try:
                self._transport.extend(queue, handles_due, seconds=VISIBILITY_SECONDS)
            except PortalError as error:
                log.warning("Messages could not be kept invisible: %s", error.message)

    def run(self, again: Callable[[], bool]) -> None:
        """Step until `again` says no, and once more."""
        while again():
            self.step()
            time.sleep(_DELETE_SECONDS)
        self.step()

    def _delete(self, queue: int, handles: dict[str, int]) -> None:
        try:
            refused = self._transport.delete(queue, list(handles))
        except PortalError as error:
            log.warning("Messages could not be deleted yet: %s", error.message)
            refused = list(handles)
        with self._lock:
            for handle in refused:
                if handles[handle] < _TRIES:
                    self._done[queue][handle] = handles[handle] + 1
