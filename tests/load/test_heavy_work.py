"""Heavy work of one desk has a bound in each process; what is over it is refused at once and can be sent again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from portal.load import tenant_limiter
from tests.support.world import Browser, World
from tickets.dashboards import verify_runs

EXPORT = "/desk/audit/export/"


@pytest.fixture
def acme(world: World) -> str:
    return world.tenants["acme"].tenant_id


@pytest.fixture
def busy(acme: str) -> Iterator[None]:
    """Acme has as much heavy work under way as it may."""
    while tenant_limiter.heavy.enter(acme):
        pass
    yield
    while tenant_limiter.heavy.taken(acme):
        tenant_limiter.heavy.leave(acme)


def selected(numbers: list[int]) -> dict[str, object]:
    return {"tickets": [f"{number}.1.open." for number in numbers], "to": "pending", "back": "/acme/tickets/"}


def test_a_bulk_change_too_many_is_refused_and_its_selection_kept(world: World, busy: None) -> None:
    numbers = world.tickets("acme", 2)
    bob = world.browser("bob")
    refused: Any = bob.send("/tickets/bulk/", selected(numbers))
    page = refused.content.decode()
    assert (refused.status_code, refused["Retry-After"]) == (429, "2")
    assert "2 selected" in page
    assert 'value="1.1.open."' in page
    assert "Send again" in page
    assert bob.get("/tickets/").status_code == 200, "pages go on"


def test_another_desk_has_places_of_its_own(world: World, busy: None) -> None:
    numbers = world.tickets("globex", 2)
    answer: Any = world.browser("charlie").send("/tickets/bulk/", selected(numbers) | {"back": "/globex/tickets/"})
    assert answer.status_code == 302


def test_work_that_is_done_gives_its_place_back_also_when_it_failed(world: World, acme: str) -> None:
    bob = world.browser("bob")
    bob.send("/tickets/bulk/", selected(world.tickets("acme", 1)))
    bob.send("/tickets/bulk/", {"to": "nonsense"})
    bob.send("/tickets/bulk/undo/", {"receipt": "none"})
    assert tenant_limiter.heavy.taken(acme) == 0


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/tickets/bulk/undo/", {"receipt": "none"}),
        (EXPORT, {"actor": "a" * 32}),
        ("/tickets/handover/" + "a" * 32 + "/", {"to": "none"}),
        ("/account/password/", {"comment": "none"}),
        ("/acme/letters/" + "a" * 48 + "/file/", {}),
        ("/desk/settings/mail/check/", {}),
    ],
)
def test_what_else_is_heavy_is_bounded_with_it(world: World, busy: None, path: str, form: dict[str, object]) -> None:
    answer: Any = world.browser("alice", "acme").send(path, form)
    assert answer.status_code == 429


def test_reading_a_letter_of_a_stranger_is_heavy_too(world: World, busy: None) -> None:
    answer: Any = world.browser("alice", "acme").get("/acme/letters/" + "a" * 48 + "/original/")
    assert answer.status_code == 429


def test_an_export_holds_its_place_until_it_has_been_sent(world: World, acme: str) -> None:
    alice = world.browser("alice", "acme")
    answer: Any = alice.send(EXPORT)
    assert tenant_limiter.heavy.taken(acme) == 1
    assert b"".join(answer.streaming_content)
    answer.close()
    answer.close()
    assert tenant_limiter.heavy.taken(acme) == 0


def test_no_verification_waits_in_a_thread_for_those_of_other_desks(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = [verify_runs._places.acquire(blocking=False) for _ in range(verify_runs.AT_A_TIME)]
    assert all(taken)
    started: list[object] = []
    monkeypatch.setattr(verify_runs, "_start", started.append)
    alice: Browser = world.browser("alice", "acme")
    refused: Any = alice.send("/tickets/dashboard/verify/")
    assert (refused.status_code, refused["Retry-After"], started) == (429, "30", [])
    for _ in taken:
        verify_runs._places.release()
    alice.send("/tickets/dashboard/verify/")
    assert len(started) == 1
