"""A torture: a desk moves under load, whoever carries it out is killed, and everything acknowledged is looked for."""

from __future__ import annotations

import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from portal.dynamo import provisioning
from portal.dynamo.placement import POOL, Placement
from portal.errors import PortalError
from proofs import cleanup
from proofs.forked_child import ForkedChild
from proofs.moving import move_child, quiet_desk
from proofs.patience import patiently
from proofs.torture_run import TortureRun
from tenants.audit_trail.recording import SYSTEM
from tenants.provisioning import tenant_lifecycle
from tenants.tenancy import context, tenant_directory
from tickets.jobs.job_notes import TakenOver
from tickets.moving import move_notes, move_requests, place_changes
from tickets.moving.discarding import CopyDiscard
from tickets.moving.items import MoveItem
from tickets.moving.tenant_mover import PHASES

_STEP: Final = 0.02
_PATIENCE: Final = 3600.0  # for one move
_ALIVE: Final = ("reader", "writer", "follower")
_POINTS: Final = ("copying", "holding", "announcing", "verifying", "catching")  # of kills, those that matter most first

_LONG: Final = ("copying", "verifying")  # they take longer, the more tickets there are


class MoveTortureFailed(PortalError):
    """It could not be carried out: nothing is said about moves."""


@dataclass(frozen=True)
class MovePlan:
    """Say what is done: to which places, under how many writes and reads a second, with how many kills."""

    seed: int
    tickets: int
    writers: int
    readers: int
    writes: float  # a second, of all writers together
    reads: float  # a second, of all readers together
    kills: int  # in each leg
    to: tuple[str, ...] = ("bridge",)  # one after the other
    rate: float = 200.0
    context_seconds: float = 0.5
    settle_seconds: float = 1.5


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


class MoveTorture(TortureRun):
    """A running torture of moves, and the legs that it has made so far."""

    failure = MoveTortureFailed
    follower = "follower"

    def __init__(self, plan: MovePlan, folder: Path) -> None:
        super().__init__(plan.seed, folder)
        self.plan = plan
        self.legs: list[Leg] = []

    def start(self, role: str, **how: Any) -> ForkedChild:
        def specified(given: dict[str, Any]) -> dict[str, Any]:
            if role == "follower":
                return {}
            known = {"journal": given["journal"], "tenant_id": self.tenant_id, **how}
            known |= {"context_seconds": self.plan.context_seconds}
            return known | ({"seed": given["seed"]} if role != "mover" else {})

        return self.launch(role, move_child.main, specified)


@contextmanager
def torture(plan: MovePlan) -> Iterator[MoveTorture]:
    """Give a torture whose processes and tenant are gone in the end. Raises Forbidden as `cleanup` does."""
    cleanup.refuse_in_production()
    with tempfile.TemporaryDirectory(prefix="torture-") as folder, ExitStack() as stack:
        run = MoveTorture(plan, Path(folder))
        stack.callback(_remove, run)
        yield run


def prepare(run: MoveTorture, advance: Callable[[int], object]) -> None:
    """Make the desk and its tickets, and start the processes."""
    slug, plan = f"torture-{uuid.uuid4().hex[:8]}", run.plan
    run.tenant = tenant_lifecycle.create(name="Torture", slug=slug, shards=1, by=SYSTEM)
    run.start("follower")
    quiet_desk.fill(context.for_system(run.tenant), plan.tickets, advance)
    known = {"tickets": plan.tickets}
    for _ in range(plan.writers):
        run.start("writer", pause=plan.writers / plan.writes, **known)
    for _ in range(plan.readers):
        run.start("reader", pause=2 * plan.readers / plan.reads, **known)
    run.wait_until(lambda: bool(run.told("reader")) and len(run.told("writer")) >= plan.writers, *_ALIVE)


def move(run: MoveTorture, say: Callable[[str], object]) -> None:
    """Move the desk from place to place, and discard what is in the way of the next move."""
    for to in run.plan.to:
        stored = patiently(lambda: tenant_directory.get(run.tenant_id))
        if stored.former_placement not in (None, to):
            say("discarding")
            move_requests.discard(stored, early=True, by=SYSTEM)
            _ended_discard(run.tenant_id)
        run.legs.append(_leg(run, to, lambda phase, to=to: say(f"to {to}: {phase}")))  # type: ignore[misc]


def _ended_discard(tenant_id: str) -> None:
    """Delete the old copy, unless the stream worker was faster, and return when it is gone."""
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        item = move_notes.MOVES.last(tenant_id)
        if item is None or item.state != move_notes.DISCARDING:
            return
        with suppress(TakenOver):
            CopyDiscard(item).run()
        time.sleep(_STEP)
    raise MoveTortureFailed("The old copy was not discarded.")


def _leg(run: MoveTorture, to: str, say: Callable[[str], object]) -> Leg:
    """Move the desk, and kill whoever carries it out as often as is planned, at steps that come in turn."""
    plan, rng, began = run.plan, run.rng(), time.time()
    points = sorted((_POINTS[kill % len(_POINTS)] for kill in range(plan.kills)), key=PHASES.index)
    killed_at: list[str] = []
    # A holder's name keeps it from the stream worker, which waits 40 seconds where this waits less than two.
    move_requests.begin(tenant_directory.get(run.tenant_id), to=Placement.parse(to), by=SYSTEM, holder="torture")
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        before = len(run.told("mover"))
        child = run.start("mover", rate=plan.rate, settle_seconds=plan.settle_seconds)
        point = points[0] if points else ""
        while child.poll() is None:
            phases = [line["phase"] for line in run.told("mover")[before:]]
            say(phases[-1] if phases else "beginning")
            if point in phases:
                # Within what the step takes, so that much is done and much is not.
                some = plan.tickets / plan.rate / 2 if point in _LONG else 0.3
                if _lives(child, rng.uniform(0, some)):
                    child.kill()
                    killed_at.append(point)
                points.pop(0)
                break
            time.sleep(_STEP)
            run.refuse_dead("reader", "writer", "follower")
        run.end("mover")
        item = patiently(lambda: move_notes.MOVES.last(run.tenant_id))
        if item is not None and item.state not in move_notes.UNFINISHED:
            return _ended(run, item, began, killed_at)
    raise MoveTortureFailed("The move came to no end.")


def _lives(child: ForkedChild, seconds: float) -> bool:
    """Wait for so long, and tell whether it has not ended by itself."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and child.poll() is None:
        time.sleep(_STEP)
    return child.poll() is None


def _ended(run: MoveTorture, item: MoveItem, began: float, killed_at: list[str]) -> Leg:
    holds = [line for line in run.told("mover") if "calls" in line]
    return Leg(
        left=item.from_place,
        to=item.to_place,
        began=began,
        ended=time.time(),
        killed_at=killed_at,
        moved=item.state == move_notes.KEPT,
        changes=int(item.changes),
        holds=int(item.holds),
        held_seconds=int(item.held_ms) / 1000,
        hold_calls=holds[-1]["calls"] if holds else 0,
        hold_trips=holds[-1]["trips"] if holds else 0,
        digest=item.digest,
        trouble=item.trouble,
    )


def settle(run: MoveTorture) -> None:
    """Let people work on at the new place, end them, and wait until everything is counted there."""
    wanted = len(run.told("writer")) + 5 * run.plan.writers
    run.wait_until(lambda: len(run.told("writer")) >= wanted, *_ALIVE)
    run.end("writer", seconds=30)
    run.end("reader", seconds=30)
    run.drain(context.for_system(tenant_directory.get(run.tenant_id)).repository)


def _remove(run: MoveTorture) -> None:
    def own() -> None:
        for to in {Placement.parse(text) for text in run.plan.to} - {POOL}:
            provisioning.delete_placed(run.tenant_id, to)
            place_changes.follow_no_more(run.tenant_id, to)

    run.remove(own)
