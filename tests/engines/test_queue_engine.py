"""Queues beside an engine that has none: found by their folder, kept over a restart. test_demo.py has `make run`'s."""

from __future__ import annotations

import urllib.request
from pathlib import Path

import boto3
import pytest
from django.conf import settings

from portal.engines.endpoint import ACCESS_KEY, REGION, free_port, has_queues
from portal.engines.engine_process import QUEUES_VARIABLE, find_queues, needs_queues, start_queues


def sqs(address: str):
    return boto3.client(
        "sqs",
        endpoint_url=address,
        region_name=REGION,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=ACCESS_KEY,
    )


def test_it_serves_queues_alone_and_messages_are_there_after_a_restart(tmp_path: Path) -> None:
    environ: dict[str, str] = {}
    how = {"log_path": tmp_path / "log", "environ": environ, "report": print}
    with start_queues(tmp_path, **how) as engine:
        assert has_queues(engine.port)
        client = sqs(environ[QUEUES_VARIABLE])
        url = client.create_queue(QueueName="kept")["QueueUrl"]
        client.send_message(QueueUrl=url, MessageBody="still here")
        found: dict[str, str] = {}
        assert find_queues(tmp_path, found)
        assert found == {QUEUES_VARIABLE: environ[QUEUES_VARIABLE]}
        body, target = b"{}", {"X-Amz-Target": "DynamoDB_20120810.ListTables"}
        request = urllib.request.Request(environ[QUEUES_VARIABLE], data=body, headers=target)
        with pytest.raises(OSError, match="HTTP Error"):
            urllib.request.urlopen(request, timeout=120)
    assert not find_queues(tmp_path, {})
    with start_queues(tmp_path, **how):
        client = sqs(environ[QUEUES_VARIABLE])
        url = client.get_queue_url(QueueName="kept")["QueueUrl"]
        assert client.receive_message(QueueUrl=url)["Messages"][0]["Body"] == "still here"


def test_queues_are_needed_where_the_engine_has_none_and_no_others_are_named() -> None:
    assert not needs_queues(settings.DYNAMODB_ENDPOINT_URL, {})
    nobody = f"http://127.0.0.1:{free_port()}"
    assert needs_queues(nobody, {})
    assert not needs_queues(nobody, {QUEUES_VARIABLE: "http://127.0.0.1:9"})
