"""Writes to the tickets of some tenants through the rules that people's requests go through.

The sequence of operations follows from the seed. Their interleaving does not: several writers share the tenants, so
that comments arrive on tickets that another one is changing.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from django.core.management import call_command

from delivery.queues import consumer, queue_readers
from portal.errors import Conflict, Invalid, NotFound, Unavailable
from proofs import cleanup
from proofs.forked import Journal
from proofs.harness import LEASE_SECONDS, count
from tenants.tenancy.context import Role, TenantContext
from tickets.desk import bulk, changing, commenting, creating
from tickets.desk.changing import TicketState
from tickets.ticket import stored
from tickets.ticket.fields import MOVES, Priority
from tickets.ticket.stored import SummaryItem

LIVE: Final = 60  # tickets of one writer in one tenant; above it deletes
BULK: Final = (8, 40)  # tickets in one transaction
TAGS: Final = [f"tag-{n}" for n in range(12)]
TELL_EVERY: Final = 50  # events
WAYS: Final = {
    "create": 18, "comment": 14, "answer": 8, "move": 14, "edit": 8, "prioritise": 6, "assign": 10, "bulk": 14,
    "delete": 4, "comment on any": 4,
}  # fmt: skip

VISIBLE: Final = count(12, "SECONDS", "until another worker sees the messages of one that was killed")


def see_again_after(seconds: int) -> None:
    """Let others see the messages that this process has, so many seconds after it was killed."""
    consumer.VISIBILITY_SECONDS = queue_readers.VISIBILITY_SECONDS = seconds  # type: ignore[misc]
    consumer.EXTEND_SECONDS = seconds / 3  # type: ignore[misc]
    # The embedded engine still hands messages to the poll of one that was killed.
    consumer.POLL_SECONDS = queue_readers.POLL_SECONDS = 1


def dispatch(told: Journal, seed: int) -> None:
    call_command("run_dispatch", "--lease", str(LEASE_SECONDS), "--metrics", "0")


@dataclass
class Desk:
    """A tenant, seen by two people: one opens tickets, the other works them. `mine` are this writer's tickets."""

    customer: TenantContext
    agent: TenantContext
    mine: list[int] = field(default_factory=list)


@dataclass
class Writer:
    """Change tickets. `pause` is in seconds after each change, and `on_any` lets it comment on those of others."""

    rng: random.Random
    desks: list[Desk]
    pause: float = 0.0
    on_any: bool = True
    events: int = 0
    refused: int = 0

    def run(self, events: int, tell: Callable[[], object]) -> None:
        """Write until so many summaries have been changed."""
        told = 0
        while self.events < events:
            time.sleep(self.pause)
            try:
                self.events += self._write(self.rng.choice(self.desks))
            except (Conflict, NotFound, Invalid):
                self.refused += 1  # another writer was faster
            except Unavailable:
                self.refused += 1
                time.sleep(0.2)  # a shared machine
            if self.events - told >= (TELL_EVERY if told else 1):
                told = self.events
                tell()
        tell()

    def _write(self, desk: Desk) -> int:
        """Write in one way, and return how many summaries that changed."""
        rng, agent = self.rng, desk.agent
        ways = WAYS if self.on_any else {way: share for way, share in WAYS.items() if way != "comment on any"}
        (way,) = rng.choices([*ways], [*ways.values()])
        if way == "create" or len(desk.mine) < BULK[0]:
            priority = rng.choice(list(Priority))
            desk.mine.append(creating.create(desk.customer, title="Torture", priority=priority, tags=self._some_tags()))
        elif way == "delete" or len(desk.mine) >= LIVE:
            cleanup.delete_summary(agent.tenant_id, desk.mine.pop(rng.randrange(len(desk.mine))))
        elif way == "comment":
            who, internal = rng.choice([desk.customer, agent]), rng.random() < 0.2
            commenting.comment(who, rng.choice(desk.mine), body="Again.", internal=internal)
        elif way == "comment on any":
            commenting.comment(agent, rng.randint(1, max(desk.mine)), body="Me too.")
        elif way == "bulk":
            states = self._read(desk, rng.sample(desk.mine, min(len(desk.mine), rng.randint(*BULK))))
            same = [one for one in states if one.status is states[0].status]
            bulk.change_status(agent, same, to=rng.choice(MOVES[states[0].status]))
            return len(same)
        else:
            self._change(way, desk, self._read(desk, [rng.choice(desk.mine)])[0])
        return 1

    def _change(self, way: str, desk: Desk, now: TicketState) -> None:
        agent, number, version = desk.agent, now.number, now.version
        to, priority = self.rng.choice(MOVES[now.status]), self.rng.choice(list(Priority))
        if way == "answer":
            commenting.comment(agent, number, body="Thus.", then=to)
        elif way == "move":
            changing.change_status(agent, number, to=to, version=version)
        elif way == "edit":
            what = {"title": f"Torture {self.events}", "description": "", "priority": priority}
            changing.edit(agent, number, version=version, tags=self._some_tags(), **what)
        elif way == "prioritise":
            changing.change(agent, number, changing.Wishes(priority=priority), version=version)
        else:
            changing.assign(agent, number, to="" if now.resolver else agent.user_id, version=version)

    def _some_tags(self) -> list[str]:
        return self.rng.sample(TAGS, self.rng.randrange(4))

    def _read(self, desk: Desk, numbers: Sequence[int]) -> list[TicketState]:
        """Read tickets as they are now. Raises NotFound where none is there."""
        wanted = [(stored.ticket, (number,), stored.SUMMARY) for number in numbers]
        found = desk.agent.repository.get_many(SummaryItem, wanted, consistent=True)
        if states := [TicketState.of(item) for item in found if item]:
            return states
        raise NotFound("Nothing of it is there any more.")


def desks(tenants: Sequence[str]) -> list[Desk]:
    def person(tenant_id: str, user_id: str, name: str) -> TenantContext:
        return TenantContext(tenant_id, "Torture", "torture", Role.AGENT, user_id, name)

    return [Desk(person(t, "c" * 32, "Customer"), person(t, "a" * 32, "Agent")) for t in tenants]


def write(told: Journal, seed: int, *, tenants: list[str], events: int) -> None:
    writer = Writer(random.Random(seed), desks(tenants))  # noqa: S311  # it has to be repeatable
    writer.run(events, lambda: told.write(events=writer.events, refused=writer.refused))
