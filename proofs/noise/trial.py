"""Carry out one trial: one design against one noise, through the three phases, on an engine of its own."""

from __future__ import annotations

import itertools
import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from proofs.noise import deeds
from proofs.noise.designs import DESIGNS, Design
from proofs.noise.sending import SendingSide
from proofs.noise.trial_queues import TrialQueues
from proofs.noise.worker_notes import WorkerNotes
from proofs.noise.worker_pools import Pool, ProcessPool, ThreadPool
from proofs.noise.workload import (
    DRAIN_SECONDS,
    NOISES,
    NOISY,
    NOISY_CLIENTS,
    PATIENCE_SECONDS,
    PHASES,
    QUIET_TENANTS,
    SLOW_FACTOR,
    THINK_SECONDS,
    VISIBILITY_SECONDS,
    Length,
    work_seconds,
)

_REFRESHES: Final = 5  # of the slides' heuristic in a phase: once a minute in five
_LAG_SECONDS: Final = 0.02  # that a thread sleeps to see how late it wakes
_LOOK_SECONDS: Final = 0.1
_OVER: Final = "over"


@dataclass(frozen=True)
class Plan:
    """One trial to be carried out: names of design and noise, the number of the run, and the length of a phase."""

    design: str
    noise: str
    run: int
    seconds: float


@dataclass(frozen=True)
class TrialRequest:
    """One request of a client, as the client saw it. `at` is in seconds since the trial began, `seconds` until its end
    or, where `how` says that it had none, until nobody waited any longer."""

    phase: str
    tenant: int
    client: int
    number: int
    at: float
    seconds: float
    how: str


@dataclass
class Trial:
    """A running trial."""

    plan: Plan
    design: Design
    desk: SendingSide
    ledger: WorkerNotes
    started: float = field(default_factory=time.monotonic)
    phase: str = PHASES[0]
    until: float = 0.0  # when the phase ends, in seconds since the epoch
    began: dict[str, float] = field(default_factory=dict)  # by phase, in seconds since the trial began
    requests: list[TrialRequest] = field(default_factory=list)
    lags: dict[str, list[float]] = field(default_factory=lambda: {phase: [] for phase in PHASES})
    _turn: threading.Condition = field(default_factory=threading.Condition)

    @property
    def length(self) -> Length:
        return Length(self.plan.seconds)

    def run(self) -> None:
        """Go through the phases. A request that is on its way when its phase ends is waited for.

        On a slow machine a phase of a second would say nothing. So none ends before each quiet tenant was answered in
        it, and none of poison that kills before somebody died of it.
        """
        clients = [self._client(tenant, 0, PHASES) for tenant in QUIET_TENANTS]
        noisy = [self._client(NOISY, client, ("noisy",) if client else PHASES) for client in range(NOISY_CLIENTS)]
        watch = threading.Thread(target=self._watch, daemon=True)
        watch.start()
        for phase in PHASES:
            with self._turn:
                self.phase, self.until = phase, time.time() + self.length.of(phase)
                self.began[phase] = round(time.monotonic() - self.started, 4)
                self._turn.notify_all()
            time.sleep(self.length.of(phase))
            self._wait_until_it_says_something(phase)
        with self._turn:
            self.phase = _OVER
            self._turn.notify_all()
        deadline = time.monotonic() + DRAIN_SECONDS
        for client in clients:
            client.join(max(0.0, deadline - time.monotonic()))
        self.desk.stop()
        for client in [*clients, *noisy, watch]:
            client.join(1.0)

    def _wait_until_it_says_something(self, phase: str) -> None:
        wanted = set(QUIET_TENANTS)
        needs_death = NOISES[self.plan.noise].kills and phase == "noisy"
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            seen = {request.tenant for request in self.requests if request.phase == phase}
            if seen >= wanted and (self.ledger.deaths or not needs_death):
                return
            self.until = time.time() + _LOOK_SECONDS
            time.sleep(_LOOK_SECONDS)

    def _client(self, tenant: int, client: int, phases: tuple[str, ...]) -> threading.Thread:
        thread = threading.Thread(target=self._work, args=(tenant, client, phases), daemon=True)
        thread.start()
        return thread

    def _work(self, tenant: int, client: int, phases: tuple[str, ...]) -> None:
        while (phase := self._next(phases)) != _OVER:
            chance = random.Random(f"{self.plan.run} {phase} {tenant} {client}")  # noqa: S311  # repeatable
            time.sleep(chance.random() * 0.4)
            work = work_seconds(tenant + 100 * client)
            for number in itertools.count():
                if self.phase != phase:
                    break
                self._request(phase, tenant, client, number, next(work))
                time.sleep(THINK_SECONDS)

    def _next(self, phases: tuple[str, ...]) -> str:
        """Wait for one of these phases, or the end."""
        with self._turn:
            self._turn.wait_for(lambda: self.phase in (*phases, _OVER))
            return self.phase

    def _request(self, phase: str, tenant: int, client: int, number: int, seconds: float) -> None:
        noise = self.plan.noise if tenant == NOISY and phase == "noisy" else ""
        destination = deeds.work(seconds * (SLOW_FACTOR if noise == "slow" else 1))
        if noise in (deeds.HANG, deeds.KILL):
            destination = deeds.poison(noise, self.length.hang, until=self.until)
        at = time.monotonic()
        waiter = self.desk.send(tenant, f"{phase}-{tenant}-{client}-{number}", destination)
        waiter.wait()
        took = time.monotonic() - at
        self.requests.append(
            TrialRequest(phase, tenant, client, number, round(at - self.started, 4), round(took, 4), waiter.how)
        )

    def _watch(self) -> None:
        """See how late a thread wakes: what the machine does besides can be told from it."""
        while self.phase != _OVER:
            phase, before = self.phase, time.monotonic()
            time.sleep(_LAG_SECONDS)
            if phase in self.lags:
                self.lags[phase].append(time.monotonic() - before - _LAG_SECONDS)


@contextmanager
def _pool(design: Design, plan: Plan, transport: TrialQueues, name: str, ledger: WorkerNotes) -> Iterator[Pool]:
    kills = NOISES[plan.noise].kills
    pool: Pool = ProcessPool(design, name, ledger) if kills else ThreadPool(design, transport, ledger)
    pool.start()
    try:
        yield pool
    finally:
        pool.stop()


def carry_out(plan: Plan) -> dict[str, Any]:
    """Carry out a trial on the engine that the settings name. Returns all that was seen, as JSON has it."""
    design, kills = DESIGNS[plan.design], NOISES[plan.noise].kills
    name = f"delivery-trial-{plan.design}"
    visibility = {"visibility": VISIBILITY_SECONDS} if kills else {}
    transport = TrialQueues(name, design.queues, bell=not kills, **visibility)
    transport.create_all()
    desk = SendingSide(design, transport, seed=plan.run, refresh_seconds=plan.seconds / _REFRESHES)
    ledger = WorkerNotes(desk.ended)
    with _pool(design, plan, transport, name, ledger):
        desk.start()
        trial = Trial(plan, design, desk, ledger)
        trial.run()
    return {
        "plan": asdict(plan),
        "requests": [list(asdict(request).values()) for request in sorted(trial.requests, key=lambda r: r.at)],
        "began": trial.began,
        "ledger": ledger.document(trial.started),
        "lag_p99_ms": {phase: _p99_ms(lags) for phase, lags in trial.lags.items()},
        "load_average": os.getloadavg()[0],
    }


def _p99_ms(lags: list[float]) -> float:
    return round(sorted(lags)[len(lags) * 99 // 100] * 1000, 1) if lags else 0.0
