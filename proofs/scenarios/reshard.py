"""Reshard a tenant under load and kill the process that does it, while readers look for missing tickets."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, ClassVar, Final

from portal.errors import PortalError
from proofs import stored
from proofs.forked import Journal, asked_to_stop
from proofs.harness import STEP, Torture, TortureFailed, count, decimal
from proofs.scenarios import hostile_poller
from proofs.scenarios.load import Desk, Writer, desks
from tenants.audit_trail.recording import SYSTEM
from tenants.tenancy import context, shard_layout, tenant_directory
from tenants.tenancy.shard_layout import ShardLayout
from tenants.tenancy.stored import TenantItem
from tickets.desk import creating, lists
from tickets.sharding import reshard_requests
from tickets.sharding.reshard_job import Mover
from tickets.ticket import stored as ticket_keys
from tickets.ticket.fields import Status
from tickets.verification import verify

STEPS: Final = (16, 4)  # numbers of shards, one after the other
_CONTEXT_SECONDS: Final = 0.5  # for which a process trusts what it knows of a tenant
_SETTLE_SECONDS: Final = 1.5
_PATIENCE: Final = 240.0  # for one resharding
_ALIVE: Final = ("reader", "writer")
_ROUNDS: Final = 10


class _OwnTickets(Writer):
    """Change tickets of its own alone, so that nobody touches the quiet ones."""

    pause = 0.0

    def _draw(self, desk: Desk) -> Callable[[Desk], int]:
        time.sleep(self.pause)
        return super()._draw(desk)

    def _comment_on_any(self, desk: Desk) -> int:
        return self._comment(desk)


def write(told: Journal, seed: int, *, tenant_id: str, pause: float) -> None:
    """Change tickets until it is killed, with contexts that are never made anew."""
    shard_layout.CONTEXT_SECONDS = _CONTEXT_SECONDS
    writer = _OwnTickets(random.Random(seed), desks([tenant_id]))  # noqa: S311  # it has to be repeatable
    writer.pause = pause
    writer.run(10**9, lambda: told.write(events=writer.events, refused=writer.refused))


def read(told: Journal, seed: int, *, tenant_id: str, quiet: int, pause: float) -> None:
    """Walk through lists, page by page, until it is asked to stop; note what is missing or doubled in each walk.

    The tickets 1 to `quiet` are open, nobody's, and nobody changes them: each has to be met once in each walk. Others
    may be missing, because they may go to the list's beginning meanwhile, and none may be met twice.
    """
    shard_layout.CONTEXT_SECONDS = _CONTEXT_SECONDS
    rng, stopped = random.Random(seed), asked_to_stop()  # noqa: S311  # it has to be repeatable
    while not stopped:
        met: Counter[int] = Counter()
        pages, failed = 0, []
        try:
            for numbers in _pages(rng, tenant_id):
                pages += 1
                met.update(numbers)
                time.sleep(pause)
        except PortalError as error:
            failed.append(f"{type(error).__name__}: {error.message}")
        missing = [] if failed else [number for number in range(1, quiet + 1) if not met[number]]
        doubled = [number for number, times in met.items() if times > 1]
        told.write(pages=pages, missing=missing, doubled=doubled, failed=failed)


def _pages(rng: random.Random, tenant_id: str) -> Iterator[list[int]]:
    """Yield the numbers of each page of a list; some pages are read with the context of the page before."""
    status = rng.choice([[Status.OPEN], [Status.OPEN, Status.PENDING]])
    resolver, size = rng.choice([None, ""]), rng.choice([20, 50])
    after: str | None = ""
    tenant = context.for_system(tenant_directory.get(tenant_id))
    while after is not None:
        page = lists.page(tenant, status=status, resolver=resolver, after=after or None, size=size)
        yield [int(row.number) for row in page.rows]
        after = page.next
        if rng.random() < 0.7:
            tenant = context.for_system(tenant_directory.get(tenant_id))


def move(told: Journal, seed: int, *, tenant_id: str, rate: float) -> None:
    """Carry the tenant's resharding out; the process that held it before is dead."""
    shard_layout.CONTEXT_SECONDS = _CONTEXT_SECONDS
    if item := reshard_requests.RESHARDINGS.last(tenant_id):
        Mover(item, rate=rate, settle_seconds=_SETTLE_SECONDS, say=lambda phase: told.write(phase=phase)).run()


class Reshard(Torture):
    help = (
        "Reshard a throw-away tenant from 1 to 16 partitions and back to 4 on the running engine, while writers change "
        "tickets, readers walk through lists and a poller counts, and kill whoever carries it out at any moment. In "
        "each walk every ticket that nobody changes must be met once, and no ticket twice; in the end lists hold what "
        "there is, everything is at its place, and a recount finds the dashboards exact. Waits for processes are "
        "shortened. Needs DEBUG=1 and a local engine; its poller takes the stream from others. "
        "Exit status: 0 nothing is wrong; 1 something is, or it failed."
    )
    options: ClassVar = {
        "tickets": count(300, "N", "that nobody changes"),
        "writers": count(2, "W", "at a time"),
        "readers": count(2, "R", "at a time"),
        "kills": count(5, "K", "of movers", 0),
        "rate": decimal(100, "TICKETS", "to move in a second, at most", 0.1, 100_000),
        "pause": decimal(0, "SECONDS", "of a writer after each change and of a reader after each page", 0, 60),
    }
    must_be_empty = (
        "failed_reads", "missing_while_it_ran", "doubled_while_it_ran", "lost", "doubled", "unknown", "misplaced",
    )  # fmt: skip
    must_be: ClassVar = {"rests": True, "dashboards": verify.OK}
    kept = "0 lost, 0 doubled, 0 failed reads, dashboards exact."
    follower = "poller"

    def work(self) -> None:
        self.moved: list[int] = []
        self.killed_at: list[str] = []
        self._prepare()
        with self.stage("Resharding", None) as progress:
            self._reshard(progress.label)
            progress.label("counting")
            self._settle()

    def _prepare(self) -> None:
        self.make_tenants()
        tenant, plan = context.for_system(self.tenants[0]), self.plan
        with self.stage("Opening tickets", plan.tickets) as progress:
            for number in range(plan.tickets):
                creating.create(tenant, title=f"Quiet {number}")
                progress.advance()
        self.start("poller", hostile_poller.poll, redeliver=0.2)
        for _ in range(plan.writers):
            self.start("writer", write, tenant_id=self.tenant_id, pause=plan.pause)
        for _ in range(plan.readers):
            self.start("reader", read, tenant_id=self.tenant_id, quiet=plan.tickets, pause=plan.pause)
        self.wait_until(lambda: bool(self.told("reader")) and bool(self.told("writer")), *_ALIVE)

    def _reshard(self, say: Callable[[str], object]) -> None:
        """Reshard step by step, with the kills spread over the steps.

        A mover that is quicker than its kill survives: then all steps are made once more, with the kills that are left.
        """
        for _ in range(_ROUNDS):
            left = self.plan.kills - len(self.killed_at)
            for n, shards in enumerate(STEPS):
                say(f"to {reshard_requests.said(shards)}")
                reshard_requests.begin(tenant_directory.get(self.tenant_id), shards=shards, by=SYSTEM)
                self._carry_out(left // len(STEPS) + (n < left % len(STEPS)))
                last = reshard_requests.last_of(self.tenant_id)
                self.moved.append(int(last.moved) if last else 0)
            if len(self.killed_at) >= self.plan.kills:
                return

    def _carry_out(self, kills: int) -> None:
        rng, until = self.rng(), time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            before = len(self.told("mover"))
            mover = self.start("mover", move, tenant_id=self.tenant_id, rate=self.plan.rate)
            self.wait_until(lambda: len(self.told("mover")) > before or mover.poll() is not None, *_ALIVE)  # noqa: B023
            killed_at = time.monotonic() + rng.uniform(0, 2.5 * _SETTLE_SECONDS)
            while mover.poll() is None and (not kills or time.monotonic() < killed_at):
                time.sleep(STEP)
                self.refuse_dead("reader")
            item = reshard_requests.RESHARDINGS.last(self.tenant_id)
            running = item is not None and item.state in reshard_requests.RESHARDINGS.unfinished
            if mover.poll() is None and running and item is not None:
                mover.kill()
                kills -= 1
                self.killed_at.append(item.phase)
            self.end("mover")
            if not running:
                return
        raise TortureFailed("The resharding came to no end.")

    def _settle(self) -> None:
        """Let readers make one more walk, end the writers, and wait until everything is counted."""
        self.refuse_dead("writer")
        self.end("writer")
        wanted = len(self.told("reader")) + 2 * self.plan.readers
        self.wait_until(lambda: len(self.told("reader")) >= wanted, *_ALIVE)
        self.end("reader", seconds=60)
        self.drain()

    def figures(self) -> dict[str, Any]:
        """Compare lists with the tickets themselves, recount the aggregates, and add up what the processes told."""
        walks, tenant = self.told("reader"), tenant_directory.get(self.tenant_id)
        tickets = {int(raw["number"]["N"]): _shard(raw) for raw in stored.summaries(self.repository())}
        listed = Counter(number for status in Status for number in _listed(tenant, status))
        verdict = verify.verify(self.repository())
        layout = ShardLayout.of(tenant)
        return {
            "tickets": len(tickets),
            "moved": self.moved,
            "killed_at": self.killed_at,
            "events": self.last_told("writer", "events"),
            "walks": len(walks),
            "pages": sum(walk["pages"] for walk in walks),
            "failed_reads": [sentence for walk in walks for sentence in walk["failed"]],
            "missing_while_it_ran": sorted({number for walk in walks for number in walk["missing"]}),
            "doubled_while_it_ran": sorted({number for walk in walks for number in walk["doubled"]}),
            "lost": sorted(tickets.keys() - listed.keys()),
            "doubled": sorted(number for number, times in listed.items() if times > 1),
            "unknown": sorted(listed.keys() - tickets.keys()),
            "misplaced": [n for n, shard in tickets.items() if shard != ticket_keys.status_shard(n, STEPS[-1])],
            "rests": layout.rests and layout.readers == STEPS[-1],
            "dashboards": verdict.state,
            "drift": [asdict(one) for one in verdict.differences],
        }

    def sentences(self, found: Mapping[str, Any]) -> Iterable[str]:
        yield (
            f"{found['tickets']:,} tickets, {found['events']:,} changes, {sum(found['moved']):,} moves; "
            f"{len(found['killed_at'])} kills, while {', '.join(found['killed_at']) or 'nothing'}; "
            f"{found['walks']:,} walks over {found['pages']:,} pages, {found['seconds']:g} s."
        )


def _listed(tenant: TenantItem, status: Status) -> Iterator[int]:
    after: str | None = ""
    while after is not None:
        page = lists.page(context.for_system(tenant), status=status, after=after or None, size=100)
        yield from (int(row.number) for row in page.rows)
        after = page.next


def _shard(raw: Mapping[str, Any]) -> int:
    shelf = ticket_keys.shelf_of(raw["tenant_status"]["S"])
    return shelf[1] if shelf else -1
