"""Writes to the tickets of some tenants through the rules that people's requests go through.

The sequence of operations follows from the seed. Their interleaving does not: several writers share the tenants, so
that comments arrive on tickets that another one is changing.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from django.core.management import call_command

from delivery.queues import consumer, queue_readers
from portal.errors import Conflict, Invalid, NotFound, Unavailable
from proofs import cleanup
from proofs.forked import Journal
from proofs.harness import LEASE_SECONDS, count
from tenants.tenancy.context import TenantContext
from tenants.tenancy.roles import Role
from tickets.desk import bulk, changing, commenting, creating
from tickets.desk.changing import TicketState
from tickets.ticket.fields import MOVES, Priority, Status

LIVE: Final = 60  # tickets of one writer in one tenant; above it deletes
BULK: Final = (8, 40)  # tickets in one transaction
TAGS: Final = [f"tag-{n}" for n in range(12)]
TELL_EVERY: Final = 50  # events

# What leaves the desks is held back by nothing but kills.
UNBOUNDED: Final = dict.fromkeys(("DELIVERY_IN_FLIGHT", "DELIVERY_PER_SECOND", "DELIVERY_BURST"), "100000")
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
    mine: list[TicketState] = field(default_factory=list)


@dataclass
class Writer:
    """Change tickets. `pause` is in seconds after each change, and `on_any` lets it comment on those of others."""

    rng: random.Random
    desks: list[Desk]
    pause: float = 0.0
    on_any: bool = True
    events: int = 0
    operations: int = 0
    refused: int = 0

    def run(self, events: int, tell: Callable[[], object]) -> None:
        """Write until so many summaries have been changed."""
        told = 0
        while self.events < events:
            time.sleep(self.pause)
            desk = self.rng.choice(self.desks)
            do = self._draw(desk)
            try:
                self.events += do(desk)
            except (Conflict, NotFound, Invalid):
                self.refused += 1  # another writer was faster
            except Unavailable:
                self.refused += 1
                time.sleep(0.2)  # a shared machine; what is known of the tickets may be wrong now
                for number in [ticket.number for ticket in desk.mine]:
                    self._learn(desk, number)
            self.operations += 1
            if self.events - told >= (TELL_EVERY if told else 1):
                told = self.events
                tell()
        tell()

    def _draw(self, desk: Desk) -> Callable[[Desk], int]:
        ways = {
            self._create: 18, self._comment: 14, self._answer: 8, self._move: 14, self._edit: 8, self._prioritise: 6,
            self._assign: 10, self._bulk: 14, self._delete: 4, self._comment_on_any: 4 if self.on_any else 0,
        }  # fmt: skip
        if len(desk.mine) < BULK[0]:
            return self._create
        if len(desk.mine) >= LIVE:
            return self._delete
        return self.rng.choices([*ways], [*ways.values()])[0]

    def _some_tags(self) -> list[str]:
        return self.rng.sample(TAGS, self.rng.randrange(4))

    def _any(self, desk: Desk) -> TicketState:
        return self.rng.choice(desk.mine)

    def _changed(self, desk: Desk, ticket: TicketState, **to: Any) -> int:
        """Remember what a change has made of a ticket."""
        desk.mine[desk.mine.index(ticket)] = replace(ticket, version=ticket.version + 1, **to)
        return 1

    def _create(self, desk: Desk) -> int:
        priority, tags = self.rng.choice(list(Priority)), self._some_tags()
        number = creating.create(desk.customer, title="Torture", priority=priority, tags=tags)
        desk.mine.append(TicketState(number, 1, Status.OPEN, ""))
        return 1

    def _comment(self, desk: Desk) -> int:
        who, internal = self.rng.choice([desk.customer, desk.agent]), self.rng.random() < 0.2
        commenting.comment(who, self._any(desk).number, body="Again.", internal=internal)
        return 1

    def _comment_on_any(self, desk: Desk) -> int:
        number = self.rng.randint(1, max(ticket.number for ticket in desk.mine))
        commenting.comment(desk.agent, number, body="Me too.")
        return 1

    def _answer(self, desk: Desk) -> int:
        ticket = self._any(desk)
        to = self.rng.choice(MOVES[ticket.status])
        commenting.comment(desk.agent, ticket.number, body="Thus.", then=to)
        return self._changed(desk, ticket, status=to)

    def _move(self, desk: Desk) -> int:
        ticket = self._any(desk)
        to = self.rng.choice(MOVES[ticket.status])
        changing.change_status(desk.agent, ticket.number, to=to, version=ticket.version)
        return self._changed(desk, ticket, status=to)

    def _edit(self, desk: Desk) -> int:
        ticket = self._any(desk)
        changing.edit(
            desk.agent, ticket.number, version=ticket.version, title=f"Torture {self.operations}", description="",
            priority=self.rng.choice(list(Priority)), tags=self._some_tags(),
        )  # fmt: skip
        return self._changed(desk, ticket)

    def _prioritise(self, desk: Desk) -> int:
        ticket, to = self._any(desk), self.rng.choice(list(Priority))
        changing.change(desk.agent, ticket.number, changing.Wishes(priority=to), version=ticket.version)
        self._learn(desk, ticket.number)
        return 1

    def _assign(self, desk: Desk) -> int:
        ticket = self._any(desk)
        to = "" if ticket.resolver else desk.agent.user_id
        changing.assign(desk.agent, ticket.number, to=to, version=ticket.version)
        return self._changed(desk, ticket, resolver=to)

    def _bulk(self, desk: Desk) -> int:
        status = self._any(desk).status
        some = [ticket for ticket in desk.mine if ticket.status is status][: self.rng.randint(*BULK)]
        to = self.rng.choice(MOVES[status])
        bulk.change_status(desk.agent, some, to=to)
        return sum(self._changed(desk, ticket, status=to) for ticket in some)

    def _delete(self, desk: Desk) -> int:
        ticket = desk.mine.pop(self.rng.randrange(len(desk.mine)))
        cleanup.delete_summary(desk.agent.tenant_id, ticket.number)
        return 1

    def _learn(self, desk: Desk, number: int) -> None:
        """Read a ticket of its own as it is now."""
        (ticket,) = (ticket for ticket in desk.mine if ticket.number == number)
        try:
            desk.mine[desk.mine.index(ticket)] = TicketState.of(changing.read(desk.agent, number))
        except NotFound:
            desk.mine.remove(ticket)
        except Unavailable:
            return


def desks(tenants: Sequence[str]) -> list[Desk]:
    def person(tenant_id: str, user_id: str, name: str) -> TenantContext:
        return TenantContext(tenant_id, "Torture", "torture", Role.AGENT, user_id, name)

    return [Desk(person(t, "c" * 32, "Customer"), person(t, "a" * 32, "Agent")) for t in tenants]


def write(told: Journal, seed: int, *, tenants: list[str], events: int) -> None:
    writer = Writer(random.Random(seed), desks(tenants))  # noqa: S311  # it has to be repeatable
    writer.run(events, lambda: told.write(events=writer.events, refused=writer.refused))
