"""The workers that `make run` keeps alive, and how many of them deliver."""

from __future__ import annotations

import pytest
from django.conf import LazySettings

from delivery.queues import limits
from portal.management import demo_processes
from tests.support import commands


def delivering() -> dict[str, list[str]]:
    """The command lines of the workers that deliver, from the command on, by name."""
    found = {one.name: [str(word) for word in one._argv] for one in demo_processes.workers({})}
    lines = {name: line[line.index("run_delivery") :] for name, line in found.items() if "run_delivery" in line}
    assert list(found)[-1] == "dispatcher"  # which is stopped first, so that nothing new comes to those who deliver
    return lines


def test_one_worker_delivers_where_nothing_else_is_said(settings: LazySettings) -> None:
    settings.DELIVERY_WORKERS = 1
    assert delivering() == {"delivery worker": ["run_delivery", "--worker", "1", "--metrics", "0"]}


@pytest.mark.parametrize("workers", [2, 8])
def test_as_many_workers_as_there_are_serve_all_queues(settings: LazySettings, workers: int) -> None:
    settings.DELIVERY_WORKERS = workers
    lines = delivering().values()
    numbers = [int(line[line.index("--worker") + 1]) for line in lines]
    assert all("--of" not in line for line in lines)  # each reads DELIVERY_WORKERS itself
    served = {queue for number in numbers for queue in limits.queues_of(number, of=workers, queues=8)}
    assert served == set(range(8))


def test_no_worker_delivers_here_where_lambda_does(settings: LazySettings) -> None:
    settings.DELIVERY_WORKERS = 0
    assert delivering() == {}
    ended = commands.run("run_delivery")
    assert ended.status == 1
    assert "DELIVERY_WORKERS=0 says that Lambda delivers" in ended.err
