"""What a desk may ask for, held at the door: by HTTP, with a clock in the test's hand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client

from portal.load import tenant_limiter
from portal.load.tenant_limiter import TenantLimiter
from tenants.audit_trail.recording import SYSTEM
from tenants.lifecycle import tenant_lifecycle
from tenants.lifecycle.tenant_lifecycle import TenantLimits
from tenants.membership import member_changes
from tenants.tenancy import tenant_middleware
from tests.desk.test_cost import _watching
from tests.load.test_tenant_limiter import HandClock
from tests.support.operators import make_operator
from tests.support.world import Browser, World

BURST = 10  # units: ten pages, or two changes
FORM = {
    "body": "An hour of work",
    "cc": "lin@example.org",
    "request_id": "a" * 32,
    "seen_at": "2026-11-26T02:04:15.926764Z",
    **dict.fromkeys(("revision", "initial-zone", "of_text_1", "kind_before", "then"), "1"),
}


@pytest.fixture
def clock(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> HandClock:
    """Desks may ask for one unit a second."""
    settings.TENANT_RATES = "standard=1 large=100"
    clock = HandClock()
    monkeypatch.setattr(tenant_middleware, "limiter", TenantLimiter(clock=clock))
    return clock


@pytest.fixture
def bob(world: World) -> Browser:
    world.tickets("acme", 1)
    return world.browser("bob")


def give(world: World, limits: TenantLimits) -> None:
    tenant_lifecycle.change_limits(world.tenants["acme"].tenant_id, limits, by=SYSTEM)


def flood(browser: Client, path: str = "/tickets/", times: int = BURST + 1) -> list[int]:
    return [browser.get(path).status_code for _ in range(times)]


def test_a_flood_gets_429_when_its_burst_is_spent_and_is_told_when_to_come_back(bob: Browser, clock: HandClock) -> None:
    assert flood(bob) == [200] * BURST + [429]
    refused: Any = bob.get("/tickets/")
    page = refused.content.decode()
    assert (refused["Retry-After"], refused["RateLimit"]) == ("1", '"desk";r=0;t=1')
    assert refused["RateLimit-Policy"] == '"desk";q=10;w=10'
    assert "no-store" in refused["Cache-Control"]
    assert "Too much at once" in page
    assert "Try again in 1 second." in page
    clock.now += int(refused["Retry-After"])
    assert flood(bob, times=2) == [200, 429]


def test_a_refusal_at_the_door_is_in_the_language_of_the_browser(bob: Browser, clock: HandClock) -> None:
    flood(bob)
    page = bob.get("/tickets/", HTTP_ACCEPT_LANGUAGE="de").content.decode()
    assert ('<html lang="de"' in page, "Zu viel auf einmal" in page) == (True, True)


def test_what_is_not_foreseen_is_refused_when_it_is_charged(
    bob: Browser, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TenantLimiter, "foresee", lambda *_: None)
    assert flood(bob) == [200] * BURST + [429]
    assert bob.send("/tickets/1/comment/", FORM).status_code == 429  # type: ignore[attr-defined]


def test_an_answer_tells_what_is_left(bob: Browser, clock: HandClock) -> None:
    assert bob.get("/tickets/")["RateLimit"] == '"desk";r=9;t=1'
    assert bob.send("/tickets/1/comment/", FORM)["RateLimit"] == '"desk";r=4;t=6'  # type: ignore[index]


def test_what_was_typed_in_a_refused_form_is_kept_and_can_be_sent_again(bob: Browser, clock: HandClock) -> None:
    flood(bob)
    refused: Any = bob.send("/tickets/1/comment/", FORM)
    page = unescape(refused.content.decode())
    assert (refused.status_code, refused["Retry-After"]) == (429, "5")
    assert "What you typed" in page
    assert re.findall(r"<dt>(.*?)</dt>", page) == ["Text", "Copies to"], (
        "and not what the page itself put into its form"
    )
    assert '<button class="button button-primary" type="submit">Send again</button>' in page
    kept = dict(re.findall(r'name="(_page|body|request_id)" value="([^"]*)"', page))
    clock.now += 5
    assert bob.post("/tickets/1/comment/", kept).status_code == 302
    clock.now += 5
    assert "An hour of work" in bob.get("/tickets/1/").content.decode()


def test_a_refusal_reads_nothing(bob: Browser, clock: HandClock) -> None:
    flood(bob)
    with _watching() as bills:
        assert bob.get("/tickets/").status_code == 429
        assert bob.send("/tickets/1/comment/", FORM).status_code == 429  # type: ignore[attr-defined]
    assert [bill.calls for bill in bills] == [[], []]


def test_a_desk_notices_nothing_of_anothers_flood(world: World, bob: Browser, clock: HandClock) -> None:
    flood(bob)
    assert flood(world.browser("charlie"), times=BURST) == [200] * BURST


def test_all_people_of_a_desk_share_its_limit(world: World, bob: Browser, clock: HandClock) -> None:
    flood(bob)
    assert world.browser("alice", "acme").get("/tickets/").status_code == 429


def test_a_plan_or_the_operators_give_another_rate(world: World, bob: Browser, clock: HandClock) -> None:
    flood(bob)
    give(world, TenantLimits("large"))
    clock.now += 1
    assert flood(bob, times=1) == [200]
    clock.now += 1
    assert flood(bob, times=30) == [200] * 30
    give(world, TenantLimits("large", request_rate=2))
    clock.now += 100
    assert flood(bob, times=21) == [200] * 20 + [429]


@pytest.mark.parametrize("path", ["/nowhere/at/all/", "/acme/tickets/999/", "/globex/tickets/"])
def test_pages_that_do_not_exist_are_asked_for_like_others(bob: Browser, clock: HandClock, path: str) -> None:
    assert flood(bob, path) == [404] * BURST + [429]


def test_forms_that_are_not_ours_are_charged_too(world: World, clock: HandClock) -> None:
    strict = world.browser("bob", enforce_csrf_checks=True)
    assert [strict.post("/tickets/new/").status_code for _ in range(3)] == [403, 403, 429]


def test_what_leads_in_and_out_or_to_another_desk_is_never_limited(
    world: World, bob: Browser, clock: HandClock
) -> None:
    alice = world.browser("alice", "acme")
    flood(bob)
    for _ in range(2 * BURST):
        assert bob.get("/healthz").status_code == 200
        assert bob.get("/static/css/base.css").status_code == 200
        assert bob.get("/login/").status_code == 302
        assert alice.get("/tenants/").status_code == 200
    assert alice.post("/tenants/switch/", {"tenant": world.tenants["globex"].tenant_id}).status_code == 302
    assert alice.get("/tickets/").status_code == 200
    assert bob.post("/logout/").status_code == 302
    assert bob.sign_in("bob@example.com").status_code == 302  # type: ignore[attr-defined]


def test_an_operator_who_is_a_member_as_well_can_still_run_the_platform(world: World, clock: HandClock) -> None:
    root = make_operator()
    member_changes.seed_member(root, world.tenants["acme"], tenant_lifecycle.Role.AGENT)
    world.users["root"] = root
    browser = world.browser("root", "acme")
    flood(browser)
    assert browser.get("/admin/").status_code == 200


def test_a_former_member_spends_nothing_of_the_desks(world: World, bob: Browser, clock: HandClock) -> None:
    member_changes.unseed_member(world.users["bob"].id, world.tenants["acme"].tenant_id)
    assert 200 not in flood(bob, times=3 * BURST)
    assert flood(world.browser("alice", "acme"), times=BURST) == [200] * BURST


def test_a_cookie_that_we_did_not_sign_names_no_desk(world: World, bob: Browser, clock: HandClock) -> None:
    flood(bob)
    stranger = Client()
    kept = bob.cookies["pooldesk_session"].value
    stranger.cookies["pooldesk_session"] = kept[:-1] + ("x" if kept[-1] != "x" else "y")
    assert stranger.get("/acme/tickets/").status_code == 302


@pytest.fixture
def busy(world: World, settings: LazySettings) -> Iterator[str]:
    """Acme has as many requests at work in this process as it may."""
    settings.WEB_THREADS = 5
    tenant_id = world.tenants["acme"].tenant_id
    taken = [tenant_limiter.requests.enter(tenant_id) for _ in range(3)]
    assert taken == [True, True, False]
    yield tenant_id
    tenant_limiter.requests.leave(tenant_id)
    tenant_limiter.requests.leave(tenant_id)


def test_a_desk_has_at_most_half_of_the_threads_and_is_refused_at_once_beyond(
    world: World, bob: Browser, busy: str
) -> None:
    refused: Any = bob.send("/tickets/1/comment/", FORM)
    assert (refused.status_code, refused["Retry-After"]) == (429, "1")
    assert "An hour of work" in refused.content.decode()
    assert world.browser("charlie").get("/tickets/").status_code == 200
    assert bob.post("/logout/").status_code == 302, "that is never limited"


def test_a_thread_that_is_done_is_free_for_the_desk_again(bob: Browser, busy: str) -> None:
    tenant_limiter.requests.leave(busy)
    assert flood(bob, times=5) == [200] * 5
    assert tenant_limiter.requests.enter(busy)
