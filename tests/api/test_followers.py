"""Who follows a ticket, through the API."""

from __future__ import annotations

import pytest

from tests.support.api_client import ApiClient, api_client
from tests.support.world import World
from tickets.desk import changing
from tickets.notices import following

PATH = "/tickets/1/followers"


@pytest.fixture
def client(world: World) -> ApiClient:
    world.tickets("acme", 1)
    return api_client(world)


def followers(client: ApiClient) -> list[str]:
    answer = client.ask(PATH)
    assert answer.status_code == 200
    return list(answer.json()["data"])


def test_a_member_follows_and_ends_that_however_often_it_is_said(world: World, client: ApiClient) -> None:
    bob, vera = (world.users[name].id for name in ("bob", "vera"))
    for who in (bob, vera, bob):
        assert client.call("PUT", f"{PATH}/{who}").status_code == 204
    assert followers(client) == sorted((bob, vera))
    for _ in range(2):
        assert client.call("DELETE", f"{PATH}/{bob}").status_code == 204
    assert followers(client) == [vera]


def test_a_mute_of_a_member_stays_whatever_a_system_says(world: World, client: ApiClient) -> None:
    bob = world.context("bob", "acme")
    following.mute(bob, 1, bob.user_id)
    client.call("PUT", f"{PATH}/{bob.user_id}")
    assert changing.read(bob, 1).hears(bob.user_id) == "muted"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/tickets/99/followers", 404),
        ("PUT", "/tickets/99/followers/{bob}", 404),
        ("DELETE", "/tickets/99/followers/{bob}", 404),
        ("PUT", PATH + "/{charlie}", 404),  # a member of another desk
        ("PUT", PATH + "/bob", 404),
    ],
)
def test_what_is_not_there_is_said(world: World, client: ApiClient, method: str, path: str, status: int) -> None:
    ids = {name: user.id for name, user in world.users.items()}
    assert client.call(method, path.format(**ids)).status_code == status
    assert followers(client) == []


def test_a_full_ticket_takes_no_more(world: World, client: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "MOST_FOLLOWERS", 1)
    client.call("PUT", f"{PATH}/{world.users['bob'].id}")
    refused = client.call("PUT", f"{PATH}/{world.users['vera'].id}")
    assert (refused.status_code, followers(client)) == (409, [world.users["bob"].id])
