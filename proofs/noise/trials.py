"""Carry out many trials, two at a time, each in a process of its own with an engine of its own."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from os import environ
from pathlib import Path
from typing import Any, Final

from django.conf import settings

from portal.engines.processes import Child
from portal.errors import PortalError
from proofs.noise.designs import DESIGNS, ONE, OURS
from proofs.noise.trial import Plan
from proofs.noise.workload import COOLDOWN_SHARE, DRAIN_SECONDS, ENOUGH_SECONDS, NOISES, PATIENCE_SECONDS, RUNS

OTHERS_SHARE: Final = 0.42
AT_A_TIME: Final = 2  # more would measure the machine
_START_SECONDS: Final = 300.0  # that engine and processes may take on a busy machine
_LOOK_SECONDS: Final = 0.2
_LOG_CHARACTERS: Final = 1500


class TrialFailed(PortalError):
    """A trial could not be carried out: nothing is said about its design."""


def plans(design: str, seconds: float) -> list[Plan]:
    """Return the trials of one design and of the single queue, to which it is compared; of all designs without a name.

    Our own design is tried three times for each noise whose times are judged, the rest once; in phases that are too
    short to judge times, everything is. Phases of the other designs take OTHERS_SHARE of the seconds, where that is
    long enough: nothing is promised of their 99th percentiles, which need the most requests.
    """
    names = [name for name in DESIGNS if not design or name in (design, ONE)]
    others = of_others(seconds)
    return [
        Plan(name, noise.name, run, seconds if name == OURS else others)
        for run in range(1, RUNS + 1)
        for noise in NOISES.values()
        for name in names
        if run == 1 or (name == OURS and not noise.kills and seconds >= ENOUGH_SECONDS)
    ]


def of_others(seconds: float) -> float:
    """Return how long the phases of the other designs are, where ours take so many seconds."""
    return max(round(seconds * OTHERS_SHARE, 1), min(seconds, ENOUGH_SECONDS))


def carry_out_all(every: Sequence[Plan], done: Callable[[Plan], object]) -> Iterator[dict[str, Any]]:
    """Yield what was seen in each trial, as they end. Raises TrialFailed."""
    left, running = deque(every), list[tuple[Plan, Child, Path, float]]()
    with tempfile.TemporaryDirectory(prefix="noisy-neighbour-") as folder:
        try:
            while left or running:
                while left and len(running) < AT_A_TIME:
                    running.append(_start(left.popleft(), Path(folder)))
                for one in [one for one in running if one[1].poll() is not None or time.monotonic() > one[3]]:
                    running.remove(one)
                    yield _seen(one[0], one[1], one[2])
                    done(one[0])
                time.sleep(_LOOK_SECONDS)
        finally:
            for _, child, _, _ in running:
                child.kill()


def _start(plan: Plan, folder: Path) -> tuple[Plan, Child, Path, float]:
    path = folder / f"{plan.noise}-{plan.design}-{plan.run}.json"
    command: list[str | Path] = [sys.executable, "-m", "proofs.noise.trial_process", json.dumps(asdict(plan)), path]
    with path.with_suffix(".log").open("wb") as log:
        child = Child(
            f"trial of {plan.design}", command, env={**environ, "PYTHONPATH": str(settings.BASE_DIR)}, output=log
        )
    seconds = plan.seconds * (2 + COOLDOWN_SHARE) + 3 * PATIENCE_SECONDS + DRAIN_SECONDS + _START_SECONDS
    return plan, child, path, time.monotonic() + seconds


def _seen(plan: Plan, child: Child, path: Path) -> dict[str, Any]:
    child.kill()  # what it may have left behind, or all of it where its time is up
    if not path.exists():
        log = path.with_suffix(".log").read_text(encoding="utf-8", errors="replace")[-_LOG_CHARACTERS:]
        raise TrialFailed(f"The trial of {plan.design} against {plan.noise} ended without a result.\n{log}".rstrip())
    seen: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return seen
