"""Child processes, ports and locks."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import IO

import pytest

from portal.engines.endpoint import free_port, port_obstacle
from portal.engines.processes import Child, acquire_lock, lock_note, release_lock
from tests.support.waiting import wait_until

IGNORES_SIGTERM = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(60)"
)


@pytest.fixture
def group(tmp_path: Path) -> IO[str]:
    """A lock that belongs to the processes that inherit it, since we close our own copy in `is_gone`."""
    lock = acquire_lock(tmp_path / "lock")
    assert lock is not None
    return lock


def is_gone(group: IO[str]) -> bool:
    """Whether all processes that inherited the lock have ended."""
    group.close()
    return lock_note(Path(group.name)) is None


def test_a_child_that_is_stopped_leaves_nothing_behind(group: IO[str]) -> None:
    child = Child("sleeper", ["sleep", "60"], pass_fds=[group.fileno()])
    assert child.poll() is None
    assert child.stop(seconds=10)
    assert child.poll() == -15
    wait_until(lambda: is_gone(group))


def test_a_child_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    with (tmp_path / "output").open("wb") as output:
        child = Child("stubborn", [sys.executable, "-c", IGNORES_SIGTERM], output=output)
    wait_until(lambda: (tmp_path / "output").read_text() != "")
    assert not child.stop(seconds=0.3)
    assert child.poll() == -9


def test_what_a_dead_child_left_running_is_stopped_with_it(group: IO[str]) -> None:
    child = Child("forgetful", ["sh", "-c", "sleep 60 & exit 3"], pass_fds=[group.fileno()])
    wait_until(lambda: child.poll() is not None)
    assert child.poll() == 3
    assert not is_gone(group)
    child.stop(seconds=5)
    wait_until(lambda: is_gone(group))


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])  # noqa: S104  # the test is about such a server
def test_a_port_that_somebody_listens_on_or_that_does_not_exist_is_refused(address: str) -> None:
    with socket.create_server((address, 0)) as server:
        port = server.getsockname()[1]
        assert port_obstacle(port) == f"{port} is taken"
    assert port_obstacle(port) is None
    assert port_obstacle(70000) == "70000 does not exist"


def test_a_free_port_is_none_that_the_kernel_gives_to_connections() -> None:
    """One of those would be gone before a server that starts slowly listens at it."""
    ports = [free_port() for _ in range(20)]
    assert not any(map(port_obstacle, ports))
    with socket.socket() as connection:
        connection.bind(("127.0.0.1", 0))
        assert max(ports) < connection.getsockname()[1]
    assert len(set(ports)) > 10, "two who ask at once get two"


def test_a_lock_is_held_by_one_and_carries_a_note(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert lock_note(path) is None
    lock = acquire_lock(path)
    assert lock is not None
    lock.write("mine")
    lock.flush()
    assert acquire_lock(path) is None
    assert lock_note(path) == "mine"
    release_lock(lock)
    assert lock_note(path) is None


def test_a_lock_is_held_until_all_who_inherited_it_have_ended(group: IO[str]) -> None:
    child = Child("holder", ["sleep", "60"], pass_fds=[group.fileno()])
    assert not is_gone(group)
    child.kill()
    wait_until(lambda: is_gone(group))
