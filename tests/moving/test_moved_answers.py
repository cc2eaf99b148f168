"""A request to the API that is sent again after its desk has moved gets its answer, and is done once."""

from __future__ import annotations

import threading

import pytest

from portal.dynamo import meter, whereabouts
from tests.moving.moves import BRIDGE, POOL, move, ticket
from tests.support.api_client import ApiClient, api_client
from tests.support.world import World
from tickets.moving import ticket_copies

FAR = 60  # seconds that only a failure reaches
NEW = {"title": "Sent twice"}


@pytest.fixture
def client(world: World) -> ApiClient:
    return api_client(world)


def test_what_was_answered_before_the_move_is_answered_alike_after_it(world: World, client: ApiClient) -> None:
    first = client.send("/tickets", NEW, Idempotency_Key="once")
    move(world, BRIDGE)
    again = client.send("/tickets", NEW, Idempotency_Key="once")
    assert (again.status_code, again.json()) == (201, first.json())
    assert again["Idempotency-Replayed"] == "true"
    other = client.send("/tickets", {"title": "Other"}, Idempotency_Key="once")
    assert other.json()["code"] == "idempotency_key_reused"
    assert ticket(world, 2, BRIDGE) == []


def test_looking_at_the_old_copy_takes_no_round_trip_of_its_own(
    world: World, client: ApiClient, bill: meter.Meter
) -> None:
    def trips(key: str) -> int:
        before = bill.trips
        assert client.send("/tickets", NEW, Idempotency_Key=key).status_code == 201
        return bill.trips - before

    trips("first")
    pooled = trips("second")
    move(world, BRIDGE)
    assert trips("third") == pooled


def test_a_request_that_waits_for_the_switch_is_done_and_answered_at_the_new_place(
    world: World, client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.send("/tickets", NEW)
    waits, answers = threading.Event(), []
    close = ticket_copies.TicketCopies.close

    def send() -> None:
        answers.append(client.send("/tickets/1/comments", {"body": "Held."}, Idempotency_Key="held"))

    thread = threading.Thread(target=send)

    def held(copies: ticket_copies.TicketCopies) -> None:
        thread.start()
        assert waits.wait(FAR)
        close(copies)

    monkeypatch.setattr(whereabouts, "HOLD_SECONDS", FAR)
    monkeypatch.setattr(whereabouts, "PATIENCE_SECONDS", FAR)
    monkeypatch.setattr(whereabouts.retry, "sleep", lambda seconds: (waits.set(), threading.Event().wait(0.001)))
    monkeypatch.setattr(ticket_copies.TicketCopies, "close", held)
    move(world, BRIDGE)
    thread.join(FAR)
    assert answers[0].status_code == 201
    again = client.send("/tickets/1/comments", {"body": "Held."}, Idempotency_Key="held")
    assert (again.json(), again["Idempotency-Replayed"]) == (answers[0].json(), "true")
    assert len(ticket(world, 1, BRIDGE)) == len(ticket(world, 1, POOL)) + 1
