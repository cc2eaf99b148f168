"""Queues beside an engine that has none: started by `make run`, found by every command, kept over a restart."""

from __future__ import annotations

import os
import signal
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest

from portal.engines import dynamodb_local, queue_engine
from portal.engines.endpoint import ACCESS_KEY, REGION, has_queues
from portal.engines.engine_process import running_engine, start_engine
from portal.engines.processes import free_port
from portal.engines.queue_engine import ENDPOINT_VARIABLE, FOLDER
from tests.engines.test_demo import FILES, Demo, wait_until
from tests.engines.test_manage import Checkout

QUEUES = FILES | {
    "sample/management/commands/create_queues.py": """
import os
import boto3
from django.core.management.base import BaseCommand
class Command(BaseCommand):
    def add_arguments(self, parser):
        parser.add_argument("--wait", action="store_true")
    def handle(self, **options):
        endpoint = os.environ.get("SQS_ENDPOINT_URL", os.environ["DYNAMODB_ENDPOINT_URL"])
        boto3.client("sqs", endpoint_url=endpoint).create_queue(QueueName="demo")
        print("queues at", endpoint, flush=True)
""",
}


def sqs(address: str):
    return boto3.client(
        "sqs",
        endpoint_url=address,
        region_name=REGION,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=ACCESS_KEY,
    )


class QueueCheckout(Checkout):
    """The small project with a command that makes queues."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        name = "sample/management/commands/create_queues.py"
        (directory / name).write_text(QUEUES[name])
        self.environ.pop(ENDPOINT_VARIABLE, None)


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[QueueCheckout]:
    demo = QueueCheckout(tmp_path)
    yield demo
    if demo.running and demo.running.poll() is None:
        demo.end(signal.SIGTERM)


def test_messages_are_there_after_a_restart(tmp_path: Path) -> None:
    environ: dict[str, str] = {}
    how = {"log_path": tmp_path / "log", "environ": environ, "report": print}
    with queue_engine.beside(tmp_path, **how):
        client = sqs(environ[ENDPOINT_VARIABLE])
        url = client.create_queue(QueueName="kept")["QueueUrl"]
        client.send_message(QueueUrl=url, MessageBody="still here")
        found: dict[str, str] = {}
        assert queue_engine.find(tmp_path, found)
        assert found == {ENDPOINT_VARIABLE: environ[ENDPOINT_VARIABLE]}
    assert not queue_engine.find(tmp_path, {})
    with queue_engine.beside(tmp_path, **how):
        client = sqs(environ[ENDPOINT_VARIABLE])
        url = client.get_queue_url(QueueName="kept")["QueueUrl"]
        assert client.receive_message(QueueUrl=url)["Messages"][0]["Body"] == "still here"


def test_it_serves_queues_alone(tmp_path: Path) -> None:
    environ: dict[str, str] = {}
    with queue_engine.beside(tmp_path, log_path=tmp_path / "log", environ=environ, report=print) as engine:
        assert has_queues(engine.port)
        body, target = b"{}", {"X-Amz-Target": "DynamoDB_20120810.ListTables"}
        request = urllib.request.Request(environ[ENDPOINT_VARIABLE], data=body, headers=target)
        with pytest.raises(OSError, match="HTTP Error"):
            urllib.request.urlopen(request, timeout=10)


def test_queues_are_needed_where_the_engine_has_none_and_no_others_are_named() -> None:
    with start_engine() as engine:
        assert not queue_engine.is_needed(engine.endpoint_url, {})
    nobody = f"http://127.0.0.1:{free_port()}"
    assert queue_engine.is_needed(nobody, {})
    assert not queue_engine.is_needed(nobody, {ENDPOINT_VARIABLE: "http://127.0.0.1:9"})


def test_with_the_embedded_engine_there_is_one_process_for_both(demo: QueueCheckout) -> None:
    started = demo.start()
    address = running_engine(demo.directory / "var" / "ministack")
    assert f"queues at {address}" in started
    assert not (demo.directory / "var" / "ministack" / FOLDER).exists()


@pytest.mark.timeout(300)
def test_beside_dynamodb_local_queues_are_started_found_and_started_again(demo: QueueCheckout) -> None:
    try:
        dynamodb_local.install()
    except dynamodb_local.InstallError as reason:
        pytest.skip(str(reason))
    demo.options += ["--engine", "dynamodb-local"]
    started = demo.start()
    beside = demo.directory / "var" / "dynamodb-local" / FOLDER
    address = running_engine(beside)
    assert f"queues at {address}" in started
    assert f"queues at {address}" in demo.manage("create_queues").stdout
    assert f"queues at {address}" in demo.call("--engine", "dynamodb-local", "create_queues").stdout
    os.killpg(engine_of(address), signal.SIGKILL)
    assert f"queues at {address}" in demo.read(until="engine of the queues runs again")
    assert demo.end()[0] == 0
    wait_until(lambda: running_engine(beside) is None)


def engine_of(address: str | None) -> int:
    """The process that listens there: the one with the port in its environment."""
    port = str(address).rpartition(":")[2]
    wanted = f"GATEWAY_PORT={port}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (
                wanted in (process / "environ").read_bytes().split(b"\0")
                and b"ministack" in (process / "cmdline").read_bytes()
            ):
                return os.getpgid(int(process.name))
        except OSError:
            continue
    raise AssertionError(f"nothing listens at {address}")


def test_an_engine_that_is_given_and_has_no_queues_gets_some(demo: Demo) -> None:
    """Any engine with tables alone: here a ministack that was told to serve nothing else."""
    import portal.engines.engine_process as engines

    class TablesAlone(engines.Ministack):
        services = "dynamodb"

    with TablesAlone().start() as engine:
        demo.environ["DYNAMODB_ENDPOINT_URL"] = engine.endpoint_url
        started = demo.start()
        address = running_engine(demo.directory / "var" / "endpoint" / FOLDER)
        assert address != engine.endpoint_url
        assert f"queues at {address}" in started
        demo.end()
