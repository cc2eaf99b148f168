"""Workers in processes of their own, on real queues: killed, poisoned, stopped, and cut off from the queues."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from django.test import override_settings

from delivery.outbox.stored import OutboxItem
from delivery.queues import message_handling
from delivery.queues.consumer import STOP_SECONDS, Consumer
from delivery.queues.message_handling import MessageHandler
from delivery.queues.queue_transport import QueueTransport
from portal.queueing import sqs_client
from tests.support import deliveries, delivery_worker
from tests.support.waiting import PATIENCE, wait_until
from tests.support.world import World


class Workers:
    """Worker processes, each started again when asked; what they do stands in a file.

    They are forked from a process that has loaded what they need, so that starting one takes no second.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.processes: list[BaseProcess] = []
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([delivery_worker.__name__])

    def start(self) -> BaseProcess:
        process = self._context.Process(target=delivery_worker.main, args=(self.file,))
        process.start()
        self.processes.append(process)
        return process

    def lines(self, beginning: str) -> list[str]:
        return [line for line in self.file.read_text().splitlines() if line.startswith(beginning)]

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.join()


@pytest.fixture
def transport(world: World) -> QueueTransport:
    sqs_client.reset()
    transport = QueueTransport()
    transport.create_all()
    return transport


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[Workers]:
    file = tmp_path / "lines"
    file.touch()
    workers = Workers(file)
    yield workers
    workers.end()


def send(transport: QueueTransport, tenant_id: str, to: str, *, queue: int = 0) -> OutboxItem:
    row = deliveries.row(tenant_id, to)
    transport.send(queue, [deliveries.message(row, to)])
    return row


def is_closed(row: OutboxItem) -> bool:
    return deliveries.stored(row).pending is None


def test_what_a_killed_worker_had_is_delivered_by_the_next(
    world: World, transport: QueueTransport, workers: Workers
) -> None:
    acme = world.tenants["acme"].tenant_id
    row = send(transport, acme, "test_slow")
    first = workers.start()
    wait_until(lambda: workers.lines("begun"))
    first.kill()
    first.join()
    assert not is_closed(row)
    workers.start()
    wait_until(lambda: is_closed(row))
    assert len(workers.lines("begun")) == 2


def test_poison_that_kills_its_worker_is_dead_after_three_times_and_the_others_are_served(
    world: World, transport: QueueTransport, workers: Workers
) -> None:
    acme, globex = world.tenants["acme"].tenant_id, world.tenants["globex"].tenant_id
    # They are in the worker with the poison when it dies, and come back with it.
    beside = [send(transport, globex, f"test_slow_{number}", queue=number) for number in range(3)]
    poison = send(transport, acme, "test_kill", queue=0)
    deaths = 0
    process = workers.start()

    def tended() -> bool:
        nonlocal process, deaths
        if process.exitcode is not None:
            assert process.exitcode == -signal.SIGKILL
            deaths += 1
            process = workers.start()
        return is_closed(poison) and all(map(is_closed, beside))

    wait_until(tended)
    assert 0 < deaths == len(workers.lines(f"begun {acme} test_kill")) <= 3
    assert [letter.destination for letter in deliveries.dead()] == ["test_kill"]
    assert sorted(workers.lines("answered")) == sorted(f"answered {globex} test_slow_{number}" for number in range(3))


def test_stopping_finishes_what_runs_and_delivers_it_once(
    world: World, transport: QueueTransport, workers: Workers
) -> None:
    acme = world.tenants["acme"].tenant_id
    rows = [send(transport, acme, f"test_wait_{number}", queue=number) for number in range(3)]
    process = workers.start()
    wait_until(lambda: len(workers.lines("begun")) == len(rows))
    process.terminate()
    wait_until(lambda: workers.lines("asked to end"))
    assert not any(map(is_closed, rows))
    workers.file.with_name("go_on").touch()
    process.join(PATIENCE)
    assert process.exitcode == 0
    assert all(map(is_closed, rows))
    assert len(workers.lines("begun")) == len(workers.lines("answered")) == len(rows)
    assert sum(transport.depth(number).total for number in range(3)) == 0


def test_a_worker_that_stops_waits_for_longer_than_a_delivery_may_take() -> None:
    assert STOP_SECONDS > message_handling.DELIVERY_SECONDS


def test_while_the_queues_are_away_a_worker_waits_and_then_goes_on(
    world: World, transport: QueueTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    acme = world.tenants["acme"].tenant_id
    with deliveries.destination("test_", lambda work: done.append(work.tenant_id) or deliveries.ANSWERED):
        with override_settings(SQS_ENDPOINT_URL="http://127.0.0.1:9"):
            sqs_client.reset()
            consumer = Consumer(transport, MessageHandler().handle, [0], slots=2, poll_seconds=1)
            consumer.start()
            time.sleep(1)
            assert consumer.report().get("received", 0) == 0
        sqs_client.reset()
        row = send(transport, acme, "test_ok")
        wait_until(lambda: is_closed(row))
        assert consumer.stop(seconds=PATIENCE)
        assert not consumer.failed.is_set()
    assert done == [acme]
