"""Be one of the processes of a torture of moves: a writer, a reader, who carries it out, or who follows the stream."""

from __future__ import annotations

import json
import random
import signal
import time
import uuid
from collections.abc import Callable
from typing import Any

from django.core.management import call_command

from proofs.counting.journal import Journal


def main(role: str, specification: str) -> None:
    """Work in this role, as the specification, in JSON, has it."""
    from tenants.tenancy import shard_layout

    if role == "follower":
        call_command("run_stream")
        return
    how = json.loads(specification)
    shard_layout.CONTEXT_SECONDS = how.pop("context_seconds")
    roles: dict[str, Callable[..., None]] = {"writer": write, "reader": read, "mover": move}
    roles[role](told=Journal(how.pop("journal")), **how)


def write(*, told: Journal, tenant_id: str, seed: int, pause: float, tickets: int) -> None:
    """Open tickets, comment and change until it is asked to stop; note each write that was acknowledged, with when it
    was, how long it took and how much of that it was held, in seconds. Some go out by the knowledge of the one before.
    """
    from portal.errors import PortalError
    from tenants.tenancy import context, tenant_directory
    from tickets.desk import changing, commenting, creating
    from tickets.ticket.fields import Priority

    rng, stopped, waits = random.Random(seed), _stopped(), _waits()  # noqa: S311  # it has to be repeatable
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


def read(*, told: Journal, tenant_id: str, seed: int, pause: float, tickets: int) -> None:
    """Read lists and tickets that are there for certain until it is asked to stop; note each read that failed."""
    from portal.errors import PortalError
    from tenants.tenancy import context, tenant_directory
    from tickets.desk import lists, summaries
    from tickets.ticket.fields import Status

    rng, stopped = random.Random(seed), _stopped()  # noqa: S311  # it has to be repeatable
    reads = 0
    while not stopped:
        began = time.monotonic()
        try:
            tenant = context.for_system(tenant_directory.get(tenant_id))
            summaries.read(tenant, rng.randint(1, tickets))
            # As people do: what is closed would be all of the desk, which some engines look through for each page.
            if not lists.page(tenant, status=[Status.OPEN, Status.PENDING], size=20).rows:
                told.write(reads=reads, failed="a list was empty")
        except PortalError as error:
            told.write(reads=reads, failed=f"{type(error).__name__}: {error.message}")
        reads += 2
        if reads % 20 == 0:
            told.write(reads=reads, failed="")
        time.sleep(max(0.0, began + pause - time.monotonic()))
    told.write(reads=reads, failed="")


def _waits() -> list[float]:
    """Return what gets the seconds of each wait of this process for the end of a hold."""
    from portal.dynamo.whereabouts import Patience

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


def move(*, told: Journal, tenant_id: str, rate: float, settle_seconds: float) -> None:
    """Carry the tenant's move out, whoever held it before: that one is dead. Note each step, and what a hold asks."""
    from portal.dynamo import meter
    from tickets.moving import move_notes
    from tickets.moving.tenant_mover import TenantMover

    item = move_notes.MOVES.last(tenant_id)
    if item is not None:
        say: Callable[[str], object] = lambda phase: told.write(phase=phase)  # noqa: E731  # it has a type
        mover = TenantMover(item, rate=rate, settle_seconds=settle_seconds, say=say)
        attempt = mover._attempt

        def metered() -> bool:
            with meter.measure() as bill:
                done = attempt()
            told.write(phase="holding", calls=len(bill.calls), trips=bill.trips)
            return done

        mover._attempt = metered  # type: ignore[method-assign]
        mover.run()


def _stopped() -> list[Any]:
    """Return what is empty until the process is asked to stop."""
    stopped: list[Any] = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    return stopped
