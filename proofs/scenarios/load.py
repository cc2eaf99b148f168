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

from portal.errors import Conflict, Invalid, NotFound, Unavailable
from proofs import cleanup
from proofs.forked import Journal
from tenants.tenancy.context import TenantContext
from tenants.tenancy.roles import Role
from tickets.desk import bulk, changing, commenting, creating
from tickets.desk.changing import TicketState
from tickets.ticket.fields import MOVES, Priority, Status

LIVE: Final = 60  # tickets of one writer in one tenant; above it deletes
BULK: Final = (8, 40)  # tickets in one transaction
TAGS: Final = [f"tag-{n}" for n in range(12)]
TELL_EVERY: Final = 50  # events


@dataclass
class Mine:
    """A ticket of this writer's, as it knows it."""

    number: int
    version: int = 1
    status: Status = Status.OPEN
    resolver: str = ""


@dataclass
class Desk:
    """A tenant, seen by two people: one opens tickets, the other works them."""

    customer: TenantContext
    agent: TenantContext
    mine: list[Mine] = field(default_factory=list)


@dataclass
class Writer:
    rng: random.Random
    desks: list[Desk]
    events: int = 0
    operations: int = 0
    refused: int = 0

    def run(self, events: int, tell: Callable[[], object]) -> None:
        """Write until so many summaries have been changed."""
        told = 0
        while self.events < events:
            desk = self.rng.choice(self.desks)
            do = self._draw(desk)
            try:
                self.events += do(desk)
            except (Conflict, NotFound, Invalid):
                self.refused += 1  # another writer was faster
            except Unavailable:
                self.refused += 1
                time.sleep(0.2)  # a shared machine; what is known of the tickets may be wrong now
                self._look_again(desk)
            self.operations += 1
            if self.events - told >= (TELL_EVERY if told else 1):
                told = self.events
                tell()
        tell()

    def _draw(self, desk: Desk) -> Callable[[Desk], int]:
        ways = [
            (18, self._create), (14, self._comment), (8, self._answer), (14, self._move), (8, self._edit),
            (6, self._prioritise), (10, self._assign), (14, self._bulk), (4, self._comment_on_any), (4, self._delete),
        ]  # fmt: skip
        if len(desk.mine) < BULK[0]:
            return self._create
        if len(desk.mine) >= LIVE:
            return self._delete
        return self.rng.choices([way for _, way in ways], [weight for weight, _ in ways])[0]

    def _some_tags(self) -> list[str]:
        return self.rng.sample(TAGS, self.rng.randrange(4))

    def _create(self, desk: Desk) -> int:
        priority, tags = self.rng.choice(list(Priority)), self._some_tags()
        desk.mine.append(Mine(creating.create(desk.customer, title="Torture", priority=priority, tags=tags)))
        return 1

    def _comment(self, desk: Desk) -> int:
        who, internal = self.rng.choice([desk.customer, desk.agent]), self.rng.random() < 0.2
        commenting.comment(who, self.rng.choice(desk.mine).number, body="Again.", internal=internal)
        return 1

    def _comment_on_any(self, desk: Desk) -> int:
        number = self.rng.randint(1, max(mine.number for mine in desk.mine))
        commenting.comment(desk.agent, number, body="Me too.")
        return 1

    def _answer(self, desk: Desk) -> int:
        mine = self.rng.choice(desk.mine)
        to = self.rng.choice(MOVES[mine.status])
        commenting.comment(desk.agent, mine.number, body="Thus.", then=to)
        mine.status, mine.version = to, mine.version + 1
        return 1

    def _move(self, desk: Desk) -> int:
        mine = self.rng.choice(desk.mine)
        to = self.rng.choice(MOVES[mine.status])
        changing.change_status(desk.agent, mine.number, to=to, version=mine.version)
        mine.status, mine.version = to, mine.version + 1
        return 1

    def _edit(self, desk: Desk) -> int:
        mine = self.rng.choice(desk.mine)
        changing.edit(
            desk.agent, mine.number, version=mine.version, title=f"Torture {self.operations}", description="",
            priority=self.rng.choice(list(Priority)), tags=self._some_tags(),
        )  # fmt: skip
        mine.version += 1
        return 1

    def _prioritise(self, desk: Desk) -> int:
        mine, to = self.rng.choice(desk.mine), self.rng.choice(list(Priority))
        changing.change(desk.agent, mine.number, changing.Wishes(priority=to), version=mine.version)
        self._learn(desk, mine)
        return 1

    def _assign(self, desk: Desk) -> int:
        mine = self.rng.choice(desk.mine)
        to = "" if mine.resolver else desk.agent.user_id
        changing.assign(desk.agent, mine.number, to=to, version=mine.version)
        mine.resolver, mine.version = to, mine.version + 1
        return 1

    def _bulk(self, desk: Desk) -> int:
        status = self.rng.choice(desk.mine).status
        some = [mine for mine in desk.mine if mine.status is status][: self.rng.randint(*BULK)]
        to = self.rng.choice(MOVES[status])
        bulk.change_status(desk.agent, [TicketState(m.number, m.version, m.status, m.resolver) for m in some], to=to)
        for mine in some:
            mine.status, mine.version = to, mine.version + 1
        return len(some)

    def _delete(self, desk: Desk) -> int:
        mine = desk.mine.pop(self.rng.randrange(len(desk.mine)))
        cleanup.delete_summary(desk.agent.tenant_id, mine.number)
        return 1

    def _look_again(self, desk: Desk) -> None:
        for mine in list(desk.mine):
            self._learn(desk, mine)

    def _learn(self, desk: Desk, mine: Mine) -> None:
        try:
            stored = changing.read(desk.agent, mine.number)
        except NotFound:
            desk.mine.remove(mine)
        except Unavailable:
            return
        else:
            mine.version, mine.status, mine.resolver = int(stored.version), Status(stored.status), stored.resolver


def desks(tenants: Sequence[str]) -> list[Desk]:
    """Return desks in these tenants, by their ids."""

    def person(tenant_id: str, user_id: str, name: str) -> TenantContext:
        return TenantContext(tenant_id, "Torture", "torture", Role.AGENT, user_id, name)

    return [Desk(person(t, "c" * 32, "Customer"), person(t, "a" * 32, "Agent")) for t in tenants]


def write(told: Journal, seed: int, *, tenants: list[str], events: int) -> None:
    """Run a writer process until so many summaries have been changed."""
    writer = Writer(random.Random(seed), desks(tenants))  # noqa: S311  # it has to be repeatable
    writer.run(events, lambda: told.write(events=writer.events, refused=writer.refused))
