"""Run twenty tenants in a closed loop through phases, as in the slides on shuffle sharding.

A client sends a request, waits for its answer, thinks, and sends the next. Each tenant has one client; in the noisy
phase the noisy tenant has fifteen. The measure was declared before any run: a quiet tenant's request is compared with
the one of the same number in the quiet phase, which asked for the same work.

Source: "Serverless Shuffle Sharding" (A. Aleksandrov, AWS), "Test setup" and its three tables of results.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from django.conf import settings

from portal.engines.processes import Child
from portal.errors import PortalError

TENANTS: Final = range(1, 21)
NOISY: Final = 20
QUIET_TENANTS: Final = tuple(tenant for tenant in TENANTS if tenant != NOISY)
NOISY_CLIENTS: Final = 15
DRAIN_SECONDS: Final = 90.0  # that a quiet request may take after the last phase; then it counts as unanswered
PATIENCE_SECONDS: Final = 120.0  # by which a phase may become longer until it says something
_START_SECONDS: Final = 300.0  # that engine and processes may take on a busy machine
_LOOK_SECONDS: Final = 0.1
_OVER: Final = "over"
_LOUD: Final = ("noisy", _OVER)  # in which the noisy tenant has all of its clients


class ClientRequest(NamedTuple):
    """One request as its client saw it. `at` is in seconds since the trial began, `seconds` its duration, or how long
    the client waited in vain where `how` says that there was no answer."""

    phase: str
    tenant: int
    client: int
    number: int
    at: float
    seconds: float
    how: str


Ask = Callable[[str, int, int, int], str]  # phase, tenant, client, number: how it ended


@dataclass
class ClosedLoop:
    """The clients of one trial. `think` says for how long a client pauses.

    On a slow machine a phase of a second would say nothing. So none ends before each quiet tenant was answered in it,
    and none before `is_enough` says so, which gets the phase's name.
    """

    phases: Sequence[tuple[str, float]]
    ask: Ask
    think: Callable[[random.Random], float]
    is_enough: Callable[[str], bool]
    seed: int = 1
    started: float = field(default_factory=time.monotonic)
    until: float = 0.0  # when the phase ends, in seconds since the epoch
    began: dict[str, float] = field(default_factory=dict)  # by phase, in seconds since the trial began
    requests: list[ClientRequest] = field(default_factory=list)
    _phase: tuple[int, str] = (-1, "")
    _turn: threading.Condition = field(default_factory=threading.Condition)

    def run(self) -> list[str]:
        """Go through the phases, and return the names of those that came to nothing. Quiet requests that are on their
        way in the end are waited for."""
        quiet = [self._client(tenant, 0) for tenant in QUIET_TENANTS]
        for client in range(NOISY_CLIENTS):
            self._client(NOISY, client)
        silent = []
        for number, (name, seconds) in enumerate(self.phases):
            before = len(self.requests)
            self.until = time.time() + seconds
            self.began.setdefault(name, round(time.monotonic() - self.started, 4))
            self._enter(number, name)
            time.sleep(seconds)
            silent += [] if self._says_something(name, before) else [name]
        self._enter(len(self.phases), _OVER)
        deadline = time.monotonic() + DRAIN_SECONDS
        for thread in quiet:
            thread.join(max(0.0, deadline - time.monotonic()))
        return silent

    def _enter(self, number: int, name: str) -> None:
        with self._turn:
            self._phase = number, name
            self._turn.notify_all()

    def _says_something(self, name: str, before: int) -> bool:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            seen = {request.tenant for request in self.requests[before:] if request.phase == name}
            if seen.issuperset(QUIET_TENANTS) and self.is_enough(name):
                return True
            self.until = time.time() + _LOOK_SECONDS
            time.sleep(_LOOK_SECONDS)
        return False

    def _client(self, tenant: int, client: int) -> threading.Thread:
        thread = threading.Thread(target=self._work, args=(tenant, client), daemon=True)
        thread.start()
        return thread

    def _work(self, tenant: int, client: int) -> None:
        seen = -1
        while True:
            with self._turn:
                self._turn.wait_for(lambda: self._phase[0] != seen and (not client or self._phase[1] in _LOUD))  # noqa: B023
                seen, phase = self._phase
            if phase == _OVER:
                return
            chance = random.Random(f"{self.seed} {phase} {tenant} {client}")  # noqa: S311  # it has to be repeatable
            time.sleep(chance.random() * 0.4)  # clients of a tenant do not all begin at once
            for number in itertools.count():
                if self._phase[0] != seen:
                    break
                at = time.monotonic()
                how = self.ask(phase, tenant, client, number)
                took = time.monotonic() - at
                self.requests.append(
                    ClientRequest(phase, tenant, client, number, round(at - self.started, 4), round(took, 4), how)
                )
                time.sleep(self.think(chance))


def percentile(values: Iterable[float], share: float) -> float:
    """Return the value below which this share of the values lies; 0.0 of none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


def ratio(other: float, quiet: float) -> float:
    """Return how much larger `other` is; 0.0 where there is nothing to compare with."""
    return round(other / quiet, 3) if quiet else 0.0


# --- each trial is a process with an engine of its own ---


@dataclass(frozen=True)
class Plan:
    """One trial: the name of a design or flood, of the noise, the number of the run, and the length of a phase."""

    name: str
    noise: str
    run: int
    seconds: float


class TrialFailed(PortalError):
    """A trial could not be carried out: nothing is said about its design."""


def carry_out_all(module: str, plans: Sequence[Plan], *, at_a_time: int) -> Iterator[dict[str, Any]]:
    """Yield what the function `carry_out` of a module saw in each trial, as they end. Raises TrialFailed."""
    left, running = deque(plans), list[tuple[Plan, Child, Path, float]]()
    with tempfile.TemporaryDirectory(prefix="noisy-neighbour-") as folder:
        try:
            while left or running:
                while left and len(running) < at_a_time:
                    running.append(_start(module, left.popleft(), Path(folder)))
                for one in [one for one in running if one[1].poll() is not None or time.monotonic() > one[3]]:
                    running.remove(one)
                    yield _seen(*one[:3])
                time.sleep(_LOOK_SECONDS)
        finally:
            for _, child, _, _ in running:
                child.kill()


def _start(module: str, plan: Plan, folder: Path) -> tuple[Plan, Child, Path, float]:
    path = folder / f"{plan.noise}-{plan.name}-{plan.run}.json"
    command: list[str | Path] = [sys.executable, "-m", "proofs.noise.trial_process", module]
    environ = {**os.environ, "PYTHONPATH": str(settings.BASE_DIR)}
    with path.with_suffix(".log").open("wb") as log:
        child = Child(f"trial of {plan.name}", [*command, json.dumps(asdict(plan)), path], env=environ, output=log)
    return plan, child, path, time.monotonic() + 3 * (plan.seconds + PATIENCE_SECONDS) + DRAIN_SECONDS + _START_SECONDS


def _seen(plan: Plan, child: Child, path: Path) -> dict[str, Any]:
    child.kill()  # what it may have left behind, or all of it where its time is up
    if not path.exists():
        log = path.with_suffix(".log").read_text(encoding="utf-8", errors="replace")[-1500:]
        raise TrialFailed(f"The trial of {plan.name} against {plan.noise} ended without a result.\n{log}".rstrip())
    seen: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return seen
