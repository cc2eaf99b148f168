"""The supervisor by itself, on a clock of the test's own: pauses that grow, and an end to them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from portal.engines.supervisor import GaveUp, Job, StartError, Supervisor
from tests.support.waiting import wait_until


@dataclass
class Mortal:
    """A process that ends when told to, and cannot start while it is `broken`."""

    name: str = "worker"
    status: int | None = None
    broken: bool = False
    starts: int = 0

    def start(self) -> None:
        self.starts += 1
        if self.broken:
            raise StartError("no disk")
        self.status = None

    def poll(self) -> int | None:
        return self.status

    def end(self) -> None:
        self.status = None


@dataclass
class Scene:
    now: float = 0.0
    said: list[str] = field(default_factory=list)
    worker: Mortal = field(default_factory=Mortal)

    def __post_init__(self) -> None:
        self.supervisor = Supervisor(self.said.append, clock=lambda: self.now)
        self.supervisor.watch(self.worker)

    def dies(self) -> None:
        self.worker.status = -9
        self.supervisor.tend()

    def after(self, seconds: float) -> int:
        """Return how often the worker was started by then."""
        self.now += seconds
        self.supervisor.tend()
        return self.worker.starts


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_process_that_died_is_started_after_a_pause(scene: Scene) -> None:
    assert scene.after(1000) == 0
    assert scene.said == []
    scene.dies()
    assert scene.after(0.4) == 0
    assert scene.after(0.1) == 1
    assert scene.said == ["The worker died with signal 9; it is started again in 0.5 s.", "The worker runs again."]


def test_the_pause_doubles_with_each_death_within_a_minute_and_the_fifth_is_the_last(scene: Scene) -> None:
    for pause in (0.5, 1, 2, 4):
        scene.dies()
        assert f"in {pause:g} s." in scene.said[-1]
        scene.after(pause)
    with pytest.raises(GaveUp, match="The worker died with signal 9, for the 5th time within a minute"):
        scene.dies()


def test_deaths_that_are_far_apart_are_not_counted_together(scene: Scene) -> None:
    for _ in range(20):
        scene.dies()
        scene.after(61)
    assert scene.worker.starts == 20


def test_a_start_that_does_not_succeed_is_tried_again(scene: Scene) -> None:
    scene.dies()
    scene.worker.broken = True
    assert scene.after(0.5) == 1
    assert scene.said[-1] == "The worker could not start: no disk; it is started again in 1 s."
    scene.worker.broken = False
    assert scene.after(1) == 2
    assert scene.said[-1] == "The worker runs again."


def test_before_all_is_up_a_death_is_only_said(scene: Scene) -> None:
    assert scene.supervisor.first_death() is None
    scene.worker.status = 3
    assert scene.supervisor.first_death() == "The worker ended unexpectedly, with exit status 3."


# --- what has to succeed once ---


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """The file to which each run of the job adds a line."""
    file = tmp_path / "runs"
    file.touch()
    return file


def ran(runs: Path) -> int:
    return len(runs.read_text().splitlines())


def tend_for_a_while(job: Job) -> None:
    for _ in range(30):
        time.sleep(0.01)
        job.tend()


@pytest.fixture
def job(tmp_path: Path, runs: Path) -> Iterator[Job]:
    """Fails twice, then succeeds."""
    script = f'echo run >> "{runs}"; echo said; test $(wc -l < "{runs}") -ge 3'
    job = Job("job", ["/bin/sh", "-c", script], dict(os.environ), tmp_path / "log")
    job.pause = 0
    yield job
    job.end()


def test_a_job_that_fails_runs_again_until_it_succeeds(job: Job, runs: Path, tmp_path: Path) -> None:
    job.begin()
    wait_until(lambda: ran(runs) >= 3, working=job.tend)
    tend_for_a_while(job)
    assert ran(runs) == 3
    assert (tmp_path / "log").read_text() == "said\n" * 3


def test_a_job_that_was_ended_does_not_run_again(job: Job, runs: Path) -> None:
    job.begin()
    wait_until(lambda: ran(runs) == 1)
    job.end()
    tend_for_a_while(job)
    assert ran(runs) == 1


def test_a_job_that_is_begun_again_stops_what_it_was_doing(tmp_path: Path, runs: Path) -> None:
    script = f'echo run >> "{runs}"; sleep 60; echo end >> "{runs}"'
    job = Job("job", ["/bin/sh", "-c", script], dict(os.environ), tmp_path / "log")
    for count in (1, 2):
        job.begin()
        wait_until(lambda count=count: ran(runs) >= count, working=job.tend)
    job.end()
    assert runs.read_text().split() == ["run", "run"]
