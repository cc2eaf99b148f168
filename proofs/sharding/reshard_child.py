"""Be one of the processes of a torture of reshardings: a writer, a reader, or who carries it out."""

from __future__ import annotations

import json
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from proofs.counting.journal import Journal


def main(role: str, specification: str) -> None:
    """Work in this role, as the specification, in JSON, has it."""
    from tenants.tenancy import shard_layout

    how = json.loads(specification)
    shard_layout.CONTEXT_SECONDS = how.pop("context_seconds")
    roles: dict[str, Callable[..., None]] = {"writer": write, "reader": read, "mover": move}
    roles[role](told=Journal(how.pop("journal")), **how)


def write(*, told: Journal, tenant_id: str, seed: int, pause: float) -> None:
    """Change tickets of its own until it is killed, with contexts that are never made anew."""
    from proofs.counting.load import Desk, Writer, desks

    class OwnTickets(Writer):
        def _draw(self, desk: Desk) -> Callable[[Desk], int]:
            time.sleep(pause)
            return super()._draw(desk)

        def _comment_on_any(self, desk: Desk) -> int:
            return self._comment(desk)

    writer = OwnTickets(random.Random(seed), desks([tenant_id]))  # noqa: S311  # it has to be repeatable
    writer.run(10**9, lambda: told.write(events=writer.events, refused=writer.refused))


def read(*, told: Journal, tenant_id: str, seed: int, quiet: int, pause: float) -> None:
    """Walk through lists, page by page, until it is asked to stop; note what is missing or doubled in each walk.

    The tickets 1 to `quiet` are open, nobody's, and nobody changes them: each has to be met once in each walk. Others
    may be missing, because they may go to the list's beginning meanwhile, and none may be met twice.
    """
    from portal.errors import PortalError

    rng, stopped = random.Random(seed), []  # noqa: S311  # it has to be repeatable
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
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


def _pages(rng: random.Random, tenant_id: str) -> Any:
    """Yield the numbers of each page of a list; some pages are read with the context of the page before."""
    from tenants.tenancy import context, tenant_directory
    from tickets.desk import lists
    from tickets.ticket.fields import Status

    status = rng.choice([[Status.OPEN], [Status.OPEN, Status.PENDING]])
    resolver, size = rng.choice([None, ""]), rng.choice([20, 50])
    after: str | None = None
    tenant = context.for_system(tenant_directory.get(tenant_id))
    while True:
        page = lists.page(tenant, status=status, resolver=resolver, after=after, size=size)
        yield [row.number for row in page.rows]
        after = page.next
        if after is None:
            return
        if rng.random() < 0.7:
            tenant = context.for_system(tenant_directory.get(tenant_id))


def move(*, told: Journal, tenant_id: str, rate: float, settle_seconds: float) -> None:
    """Carry the tenant's resharding out, whoever held it before: that one is dead."""
    from tickets.sharding import reshard_notes
    from tickets.sharding.mover import Mover

    item = reshard_notes.RESHARDINGS.last(tenant_id)
    if item is not None:
        say: Callable[[str], object] = lambda phase: told.write(phase=phase)  # noqa: E731  # it has a type
        Mover(item, rate=rate, settle_seconds=settle_seconds, say=say).run()
