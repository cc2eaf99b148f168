"""Rebuild and verify healthy tenants over and over while they are written: nothing may be found wrong or taken away."""

from __future__ import annotations

import random
import signal
from dataclasses import asdict
from itertools import cycle

from portal import clock
from portal.dynamo.repository import TenantRepository
from portal.errors import PortalError
from proofs.counting.journal import Journal
from proofs.counting.redelivery import JumpingClock
from tickets.verification import rebuild, verify

PATIENCE = 60.0  # seconds that the hostile pollers may make no progress


def run(*, seed: int, number: int, tenants: list[str], journal: str) -> None:
    """Run a process that repairs what needs none, until it is asked to stop; it ends when the turn is over."""
    rng, told = random.Random(f"{seed} repairs {number}"), Journal(journal)  # noqa: S311  # it has to be repeatable
    clock.now = JumpingClock(rng).now
    stopped: list[bool] = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    for tenant_id in cycle(tenants):
        if stopped:
            return
        repository = TenantRepository(tenant_id)
        try:
            done = rebuild.rebuild(repository, timeout=PATIENCE)
            told.write(removed=[asdict(one) for one in done.removed], moved=done.tickets)
            verdict = verify.verify(repository, settle=PATIENCE)
            told.write(state=verdict.state, differences=[asdict(one) for one in verdict.differences])
        except PortalError as error:
            told.write(failed=error.message)
