"""The engine is down, slow or overloaded: a page that loses nothing, and recovery without a restart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from typing import ClassVar

import pytest
from django.conf import LazySettings

from portal.dynamo import client
from portal.engines.endpoint import free_port
from tests.support.api_client import api_client
from tests.support.stored import send
from tests.support.waiting import wait_until
from tests.support.world import Browser, World
from tickets.ticket.stored import STATUS_UPDATED, TICKETS

FORM = {"body": "An hour of work", "request_id": "a" * 32}


@contextmanager
def engine_down(settings: LazySettings) -> Iterator[None]:
    """Nothing listens where the engine was."""
    endpoint = settings.DYNAMODB_ENDPOINT_URL
    settings.DYNAMODB_ENDPOINT_URL = f"http://127.0.0.1:{free_port()}"
    client.reset()
    try:
        yield
    finally:
        settings.DYNAMODB_ENDPOINT_URL = endpoint
        client.reset()


@contextmanager
def answering(code: str, operation: str, status: int = 400) -> Iterator[None]:
    """The engine answers one operation with an error."""

    class Response:
        status_code = status
        headers: ClassVar[dict[str, str]] = {}

    def refuse(**kwargs: object) -> tuple[Response, dict[str, object]]:
        error = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": status}}
        return Response(), error

    name = f"before-call.dynamodb.{operation}"
    events = [client.connection(scope).client.meta.events for scope in ("tenant", "platform")]
    for emitter in events:
        emitter.register_first(name, refuse)
    try:
        yield
    finally:
        for emitter in events:
            emitter.unregister(name, refuse)


@pytest.fixture
def bob(world: World) -> tuple[Browser, str]:
    world.tickets("acme", 1)
    browser = world.browser("bob")
    return browser, browser.mark()


def test_a_page_says_that_the_database_is_away(bob: tuple[Browser, str], settings: LazySettings) -> None:
    browser, _ = bob
    with engine_down(settings):
        response = browser.get("/tickets/")
    assert response.status_code == 503
    assert int(response["Retry-After"]) > 0
    assert "Traceback" not in response.content.decode()


def test_what_was_typed_is_kept_and_arrives_when_the_engine_is_back(
    bob: tuple[Browser, str], settings: LazySettings
) -> None:
    browser, mark = bob
    with engine_down(settings):
        response = browser.post("/tickets/1/comment/", {"_page": mark, **FORM})
    page = unescape(response.content.decode())
    assert response.status_code == 503
    assert "An hour of work" in page
    kept = dict(re.findall(r'name="(_page|body|request_id)" value="([^"]*)"', page))
    assert browser.post("/tickets/1/comment/", kept).status_code == 302
    assert "An hour of work" in browser.get("/tickets/1/").content.decode()


@pytest.mark.parametrize(
    "code", ["ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"]
)
def test_a_throttled_write_keeps_what_was_typed(bob: tuple[Browser, str], code: str) -> None:
    browser, mark = bob
    with answering(code, "TransactWriteItems"):
        response = browser.post("/tickets/1/comment/", {"_page": mark, **FORM})
    assert response.status_code == 503
    assert "An hour of work" in response.content.decode()
    assert browser.post("/tickets/1/comment/", {"_page": mark, **FORM}).status_code == 302


def test_signing_in_while_the_engine_is_away_is_a_503_without_the_password(
    engine: None, settings: LazySettings
) -> None:
    with engine_down(settings):
        response = Browser().post("/login/", {"email": "bob@example.com", "password": "very secret"})
    assert response.status_code == 503
    assert "very secret" not in response.content.decode()


@pytest.mark.parametrize(("code", "status"), [("InternalServerError", 500), ("ThrottlingException", 400)])
def test_an_error_of_the_engine_is_a_503(bob: tuple[Browser, str], code: str, status: int) -> None:
    browser, _ = bob
    with answering(code, "Query", status=status):
        assert browser.get("/tickets/").status_code == 503


def test_pages_that_need_no_engine_work_without_one(settings: LazySettings) -> None:
    with engine_down(settings):
        assert Browser().get("/login/").status_code == 200
        assert Browser().get("/healthz").status_code == 200


def test_nobody_is_signed_out_by_an_outage(bob: tuple[Browser, str], settings: LazySettings) -> None:
    browser, _ = bob
    before = browser.cookies["pooldesk_session"].value
    with engine_down(settings):
        browser.get("/tickets/")
    assert browser.cookies["pooldesk_session"].value == before


def test_an_index_of_this_version_that_is_not_there_yet_is_a_503_for_people_and_systems(world: World) -> None:
    world.tickets("acme", 1)
    system, index = api_client(world), {"IndexName": STATUS_UPDATED.name}
    send("UpdateTable", TableName=TICKETS.full_name, GlobalSecondaryIndexUpdates=[{"Delete": index}])
    wait_until(lambda: index["IndexName"] not in str(send("DescribeTable", TableName=TICKETS.full_name)))
    assert world.browser("alice", "acme").get("/tickets/").status_code == 503
    assert system.ask("/tickets").status_code == 503
