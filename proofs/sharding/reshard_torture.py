"""A torture: a tenant is resharded under load, whoever does it is killed, and readers look for what is missing."""

from __future__ import annotations

import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from portal.dynamo.repository import TenantRepository
from portal.errors import PortalError
from proofs import cleanup
from proofs.counting import child, journal
from proofs.forked_child import ForkedChild
from proofs.sharding import reshard_child
from proofs.torture_run import TortureRun
from tenants.audit_trail.recording import SYSTEM
from tenants.provisioning import tenant_lifecycle
from tenants.tenancy import context, tenant_directory
from tenants.tenancy.items import TenantItem
from tenants.tenancy.shard_layout import ShardLayout
from tickets.desk import creating, lists
from tickets.sharding import reshard_notes, reshard_requests
from tickets.ticket import keys as ticket_keys
from tickets.ticket.fields import Status
from tickets.ticket.tables import TICKETS
from tickets.verification import recount, verify

_STEP: Final = 0.05
_LEASE_SECONDS: Final = 1.5
_PATIENCE: Final = 240.0  # for one resharding
_ALIVE: Final = ("reader", "writer")
_ROUNDS: Final = 10


class ReshardTortureFailed(PortalError):
    """It could not be carried out: nothing is said about lists."""


@dataclass(frozen=True)
class ReshardPlan:
    """Say what is done: `steps` are the numbers of shards, one after the other; `kills` are spread over them."""

    seed: int
    quiet: int
    writers: int
    readers: int
    kills: int
    steps: tuple[int, ...] = (16, 4)
    rate: float = 100.0
    pause: float = 0.0
    context_seconds: float = 0.5
    settle_seconds: float = 1.5


class ReshardTorture(TortureRun):
    """A running torture of reshardings: at which steps movers were killed, and how many tickets were moved."""

    failure = ReshardTortureFailed
    follower = "poller"

    def __init__(self, plan: ReshardPlan, folder: Path) -> None:
        super().__init__(plan.seed, folder)
        self.plan = plan
        self.killed_at: list[str] = []
        self.moved: list[int] = []

    def start(self, role: str, **how: Any) -> ForkedChild:
        def specified(given: dict[str, Any]) -> dict[str, Any]:
            if role == "poller":
                return {**given, "presented": None, **how}
            known = {"tenant_id": self.tenant_id, **how}
            known |= {"journal": given["journal"], "context_seconds": self.plan.context_seconds}
            return known | ({"seed": given["seed"], "pause": self.plan.pause} if role != "mover" else {})

        return self.launch(role, child.main if role == "poller" else reshard_child.main, specified)


@contextmanager
def torture(plan: ReshardPlan) -> Iterator[ReshardTorture]:
    """Give a torture whose processes and tenant are gone in the end. Raises Forbidden as `cleanup` does."""
    cleanup.refuse_in_production()
    with tempfile.TemporaryDirectory(prefix="torture-") as folder, ExitStack() as stack:
        run = ReshardTorture(plan, Path(folder))
        stack.callback(_remove, run)
        yield run


def prepare(run: ReshardTorture, advance: Callable[[int], object]) -> None:
    """Make the tenant and its quiet tickets, and start the processes."""
    slug = f"torture-{uuid.uuid4().hex[:8]}"
    run.tenant = tenant_lifecycle.create(name="Torture", slug=slug, shards=1, by=SYSTEM)
    tenant = context.for_system(run.tenant)
    for number in range(run.plan.quiet):
        creating.create(tenant, title=f"Quiet {number}")
        advance(1)
    run.start("poller", redeliver=0.2, lease_seconds=_LEASE_SECONDS, throttled="")
    for _ in range(run.plan.writers):
        run.start("writer")
    for _ in range(run.plan.readers):
        run.start("reader", quiet=run.plan.quiet)
    run.wait_until(lambda: bool(run.told("reader")) and bool(run.told("writer")), *_ALIVE)


def reshard(run: ReshardTorture, say: Callable[[str], object]) -> None:
    """Reshard step by step, and kill whoever carries it out as often as is planned.

    Who is quicker than the kill is not killed: then all steps are made once more, with as many kills as are left.
    """
    for _ in range(_ROUNDS):
        left, steps = run.plan.kills - len(run.killed_at), run.plan.steps
        for n, shards in enumerate(steps):
            say(f"to {reshard_requests.said(shards)}")
            kills = left // len(steps) + (n < left % len(steps))
            reshard_requests.begin(tenant_directory.get(run.tenant_id), shards=shards, by=SYSTEM)
            _carried_out(run, kills)
            last = reshard_requests.last_of(run.tenant_id)
            run.moved.append(int(last.moved) if last else 0)
        if len(run.killed_at) >= run.plan.kills:
            return


def _carried_out(run: ReshardTorture, kills: int) -> None:
    rng, until = run.rng(), time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        before = len(run.told("mover"))
        mover = run.start("mover", rate=run.plan.rate, settle_seconds=run.plan.settle_seconds)
        run.wait_until(lambda: len(run.told("mover")) > before or mover.poll() is not None, *_ALIVE)  # noqa: B023
        killed_at = time.monotonic() + rng.uniform(0, 2.5 * run.plan.settle_seconds)
        while mover.poll() is None and (not kills or time.monotonic() < killed_at):
            time.sleep(_STEP)
            run.refuse_dead("reader")
        item = reshard_notes.RESHARDINGS.last(run.tenant_id)
        running = item is not None and item.state in reshard_notes.UNFINISHED
        if mover.poll() is None and running and item is not None:
            mover.kill()
            kills -= 1
            run.killed_at.append(item.phase)
        run.end("mover")
        if not running:
            return
    raise ReshardTortureFailed("The resharding came to no end.")


def settle(run: ReshardTorture) -> None:
    """Let readers make one more walk, end the writers, and wait until everything is counted."""
    run.refuse_dead("writer")
    run.end("writer")
    walks = len(run.told("reader"))
    run.wait_until(lambda: len(run.told("reader")) >= walks + 2 * run.plan.readers, *_ALIVE)
    run.end("reader", seconds=60)
    run.drain(TenantRepository(run.tenant_id))


def figures(run: ReshardTorture) -> dict[str, Any]:
    """Compare lists with the tickets themselves, recount the aggregates, and add up what the processes have told."""
    repository, walks = TenantRepository(run.tenant_id), run.told("reader")
    tenant = tenant_directory.get(run.tenant_id)
    stored = _stored(repository)
    listed = [number for status in Status for number in _listed(tenant, status)]
    verdict = verify.verify(repository)
    shards = run.plan.steps[-1]
    return {
        "plan": asdict(run.plan),
        "tickets": len(stored),
        "moved": run.moved,
        "killed_at": run.killed_at,
        "events": sum(_last_events(path) for path in run.folder.glob("writer-*.jsonl")),
        "walks": len(walks),
        "pages": sum(walk["pages"] for walk in walks),
        "failed_reads": [sentence for walk in walks for sentence in walk["failed"]],
        "missing_while_it_ran": sorted({number for walk in walks for number in walk["missing"]}),
        "doubled_while_it_ran": sorted({number for walk in walks for number in walk["doubled"]}),
        "lost": sorted(stored.keys() - set(listed)),
        "doubled": sorted({number for number in listed if listed.count(number) > 1}),
        "unknown": sorted(set(listed) - stored.keys()),
        "misplaced": sorted(
            number for number, shard in stored.items() if shard != ticket_keys.status_shard(number, shards)
        ),
        "rests": ShardLayout.of(tenant).rests and ShardLayout.of(tenant).readers == shards,
        "dashboards": verdict.state,
        "drift": [asdict(one) for one in verdict.differences],
    }


def is_broken(found: dict[str, Any]) -> list[str]:
    """Return the names of the figures that say that something is wrong."""
    empty = ("failed_reads", "missing_while_it_ran", "doubled_while_it_ran", "lost", "doubled", "unknown", "misplaced")
    broken = [name for name in empty if found[name]]
    broken += [] if found["rests"] else ["rests"]
    return broken + ([] if found["dashboards"] == verify.OK else ["dashboards"])


def _stored(repository: TenantRepository) -> dict[int, int]:
    """Return the shard of each ticket that there is, by its number."""
    found = {}
    for several in recount.groups(recount.last_number(repository)):
        for numbers in several:
            for raw in repository.get_raw(TICKETS, ticket_keys.ticket, numbers, sort=ticket_keys.SUMMARY):
                shelf = ticket_keys.shelf_of(raw["tenant_status"]["S"])
                found[int(raw["number"]["N"])] = shelf[1] if shelf else -1
    return found


def _listed(tenant: TenantItem, status: Status) -> Iterator[int]:
    after: str | None = None
    while True:
        page = lists.page(context.for_system(tenant), status=status, after=after, size=100)
        yield from (row.number for row in page.rows)
        after = page.next
        if after is None:
            return


def _last_events(path: Path) -> int:
    lines = list(journal.lines(path))
    return int(lines[-1]["events"]) if lines else 0


def _remove(run: ReshardTorture) -> None:
    run.remove()
