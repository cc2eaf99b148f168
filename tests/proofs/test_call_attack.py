"""The attack on the API: clean where keys and scopes hold, loud where one of them does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from api.v1 import ticket_routes
from proofs.isolation import targets
from proofs.isolation.walk import visitors
from proofs.isolation.walk.api_tricks import API_TRICKS
from proofs.isolation.walk.http_attack import ApiAttack, Visits
from tenants.api_keys import key_authentication, key_restrictions, key_text
from tenants.api_keys.key_authentication import ApiCaller
from tenants.tenancy import context
from tests.support.proving import stored, three
from tests.support.world import World

__all__ = ["three"]  # a fixture


@pytest.fixture(scope="module")
def attack(three: World) -> Iterator[ApiAttack]:
    found = targets.find([], None)
    with visitors.visiting(found) as people:
        yield ApiAttack(1, found, people)


def run(attack: ApiAttack, numbers: Sequence[int] = ()) -> Visits:
    calls = Visits()
    attack.run(numbers or range(len(attack.plan)), calls, lambda steps: None)
    return calls


def test_every_route_is_called_with_every_trick_and_nothing_crosses(attack: ApiAttack) -> None:
    """For one tenant each, in turn; `make prove` calls it for every one."""
    before = stored()
    tricks, tenants = len(API_TRICKS), len(attack.targets)
    turns = [
        (route, trick, (route + trick) % tenants) for route in range(len(attack.routes)) for trick in range(tricks)
    ]
    calls = run(attack, [(route * tenants + tenant) * tricks + trick for route, trick, tenant in turns])
    assert (calls.crossing, calls.refused) == (None, None)
    assert calls.total == len(turns) + len(attack.targets)
    assert {trick: met.total() for trick, met in calls.tricks.items()} == dict.fromkeys(API_TRICKS, len(attack.routes))
    assert {met.total() for met in calls.routes.values()} == {tricks}
    assert len(calls.routes) == len(attack.routes) > 5
    good = {status for trick, answers in calls.tricks.items() if "foreign" in trick for status in answers}
    assert "200" in good
    assert stored() == before
    assert before["Tenants.ApiKeys"] == []


def test_each_route_is_to_be_called_with_every_trick_for_every_tenant(attack: ApiAttack) -> None:
    calls = [attack.request(number) for number in range(len(attack.plan))]
    met = {(made.route.path, made.route.method, made.own.id, made.tricks) for made in calls}
    assert len(met) == len(calls) == len(attack.routes) * len(attack.targets) * len(API_TRICKS)


def test_each_call_is_the_same_for_the_same_seed(attack: ApiAttack) -> None:
    def described(one: ApiAttack, number: int) -> dict[str, Any]:
        return one.request(number).described | {"key": "", "headers": {}}

    again = replace(attack)
    assert all(described(attack, number) == described(again, number) for number in range(len(attack.plan)))


def test_addresses_of_public_pages_are_written_where_no_setting_says_where_the_portal_is(
    attack: ApiAttack, three: World, settings: Any
) -> None:
    settings.PORTAL_BASE_URL = ""
    acme = three.context("alice", "acme")
    planned = ((number, attack.request(number)) for number in range(len(attack.plan)))
    listed = [
        number
        for number, made in planned
        if (made.method, made.own.id, made.tricks) == ("GET", acme.tenant_id, ("foreign ids",))
        and made.route.path.endswith("/articles")
    ]
    calls = run(attack, listed)
    assert (calls.crossing, [dict(met) for met in calls.routes.values()]) == (None, [{"200": 1}])


# --- a broken door ---


def any_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_authentication, "hmac", SimpleNamespace(compare_digest=lambda given, stored: True))


def ended_keys_let_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_authentication, "_refuse_ended", lambda key: None)


def from_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_restrictions, "includes", lambda networks, address: True)


def any_scope(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ApiCaller, "tenant_for", lambda self, scope: replace(self.tenant, role=scope.role))


def any_checksum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_text, "hmac", SimpleNamespace(compare_digest=lambda given, computed: True))


def another_tenants_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """The context of whoever called first serves all who call later."""
    real, kept = context.of_tenant, []

    def of_tenant(tenant: Any, **who: Any) -> Any:
        kept.append(real(tenant, **who))
        return replace(kept[0], suspended=False)

    monkeypatch.setattr(context, "of_tenant", of_tenant)


def a_cache_without_the_tenant(monkeypatch: pytest.MonkeyPatch) -> None:
    real, kept = ticket_routes.timelines.head, {}

    def head(tenant: Any, number: int) -> Any:
        kept.setdefault(1, None)
        found = kept[1] = kept[1] or real(tenant, number)
        return found

    monkeypatch.setattr(ticket_routes.timelines, "head", head)


@pytest.mark.parametrize(
    ("break_it", "trick"),
    [
        (any_digest, "own key in another tenant's name"),
        (ended_keys_let_in, "a revoked key"),
        (from_anywhere, "a key from elsewhere"),
        (any_scope, "a key without the scope"),
        (any_checksum, "a mistyped key"),
        (a_cache_without_the_tenant, "foreign ids"),
        (another_tenants_data, "none"),
    ],
)
def test_a_broken_door_is_a_crossing_and_can_be_called_again(
    break_it: Callable[[pytest.MonkeyPatch], None], trick: str, attack: ApiAttack, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_it(monkeypatch)
    found = run(attack).crossing
    assert found is not None
    assert found.request["tricks"] == [trick]
    monkeypatch.undo()
    again = Visits()
    attack.run([int(found.number.removeprefix("api-"))], again, lambda steps: None)
    assert again.crossing is None
