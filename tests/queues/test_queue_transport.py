"""Messages go through real queues: those of the embedded engine, and moto's as a second opinion."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings
from hypothesis import given
from hypothesis import strategies as st

from delivery.queues.queue_transport import ATTRIBUTES, Message, QueueTransport
from portal.errors import Invalid, NotFound, Rejected, Throttled, Unavailable
from portal.queueing import sqs_client

pytest_plugins = ["tests.support.engines"]


@contextmanager
def sqs_answering(operation: str, answer: dict[str, Any], *, status: int = 200) -> Iterator[list[dict[str, Any]]]:
    """The workers' client gives this answer to an operation, however often. Yields the requests answered so."""
    client = sqs_client.queue_connection("worker").client
    requests: list[dict[str, Any]] = []

    def given(params: dict[str, Any], **_: Any) -> None:
        requests.append(params)

    def answered(**_: Any) -> tuple[Any, dict[str, Any]]:
        return SimpleNamespace(status_code=status), answer

    client.meta.events.register(f"provide-client-params.sqs.{operation}", given)
    client.meta.events.register(f"before-call.sqs.{operation}", answered)
    try:
        yield requests
    finally:
        client.meta.events.unregister(f"provide-client-params.sqs.{operation}", given)
        client.meta.events.unregister(f"before-call.sqs.{operation}", answered)


ACME = "a" * 32
GLOBEX = "b" * 32


def message(number: int = 0, tenant_id: str = ACME) -> Message:
    return Message(tenant_id, f"{tenant_id}#{number:032x}", "2026-11-22T03:00:00.000000Z", 0, "mail")


@pytest.fixture(params=["ministack", "moto"])
def transport(request: pytest.FixtureRequest, start: Callable[[str], str], engine: None) -> Iterator[QueueTransport]:
    with override_settings(SQS_ENDPOINT_URL=start(request.param)):
        sqs_client.reset()
        if request.param == "moto":
            urllib.request.urlopen(f"{settings.SQS_ENDPOINT_URL}/moto-api/reset", data=b"", timeout=120).close()
        transport = QueueTransport()
        transport.create_all()
        yield transport
    sqs_client.reset()


def test_what_is_sent_is_received_once_and_gone_when_it_is_deleted(transport: QueueTransport) -> None:
    assert transport.send(3, [message(i) for i in range(25)]) == []
    received = [one for _ in range(3) for one in transport.receive(3, wait=0)]
    assert {one.message for one in received} == {message(i) for i in range(25)}
    assert {one.receives for one in received} == {1}
    assert transport.delete(3, [one.handle for one in received]) == []
    assert transport.depth(3).total == 0


def test_a_message_that_nobody_answered_comes_again_and_says_so(transport: QueueTransport) -> None:
    transport.send(0, [message()])
    (first,) = transport.receive(0, wait=0)
    assert transport.receive(0, wait=0) == []
    assert transport.extend(0, [first.handle], seconds=0) == []
    (second,) = transport.receive(0, wait=0)
    assert (second.message, second.receives) == (message(), 2)


def test_the_depth_tells_what_waits_from_what_is_worked_on(transport: QueueTransport) -> None:
    transport.send(1, [message(i) for i in range(3)])
    transport.send(1, [message(3)], delay=600)
    transport.receive(1, most=1, wait=0)
    depth = transport.depth(1)
    assert (depth.waiting, depth.in_flight, depth.delayed, depth.total) == (2, 1, 1, 4)
    assert [one.total for one in transport.depths()] == [0, 4, 0, 0, 0, 0, 0, 0]


def test_entries_that_failed_in_an_answer_that_succeeded_are_told(transport: QueueTransport) -> None:
    transport.send(0, [message(0)])
    (received,) = transport.receive(0, wait=0)
    assert transport.delete(0, ["no handle", received.handle]) == ["no handle"]
    with sqs_answering("SendMessageBatch", {"Successful": [{"Id": "0"}], "Failed": [{"Id": "1"}]}):
        assert transport.send(0, [message(1), message(2)]) == [message(2)]


def test_queues_are_made_once_encrypted_and_keep_messages_for_two_weeks(transport: QueueTransport) -> None:
    assert set(transport.create_all().values()) == {False}
    assert transport.missing() == []
    wanted = {"AttributeNames": ["All"]}
    stored = sqs_client.queue_connection("worker").call("GetQueueAttributes", transport.queue_name(7), **wanted)[
        "Attributes"
    ]
    assert stored["MessageRetentionPeriod"] == ATTRIBUTES["MessageRetentionPeriod"] == str(14 * 24 * 3600)
    assert stored["VisibilityTimeout"] == "60"


def test_a_message_belongs_to_the_group_of_its_tenant(engine: None) -> None:
    QueueTransport().create_all()
    with sqs_answering("SendMessageBatch", {"Successful": []}) as requests:
        QueueTransport().send(0, [message(0, ACME), message(1, GLOBEX)])
    assert [entry["MessageGroupId"] for entry in requests[0]["Entries"]] == [ACME, GLOBEX]


@pytest.mark.parametrize("role", ["platform", "tenant", "seed"])
def test_no_role_but_the_workers_may_touch_the_queues(engine: None, role: Any) -> None:
    QueueTransport().create_all()
    transport = QueueTransport(role)
    for use in (
        lambda: transport.send(0, [message()]),
        lambda: transport.receive(0, wait=0),
        lambda: transport.delete(0, ["handle"]),
        lambda: transport.extend(0, ["handle"], seconds=0),
        lambda: transport.depth(0),
        transport.missing,
    ):
        with pytest.raises(NotFound):
            use()
    assert QueueTransport().depth(0).total == 0


def test_the_worker_may_touch_no_other_queue_of_the_account(engine: None) -> None:
    with pytest.raises(NotFound):
        QueueTransport(name="payroll").receive(0, wait=0)


def test_a_queue_that_is_missing_is_an_outage_and_is_found_when_it_is_made(engine: None) -> None:
    transport = QueueTransport()
    with pytest.raises(Unavailable):
        transport.send(0, [message()])
    assert len(transport.missing()) == 8
    transport.create_all()
    assert transport.send(0, [message()]) == []


def test_queues_that_cannot_be_reached_are_an_outage(engine: None) -> None:
    with override_settings(SQS_ENDPOINT_URL="http://127.0.0.1:9"):
        sqs_client.reset()
        with pytest.raises(Unavailable, match="cannot be reached"):
            QueueTransport().send(0, [message()])
    sqs_client.reset()


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        ("RequestThrottled", 403, Throttled),
        ("OverLimit", 403, Throttled),
        ("InternalError", 500, Unavailable),
        ("InvalidMessageContents", 400, Rejected),
        ("AccessDenied", 403, Rejected),
    ],
)
def test_errors_of_the_service_are_errors_of_ours(engine: None, code: str, status: int, error: type[Exception]) -> None:
    QueueTransport().create_all()
    answer = {"Error": {"Code": code, "Message": "made up"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    with sqs_answering("SendMessageBatch", answer, status=status), pytest.raises(error):
        QueueTransport().send(0, [message()])


def test_a_message_brings_the_id_of_its_request_beside_its_body(engine: None) -> None:
    transport = QueueTransport()
    transport.create_all()
    transport.send(0, [replace(message(), request="my-request-1")])
    transport.send(0, [message()])
    received = [one for _ in range(2) for one in transport.receive(0, wait=1)]
    assert sorted(one.message.request for one in received) == ["", "my-request-1"]
    assert all("request" not in one.body for one in received), "workers of before would refuse it"


text = st.text(min_size=1, max_size=40)


@given(message=st.builds(Message, st.just(ACME), text, text, st.integers(0, 99), text, st.integers(0, 9)))
def test_a_message_survives_its_body(message: Message) -> None:
    assert Message.read(message.body()) == message
    assert len(message.body()) < 4_096


def test_a_message_of_a_newer_version_is_read_without_what_that_adds() -> None:
    assert Message.read(message().body().replace("}", ',"more":1}')) == message()


@pytest.mark.parametrize(
    "body",
    [
        "",
        "no JSON",
        "[]",
        "{}",
        "null",
        message().body().replace(ACME, "acme"),
        message().body().replace('"index":0', '"index":-1'),
        message().body().replace('"mail"', "7"),
    ],
)
def test_a_body_that_is_no_message_is_told_apart(body: str) -> None:
    with pytest.raises(Invalid, match="no message of ours"):
        Message.read(body)
