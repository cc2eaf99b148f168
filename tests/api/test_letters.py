"""Letters by the API: those that came in, and comments that become letters, with copies and how the letter fares."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from unittest.mock import Mock

import pytest

from portal.errors import Unavailable
from tenants.audit_trail import recording
from tests.support import letters_in, mailing
from tests.support.api_client import ApiClient
from tests.support.letters_in import come_in, letter
from tests.support.mail_receiver import mail_receiver
from tests.support.world import World
from tickets.desk import creating
from tickets.requesters import requesters


@pytest.fixture
def number(world: World) -> int:
    bob = world.context("bob", "acme")
    return creating.create(bob, title="The engine", requester=requesters.ensure(bob, "ada@example.org", name="Ada"))


def test_a_system_answers_a_requester_and_sees_how_the_letter_fares(
    world: World, client: ApiClient, number: int
) -> None:
    answer = client.send(f"/tickets/{number}/comments", {"body": "It runs.", "cc": ["grace@example.org"]})
    assert answer.status_code == 201
    assert answer.json()["letter"]["state"] == "held"
    with mail_receiver() as inbox:
        mailing.carry()
    assert inbox.envelopes[0][1] == ["ada@example.org", "grace@example.org"]
    letter = client.ask(f"/tickets/{number}/activity").json()["data"][-1]["letter"]
    assert (letter["state"], letter["note"], letter["cc"]) == ("sent", None, ["grace@example.org"])


def test_an_address_that_is_none_is_refused_and_nothing_is_added(client: ApiClient, number: int) -> None:
    answer = client.send(f"/tickets/{number}/comments", {"body": "It runs.", "cc": ["nobody"]})
    assert answer.status_code == 422
    assert (answer.json()["detail"], answer.json()["field"]) == ("“nobody” is no mail address.", "cc")
    assert mailing.waiting() == []


def test_a_comment_that_is_no_letter_has_none(world: World, client: ApiClient) -> None:
    (own,) = world.tickets("acme", 1)
    assert client.send(f"/tickets/{own}/comments", {"body": "Hello."}).json()["letter"] is None


@pytest.fixture
def mail(world: World) -> Iterator[World]:
    with letters_in.mail():
        yield world


def test_a_system_lists_letters_and_decides_about_those_that_wait(mail: World, client: ApiClient) -> None:
    come_in(letter())
    for number, subject in enumerate(("First", "Second"), 2):
        come_in(letter(subject=subject, message_id=f"<{number}@x.example>"), spam="FAIL")
    first = client.ask("/letters?limit=2").json()
    assert [(one["subject"], one["state"], one["ticket"]) for one in first["data"]] == [
        ("Second", "waiting", None),
        ("First", "waiting", None),
    ]
    last = client.get(first["next"], headers={"Authorization": f"Bearer {client.key}"}).json()
    assert [(one["state"], one["ticket"], one["reason"]) for one in last["data"]] == [("filed", 1, None)]
    second, one = client.ask("/letters?waiting=true").json()["data"]
    path = f"/letters/{one['id']}"
    assert client.ask(path).json()["checks"]["spam"] == "FAIL"
    with urllib.request.urlopen(client.ask(f"{path}/original").json()["url"]) as answer:
        assert b"Subject: First" in answer.read()
    filed = client.call("PUT", f"{path}/state", {"state": "filed"})
    assert (filed.status_code, filed.json()["state"], filed.json()["ticket"]) == (200, "filed", 2)
    assert client.call("PUT", f"{path}/state", {"state": "discarded"}).status_code == 409
    discarded = client.call("PUT", f"/letters/{second['id']}/state", {"state": "discarded"})
    assert (discarded.status_code, discarded.json()["state"]) == (200, "discarded")
    assert client.ask("/letters?waiting=true").json()["data"] == []
    told = {one["action"]: one["entity"]["id"] for one in client.ask("/audit-events").json()["data"]}
    assert told.items() >= {"letter.filed": one["id"], "letter.discarded": second["id"]}.items()


@pytest.mark.parametrize("state", ["filed", "discarded"])
def test_where_the_audit_trail_cannot_be_written_nothing_is_decided(
    mail: World, client: ApiClient, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    come_in(letter(), spam="FAIL")
    (waiting,) = client.ask("/letters?waiting=true").json()["data"]
    monkeypatch.setattr(recording, "record", Mock(side_effect=Unavailable("The engine is away.")))
    assert client.call("PUT", f"/letters/{waiting['id']}/state", {"state": state}).status_code == 503
    assert client.ask(f"/letters/{waiting['id']}").json()["state"] == "waiting"
