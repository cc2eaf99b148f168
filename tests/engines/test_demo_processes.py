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
    names = [name for name in found if name != demo_processes.MAIL_SERVER]
    assert names[-1] == "dispatcher"  # which is stopped before those who deliver, so that nothing new comes to them
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


def test_the_banner_says_where_letters_are_taken_and_where_mail_is_shown() -> None:
    environ = {"MAIL_RECEIVER": "127.0.0.1:2525", "MAIL_DOMAIN": "desk.test", "WEBHOOK_RECEIVER": "http://127.0.0.1:99"}
    demo_processes.workers(environ)
    lines = demo_processes.mail_lines(environ)
    assert "acme@desk.test and other desks, by SMTP at 127.0.0.1:2525" in lines
    assert "http://127.0.0.1:99/mail" in lines


def test_addresses_that_nobody_has_set_are_chosen_once_for_all_processes(settings: LazySettings) -> None:
    settings.MAIL_DOMAIN = ""  # as in the process of `make run`, which has no DEBUG
    environ: dict[str, str] = {}
    workers = demo_processes.workers(environ)
    assert environ["MAIL_DOMAIN"] == "desk.localhost"
    assert {worker._env["MAIL_RECEIVER"] for worker in workers} == {environ["MAIL_RECEIVER"]}
