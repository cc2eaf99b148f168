"""Keys that are not proved: they take nothing of the desk whose id stands in them, and each address has so many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import LazySettings

from api.edge import key_attempts
from api.edge.key_attempts import KeyAttempts
from portal.dynamo import retry
from portal.errors import Unavailable
from portal.load import tenant_limiter
from portal.load.tenant_limiter import TenantLimiter
from portal.quotas import TenantPlaces
from tenants.api_keys import key_authentication, key_changes, key_text
from tenants.audit_trail.recording import SYSTEM
from tenants.tenancy import tenant_middleware
from tests.api.test_door import problem
from tests.desk.test_cost import _watching
from tests.load.test_tenant_limiter import HandClock
from tests.support.api_client import ApiClient, api_client
from tests.support.api_keys import make_key
from tests.support.world import World

MOST = 3
OFFICE, ELSEWHERE = "203.0.113.7", "198.51.100.2"


@pytest.fixture
def clock(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> HandClock:
    """An address may try three keys in vain, and one a second then."""
    settings.API_KEY_ATTEMPTS = MOST
    clock = HandClock()
    monkeypatch.setattr(key_attempts, "attempts", KeyAttempts(clock=clock))
    return clock


@pytest.fixture
def client(world: World, clock: HandClock) -> ApiClient:
    return api_client(world)


@pytest.fixture
def forger(world: World, clock: HandClock) -> ApiClient:
    """Knows the id of the desk, and has no key of it."""
    return ApiClient(key_text.new(world.tenants["acme"].tenant_id, "Ab0Cd1Ef"))


def ask(client: ApiClient, address: str = OFFICE) -> Any:
    client.defaults["REMOTE_ADDR"] = address
    return client.ask("/tickets")


def during_the_read(monkeypatch: pytest.MonkeyPatch, look: Callable[[], object]) -> list[object]:
    """Collects what `look` returns while keys are read, the first time of which is the one that counts."""
    seen: list[object] = []
    read = key_authentication.PLATFORM.get_all

    def reading(*args: Any, **kwargs: Any) -> Any:
        if not seen:
            seen.append(None)
            seen[0] = look()
        return read(*args, **kwargs)

    monkeypatch.setattr(key_authentication.PLATFORM, "get_all", reading)
    return seen


# --- what is the desk's ---


def test_an_unproved_key_holds_no_place_of_the_desk_while_it_is_read(
    client: ApiClient, forger: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenant_limiter, "requests", TenantPlaces(lambda: 1))
    seen = during_the_read(monkeypatch, lambda: ask(client).status_code)
    assert problem(ask(forger, ELSEWHERE)) == (401, "key_unknown")
    assert seen == [200]


def test_an_unproved_key_spends_none_of_the_desks_repetitions(
    forger: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = during_the_read(monkeypatch, retry.tenant)
    ask(forger)
    assert seen == [""]


def test_a_key_that_let_in_before_is_read_on_behalf_of_its_desk(
    world: World, client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(client)
    seen = during_the_read(monkeypatch, retry.tenant)
    ask(client)
    assert seen == [world.tenants["acme"].tenant_id]


def test_a_key_that_is_proved_for_the_first_time_has_its_place_too(
    client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenant_limiter, "requests", TenantPlaces(lambda: 0))
    assert ask(client).status_code == 429


def test_an_unproved_key_learns_nothing_of_what_is_left_to_the_desk(
    client: ApiClient, forger: ApiClient, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TENANT_RATES = "standard=1"
    monkeypatch.setattr(tenant_middleware, "limiter", TenantLimiter(clock=HandClock()))
    assert [ask(client).status_code for _ in range(11)] == [200] * 10 + [429]
    refused = ask(forger)
    assert problem(refused) == (401, "key_unknown")
    assert not {"RateLimit", "RateLimit-Policy", "Retry-After"} & {*refused.headers}


# --- how many an address has ---


def test_an_address_that_tries_too_many_keys_is_told_when_to_come_back_without_a_read(
    forger: ApiClient, clock: HandClock
) -> None:
    assert [ask(forger).status_code for _ in range(MOST)] == [401] * MOST
    with _watching() as bills:
        refused = ask(forger)
    assert problem(refused) == (429, "too_many_attempts")
    assert (refused["Retry-After"], bills[0].trips) == ("1", 0)
    assert "RateLimit" not in refused
    clock.now += 1
    assert [ask(forger).status_code for _ in range(2)] == [401, 429]


def test_another_address_has_attempts_of_its_own(forger: ApiClient) -> None:
    for _ in range(MOST + 1):
        ask(forger)
    assert ask(forger, ELSEWHERE).status_code == 401


def test_the_addresses_of_one_ipv6_network_share_theirs(forger: ApiClient) -> None:
    told = [ask(forger, f"2001:db8::{n}").status_code for n in range(MOST + 1)]
    assert told == [401] * MOST + [429]


def test_good_keys_are_no_attempts(world: World, clock: HandClock) -> None:
    assert [ask(api_client(world)).status_code for _ in range(MOST + 2)] == [200] * (MOST + 2)


def test_a_key_that_let_in_before_is_not_kept_out_by_others_at_its_address(
    world: World, client: ApiClient, forger: ApiClient
) -> None:
    ask(client)
    for _ in range(MOST):
        ask(forger)
    assert ask(client).status_code == 200
    assert ask(api_client(world)).status_code == 429, "nobody knows this one yet"


def test_a_key_that_has_ended_is_counted_from_its_second_refusal_on(world: World, clock: HandClock) -> None:
    alice = world.context("alice", "acme")
    key, text = make_key(alice)
    client = ApiClient(text)
    ask(client)
    key_changes.revoke(alice, prefix=key.api_key_prefix, by=SYSTEM)
    assert [ask(client).status_code for _ in range(MOST + 2)] == [401] * (MOST + 1) + [429]


def test_an_outage_is_nobodys_attempt(forger: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*args: object, **kwargs: object) -> None:
        raise Unavailable("Away.")

    with monkeypatch.context() as outage:
        outage.setattr(key_authentication.PLATFORM, "get_all", away)
        assert [ask(forger).status_code for _ in range(MOST + 1)] == [503] * (MOST + 1)
    assert ask(forger).status_code == 401
