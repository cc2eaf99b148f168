"""Run twenty tenants in a closed loop through phases, as in the slides on shuffle sharding.

A client sends a request, waits for its answer, thinks, and sends the next. Each tenant has one client; in the noisy
phase the noisy tenant has fifteen. The measure was declared before any run: a quiet tenant's request is compared with
the one of the same number in the quiet phase, which asked for the same work.

Source: "Serverless Shuffle Sharding" (A. Aleksandrov, AWS), "Test setup" and its three tables of results.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

TENANTS: Final = range(1, 21)
NOISY: Final = 20
QUIET_TENANTS: Final = tuple(tenant for tenant in TENANTS if tenant != NOISY)
NOISY_CLIENTS: Final = 15
DRAIN_SECONDS: Final = 90.0  # that a quiet request may take after the last phase; then it counts as unanswered
PATIENCE_SECONDS: Final = 120.0  # by which a phase may become longer until it says something
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
        clients = [(tenant, 0) for tenant in QUIET_TENANTS] + [(NOISY, client) for client in range(NOISY_CLIENTS)]
        threads = [threading.Thread(target=self._work, args=one, daemon=True) for one in clients]
        for thread in threads:
            thread.start()
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
        for thread in threads[: len(QUIET_TENANTS)]:
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
                times = round(at - self.started, 4), round(time.monotonic() - at, 4)
                self.requests.append(ClientRequest(phase, tenant, client, number, *times, how))
                time.sleep(self.think(chance))


def percentile(values: Iterable[float], share: float) -> float:
    """Return the value below which this share of the values lies; 0.0 of none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


def ratio(other: float, quiet: float) -> float:
    """Return how much larger `other` is; 0.0 where there is nothing to compare with."""
    return round(other / quiet, 3) if quiet else 0.0
