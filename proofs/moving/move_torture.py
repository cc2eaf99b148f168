"""A torture: a desk moves under load, whoever carries it out is killed, and everything acknowledged is looked for."""

from __future__ import annotations

import json
import os
import random
import statistics
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from django.conf import settings

from portal.dynamo import provisioning
from portal.dynamo.placement import Placement
from portal.dynamo.repository import TenantRepository
from portal.engines.processes import Child
from portal.errors import PortalError
from proofs import cleanup
from proofs.counting import journal
from tenants.audit_trail.recording import SYSTEM
from tenants.provisioning import tenant_lifecycle
from tenants.tenancy import context, tenant_directory
from tenants.tenancy.items import TenantItem
from tickets.counting import barrier
from tickets.counting.barrier import WorkerAway
from tickets.desk import creating
from tickets.moving import copy_check, move_notes, move_requests, place_changes
from tickets.moving.placed_store import PlacedStore
from tickets.moving.tenant_mover import PHASES
from tickets.ticket import keys as ticket_keys
from tickets.verification import recount, verify

_STEP: Final = 0.02
_PATIENCE: Final = 1200.0  # for one move
_DRAIN_SECONDS: Final = 240.0
_POINTS: Final = ("copying", "holding", "announcing", "verifying", "catching")  # of kills, those that matter most first


class MoveTortureFailed(PortalError):
    """It could not be carried out: nothing is said about moves."""


@dataclass(frozen=True)
class MovePlan:
    """Say what is done: to which place, under how many writes a second, with how many kills."""

    seed: int
    tickets: int
    writers: int
    readers: int
    writes: float  # a second, of all writers together
    kills: int
    to: str = "bridge"
    rate: float = 200.0
    context_seconds: float = 0.5
    settle_seconds: float = 1.5


@dataclass
class MoveTorture:
    """A running torture: its processes, and what has happened so far."""

    plan: MovePlan
    folder: Path
    tenant: TenantItem | None = None
    children: dict[str, list[Child]] = field(default_factory=dict)
    killed_at: list[str] = field(default_factory=list)
    counter: int = 0

    @property
    def tenant_id(self) -> str:
        return self.tenant.tenant_id if self.tenant else ""

    def rng(self) -> random.Random:
        self.counter += 1
        return random.Random(f"{self.plan.seed} {self.counter}")  # noqa: S311  # it has to be repeatable

    def start(self, role: str, **how: Any) -> Child:
        seed = self.rng().randrange(10**9)
        path = self.folder / f"{role}-{self.counter}.jsonl"
        specification = {"journal": str(path), "tenant_id": self.tenant_id, **how}
        specification |= {"context_seconds": self.plan.context_seconds}
        specification |= {"seed": seed} if role != "mover" else {}
        command = [sys.executable, "-m", "proofs.moving.move_child", role, json.dumps(specification)]
        if role == "follower":
            command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "run_stream"]
        environ = {**os.environ, "PYTHONPATH": str(settings.BASE_DIR)}
        with path.with_suffix(".log").open("wb") as log:
            child = Child(role, command, env=environ, output=log)
        self.children.setdefault(role, []).append(child)
        return child

    def told(self, role: str) -> list[dict[str, Any]]:
        return [line for path in sorted(self.folder.glob(f"{role}-*.jsonl")) for line in journal.lines(path)]

    def refuse_dead(self, *roles: str) -> None:
        """Raises MoveTortureFailed where one of these processes has ended by itself."""
        for role in roles:
            if any(child.poll() is not None for child in self.children.get(role, [])):
                texts = [path.read_text(errors="replace").strip() for path in self.folder.glob(f"{role}-*.log")]
                raise MoveTortureFailed(f"A {role} has ended: {' / '.join(text[-800:] for text in texts if text)}")

    def end(self, role: str, *, seconds: float = 0) -> None:
        """End the processes of a role at once, or let them finish for so many seconds."""
        for child in self.children.pop(role, []):
            if seconds:
                child.stop(seconds=seconds)
            else:
                child.kill()


@contextmanager
def torture(plan: MovePlan) -> Iterator[MoveTorture]:
    """A torture whose processes and tenant are gone in the end. Raises Forbidden as `cleanup` does."""
    cleanup.refuse_in_production()
    with tempfile.TemporaryDirectory(prefix="torture-") as folder, ExitStack() as stack:
        run = MoveTorture(plan, Path(folder))
        stack.callback(_remove, run)
        yield run


def prepare(run: MoveTorture, advance: Callable[[int], object]) -> None:
    """Make the desk and its tickets, and start the processes."""
    slug, plan = f"torture-{uuid.uuid4().hex[:8]}", run.plan
    run.tenant = tenant_lifecycle.create(name="Torture", slug=slug, shards=1, by=SYSTEM)
    for number in range(plan.tickets):
        if number % 100 == 0:
            tenant = context.for_system(run.tenant)
        creating.create(tenant, title=f"Quiet {number}")
        advance(1)
    run.start("follower")
    known = {"tickets": plan.tickets}
    for _ in range(plan.writers):
        run.start("writer", pause=plan.writers / plan.writes, **known)
    for _ in range(plan.readers):
        run.start("reader", pause=0.1, **known)
    _until(lambda: bool(run.told("reader")) and len(run.told("writer")) >= plan.writers, run)


def move(run: MoveTorture, say: Callable[[str], object]) -> None:
    """Move the desk, and kill whoever carries it out as often as is planned, at steps that come in turn."""
    plan, rng = run.plan, run.rng()
    points = sorted((_POINTS[kill % len(_POINTS)] for kill in range(plan.kills)), key=PHASES.index)
    # A holder's name keeps it from the stream worker, which waits 40 seconds where this waits less than two.
    move_requests.begin(tenant_directory.get(run.tenant_id), to=Placement.parse(plan.to), by=SYSTEM, holder="torture")
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        before = len(run.told("mover"))
        child = run.start("mover", rate=plan.rate, settle_seconds=plan.settle_seconds)
        point = points[0] if points else ""
        while child.poll() is None:
            phases = [line["phase"] for line in run.told("mover")[before:]]
            say(phases[-1] if phases else "beginning")
            if point in phases:
                time.sleep(rng.uniform(0, 0.3))
                child.kill()
                run.killed_at.append(points.pop(0))
                break
            time.sleep(_STEP)
            run.refuse_dead("reader", "writer", "follower")
        run.end("mover")
        item = move_notes.MOVES.last(run.tenant_id)
        if item is None or item.state not in move_notes.UNFINISHED:
            return
    raise MoveTortureFailed("The move came to no end.")


def settle(run: MoveTorture) -> None:
    """Let people work on at the new place, end them, and wait until everything is counted there."""
    wanted = len(run.told("writer")) + 5 * run.plan.writers
    _until(lambda: len(run.told("writer")) >= wanted, run)
    run.end("writer", seconds=30)
    run.end("reader", seconds=30)
    try:
        barrier.wait_until_applied(_repository(run), timeout=_DRAIN_SECONDS, say=lambda _: None)
    except WorkerAway as away:
        raise MoveTortureFailed("The follower came to no end.") from away


def figures(run: MoveTorture) -> dict[str, Any]:
    """Look for each acknowledged write at the new place, compare both copies, and recount the aggregates."""
    writes = [line for line in run.told("writer") if line["kind"] != "refused"]
    item = move_requests.last_of(run.tenant_id)
    titles, texts = _stored(run)
    opened = Counter(line["text"] for line in writes if line["kind"] == "ticket")
    said = Counter(line["text"] for line in writes if line["kind"] == "comment")
    place, left = Placement.parse(run.plan.to), Placement()
    checked = copy_check.check(run.tenant_id, left=left, present=place)
    seconds = [line["seconds"] for line in writes]
    reads = run.told("reader")
    verdict = verify.verify(_repository(run))
    return {
        "plan": asdict(run.plan),
        "tickets": sum(titles.values()),
        "writes": len(writes),
        "refused": [line["why"] for line in run.told("writer") if line["kind"] == "refused"],
        "killed_at": run.killed_at,
        "reads": sum(_last_reads(path) for path in run.folder.glob("reader-*.jsonl")),
        "failed_reads": [line["failed"] for line in reads if line["failed"]],
        "lost": sorted((opened - titles) + (said - texts)),
        "doubled": sorted(text for text, times in (titles + texts).items() if times > 1),
        "missing_changes": _missing_changes(run, writes),
        "different": checked.wrong,
        "changed_since": checked.changed,
        "digest": checked.digest,
        "digest_then": item.digest if item else "",
        "holds": int(item.holds) if item else 0,
        "held_seconds": int(item.held_ms) / 1000 if item else 0.0,
        "longest_write": max(seconds),
        "median_write": statistics.median(seconds),
        "ratio": round(max(seconds) / max(0.0001, statistics.median(seconds)), 1),
        "moved": item is not None and item.state == move_notes.KEPT,
        "dashboards": verdict.state,
    }


def is_broken(found: dict[str, Any]) -> list[str]:
    """Return the names of the figures that say that something is wrong."""
    empty = ("refused", "failed_reads", "lost", "doubled", "missing_changes", "different")
    broken = [name for name in empty if found[name]]
    broken += [] if found["moved"] else ["moved"]
    broken += [] if found["digest"] == found["digest_then"] else ["digest"]
    return broken + ([] if found["dashboards"] == verify.OK else ["dashboards"])


def _repository(run: MoveTorture) -> TenantRepository:
    return context.for_system(tenant_directory.get(run.tenant_id)).repository


def _stored(run: MoveTorture) -> tuple[Counter[str], Counter[str]]:
    """Count the titles that tickets were opened with and the texts of comments, at the new place."""
    titles, texts = Counter[str](), Counter[str]()
    changed = {line["text"] for line in run.told("writer") if line["kind"] == "change"}
    opened = {line["number"]: line["text"] for line in run.told("writer") if line["kind"] == "ticket"}
    store = PlacedStore(run.tenant_id, Placement.parse(run.plan.to))
    for number in range(1, recount.last_number(_repository(run)) + 1):
        collection = store.collection(ticket_keys.ticket(run.tenant_id, number))
        for raw in collection:
            if raw["sk"]["S"] == ticket_keys.SUMMARY:
                title = raw["title"]["S"]
                titles[opened.get(number, title) if title in changed else title] += 1
            elif raw.get("body", {}).get("S"):
                texts[raw["body"]["S"]] += 1
    return titles, texts


def _missing_changes(run: MoveTorture, writes: list[dict[str, Any]]) -> list[str]:
    """Return the titles that somebody gave to a ticket whose history does not say so exactly once."""
    store = PlacedStore(run.tenant_id, Placement.parse(run.plan.to))
    wanted: dict[int, list[str]] = {}
    for line in writes:
        if line["kind"] == "change":
            wanted.setdefault(line["number"], []).append(line["text"])
    missing = []
    for number, titles in wanted.items():
        told = json.dumps(
            [raw.get("changes", {}) for raw in store.collection(ticket_keys.ticket(run.tenant_id, number))]
        )
        missing += [title for title in titles if told.count(f'"after": {{"S": "{title}"}}') != 1]
    return missing


def _last_reads(path: Path) -> int:
    lines = list(journal.lines(path))
    return int(lines[-1]["reads"]) if lines else 0


def _until(done: Callable[[], bool], run: MoveTorture) -> None:
    until = time.monotonic() + _DRAIN_SECONDS
    while not done():
        run.refuse_dead("reader", "writer", "follower")
        if time.monotonic() > until:
            raise MoveTortureFailed("The processes came to nothing.")
        time.sleep(_STEP)


def _remove(run: MoveTorture) -> None:
    for role in ("mover", "writer", "reader"):
        run.end(role)
    if run.tenant is not None:
        last = recount.last_number(TenantRepository(run.tenant_id))
        cleanup.delete_tickets(run.tenant_id, range(1, last + 1))
        with suppress(WorkerAway):
            barrier.wait_until_applied(TenantRepository(run.tenant_id), timeout=_DRAIN_SECONDS, say=lambda _: None)
        run.end("follower", seconds=30)
        to = Placement.parse(run.plan.to)
        provisioning.delete_placed(run.tenant_id, to)
        place_changes.follow_no_more(run.tenant_id, to)
        cleanup.delete_moves(run.tenant_id)
        cleanup.delete_tenant(run.tenant_id, run.tenant.slug)
    run.end("follower")
