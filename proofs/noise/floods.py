"""Declare the floods at the portal's door, what is measured of them, and what is promised, before any run.

The same twenty tenants as behind the queues, on a real gunicorn of two processes with an engine of its own. Each quiet
tenant has one client, which reads pages and writes a ticket now and then, and thinks between two requests. In the noisy
phase the noisy tenant has fifteen that do nothing but read pages, or nothing but write tickets. What is let through of
a flood is counted in units, from when its burst must be spent until the phase ends.

No phase ends before each quiet tenant was answered in it, and the noisy one not before the flood was refused: on a slow
machine a short phase would else say nothing.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from os import environ
from pathlib import Path
from typing import Any, Final

from django.conf import settings

from portal.engines.processes import Child
from portal.errors import PortalError
from portal.limits.rates import CHANGE_UNITS, READ_UNITS
from proofs.noise.workload import NOISY

THINK_SECONDS: Final = 0.7
WRITES_EVERY: Final = 5  # requests of a quiet client, the last of which writes
WARM_SECONDS: Final = 8.0  # before the quiet phase, in which the processes get to know each other
SETTLE_SECONDS: Final = 10.0  # of the noisy phase, in which the burst is spent
SETTLING_REQUESTS: Final = 2  # of each client at the beginning of a phase, whose times do not count
ENOUGH_SECONDS: Final = 30.0  # the shortest phase of which times and the budget are judged
BRIEF_RATE: Final = 1  # units a second of the tenant that floods in a shorter phase: its burst is spent by few requests
PATIENCE_SECONDS: Final = 120.0  # for one answer, and for what a phase waits for when its time is over
PROCESSES: Final = 2
P99_RATIO: Final = 1.25
BUDGET_SHARE: Final = 0.05
OK: Final = (200, 302)
REFUSED: Final = 429
_LOOK_SECONDS: Final = 0.2
_START_SECONDS: Final = 300.0  # that engine, portal and tenants may take on a busy machine, and the end


@dataclass(frozen=True)
class Flood:
    """One kind of flood. Each tenant may ask for `rate` units a second, a few times a quiet one's share."""

    name: str
    title: str
    writes: bool
    rate: int

    @property
    def units(self) -> int:
        """Return the units of each of its requests."""
        return CHANGE_UNITS if self.writes else READ_UNITS


FLOODS: Final = {
    flood.name: flood
    for flood in (
        Flood("pages", "A flood of page requests", False, 4),
        Flood("writes", "A flood of ticket writes", True, 16),
    )
}


def flood_of(name: str, *, seconds: float) -> Flood:
    """Return the flood of this name, with the rate of its tenant in phases of so many seconds."""
    flood = FLOODS[name]
    return flood if seconds >= ENOUGH_SECONDS else replace(flood, rate=BRIEF_RATE)


@dataclass(frozen=True)
class DoorRequest:
    """One request as its client saw it. `at` is in seconds since its phase began."""

    phase: str
    tenant: int
    number: int
    at: float
    seconds: float
    status: int


@dataclass(frozen=True)
class FloodPromise:
    """One promise and what became of it."""

    what: str
    found: float
    least: float
    most: float

    @property
    def kept(self) -> bool:
        return self.least <= self.found <= self.most

    @property
    def sentence(self) -> str:
        bound = f"{self.least:g} to {self.most:g}" if self.least else f"at most {self.most:g}"
        return f"{self.what} {self.found:g}, promised {bound}."


def figures(flood: Flood, requests: Sequence[DoorRequest], *, seconds: float) -> dict[str, Any]:
    """Return what was seen of one flood, as JSON has it. `seconds` is the length of a phase."""
    quiet = [request for request in requests if request.tenant != NOISY]
    p99 = {phase: _p99_ms(quiet, phase) for phase in ("quiet", "noisy")}
    theirs = [request for request in requests if request.tenant == NOISY and request.phase == "noisy"]
    counted = [request for request in theirs if SETTLE_SECONDS <= request.at < seconds]
    through = sum(request.status in OK for request in counted) * flood.units
    budget = flood.rate * max(0.0, seconds - SETTLE_SECONDS)
    return asdict(flood) | {
        "p99_ms": p99,
        "p99_ratio": round(p99["noisy"] / p99["quiet"], 3) if p99["quiet"] else 0.0,
        "quiet_requests": len(quiet),
        "quiet_refused": sum(request.status == REFUSED for request in quiet),
        "failed": sum(request.status not in (*OK, REFUSED) for request in requests),
        "flood_requests": len(theirs),
        "flood_refused": sum(request.status == REFUSED for request in theirs),
        "budget_units": round(budget),
        "through_units": through,
        "through_share": round(through / budget, 3) if budget else 0.0,
    }


def judge(found: Mapping[str, Any], *, seconds: float) -> list[FloodPromise]:
    """Return every promise that the figures can tell of. Phases that were too short tell of counts only."""
    title = found["title"]
    promises = [
        FloodPromise(f"{title}: requests of quiet tenants refused:", found["quiet_refused"], 0, 0),
        FloodPromise(f"{title}: requests that failed:", found["failed"], 0, 0),
    ]
    if seconds >= ENOUGH_SECONDS:
        least, most = 1 - BUDGET_SHARE, 1 + BUDGET_SHARE
        promises += [
            FloodPromise(f"{title}: p99 of the quiet tenants, noisy to quiet,", found["p99_ratio"], 0, P99_RATIO),
            FloodPromise(f"{title}: let through, as a share of its budget,", found["through_share"], least, most),
        ]
    return promises


def _p99_ms(requests: Sequence[DoorRequest], phase: str) -> float:
    times = sorted(r.seconds for r in requests if r.phase == phase and r.number >= SETTLING_REQUESTS)
    return round(times[min(len(times) - 1, len(times) * 99 // 100)] * 1000, 1) if times else 0.0


class FloodFailed(PortalError):
    """A flood could not be carried out: nothing is said about the door."""


def carry_out_all(seconds: float) -> Iterator[dict[str, Any]]:
    """Yield the figures of each flood, one after the other: side by side each would be noise to the other.

    Each is a process with an engine and a portal of its own. Raises FloodFailed.
    """
    with tempfile.TemporaryDirectory(prefix="floods-") as folder:
        for flood in FLOODS.values():
            yield _carry_out(flood, seconds, Path(folder) / f"{flood.name}.json")


def _carry_out(flood: Flood, seconds: float, path: Path) -> dict[str, Any]:
    command: list[str | Path] = [sys.executable, "-m", "proofs.noise.flood_trial", flood.name, str(seconds), path]
    log_path = path.with_suffix(".trial.log")
    with log_path.open("wb") as log:
        child = Child(flood.title, command, env={**environ, "PYTHONPATH": str(settings.BASE_DIR)}, output=log)
    deadline = time.monotonic() + WARM_SECONDS + 2 * seconds + 3 * PATIENCE_SECONDS + _START_SECONDS
    try:
        while child.poll() is None and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
    finally:
        child.kill()
    if not path.exists():
        said = log_path.read_text(encoding="utf-8", errors="replace")[-1500:]
        raise FloodFailed(f"{flood.title} ended without a result.\n{said}".rstrip())
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found
