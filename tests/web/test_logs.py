"""The log has one line of JSON for each request, which says who asked for what kind of page, and nothing that anybody
typed; the request's id leads from there to the webhooks and mails that it caused."""

from __future__ import annotations

import io
import json
import logging
import smtplib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.core import mail
from django.test import override_settings

from delivery.queues.dispatcher import Dispatcher
from delivery.queues.message_handling import MessageHandler
from delivery.queues.sender import Sender
from portal import logs
from portal.errors import Unavailable
from portal.logs import JsonLines
from proofs.isolation.walk import http_request
from tenants.audit_trail.recording import SYSTEM
from tenants.membership import mails
from tenants.sign_in import accounts
from tests.support import mailing, proving
from tests.support.api_client import api_client
from tests.support.endpoints import endpoint
from tests.support.outbox import rows, subscribe
from tests.support.queue_in_memory import QueuesInMemory
from tests.support.receivers import answering, listening
from tests.support.world import PASSWORD, Browser, World
from tickets.letters import desk_addresses

MARK = "gooseberry"
ADDRESS = f"{MARK}@example.org"
ID_OF_ANOTHER = {"number": "1", "ticket_number": "1", "uuid": "3f2b8c1e-0d7a-4a53-9c55-2f6f0a5f7f11"}


@contextmanager
def logged() -> Iterator[io.StringIO]:
    """Yield all that is logged inside, as production writes it."""
    output = io.StringIO()
    handler = logging.StreamHandler(output)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield output
    finally:
        root.removeHandler(handler)


def lines(output: io.StringIO, logger: str = "pooldesk.requests") -> list[dict[str, Any]]:
    found = map(json.loads, output.getvalue().splitlines())
    return [line for line in found if line["logger"] == logger]


def test_a_request_leaves_one_line_with_its_bill_and_who_asked(world: World) -> None:
    world.tickets("acme", 1)
    bob, trace = world.browser("bob"), "1-67891233-abcdef012345678912345678"
    with logged() as output:
        answer = bob.get("/tickets/1/", headers={"X-Amzn-Trace-Id": f"Root={trace};Sampled=1"})
    (line,) = lines(output)
    assert line.pop("ms") > 0
    assert line.pop("read_units") > 0
    assert line.pop("time").endswith("Z")
    assert line.pop("message").startswith("GET /<slug:desk>/tickets/<ticket_number:number>/ 200 ")
    assert line == {
        "level": "INFO",
        "logger": "pooldesk.requests",
        "request": answer["X-Request-Id"],
        "method": "GET",
        "route": "/<slug:desk>/tickets/<ticket_number:number>/",
        "status": 200,
        "trips": 2,
        "write_units": 0,
        "tenant": world.tenants["acme"].tenant_id,
        "actor": world.users["bob"].id,
        "trace": trace,
    }


def test_each_request_has_an_id_of_its_own_and_health_checks_leave_no_line(world: World) -> None:
    with logged() as output:
        ids = [Browser().get("/login/", headers={"X-Request-Id": "of-another"})["X-Request-Id"] for _ in range(2)]
        Browser().get("/healthz")
    assert [line["request"] for line in lines(output)] == ids
    assert len({*ids, "of-another"}) == 3


def test_a_call_of_the_api_is_logged_with_its_key_and_the_id_that_the_caller_chose(world: World) -> None:
    client = api_client(world)
    with logged() as output:
        client.ask("/tickets", X_Request_Id="my-request-1")
    (line,) = lines(output)
    assert (line["request"], line["tenant"]) == ("my-request-1", world.tenants["acme"].tenant_id)
    assert len(line["actor"]) == 32
    assert client.key not in output.getvalue()


def marked(converter: str, name: str) -> str:
    return ID_OF_ANOTHER.get(name) or ID_OF_ANOTHER.get(converter) or ("acme" if name == "desk" else MARK)


FIELDS = ["title", "body", "description", "text", "name", "reason", "password", "token", "code", "q", "slug"]
FORM = dict.fromkeys(FIELDS, MARK) | dict.fromkeys(("email", "addresses", "address", "requester"), ADDRESS)
HEADERS = {"User-Agent": MARK, "Referer": f"http://testserver/{MARK}", "X-Forwarded-For": MARK, "X-Amzn-Trace-Id": MARK}


def test_nothing_that_people_or_systems_send_stands_in_the_log(world: World) -> None:
    world.tickets("acme", 1)
    accounts.create(email="root@example.com", name="Root", password=PASSWORD, is_operator=True, by=SYSTEM)
    nobody, root = Browser(raise_request_exception=False), Browser(raise_request_exception=False)
    assert root.sign_in("root@example.com").status_code == 302
    alice = world.browser("alice", "acme", raise_request_exception=False)
    routes = list(http_request.routes())
    with logged() as output:
        for route in routes:
            path = route.filled(marked)
            for caller in (nobody, root if path.startswith("/admin/") else alice):
                caller.get(path, {"q": MARK, "next": f"/{MARK}"}, headers=HEADERS)
                caller.send(path, FORM, headers=HEADERS)
        bearer = {"Authorization": f"Bearer {MARK}", **HEADERS}
        for call in http_request.api_routes():
            nobody.generic(call.method.upper(), call.filled(marked), json.dumps(FORM), headers=bearer)
        nobody.get(f"/{MARK}/nowhere?{MARK}", headers={"Host": MARK})
    assert len(lines(output)) > 4 * len(routes)
    found = [line for line in output.getvalue().splitlines() if MARK in line]
    assert found == []


def test_what_calls_of_the_api_say_stands_nowhere_in_the_log(world: World) -> None:
    client = api_client(world)
    with logged() as output:
        for call in http_request.api_routes():
            path = call.filled(marked)
            client.generic(
                call.method.upper(),
                f"{path}?after={MARK}",
                json.dumps(FORM),
                content_type="application/json",
                headers={"Authorization": f"Bearer {client.key}", "Idempotency-Key": MARK},
            )
    assert len(lines(output)) == len(list(http_request.api_routes()))
    assert MARK not in output.getvalue()
    assert client.key not in output.getvalue()


def test_an_unexpected_error_is_logged_by_its_type_and_place_and_not_by_its_text(world: World) -> None:
    def broken(request: Any, **kwargs: Any) -> Any:
        raise ValueError(f"no such thing as {MARK}")

    browser = world.browser("bob", raise_request_exception=False)
    with proving.view("queue", broken), logged() as output:
        assert browser.get(f"/tickets/?q={MARK}").status_code == 500
        assert browser.get("/tickets/").status_code == 500
    first, second = (line for line in map(json.loads, output.getvalue().splitlines()) if "error" in line)
    assert first["error"]["type"] == "ValueError"
    assert first["error"]["at"][-1].endswith(" broken")
    assert first["error"]["fingerprint"] == second["error"]["fingerprint"]
    assert first["request"] != second["request"]
    assert MARK not in output.getvalue()


def test_a_librarys_message_is_logged_as_its_template() -> None:
    with logged() as output:
        logging.getLogger("waitress").error("Not found: %s", MARK)
        try:
            raise RuntimeError(MARK)
        except RuntimeError:
            logging.getLogger("waitress").exception(f"Exception while serving /{MARK}")
    assert [line["message"] for line in lines(output, "waitress")] == ["Not found: %s", ""]
    assert MARK not in output.getvalue()


# --- the way of one request ---

TICKET: dict[str, object] = {"title": "It broke", "description": "x", "priority": "normal", "request_id": "c" * 32}


def work_off(queues: QueuesInMemory) -> None:
    """Send what is in the outbox, and deliver it, as worker processes do."""
    assert logs.request_id() == ""
    Dispatcher(Sender(queues)).send(rows())
    for queue in range(queues.queues):
        for received in queues.receive(queue, most=10):
            MessageHandler().handle(received)


@contextmanager
def receiving(world: World, settings: Any) -> Iterator[list[bytes]]:
    """Yield what a receiver gets of new tickets."""
    heard: list[bytes] = []
    with listening(answering(b"HTTP/1.1 200 X\r\nContent-Length: 0\r\n\r\n", heard=heard)) as receiver:
        settings.WEBHOOK_RECEIVER = f"http://127.0.0.1:{receiver.port}"
        item, _ = endpoint(world.context("alice", "acme"), f"{settings.WEBHOOK_RECEIVER}/hooks")
        subscribe(world, "acme", "ticket.created", to=[item.endpoint_id])
        yield heard


def test_one_search_shows_the_way_from_the_page_to_the_webhook(world: World, settings: Any) -> None:
    with receiving(world, settings) as heard, logged() as output:
        answer = world.browser("bob").send("/tickets/new/", TICKET)
        work_off(QueuesInMemory())
    mine = answer["X-Request-Id"]
    assert f"\r\nx-request-id: {mine}\r\n".encode() in heard[0]
    (row,) = rows()
    assert row.request == mine
    way = [line for line in map(json.loads, output.getvalue().splitlines()) if line.get("request") == mine]
    assert [line["message"].split()[0] for line in way] == ["POST", "Sent", "Delivery"]
    assert all(line["message"].endswith(f" [{mine}]") for line in way)
    assert (way[2]["did"], way[2]["tenant"]) == ("answered", world.tenants["acme"].tenant_id)


def test_a_line_about_work_that_no_request_has_caused_ends_without_an_id(world: World, settings: Any) -> None:
    with receiving(world, settings), logged() as output:
        world.tickets("acme", 1)
        work_off(QueuesInMemory())
    way = [line["message"] for line in map(json.loads, output.getvalue().splitlines())]
    assert [message.split()[0] for message in way] == ["Sent", "Delivery"]
    assert [message for message in way if message.endswith("]")] == []


def test_a_mail_has_the_id_of_the_request_that_it_comes_from(world: World) -> None:
    with override_settings(EMAIL_BACKEND=mailing.OUTBOX):
        answer = world.browser("alice", "acme").send("/desk/invitations/", {"addresses": ADDRESS, "role": "agent"})
        with logged() as output:
            work_off(QueuesInMemory())
    (sent,) = mail.outbox
    assert sent.extra_headers["X-Request-Id"] == answer["X-Request-Id"]
    assert ADDRESS not in output.getvalue()
    assert answer["X-Request-Id"] in output.getvalue()


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/desk/invitations/", {"addresses": ADDRESS, "role": "agent"}),
        ("/password/reset/", {"email": "bob@example.com"}),
    ],
    ids=["after its change", "beside its request"],
)
def test_a_mail_that_leaves_at_once_has_it_too(world: World, path: str, form: dict[str, object]) -> None:
    answer = world.browser("alice", "acme").send(path, form)
    mails.wait_until_sent()
    (sent,) = mail.outbox
    assert sent.extra_headers["X-Request-Id"] == answer["X-Request-Id"]


def test_a_mail_servers_answer_that_quotes_an_address_stays_out_of_the_log(world: World) -> None:
    refused = smtplib.SMTPRecipientsRefused({ADDRESS: (550, f"<{ADDRESS}>: no such user".encode())})
    with override_settings(EMAIL_BACKEND=mailing.OUTBOX, MAIL_TRANSPORT=mailing.REFUSING):
        mailing.RefusingBackend.errors = [refused]
        world.browser("alice", "acme").send("/desk/invitations/", {"addresses": ADDRESS, "role": "agent"})
        with logged() as output:
            work_off(QueuesInMemory())
    assert [line["message"].partition(":")[0] for line in lines(output, "pooldesk.delivery")][1:] == [
        "A delivery is dead",
        "Delivery to mail",
    ]
    assert MARK not in output.getvalue()


def test_an_outage_on_a_page_for_people_outside_logs_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(name: str) -> None:
        raise Unavailable("The database does not answer.") from RuntimeError(f"{ADDRESS} in {name}")

    monkeypatch.setattr(desk_addresses, "desk_named", away)
    with logged() as output:
        assert Browser().get(f"/forms/{MARK}/").status_code == 503
    assert "The database does not answer. (RuntimeError)" in output.getvalue()
    assert MARK not in output.getvalue()
