"""A request to the API that is sent again after its desk has moved gets its answer, and is done once."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from api.edge.idempotency import _Once
from api.edge.stored import ANSWERS
from portal.dynamo import fencing, meter, provisioning
from portal.dynamo.store import Store
from tenants.audit_trail.recording import SYSTEM
from tenants.tenancy import tenant_directory
from tests.moving.moves import BRIDGE, POOL, begin, id_of, last, move, mover, ticket
from tests.support import commands
from tests.support.api_client import ApiClient, api_client
from tests.support.kills import Killed
from tests.support.world import World
from tickets.moving import move_requests, ticket_copies
from tickets.moving.discarding import CopyDiscard

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


@pytest.mark.parametrize(
    ("path", "body", "made"),
    [("/tickets/1/comments", {"body": "Held."}, (1, 1)), ("/tickets", {"title": "Held"}, (2, 3))],
)
def test_a_request_that_waits_for_the_switch_is_done_and_answered_at_the_new_place(
    world: World,
    client: ApiClient,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    body: dict[str, str],
    made: tuple[int, int],
) -> None:
    client.send("/tickets", NEW)
    waits, answers = threading.Event(), []
    close = ticket_copies.TicketCopies.close

    def send() -> None:
        answers.append(client.send(path, body, Idempotency_Key="held"))

    thread = threading.Thread(target=send)

    def held(copies: ticket_copies.TicketCopies) -> None:
        thread.start()
        assert waits.wait(FAR)
        close(copies)

    monkeypatch.setattr(fencing, "HOLD_SECONDS", FAR)
    monkeypatch.setattr(fencing, "WAIT_SECONDS", FAR)
    monkeypatch.setattr(fencing.retry, "sleep", lambda seconds: (waits.set(), threading.Event().wait(0.001)))
    monkeypatch.setattr(ticket_copies.TicketCopies, "close", held)
    move(world, BRIDGE)
    thread.join(FAR)
    assert answers[0].status_code == 201
    again = client.send(path, body, Idempotency_Key="held")
    assert (again.json(), again["Idempotency-Replayed"]) == (answers[0].json(), "true")
    number, items = made
    assert len(ticket(world, number, BRIDGE)) == len(ticket(world, number, POOL)) + items


@pytest.mark.parametrize("begun", ["before the move", "while it copies"])
def test_a_key_that_was_claimed_before_the_switch_makes_the_next_ticket_after_it(
    world: World, client: ApiClient, monkeypatch: pytest.MonkeyPatch, begun: str
) -> None:
    client.send("/tickets", NEW)
    claimed, meanwhile, increment = threading.Event(), _Once.meanwhile, Store.increment

    def claim(once: _Once[Any]) -> None:
        meanwhile(once)
        claimed.set()

    def late(repository: Store, *args: Any, **how: Any) -> Any:
        monkeypatch.setattr(Store, "increment", increment)
        assert claimed.wait(FAR)
        assert mover(world).run()
        return increment(repository, *args, **how)

    def dying(phase: str) -> None:
        if phase == "catching":
            raise Killed

    begin(world, BRIDGE)
    if begun == "while it copies":
        with pytest.raises(Killed):
            mover(world, dying).run()
    monkeypatch.setattr(_Once, "meanwhile", claim)
    monkeypatch.setattr(Store, "increment", late)
    answer = client.send("/tickets", NEW, Idempotency_Key="early")
    assert (answer.status_code, answer.json()["number"]) == (201, 2)
    assert client.send("/tickets", NEW).json()["number"] == 3
    again = client.send("/tickets", NEW, Idempotency_Key="early")
    assert (again.json(), again["Idempotency-Replayed"]) == (answer.json(), "true")


def test_a_move_there_and_back_takes_what_was_answered_meanwhile_along(world: World, client: ApiClient) -> None:
    first = client.send("/tickets", NEW, Idempotency_Key="once")
    move(world, BRIDGE)
    second = client.send("/tickets", NEW, Idempotency_Key="twice")
    hook = {"url": "https://example.org/hook", "event_types": ["ticket.created"]}
    third = client.send("/webhooks", hook, Idempotency_Key="hook")
    assert third.status_code == 201, third.json()
    move(world, POOL)
    for key, answer in (("once", first), ("twice", second)):
        assert client.send("/tickets", NEW, Idempotency_Key=key).json() == answer.json()
    assert client.send("/webhooks", hook, Idempotency_Key="hook").json()["id"] == third.json()["id"]
    answers = {raw["pk"]["S"].split("|")[1].split("#")[0] for raw in commands.in_pool(ANSWERS)}
    assert answers == {"ANSWER", "POOLED"}


def test_an_old_copy_that_is_gone_keeps_no_request_from_its_answer(
    world: World, client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    move(world, BRIDGE)
    first = client.send("/tickets", NEW, Idempotency_Key="once")
    move(world, POOL)
    answers: list[Any] = []
    delete = provisioning.delete_placed

    def deleted(*args: Any) -> None:
        delete(*args)
        answers.extend(client.send("/tickets", NEW, Idempotency_Key=key) for key in ("new", "once"))

    monkeypatch.setattr(provisioning, "delete_placed", deleted)
    move_requests.discard(tenant_directory.get(id_of(world)), early=True, by=SYSTEM)
    CopyDiscard(last(world), caught_up=lambda repository: None).run()
    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[1].json() == first.json()
    assert (answers[1]["Idempotency-Replayed"], answers[0].json()["number"]) == ("true", 2)
