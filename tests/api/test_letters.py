"""Comments that become letters, by the API: the addresses that get a copy, and how the letter fares."""

from __future__ import annotations

import pytest

from tests.support import mailing
from tests.support.api_client import ApiClient, api_client
from tests.support.mail_receiver import mail_receiver
from tests.support.world import World
from tickets.desk import creating
from tickets.requesters import requesters


@pytest.fixture
def number(world: World) -> int:
    bob = world.context("bob", "acme")
    return creating.create(bob, title="The engine", requester=requesters.ensure(bob, "ada@example.org", name="Ada"))


@pytest.fixture
def client(world: World) -> ApiClient:
    return api_client(world)


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
