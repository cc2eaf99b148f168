"""Carry out one design against one noise: the product's sender and consumers on queues of the trial's own.

A message's destination says what is done with it. `work/323` takes so many milliseconds; `hang/9000/1760000000` hangs
so long and fails, and `kill/0/1760000000` ends the process, both until that moment and not any more after it: the noise
ends with its phase.
"""

from __future__ import annotations

import itertools
import math
import os
import random
import signal
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Final

from delivery.queues import message_handling
from delivery.queues.consumer import Consumer
from delivery.queues.message_handling import Handled
from delivery.queues.queue_transport import VISIBILITY_SECONDS as _PRODUCTS
from delivery.queues.queue_transport import Message, QueueTransport, Received
from delivery.queues.sender import Offer, Sender
from portal.schema import keys
from proofs.forked import Journal, Process
from proofs.noise.closed_loop import NOISY, ClosedLoop
from proofs.noise.designs import DESIGNS, SLOTS, WORKERS, Design
from proofs.noise.trials import Plan

PHASES: Final = ("quiet", "noisy", "cooldown")
THINK_SECONDS: Final = 0.1  # implied by the slides' own throughput, 46.9 a second of 20 clients
COOLDOWN_SHARE: Final = 0.4  # of the length of a phase
SLOW_FACTOR: Final = 20
HANG_SHARE: Final = 1 / 3  # of the length of a phase, for which poison holds its slot
VISIBILITY_SECONDS: Final = 4  # for the messages of a worker that was killed; the product's 30 would outlast a phase
RESTART_SECONDS: Final = 2.0  # from the death of a worker until another takes its place
NOISES: Final = {
    "load": "15 times the clients, with work like everybody's.",
    "slow": f"15 times the clients, and their work takes {SLOW_FACTOR} times as long.",
    "hang": "15 times the clients; each of their messages holds its slot for a third of the phase.",
    "kill": "15 times the clients; each of their messages ends the process that works on it.",
}
ANSWERED, FAILED, DEAD = "answered", "failed", "dead"  # dead: the delivery is a dead letter
_REFRESHES: Final = 5  # of the slides' heuristic in a phase: once a minute in five
_LOOK_SECONDS: Final = 2.0  # between two receives that no bell asked for
_POLL_SECONDS: Final = 2
_READY_SECONDS: Final = 120.0
_READY: Final = "ready"  # the first word of a worker


def work_seconds(tenant: int) -> Iterator[float]:
    """Yield the work times of a tenant's requests: the same ones, in the same order, in every phase, design and run.

    223 ms and a log-normal time with a median of 60 ms: median 283 ms and 99th percentile 709 ms, as the slides' first
    table has them (283 and 688).
    """
    chance = random.Random(tenant * 7919)  # noqa: S311  # it has to be repeatable
    while True:
        yield 0.223 + min(1.1, 0.060 * math.exp(0.9 * chance.gauss(0, 1)))


class TrialQueues(QueueTransport):
    """The product's way to the queues, with as many queues as a design has, and a bell that says when to look.

    Amazon SQS answers a waiting receive as soon as there is a message. ministack looks ten times a second, which would
    add 50 ms to both phases and flatter their ratio. So a receive waits in this process until a message was sent. The
    bell is a hint: now and then a queue is asked unasked, which finds what comes again. Workers that are processes have
    no `bell`, and wait at the engine.
    """

    def __init__(self, name: str, design: Design, *, bell: bool) -> None:
        super().__init__("worker", name=name)
        self._bell, self._visibility = bell, _PRODUCTS if bell else VISIBILITY_SECONDS
        self._rung = [threading.Condition() for _ in design.workers_of]
        self._hints = [0 for _ in design.workers_of]  # by queue, messages that were sent and that nobody has gone for

    @property
    def queues(self) -> int:
        return len(self._rung)

    def send(self, queue: int, messages: Sequence[Message], *, delay: int = 0) -> list[Message]:
        refused = super().send(queue, messages, delay=delay)
        timer = threading.Timer(delay, self._ring, (queue, len(messages) - len(refused)))
        timer.daemon = True
        if self._bell:
            timer.start() if delay else timer.function(*timer.args)
        return refused

    def receive(self, queue: int, *, most: int = 1, wait: int = 1, visibility: int = _PRODUCTS) -> list[Received]:
        visibility = min(visibility, self._visibility)
        if not self._bell:
            return super().receive(queue, most=most, wait=wait, visibility=visibility)
        with self._rung[queue]:
            self._rung[queue].wait_for(lambda: self._hints[queue], min(wait, _LOOK_SECONDS))
            self._hints[queue] = max(0, self._hints[queue] - most)
        found = super().receive(queue, most=most, wait=0, visibility=visibility)
        self._ring(queue, sum(one.receives > 1 for one in found))  # they stand in the place of those announced
        return found

    def extend(self, queue: int, handles: Sequence[str], *, seconds: int) -> list[str]:
        return super().extend(queue, handles, seconds=min(seconds, self._visibility))

    def _ring(self, queue: int, messages: int) -> None:
        with self._rung[queue]:
            self._hints[queue] += messages
            self._rung[queue].notify(messages)


# --- workers: the product's `Consumer`, in threads of this process or in processes that may die ---

Tell = Callable[..., object]  # "begin" or "end", event, tenant; of an end also how it ended


def _handle(tell: Tell, received: Received) -> Handled:
    """Handle a message in place of the product's `MessageHandler`, with its rule for strikes. Failed requests are not
    repeated: the clients do that."""
    message = received.message

    def ended(how: str) -> Handled:
        tell("end", message.event_id, message.tenant_id, how)
        return Handled(how)

    if received.strikes >= message_handling.MOST_STRIKES:
        return ended(DEAD)
    tell("begin", message.event_id, message.tenant_id)
    deed, milliseconds, *until = message.destination.split("/")
    if until and time.time() > float(until[0]):
        return ended(ANSWERED)
    if deed == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(int(milliseconds) / 1000)
    return ended(FAILED if deed == "hang" else ANSWERED)


def _consumer(design: Design, transport: TrialQueues, worker: int, tell: Tell) -> Consumer:
    served = design.queues_served_by(worker)
    return Consumer(transport, partial(_handle, tell), served, slots=SLOTS, poll_seconds=_POLL_SECONDS)


@dataclass
class WorkerNotes:
    """Note how many messages of a tenant ran at once, and who died, from any number of threads.

    `ended` is called for each message that has come to an end.
    """

    ended: Callable[[str, str], object]
    most_at_a_worker: Counter[int] = field(default_factory=Counter)
    most_in_all: Counter[int] = field(default_factory=Counter)
    deaths: list[tuple[int, float, list[int]]] = field(default_factory=list)  # worker, when, tenants it had begun
    _running: dict[int, list[tuple[str, int]]] = field(default_factory=lambda: defaultdict(list))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def tell(self, worker: int, deed: str, event_id: str, identity: str, how: str = "") -> None:
        tenant = int(identity[:8], 16)
        with self._lock:
            if deed == "begin":
                self._running[worker].append((event_id, tenant))
                here = sum(of == tenant for _, of in self._running[worker])
                in_all = sum(of == tenant for running in self._running.values() for _, of in running)
                self.most_at_a_worker[tenant] = max(here, self.most_at_a_worker[tenant])
                self.most_in_all[tenant] = max(in_all, self.most_in_all[tenant])
                return
            self._running[worker] = [one for one in self._running[worker] if one[0] != event_id]
        self.ended(event_id, how)

    def died(self, worker: int) -> None:
        with self._lock:
            had = sorted({tenant for _, tenant in self._running.pop(worker, [])})
            self.deaths.append((worker, time.monotonic(), had))


@contextmanager
def _threads(design: Design, transport: TrialQueues, notes: WorkerNotes) -> Iterator[None]:
    for worker in range(WORKERS):
        _consumer(design, transport, worker, partial(notes.tell, worker)).start()
    yield  # a delivery that hangs is left behind: the process of the trial ends soon


@contextmanager
def _processes(design: Design, name: str, notes: WorkerNotes) -> Iterator[None]:
    """Run eight consumers, each a process. Another takes the place of one that dies, after RESTART_SECONDS."""
    running: dict[int, tuple[Process, Connection]] = {}
    stopping = threading.Event()
    with tempfile.TemporaryDirectory(prefix="workers-") as folder:

        def start(worker: int) -> None:
            ours, theirs = Pipe(duplex=False)
            how = {"parent": theirs, "worker": worker, "queues": name, "design": design}
            running[worker] = Process("worker", serve, Path(folder) / f"{worker}.jsonl", worker, how), ours
            theirs.close()

        def keep() -> None:
            """Note what the workers say, and replace those that die."""
            due: dict[int, float] = {}  # by worker, when another takes its place
            while not stopping.is_set():
                of = {connection: worker for worker, (_, connection) in running.items()}
                ready = wait([*of], 0.1) if of else ()
                for connection, worker in of.items():
                    if connection not in ready:
                        continue
                    try:
                        said = connection.recv()
                        if said != _READY:
                            notes.tell(worker, *said)
                    except (EOFError, OSError):
                        running.pop(worker)[0].kill()
                        notes.died(worker)
                        due[worker] = time.monotonic() + RESTART_SECONDS
                for worker in [worker for worker, at in due.items() if at <= time.monotonic()]:
                    del due[worker]
                    start(worker)

        for worker in range(WORKERS):
            start(worker)
        for _, connection in running.values():
            connection.poll(_READY_SECONDS)
        keeper = threading.Thread(target=keep, daemon=True)
        keeper.start()
        try:
            yield
        finally:
            stopping.set()
            keeper.join()
            for process, _ in running.values():
                process.kill()


def serve(told: Journal, seed: int, *, parent: Connection, worker: int, queues: str, design: Design) -> None:
    """Deliver as one worker, which tells its parent what it begins and ends, until it is killed."""
    lock = threading.Lock()

    def tell(*said: str) -> None:
        with lock:
            parent.send(said)

    transport = TrialQueues(queues, design, bell=False)
    transport.depth(design.queues_served_by(worker)[0])  # the first request makes the client, which takes a moment
    consumer = _consumer(design, transport, worker, tell)
    consumer.start()
    parent.send(_READY)
    consumer.failed.wait()


# --- the sending side ---


class SendingSide:
    """Send one trial's requests by the product's `Sender`, and tell each client when its request has come to an end."""

    def __init__(self, design: Design, transport: TrialQueues, *, seed: int, refresh_seconds: float) -> None:
        self._design, self._transport = design, transport
        self._chance = random.Random(seed)  # noqa: S311  # it has to be repeatable
        self._refresh_seconds = refresh_seconds
        self._best = {tenant: self._chance.choice(queues) for tenant, queues in design.queues_of.items()}
        self._sender = Sender(transport, workers=WORKERS, slots=SLOTS, chance=self._chance)
        self._serial = itertools.count(1)
        self._waiting: dict[str, tuple[str, threading.Event]] = {}  # by event: its destination, and its client
        self._ends: dict[str, str] = {}
        self._stirred = threading.Event()
        for pump in (self._pump, *([self._refresh] if design.stale else [])):
            threading.Thread(target=pump, daemon=True).start()

    def send(self, tenant: int, event_id: str, destination: str) -> str:
        """Send a request, now or when its tenant's limits allow, and return how it ended.

        Where a design has no limits, each message travels as if it were the only one of its tenant: then neither the
        sender nor a worker has anything to bound.
        """
        over = threading.Event()
        self._waiting[event_id] = destination, over
        queues = (self._best[tenant],) if self._design.stale else self._design.queues_of[tenant]
        alone = 0 if self._design.bounded else next(self._serial)
        identity = keys.tenant(f"{tenant:08x}{alone:024x}")
        if self._sender.offer([Offer(Message(identity, event_id, "now", 0, destination), queues)]).left:
            self.ended(event_id, "left")
        over.wait()
        return self._ends.pop(event_id)

    def ended(self, event_id: str, how: str) -> None:
        """Free the request's unit at the sender, and tell its client."""
        destination, over = self._waiting.pop(event_id, ("", None))
        if over is not None:
            self._sender.over(event_id, 0, destination, failed=how == FAILED)
            self._ends[event_id] = how
            over.set()
        self._stirred.set()

    def _pump(self) -> None:
        while True:
            self._stirred.clear()
            for offer in self._sender.pump().left:
                self.ended(offer.message.event_id, "left")
            seconds = self._sender.seconds_to_pump()
            self._stirred.wait(1.0 if seconds is None else min(seconds, 1.0))

    def _refresh(self) -> None:
        """Follow the slides' heuristic: send to the queue that had the fewest visible messages when last counted."""
        while True:
            time.sleep(self._refresh_seconds)
            visible = [depth.waiting for depth in self._transport.depths()]
            for tenant, queues in self._design.queues_of.items():
                fewest = min(visible[queue] for queue in queues)
                self._best[tenant] = self._chance.choice([queue for queue in queues if visible[queue] == fewest])

    def give_up(self) -> None:
        for event_id in list(self._waiting):
            self.ended(event_id, "unanswered")


def carry_out(plan: Plan) -> dict[str, Any]:
    """Carry out a trial on the engine that the settings name. Returns all that was seen, as JSON has it."""
    design, kills, name = DESIGNS[plan.name], plan.noise == "kill", f"delivery-trial-{plan.name}"
    transport = TrialQueues(name, design, bell=not kills)
    transport.create_all()
    desk = SendingSide(design, transport, seed=plan.run, refresh_seconds=plan.seconds / _REFRESHES)
    notes = WorkerNotes(desk.ended)
    works: dict[tuple[str, int, int], Iterator[float]] = {}

    def ask(phase: str, tenant: int, client: int, number: int) -> str:
        if number == 0:
            works[phase, tenant, client] = work_seconds(tenant + 100 * client)
        seconds, noise = next(works[phase, tenant, client]), plan.noise if (tenant, phase) == (NOISY, "noisy") else ""
        destination = f"work/{round(seconds * 1000 * (SLOW_FACTOR if noise == 'slow' else 1))}"
        if noise in ("hang", "kill"):
            destination = f"{noise}/{round(plan.seconds * HANG_SHARE * 1000)}/{loop.until:.3f}"
        return desk.send(tenant, f"{phase}-{tenant}-{client}-{number}", destination)

    loop = ClosedLoop(
        [*zip(PHASES, (plan.seconds, plan.seconds, plan.seconds * COOLDOWN_SHARE), strict=True)],
        ask,
        think=lambda chance: THINK_SECONDS,
        is_enough=lambda phase: bool(notes.deaths) or not kills or phase != "noisy",
        seed=plan.run,
    )
    with _processes(design, name, notes) if kills else _threads(design, transport, notes):
        loop.run()
        desk.give_up()
        time.sleep(1.0)  # in which those clients note it
    return {
        "plan": plan._asdict(),
        "requests": sorted(loop.requests, key=lambda request: request.at),
        "began": loop.began,
        "notes": {
            "most_at_a_worker": notes.most_at_a_worker[NOISY],
            "most_in_all": notes.most_in_all[NOISY],
            "deaths": [[worker, round(at - loop.started, 2), had] for worker, at, had in notes.deaths],
        },
    }
