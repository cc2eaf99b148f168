"""Inject faults into the pollers of a torture: kill them, put them to sleep, and work against them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from proofs.counting.experiment import LEASE_SECONDS, STEP, Schedule, Torture
from proofs.forked_child import ForkedChild

FROZEN: Final = LEASE_SECONDS + 1.0  # seconds; a poller sleeps so long that another one takes its shards
ZOMBIE_SECONDS: Final = 3.0
PATIENCE: Final = 10.0  # for a poller that was told to die between two writes


def schedule(run: Torture) -> Schedule:
    """Plan kills, a third as many thefts, and cuts, in order."""
    rng, plan = run.rng, run.plan
    kills: list[Callable[[Torture], None]] = [(_kill_between_writes, _kill)[n % 2] for n in range(plan.kills)]
    thefts: list[Callable[[Torture], None]] = [(_freeze, _zombie)[n % 2] for n in range((plan.kills + 1) // 3)]
    cuts: list[Callable[[Torture], None]] = [_cut] * (plan.cuts if run.stream else 0)
    return sorted(
        ((rng.randint(plan.events // 20, plan.events), action) for action in [*kills, *thefts, *cuts]),
        key=lambda p: p[0],
    )


def _victim(run: Torture) -> Path | None:
    """Return mostly the poller that holds a shard; it is waited for a little, since it may have been killed just
    now."""
    end = time.monotonic() + 4 * LEASE_SECONDS
    while time.monotonic() < end:
        if found := run.holder():
            return found
        run.replace_dead()
        time.sleep(STEP)
    return None


def _kill(run: Torture) -> None:
    """Kill at any moment."""
    if path := _victim(run):
        time.sleep(run.rng.uniform(0, 0.3))
        run.pollers.pop(path).kill()
        run.kills += 1
        run.start_poller()


def _kill_between_writes(run: Torture) -> None:
    """Kill behind one of the writes of a batch, so that some aggregates have it and others do not."""
    path = _victim(run)
    if path is None:
        return
    child, end = run.pollers[path], time.monotonic() + PATIENCE
    _signal(child, signal.SIGUSR1)
    while child.poll() is None and time.monotonic() < end:
        time.sleep(STEP / 5)
    run.killed_between_writes += child.poll() is not None
    run.pollers.pop(path)
    child.kill()
    run.kills += 1
    run.start_poller()


def _freeze(run: Torture) -> None:
    """Let the holder sleep until another one has its shards, and go on as if nothing had happened."""
    if path := _victim(run):
        child = run.pollers[path]
        _signal(child, signal.SIGSTOP)
        time.sleep(FROZEN)
        _signal(child, signal.SIGCONT)
        run.thefts += 1


def _zombie(run: Torture) -> None:
    """Work beside the holder, without a lease."""
    how = {"redeliver": run.plan.redeliver, "seconds": ZOMBIE_SECONDS, "throttled": run.throttled}
    run.zombies.append(run.child("zombie", **how)[1])
    run.thefts += 1


def _cut(run: Torture) -> None:
    """Split a shard, roll one over, or merge two, whatever the pollers are at."""
    if stream := run.stream:
        ways = (stream.split, stream.split, stream.roll_over, stream.merge)
        ways[stream.cuts.total() % len(ways)](run.rng.choice(run.tenants).tenant_id, run.rng)


def _signal(child: ForkedChild, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(child.pid, number)
