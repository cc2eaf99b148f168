"""A desk's searches have a bound in each process; one too many waits a moment, then is refused and keeps what was
typed."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from portal.errors import Unavailable
from portal.load import tenant_limiter
from tests.support.operators import text_of
from tests.support.waiting import wait_until
from tests.support.world import World
from tickets.search import suggesting, ticket_search

SUGGEST = "/search/suggest/?q=printer"


@pytest.fixture
def acme(world: World) -> str:
    return world.tenants["acme"].tenant_id


@pytest.fixture
def busy(acme: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Acme has as many searches under way as it may, and for longer than one waits."""
    monkeypatch.setattr(tenant_limiter, "SEARCH_WAIT_SECONDS", 0.001)
    while tenant_limiter.searches.enter(acme):
        pass
    yield
    while tenant_limiter.searches.taken(acme):
        tenant_limiter.searches.leave(acme)


def test_a_search_too_many_is_refused_and_keeps_what_was_typed(world: World, busy: None) -> None:
    bob = world.browser("bob")
    refused: Any = bob.get("/search/?q=printer+jam&status=open")
    assert (refused.status_code, refused["Retry-After"]) == (429, "1")
    assert "Too many searches at once" in text_of(refused)
    assert "How to search" not in text_of(refused).partition("Too many")[2], "that is not what is wrong"
    assert 'name="q" value="printer jam"' in refused.content.decode()
    assert 'href="/acme/search/?q=printer+jam&amp;status=open">Try again' in refused.content.decode()
    assert bob.get("/tickets/").status_code == 200, "pages go on"
    assert bob.get("/search/").status_code == 200, "nothing is searched for there"


def test_while_typing_one_too_many_is_told_when_to_ask_again(world: World, busy: None) -> None:
    refused: Any = world.browser("bob").get(SUGGEST)
    assert (refused.status_code, refused["Retry-After"], refused.content) == (429, "1", b"")


@pytest.mark.parametrize("path", ["/acme/search/?q=printer", f"/acme{SUGGEST}"])
def test_one_too_many_waits_for_a_place_and_only_as_many_wait_as_there_are_places(
    world: World, acme: str, busy: None, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(tenant_limiter, "SEARCH_WAIT_SECONDS", 600)
    bob, places = world.browser("bob"), tenant_limiter.searches
    with ThreadPoolExecutor(places.most) as people:
        waiting = [people.submit(bob.get, path) for _ in range(places.most)]
        wait_until(lambda: places.waiting(acme) == places.most or any(one.done() for one in waiting))
        early = [one.result() for one in waiting if one.done()]
        for _ in early:  # else those who wait would hold the test
            places.leave(acme)
        assert [(one.status_code, one.content) for one in early] == []
        assert bob.get(path).status_code == 429, "at once"
        assert not any(one.done() for one in waiting)
        places.leave(acme)
        assert [one.result().status_code for one in waiting] == [200] * places.most
    assert places.waiting(acme) == 0


def test_another_desk_has_places_of_its_own(world: World, busy: None) -> None:
    charlie = world.browser("charlie")
    assert [charlie.get(path).status_code for path in ("/search/?q=printer", SUGGEST)] == [200, 200]


def test_a_search_takes_one_place_and_gives_it_back_also_when_it_failed(
    world: World, acme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []

    def fail(*args: object, **options: object) -> None:
        taken.append(tenant_limiter.searches.taken(acme))
        raise Unavailable("The engine is away.")

    monkeypatch.setattr(ticket_search, "find", fail)
    monkeypatch.setattr(suggesting, "suggest", fail)
    bob = world.browser("bob")
    assert [bob.get(path).status_code for path in ("/search/?q=printer", SUGGEST)] == [503, 503]
    assert (taken, tenant_limiter.searches.taken(acme)) == ([1, 1], 0)


def test_the_bound_is_a_setting(world: World, acme: str, settings: Any) -> None:
    settings.SEARCHES_AT_A_TIME = 0
    assert world.browser("bob").get("/search/?q=printer").status_code == 429
