"""`manage.py run_stream` as an operator runs it: processes that share, die, drain, and outlive their database."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import override_settings

from portal.dynamo import client, provisioning
from portal.engines.endpoint import free_port
from portal.engines.engine_process import Engine, start_engine
from portal.streams import positions, shards, watermark
from portal.streams.poller import Poller
from portal.streams.stored import ShardItem
from tests.support import commands
from tests.support.commands import Ended, finish
from tests.support.folding import numbers
from tests.support.waiting import wait_until
from tests.support.world import World
from tickets.ticket.stored import TICKETS

LEASE = 2  # seconds
LONG_LEASE = 5  # for which no poller that lives is silent, however busy the machine
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts pollers; those that still run when the test ends are killed."""
    running: list[subprocess.Popen[str]] = []

    def run(*arguments: object, **environ: str) -> subprocess.Popen[str]:
        running.append(commands.start("run_stream", "--lease", LEASE, *arguments, **environ))
        return running[-1]

    yield run
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()


def stop(process: subprocess.Popen[str], number: int = signal.SIGTERM) -> Ended:
    process.send_signal(number)
    return finish(process)


def hear(process: subprocess.Popen[str], words: str) -> str:
    """What it says on stderr up to a line with these words."""
    assert process.stderr
    said = ""
    for line in process.stderr:
        said += line
        if words in line:
            break
    return said


def metrics(ended: Ended) -> dict[str, Any]:
    line: dict[str, Any] = json.loads(ended.out.splitlines()[-1])
    return line


def shard() -> ShardItem | None:
    return next(iter(positions.unfinished(shards.arn(TICKETS))), None)


def owner() -> str:
    held = shard()
    return held.owner if held else ""


def opened(world: World) -> int:
    return numbers(world.context("alice", "acme")).get("open.normal", 0)


# --- in this process ---


def test_once_counts_what_is_there_and_ends(world: World) -> None:
    world.tickets("acme", 3)
    ended = commands.run("run_stream", "--once")
    assert ended.status == 0
    assert opened(world) == 3
    said = metrics(ended)
    assert (said["events"], said["applied"], said["dead"], said["shards"]) == (3, 3, 0, 1)
    assert said["records"] > said["events"]
    assert said["write_units"] > 0
    assert 0 <= said["lag_ms"] < 600_000
    assert owner() == "", "it left the shard to others"


def test_once_on_a_quiet_stream_ends_and_says_up_to_when_all_is_counted(world: World) -> None:
    commands.run("run_stream", "--once")
    complete = watermark.read(TICKETS)
    assert complete is not None
    assert complete.as_of <= complete.written_at


def test_without_a_metrics_interval_it_says_nothing(world: World) -> None:
    assert commands.run("run_stream", "--once", "--metrics", 0).out == ""


@pytest.mark.parametrize("arguments", [("--drain", "-1"), ("--lease", "0"), ("--metrics", "soon"), ("--drain", "nan")])
def test_a_time_that_is_none_is_refused(arguments: tuple[str, str]) -> None:
    ended = commands.run("run_stream", *arguments)
    assert ended.status == 1
    assert "must be" in ended.err


# --- in processes of their own ---


def test_others_take_over_from_one_that_is_killed_and_at_once_from_one_that_is_stopped(
    world: World, start: Start
) -> None:
    first = start()
    wait_until(lambda: owner() != "")
    former = owner()
    second = start("--lease", LONG_LEASE, "--drain", 3600)
    world.tickets("acme", 2)
    wait_until(lambda: opened(world) == 2)
    assert owner() == former, "one shard, and it stays where it is"
    first.kill()
    world.tickets("acme", 3)
    wait_until(lambda: opened(world) == 5)
    wait_until(lambda: owner() not in ("", former))
    world.tickets("acme", 40)
    ended = stop(second, signal.SIGINT)  # which does not drain for the whole time
    assert ended.status == 0
    assert (owner(), opened(world)) == ("", 45), "what was written before the signal is counted"
    assert 43 <= metrics(ended)["events"] <= 45, "the first may have been killed before it noted where it was"
    world.tickets("acme", 1)
    assert metrics(commands.run("run_stream", "--once", "--lease", LEASE))["events"] == 1
    assert opened(world) == 46


def test_a_second_signal_ends_the_draining(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def ask() -> None:
        asked.append(len(asked))
        os.kill(os.getpid(), signal.SIGTERM)

    def never_drained(poller: Poller, since: float) -> bool:
        looks.append(since)
        if len(looks) == 5:
            ask()
        return False

    looks: list[float] = []
    follow = Poller.run
    monkeypatch.setattr(Poller, "drained", never_drained)
    monkeypatch.setattr(Poller, "run", lambda poller, again: (ask(), follow(poller, again)))
    assert commands.run("run_stream", "--drain", 3600).status == 0
    assert (len(asked), len(looks)) == (2, 5), "it went on until the second"


@pytest.fixture
def engine_to_stop(tmp_path: Path) -> Iterator[Callable[[], Engine]]:
    """An engine that can be started again and again, with its data and at the same address."""
    port = free_port()
    with override_settings(DYNAMODB_ENDPOINT_URL=f"http://127.0.0.1:{port}"):
        client.reset()
        yield lambda: start_engine(port=port, state_dir=tmp_path)
    client.reset()


def test_it_waits_for_a_database_that_is_away_and_goes_on(
    engine_to_stop: Callable[[], Engine], start: Start, settings: LazySettings
) -> None:
    poller = start(DYNAMODB_ENDPOINT_URL=settings.DYNAMODB_ENDPOINT_URL)
    with engine_to_stop():
        provisioning.create_all()
        world = World.create()
        world.tickets("acme", 3)
        wait_until(lambda: opened(world) == 3)
    said = hear(poller, "It is tried again.")
    with engine_to_stop():  # which has forgotten its stream
        world.tickets("acme", 2)
        wait_until(lambda: opened(world) == 5)
        assert poller.poll() is None
        ended = stop(poller)
    assert ended.status == 0
    assert metrics(ended)["read_errors"] > 0
    assert "Traceback" not in said + ended.err
