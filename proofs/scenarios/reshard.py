"""Reshard a tenant under load, from 1 to 16 partitions and back to 4, and kill the process that does it.

Writers change tickets, readers walk through lists, and a poller counts. In each walk every ticket that nobody changes
must be met once, and no ticket twice. In the end lists hold what there is, everything is at its place, and a recount
finds the dashboards exact. Waits for processes are shortened; its poller takes the stream from others.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, ClassVar, Final

from portal.errors import PortalError
from proofs import stored
from proofs.forked import Journal, repeat
from proofs.harness import Say, Torture, count, decimal
from proofs.scenarios import hostile_poller
from proofs.scenarios.load import Writer, desks
from proofs.scenarios.move import SETTLE_SECONDS, current, forget_soon
from tenants.audit_trail.recording import SYSTEM
from tenants.tenancy import tenant_directory
from tenants.tenancy.placements import ShardLayout
from tickets.desk import lists
from tickets.sharding import reshard_requests
from tickets.sharding.reshard_job import Mover
from tickets.ticket import stored as ticket_keys
from tickets.ticket.fields import Status
from tickets.verification import verify

STEPS: Final = (16, 4)  # numbers of shards, one after the other
_PHASES: Final = ("widening", "switching", "moving", "narrowing")
_POINTS: Final = ("moving", "switching", "widening", "narrowing")  # of kills, those that matter most first
_ALIVE: Final = ("reader", "writer")


def write(told: Journal, seed: int, *, tenant_id: str, pause: float) -> None:
    """Change tickets of its own, with contexts that are never made anew, until it is killed."""
    forget_soon()
    writer = Writer(random.Random(seed), desks([tenant_id]), pause=pause, on_any=False)  # noqa: S311  # it has to be repeatable
    writer.run(10**9, lambda: told.write(events=writer.events, refused=writer.refused))


def read(told: Journal, seed: int, *, tenant_id: str, quiet: int, pause: float) -> None:
    """Walk through lists, page by page; note what is missing or doubled in each walk.

    The tickets 1 to `quiet` are open, nobody's, and nobody changes them: each has to be met once in each walk. Others
    may be missing, because they may go to the list's beginning meanwhile, and none may be met twice.
    """
    forget_soon()

    def walk(rng: random.Random) -> None:
        met, pages, failed = Counter[int](), 0, list[str]()
        status, resolver = rng.choice([[Status.OPEN], [Status.OPEN, Status.PENDING]]), rng.choice([None, ""])
        try:
            for numbers in _pages(tenant_id, status, resolver, rng):
                pages += 1
                met.update(numbers)
                time.sleep(pause)
        except PortalError as error:
            failed.append(f"{type(error).__name__}: {error.message}")
        missing = [] if failed else [number for number in range(1, quiet + 1) if not met[number]]
        doubled = [number for number, times in met.items() if times > 1]
        told.write(pages=pages, missing=missing, doubled=doubled, failed=failed)

    repeat(walk, seed)


def _pages(tenant_id: str, status: list[Status], resolver: str | None, rng: random.Random) -> Iterator[list[int]]:
    """Yield the numbers of each page of a list; some pages are read with the context of the page before."""
    after, size = None, rng.choice([20, 50])
    while True:
        if after is None or rng.random() < 0.7:
            tenant = current(tenant_id)
        page = lists.page(tenant, status=status, resolver=resolver, after=after, size=size)
        yield [int(row.number) for row in page.rows]
        if (after := page.next) is None:
            return


def move(told: Journal, seed: int, *, tenant_id: str, rate: float) -> None:
    """Carry the tenant's resharding out; the process that held it before is dead."""
    forget_soon()
    if item := reshard_requests.RESHARDINGS.last(tenant_id):
        Mover(item, rate=rate, settle_seconds=SETTLE_SECONDS, say=lambda phase: told.write(phase=phase)).run()


class Reshard(Torture):
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
        plan, self.moved, self.killed_at = self.plan, list[int](), list[str]()
        self.make_tenants()
        self.open_tickets(plan.tickets)
        known = {"tenant_id": self.tenant_id, "pause": plan.pause}
        self.start_all(
            poller=(1, hostile_poller.poll, {"redeliver": 0.2}),
            writer=(plan.writers, write, known),
            reader=(plan.readers, read, known | {"quiet": plan.tickets}),
        )
        for role in _ALIVE:
            self.wait_for_more(role, 1, *_ALIVE)
        with self.stage("Resharding", None) as progress:
            for n, shards in enumerate(STEPS):
                self._reshard(shards, len(range(n, plan.kills, len(STEPS))), progress.label)
            progress.label("counting")
            self.refuse_dead("writer")
            self.end("writer")
            self.wait_for_more("reader", 2 * plan.readers, *_ALIVE)
            self.end("reader", seconds=60)
            self.drain()

    def _reshard(self, shards: int, kills: int, say: Say) -> None:
        reshard_requests.begin(tenant_directory.get(self.tenant_id), shards=shards, by=SYSTEM)

        def is_over() -> bool:
            item = reshard_requests.RESHARDINGS.last(self.tenant_id)
            return item is None or item.state not in reshard_requests.RESHARDINGS.unfinished

        points = [_POINTS[kill % len(_POINTS)] for kill in range(kills)]
        self.killed_at += self.carry_out(
            move, _PHASES, points, is_over=is_over, alive=_ALIVE, say=lambda phase: say(f"to {shards}: {phase}")
        )
        last = reshard_requests.last_of(self.tenant_id)
        self.moved.append(int(last.moved) if last else 0)

    def figures(self) -> dict[str, Any]:
        """Compare lists with the tickets themselves, recount the aggregates, and add up what the processes told."""
        walks, rng, repository = self.told("reader"), self.rng(), self.repository()
        shelves = {int(one.number): ticket_keys.shelf_of(one.tenant_status) for one in stored.summaries(repository)}
        pages = [page for status in Status for page in _pages(self.tenant_id, [status], None, rng)]
        listed = Counter(number for page in pages for number in page)
        verdict, layout = verify.verify(repository), ShardLayout.of(tenant_directory.get(self.tenant_id))
        return {
            "tickets": len(shelves),
            "moved": self.moved,
            "killed_at": self.killed_at,
            "events": self.last_told("writer", "events"),
            "walks": len(walks),
            "pages": sum(walk["pages"] for walk in walks),
            "failed_reads": [sentence for walk in walks for sentence in walk["failed"]],
            "missing_while_it_ran": sorted({number for walk in walks for number in walk["missing"]}),
            "doubled_while_it_ran": sorted({number for walk in walks for number in walk["doubled"]}),
            "lost": sorted(shelves.keys() - listed.keys()),
            "doubled": sorted(number for number, times in listed.items() if times > 1),
            "unknown": sorted(listed.keys() - shelves.keys()),
            "misplaced": [
                n for n, shelf in shelves.items() if not shelf or shelf[1] != ticket_keys.status_shard(n, STEPS[-1])
            ],
            "rests": layout.rests and layout.readers == STEPS[-1],
            "dashboards": verdict.state,
            "drift": [asdict(one) for one in verdict.differences],
        }
