"""Declare what is done and what is measured, before any run: tenants, phases, noises, work times, and the measure.

Twenty tenants work in a closed loop, as in the seed's slides: a client sends a request, waits for its answer, thinks a
tenth of a second, and sends the next. Each tenant has one client; in the second phase the noisy tenant has fifteen; in
the third it has one again, and what of its poison is left does no harm any more. The request with the same number of
the same tenant asks for the same work in every phase, design and run, so that a ratio of two phases measures waiting
and not luck.

Source: "Serverless Shuffle Sharding" (A. Aleksandrov, AWS), "Test setup" and its three tables of results.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from portal.schema import keys

TENANTS: Final = range(1, 21)
NOISY: Final = 20
QUIET_TENANTS: Final = tuple(tenant for tenant in TENANTS if tenant != NOISY)
NOISY_CLIENTS: Final = 15
THINK_SECONDS: Final = 0.1  # implied by the slides' own throughput, 46.9 a second of 20 clients
WORKERS: Final = 8  # the slides' processors
SLOTS: Final = 3  # of each: 24 in all, just enough for the slides' throughput in their second phase
COOLDOWN_SHARE: Final = 0.4  # of the length of a phase
SETTLING_REQUESTS: Final = 5  # of each client at the beginning of a phase, which are not compared
SLOW_FACTOR: Final = 20
HANG_SHARE: Final = 1 / 3  # of the length of a phase, for which poison holds its slot
DRAIN_SECONDS: Final = 90.0  # that a quiet request may take after the last phase; then it counts as unanswered
PATIENCE_SECONDS: Final = 60.0  # by which a phase may become longer until it says something
VISIBILITY_SECONDS: Final = 4  # for the messages of a worker that was killed; the product's 30 would outlast a phase
RESTART_SECONDS: Final = 2.0  # from the death of a worker until another takes its place
ENOUGH_SECONDS: Final = 10.0  # the shortest phase of which times are judged
RUNS: Final = 3  # of which the median counts

PHASES: Final = ("quiet", "noisy", "cooldown")


@dataclass(frozen=True)
class Noise:
    """One kind of noise. `kills` asks for workers that are processes."""

    name: str
    title: str
    what: str
    kills: bool = False


NOISES: Final = {
    noise.name: noise
    for noise in (
        Noise("load", "Load", "15 times the clients, with work like everybody's."),
        Noise("slow", "Slow receiver", f"15 times the clients, and their work takes {SLOW_FACTOR} times as long."),
        Noise(
            "hang",
            "Poison that hangs",
            "15 times the clients; each of their messages holds its slot for a third of the phase.",
        ),
        Noise(
            "kill",
            "Poison that kills its worker",
            "15 times the clients; each of their messages ends the process that works on it.",
            kills=True,
        ),
    )
}


@dataclass(frozen=True)
class Length:
    """Tell how long everything takes, from the length of the first two phases in seconds."""

    seconds: float

    @property
    def cooldown(self) -> float:
        return self.seconds * COOLDOWN_SHARE

    @property
    def hang(self) -> float:
        return self.seconds * HANG_SHARE

    def of(self, phase: str) -> float:
        """Return the length of a phase."""
        return self.cooldown if phase == "cooldown" else self.seconds


def work_seconds(tenant: int) -> Iterator[float]:
    """Yield the work times of a tenant's requests: the same ones, in the same order, whoever asks.

    223 ms and a log-normal time with a median of 60 ms: median 283 ms and 99th percentile 709 ms, as the slides' first
    table has them (283 and 688).
    """
    chance = random.Random(tenant * 7919)  # noqa: S311  # it has to be repeatable
    while True:
        yield 0.223 + min(1.1, 0.060 * math.exp(0.9 * chance.gauss(0, 1)))


def tenant_id(tenant: int, *, alone: int = 0) -> str:
    """Return the id under which this tenant's messages travel; with a number `alone`, one that no other message has."""
    return keys.tenant(f"{tenant:08x}{alone:024x}")


def tenant_number(identity: str) -> int:
    """Return the tenant that an id of `tenant_id` stands for."""
    return int(identity[:8], 16)
