"""Move a desk under load, kill the process that moves it, and look for everything that was acknowledged."""

from __future__ import annotations

import json
import random
import statistics
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import partial
from typing import Any, ClassVar, Final

from django.core.management import call_command

from portal import clock
from portal.dynamo import meter, provisioning
from portal.dynamo.placement import POOL, Placement
from portal.dynamo.tenant_reader import lifecycle_store
from portal.dynamo.whereabouts import Patience
from portal.errors import PortalError
from portal.management.command import placement
from proofs import stored
from proofs.forked import Journal, Process, asked_to_stop
from proofs.harness import STEP, Torture, TortureFailed, count, decimal, patiently
from tenants.audit_trail.recording import SYSTEM
from tenants.tenancy import context, shard_layout, tenant_directory
from tenants.tenancy.context import TenantContext
from tickets.desk import changing, commenting, creating, lists
from tickets.desk.history import History, changed, collection, opened
from tickets.jobs.leased_job import TakenOver
from tickets.moving import copy_check, move_requests, place_changes
from tickets.moving.discarding import CopyDiscard
from tickets.moving.stored import MoveItem
from tickets.moving.tenant_mover import PHASES, TenantMover
from tickets.moving.ticket_copies import Raw, raw_collection
from tickets.ticket import stored as ticket_stored
from tickets.ticket.fields import Priority, Status
from tickets.ticket.stored import CounterItem
from tickets.verification import verify

_CONTEXT_SECONDS: Final = 0.5  # for which a process trusts what it knows of a tenant
_SETTLE_SECONDS: Final = 1.5
_PATIENCE: Final = 3600.0  # for one move
_ALIVE: Final = ("reader", "writer", "follower")
_POINTS: Final = ("copying", "holding", "announcing", "verifying", "catching")  # of kills, those that matter most first
_LONG: Final = ("copying", "verifying")  # they take longer, the more tickets there are
_OPEN: Final = 200  # of the tickets that the desk has before, the latest at most: most are closed, as in an old desk
_BLOCK: Final = 100  # of those tickets, written together
Line = dict[str, Any]


def write(told: Journal, seed: int, *, tenant_id: str, pause: float, tickets: int) -> None:
    """Open tickets, comment and change until it is asked to stop; note each acknowledged write, its duration and how
    much of that it was held, in seconds. Some are sent with the knowledge of the one before.
    """
    shard_layout.CONTEXT_SECONDS = _CONTEXT_SECONDS
    rng, stopped, waits = random.Random(seed), asked_to_stop(), _waits()  # noqa: S311  # it has to be repeatable
    tenant = context.for_system(tenant_directory.get(tenant_id))
    while not stopped:
        began = time.monotonic()
        text, number, kind = uuid.uuid4().hex, rng.randint(1, tickets), rng.choice(["ticket", "comment", "change"])
        try:
            if rng.random() < 0.7:
                tenant = context.for_system(tenant_directory.get(tenant_id))
            sent = time.monotonic()
            waits.clear()
            if kind == "ticket":
                number = creating.create(tenant, title=text)
            elif kind == "comment":
                commenting.comment(tenant, number, body=text)
            else:
                changing.change(tenant, number, changing.Wishes(title=text, priority=rng.choice(list(Priority))))
        except PortalError as error:
            told.write(kind="refused", why=f"{type(error).__name__}: {error.message}")
        else:
            took = {"seconds": round(time.monotonic() - sent, 4), "held": round(sum(waits), 4)}
            told.write(kind=kind, number=number, text=text, at=time.time(), **took)
        time.sleep(max(0.0, began + pause - time.monotonic()))


def _waits() -> list[float]:
    """Return a list that gets the seconds of each wait of this process for the end of a hold."""
    waits: list[float] = []
    wait = Patience.wait

    def noted(self: Any, seen: Any) -> None:
        began = time.monotonic()
        try:
            wait(self, seen)
        finally:
            waits.append(time.monotonic() - began)

    Patience.wait = noted  # type: ignore[method-assign]
    return waits


def read(told: Journal, seed: int, *, tenant_id: str, pause: float, tickets: int) -> None:
    """Read lists and tickets that are there for certain until it is asked to stop; note each read that failed."""
    shard_layout.CONTEXT_SECONDS = _CONTEXT_SECONDS
    rng, stopped, reads = random.Random(seed), asked_to_stop(), 0  # noqa: S311  # it has to be repeatable
    while not stopped:
        began, failed = time.monotonic(), ""
        try:
            tenant = context.for_system(tenant_directory.get(tenant_id))
            changing.read(tenant, rng.randint(1, tickets))
            # As people do: the closed ones would be all of the desk, which some engines look through for each page.
            if not lists.page(tenant, status=[Status.OPEN, Status.PENDING], size=20).rows:
                failed = "a list was empty"
        except PortalError as error:
            failed = f"{type(error).__name__}: {error.message}"
        reads += 2
        if failed or reads % 20 == 0:
            told.write(reads=reads, failed=failed)
        time.sleep(max(0.0, began + pause - time.monotonic()))
    told.write(reads=reads, failed="")


def carry_out(told: Journal, seed: int, *, tenant_id: str, rate: float) -> None:
    """Carry the tenant's move out; the process that held it before is dead. Note each step, and what a hold asks."""
    shard_layout.CONTEXT_SECONDS = _CONTEXT_SECONDS
    if item := place_changes.MOVES.last(tenant_id):
        mover = TenantMover(item, rate=rate, settle_seconds=_SETTLE_SECONDS, say=lambda phase: told.write(phase=phase))
        attempt = mover._attempt

        def metered() -> bool:
            with meter.measure() as bill:
                done = attempt()
            told.write(phase="holding", calls=len(bill.calls), trips=bill.trips)
            return done

        mover._attempt = metered  # type: ignore[method-assign]
        mover.run()


def follow(told: Journal, seed: int) -> None:
    call_command("run_stream")


@dataclass(frozen=True)
class Leg:
    """One of the moves, as it ended. Times are in seconds, moments in those since the epoch."""

    left: str
    to: str
    began: float
    ended: float
    killed_at: list[str]
    moved: bool
    changes: int  # that were copied behind the tickets
    holds: int
    held_seconds: float
    hold_calls: int  # of the hold that ended with the switch
    hold_trips: int
    digest: str
    trouble: str


class DeskMove(Torture):
    help = (
        "Move a throw-away desk to tables of its own on the running engine, while writers open, change and comment on "
        "tickets and readers look at them, and kill whoever carries it out at step after step. In the end everything "
        "that was acknowledged must be at the new place once, no read may have failed, both copies must be equal, and "
        "a recount must find the dashboards exact. Says how long the longest write took. Waits for processes are "
        "shortened. Needs DEBUG=1 and a local engine; its worker takes the streams from others. "
        "Exit status: 0 nothing is wrong; 1 something is, or it failed."
    )
    options: ClassVar = {
        "tickets": count(300, "N", "that the desk has before"),
        "to": {
            "type": placement, "nargs": "+", "default": [Placement("bridge")], "metavar": "PLACE",
            "help": "one after the other: bridge, pool, silo/NAME (bridge)",
        },
        "writers": count(2, "W", "at a time"),
        "readers": count(1, "R", "at a time"),
        "kills": count(5, "K", "of movers, in each move", 0),
        "writes": decimal(20, "WRITES", "a second, of all writers together", 0.1, 1000),
        "reads": decimal(20, "READS", "a second, of all readers together: as many of lists as of tickets", 0.1, 1000),
        "rate": decimal(200, "TICKETS", "to copy in a second, at most", 0.1, 100_000),
    }  # fmt: skip
    must_be_empty = ("refused", "failed_reads", "lost", "doubled", "missing_changes", "different")
    must_be: ClassVar = {"moved": True, "same_digest": True, "dashboards": verify.OK}
    kept = "0 lost, 0 doubled, 0 failed reads, both copies equal, dashboards exact."
    follower = "follower"

    def work(self) -> None:
        self.legs: list[Leg] = []
        plan = self.plan
        self.make_tenants()
        self.start("follower", follow)
        with self.stage("Opening tickets", plan.tickets) as progress:
            fill(context.for_system(self.tenants[0]), plan.tickets, progress.advance)
        known = {"tenant_id": self.tenant_id, "tickets": plan.tickets}
        for _ in range(plan.writers):
            self.start("writer", write, pause=plan.writers / plan.writes, **known)
        for _ in range(plan.readers):
            self.start("reader", read, pause=2 * plan.readers / plan.reads, **known)
        self.wait_until(lambda: bool(self.told("reader")) and len(self.told("writer")) >= plan.writers, *_ALIVE)
        with self.stage("Moving", None) as progress:
            for to in plan.to:
                self._discard_what_is_in_the_way(to)
                self.legs.append(self._leg(to, progress.label))
            progress.label("looking for what was written")
            self._settle()

    def _discard_what_is_in_the_way(self, to: Placement) -> None:
        """Delete the old copy, unless the stream worker is faster, and return when it is gone."""
        tenant = patiently(lambda: tenant_directory.get(self.tenant_id))
        if tenant.former_placement in (None, str(to)):
            return
        move_requests.discard(tenant, early=True, by=SYSTEM)
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            item = place_changes.MOVES.last(self.tenant_id)
            if item is None or item.state != place_changes.DISCARDING:
                return
            with suppress(TakenOver):
                CopyDiscard(item).run()
            time.sleep(STEP)
        raise TortureFailed("The old copy was not discarded.")

    def _leg(self, to: Placement, say: Callable[[str], object]) -> Leg:
        """Move the desk, and kill its mover as often as is planned, at steps that come in turn."""
        rng, began, killed_at = self.rng(), time.time(), list[str]()
        points = sorted((_POINTS[kill % len(_POINTS)] for kill in range(self.plan.kills)), key=PHASES.index)
        # A holder's name keeps it from the stream worker, which waits 40 seconds where this waits less than two.
        move_requests.begin(tenant_directory.get(self.tenant_id), to=to, by=SYSTEM, holder="torture")
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            before = len(self.told("mover"))
            mover = self.start("mover", carry_out, tenant_id=self.tenant_id, rate=self.plan.rate)
            point = points[0] if points else ""
            while mover.poll() is None:
                phases = [line["phase"] for line in self.told("mover")[before:]]
                say(f"to {to}: {phases[-1] if phases else 'beginning'}")
                if point in phases:
                    # Within the time of the step, so that much is done and much is not.
                    some = self.plan.tickets / self.plan.rate / 2 if point in _LONG else 0.3
                    if _lives(mover, rng.uniform(0, some)):
                        mover.kill()
                        killed_at.append(point)
                    points.pop(0)
                    break
                time.sleep(STEP)
                self.refuse_dead(*_ALIVE)
            self.end("mover")
            item = patiently(lambda: place_changes.MOVES.last(self.tenant_id))
            if item is not None and item.state not in place_changes.MOVES.unfinished:
                return self._ended(item, began, killed_at)
        raise TortureFailed("The move came to no end.")

    def _ended(self, item: MoveItem, began: float, killed_at: list[str]) -> Leg:
        holds = [line for line in self.told("mover") if "calls" in line] or [{"calls": 0, "trips": 0}]
        return Leg(
            left=item.from_place,
            to=item.to_place,
            began=began,
            ended=time.time(),
            killed_at=killed_at,
            moved=item.state == place_changes.KEPT,
            changes=int(item.changes),
            holds=int(item.holds),
            held_seconds=int(item.held_ms) / 1000,
            hold_calls=holds[-1]["calls"],
            hold_trips=holds[-1]["trips"],
            digest=item.digest,
            trouble=item.trouble,
        )

    def _settle(self) -> None:
        """Let people work on at the new place, end them, and wait until everything is counted there."""
        wanted = len(self.told("writer")) + 5 * self.plan.writers
        self.wait_until(lambda: len(self.told("writer")) >= wanted, *_ALIVE)
        self.end("writer", seconds=30)
        self.end("reader", seconds=30)
        self.drain()

    def remove(self) -> None:
        super().remove()
        for to in {*self.plan.to} - {POOL} if self.tenants else ():
            provisioning.delete_placed(self.tenant_id, to)
            place_changes.follow_no_more(self.tenant_id, to)

    # --- what came of it ---

    def figures(self) -> dict[str, Any]:
        """Look for each acknowledged write at the last place, compare both copies, and recount the aggregates."""
        lines, reads, last = self.told("writer"), self.told("reader"), self.legs[-1]
        writes = [line for line in lines if line["kind"] != "refused"]
        titles, texts, missing = self._stored(writes)
        acknowledged = {
            kind: Counter(line["text"] for line in writes if line["kind"] == kind) for kind in ("ticket", "comment")
        }
        checked = copy_check.check(self.tenant_id, left=Placement.parse(last.left), present=self.plan.to[-1])
        return {
            "tickets": sum(titles.values()),
            "writes": len(writes),
            "refused": [line["why"] for line in lines if line["kind"] == "refused"],
            "killed_at": [point for leg in self.legs for point in leg.killed_at],
            "reads": self.last_told("reader", "reads"),
            "failed_reads": [line["failed"] for line in reads if line["failed"]],
            "lost": sorted((acknowledged["ticket"] - titles) + (acknowledged["comment"] - texts)),
            "doubled": sorted(text for text, times in (titles + texts).items() if times > 1),
            "missing_changes": missing,
            "different": [leg.trouble for leg in self.legs if leg.trouble] + checked.wrong,
            "changed_since": checked.changed,
            "same_digest": checked.digest == last.digest,
            "legs": [_of_leg(leg, writes) for leg in self.legs],
            "moved": all(leg.moved for leg in self.legs),
            "dashboards": verify.verify(self.repository()).state,
        }

    def _stored(self, writes: list[Line]) -> tuple[Counter[str], Counter[str], list[str]]:
        """Count the titles that tickets were opened with and the texts of comments, at the last place, and name the
        titles that somebody gave to a ticket whose history does not say so exactly once.
        """
        titles, texts, missing = Counter[str](), Counter[str](), list[str]()
        given: defaultdict[int, list[str]] = defaultdict(list)
        for line in writes:
            if line["kind"] == "change":
                given[line["number"]].append(line["text"])
        first_title = {line["number"]: line["text"] for line in writes if line["kind"] == "ticket"}
        store = lifecycle_store(self.tenant_id, self.plan.to[-1])

        def read_there(number: int) -> list[Raw]:
            return raw_collection(store, ticket_stored.ticket(self.tenant_id, number))

        for number, items in stored.collections(self.repository(), read_there):
            for raw in items:
                if raw["sk"]["S"] == ticket_stored.SUMMARY:
                    title = raw["title"]["S"]
                    titles[first_title.get(number, title) if title in given[number] else title] += 1
                elif raw.get("body", {}).get("S"):
                    texts[raw["body"]["S"]] += 1
            history = json.dumps([raw.get("changes", {}) for raw in items])
            missing += [title for title in given[number] if history.count(f'"after": {{"S": "{title}"}}') != 1]
        return titles, texts, missing

    def sentences(self, found: Mapping[str, Any]) -> Iterable[str]:
        yield (
            f"{found['tickets']:,} tickets, {found['writes']:,} writes, {found['reads']:,} reads; "
            f"{len(found['killed_at'])} kills, while {', '.join(found['killed_at']) or 'nothing'}; "
            f"{found['seconds']:g} s."
        )
        for leg in found["legs"]:
            yield (
                f"{leg['left']} to {leg['to']} in {leg['seconds']:g} s: {leg['changes']:,} later changes; "
                f"{leg['holds']} holds, the last of {leg['hold_trips']} round trips and {leg['held_seconds']:.2f} s. "
                f"{leg['writes_held']} of {leg['writes']:,} writes were held, one for {leg['longest_hold']:.2f} s, "
                f"{leg['ratio']:g} times what a write takes; the longest write took {leg['longest_write']:.2f} s."
            )


def _lives(process: Process, seconds: float) -> bool:
    """Wait for so long, and tell whether the process has not ended by itself."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and process.poll() is None:
        time.sleep(STEP)
    return process.poll() is None


def _of_leg(leg: Leg, writes: list[Line]) -> dict[str, Any]:
    """Say what a leg took, and what the writes that ended during it did: their usual time and the longest one's."""
    lines = [line for line in writes if leg.began <= line["at"] <= leg.ended]
    usual = statistics.median(line["seconds"] for line in lines) if lines else 0.0
    held = [line["held"] for line in lines if line["held"]]
    return asdict(leg) | {
        "seconds": round(leg.ended - leg.began, 1),
        "writes": len(lines),
        "writes_held": len(held),
        "median_write": usual,
        "longest_write": max((line["seconds"] for line in lines), default=0.0),
        "longest_hold": max(held, default=0.0),
        "ratio": round(max(held, default=0.0) / max(0.0001, usual), 1),
    }


def fill(tenant: TenantContext, tickets: int, advance: Callable[[int], object]) -> None:
    """Write so many tickets of a desk that has none, in blocks. `advance` gets numbers of tickets."""

    def write_block(numbers: range) -> int:
        tenant.repository.put_all([item for number in numbers for item in _quiet(tenant, number, tickets)])
        return len(numbers)

    blocks = [range(first, min(first + _BLOCK, tickets + 1)) for first in range(1, tickets + 1, _BLOCK)]
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(copy_context().run, partial(write_block, block)) for block in blocks]:
            advance(done.result())
    tenant.repository.put_all(
        [CounterItem(tenant.repository.key(ticket_stored.counter), ticket_stored.COUNTER_TICKET, last=tickets)]
    )


def _quiet(tenant: TenantContext, number: int, tickets: int) -> list[Any]:
    at = clock.now() - timedelta(minutes=tickets + 1 - number)
    closed = number <= tickets - _OPEN
    entries = [opened(at, "", "Somebody")]
    if closed:
        entries.append(changed(at + timedelta(seconds=30), "", "Somebody", ("status", "open", "closed")))
    history = History(
        identity=f"quiet {number}",
        values={
            "title": f"Quiet {number}",
            "description": f"What ticket {number} is about.",
            "status": Status.CLOSED if closed else Status.OPEN,
        },
        created_at=at,
        updated_at=entries[-1].at,
        requester="",
        requester_name="Somebody",
        entries=tuple(entries),
    )
    made = collection(tenant, number, history)
    return [made.detail, *made.activity, made.summary]
