"""Carry trials out, each in a process with an engine of its own: `python -m proofs.noise.trials MODULE PLAN FILE`.

The process writes what the module's `carry_out` saw to the file, as JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from django.conf import settings

from portal.engines.endpoint import point_at
from portal.engines.engine_process import start_engine
from portal.engines.processes import Child
from portal.errors import PortalError

# A trial has some hundred threads, most of which wait. One that wakes should not wait for another's turn as well: the
# interpreter's 5 ms would be a part of what is measured.
_SWITCH_SECONDS: Final = 0.0005
_LOOK_SECONDS: Final = 0.1
_MOST_SECONDS: Final = 750.0  # that engine and processes may take beside three phases on a busy machine


class Plan(NamedTuple):
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
    command: list[str | Path] = [sys.executable, "-m", __name__, module, json.dumps(plan), path]
    environ = {**os.environ, "PYTHONPATH": str(settings.BASE_DIR)}
    with path.with_suffix(".log").open("wb") as log:
        child = Child(f"trial of {plan.name}", command, env=environ, output=log)
    return plan, child, path, time.monotonic() + 3 * plan.seconds + _MOST_SECONDS


def _seen(plan: Plan, child: Child, path: Path) -> dict[str, Any]:
    child.kill()  # what it may have left behind, or all of it where its time is up
    if not path.exists():
        log = path.with_suffix(".log").read_text(encoding="utf-8", errors="replace")[-1500:]
        raise TrialFailed(f"The trial of {plan.name} against {plan.noise} ended without a result.\n{log}".rstrip())
    seen: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return seen


def _main(module: str, plan: str, path: str) -> None:
    sys.setswitchinterval(_SWITCH_SECONDS)
    with start_engine(report=lambda _: None) as engine:
        point_at(engine.endpoint_url, os.environ)
        os.environ.update(SQS_ENDPOINT_URL=engine.endpoint_url, DJANGO_SETTINGS_MODULE="portal.settings", DEBUG="1")
        import django

        django.setup()
        seen = importlib.import_module(module).carry_out(Plan(*json.loads(plan)))
    Path(path).write_text(json.dumps(seen), encoding="utf-8")


if __name__ == "__main__":
    _main(*sys.argv[1:])
    os._exit(0)  # threads that hang, or wait at the engine, are left behind
