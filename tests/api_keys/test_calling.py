"""Calling with a key: who that is, what it costs, and each way in which a key is refused."""

from __future__ import annotations

import string
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from delivery.webhooks import endpoints
from portal import clock
from portal.dynamo import meter
from portal.dynamo.meter import Meter
from portal.errors import TransactionRefused
from tenants.api_keys import key_authentication, key_changes, key_text
from tenants.api_keys.key_authentication import ApiCaller, KeyRefused
from tenants.api_keys.scopes import Scope
from tenants.api_keys.stored import ApiKeyItem
from tenants.audit_trail import recording
from tenants.audit_trail.recording import AuditAction, AuditEntry
from tenants.lifecycle import tenant_lifecycle
from tenants.membership import member_changes
from tenants.tenancy.context import Role
from tenants.tenancy.stored import TENANTS
from tests.desk.test_cost import _watching
from tests.support.api_client import ApiClient
from tests.support.api_keys import alter, make_key
from tests.support.endpoints import endpoint
from tests.support.stored import send
from tests.support.world import World

TENANT = "0123456789abcdef" * 2
HERE = "203.0.113.7"


def call(text: str, address: str = HERE) -> ApiCaller:
    return key_authentication.authenticate(text, address=address)


def refusal(text: str, address: str = HERE) -> tuple[int, str]:
    with pytest.raises(KeyRefused) as refused:
        call(text, address)
    return refused.value.status, refused.value.code


def keep(world: World, key: ApiKeyItem) -> ApiKeyItem:
    return key_changes.find(world.context("alice", "acme").repository, key.api_key_prefix)


# --- who it is ---


def test_a_key_is_at_work_in_its_own_tenant_under_its_own_name(world: World) -> None:
    key, text = make_key(world.context("alice", "acme"), Scope.TICKETS_READ, name="Billing")
    caller = call(text)
    assert caller.tenant.tenant_id == world.tenants["acme"].tenant_id
    assert (caller.tenant.user_id, caller.tenant.user_name) == (key.key_id, "Billing (API key)")
    assert (caller.actor.id, caller.actor.email, caller.actor.origin) == (key.key_id, "Billing (API key)", HERE)
    assert caller.prefix == key.api_key_prefix


def test_it_costs_one_round_trip(world: World, bill: Meter) -> None:
    _, text = make_key(world.context("alice", "acme"))
    with meter.measure() as counted:
        call(text)
    assert [one.operation for one in counted.calls] == ["BatchGetItem"]
    assert counted.read_units == 2


def test_a_key_reads_as_an_agent_only_where_it_may_read_notes(world: World) -> None:
    alice = world.context("alice", "acme")
    _, plain = make_key(alice, *(set(Scope) - {Scope.NOTES_READ}), name="a")
    _, noting = make_key(alice, Scope.NOTES_READ, name="b")
    assert (call(plain).tenant.role, call(noting).tenant.role) == (Role.VIEWER, Role.AGENT)


@pytest.mark.parametrize("scope", Scope)
def test_a_scope_is_asked_for_by_name(world: World, scope: Scope) -> None:
    alice = world.context("alice", "acme")
    with pytest.raises(KeyRefused, match=f"needs the scope {scope.value},") as refused:
        call(make_key(alice, *(set(Scope) - {scope}), name="others")[1]).tenant_for(scope)
    assert (refused.value.status, refused.value.code, refused.value.scope) == (403, "scope_missing", scope.value)
    assert call(make_key(alice, scope, name="it")[1]).tenant_for(scope).role.at_least(scope.role)


def test_a_scope_that_is_none_grants_nothing(world: World) -> None:
    key, text = make_key(world.context("alice", "acme"))
    alter(key, scopes=["tickets:read", "everything"])
    assert call(text).scopes == {Scope.TICKETS_READ}


# --- what is refused without a read ---


def test_what_is_no_key_costs_nothing(world: World) -> None:
    _, text = make_key(world.context("alice", "acme"))
    other = text[:-7] + ("A" if text[-7] != "A" else "B") + text[-6:]
    with meter.measure() as counted:
        assert refusal("") == (401, "key_missing")
        for wrong in (other, text[:-1], text + "A", text.upper(), f" {text}", f"{text}\n", "sk_live", "x" * 10_000):
            assert refusal(wrong) == (401, "key_malformed"), wrong
    assert counted.calls == []


def test_a_key_of_another_installation_costs_nothing(world: World, settings: LazySettings) -> None:
    _, text = make_key(world.context("alice", "acme"))
    settings.API_KEY_ENVIRONMENT = "other"
    with meter.measure() as counted:
        assert refusal(text) == (401, "key_unknown")
    assert counted.calls == []


@given(st.integers(0, 200), st.sampled_from(string.ascii_letters + string.digits + "_"), st.booleans())
def test_no_mistyped_or_swapped_character_is_read_as_a_key(place: int, char: str, is_swapped: bool) -> None:
    text = key_text.new(TENANT, "Ab0Cd1Ef")
    place %= len(text) - 1
    before, here, following, rest = text[:place], text[place], text[place + 1], text[place + 2 :]
    typed = before + (following + here if is_swapped else char + following) + rest
    assert typed == text or key_text.read(typed) is None


# --- what is refused after it ---


def never_made(world: World, key: ApiKeyItem, text: str) -> str:
    return key_text.new(key.tenant_id, "Ab0Cd1Ef")


def of_no_tenant(world: World, key: ApiKeyItem, text: str) -> str:
    return key_text.new(TENANT, "Ab0Cd1Ef")


def of_another_tenant(world: World, key: ApiKeyItem, text: str) -> str:
    return key_text.new(world.tenants["globex"].tenant_id, key.api_key_prefix)


def with_another_secret(world: World, key: ApiKeyItem, text: str) -> str:
    alter(key, revoked_at=clock.stamp())  # of which nobody learns by the prefix
    return key_text.new(key.tenant_id, key.api_key_prefix)


def revoked(world: World, key: ApiKeyItem, text: str) -> str:
    alter(key, revoked_at=clock.stamp())
    return text


def without_its_tenant(world: World, key: ApiKeyItem, text: str) -> str:
    send("DeleteItem", TableName=TENANTS.full_name, Key={"tenant_id": {"S": key.tenant_id}})
    return text


def of_a_suspended_desk(world: World, key: ApiKeyItem, text: str) -> str:
    tenant_lifecycle.suspend(key.tenant_id, by=recording.SYSTEM)
    return text


@pytest.mark.parametrize(
    ("which", "status", "code"),
    [
        (never_made, 401, "key_unknown"),
        (of_no_tenant, 401, "key_unknown"),
        (of_another_tenant, 401, "key_unknown"),
        (with_another_secret, 401, "key_unknown"),
        (without_its_tenant, 401, "key_unknown"),
        (revoked, 401, "key_revoked"),
        (of_a_suspended_desk, 403, "tenant_suspended"),
    ],
)
def test_a_key_is_refused_that_is(
    world: World, which: Callable[[World, ApiKeyItem, str], str], status: int, code: str
) -> None:
    key, text = make_key(world.context("alice", "acme"))
    assert refusal(which(world, key, text)) == (status, code)


def test_a_key_is_refused_from_the_moment_of_its_end(world: World) -> None:
    key, text = make_key(world.context("alice", "acme"), expires_at=clock.now() + timedelta(hours=1))
    assert call(text)
    alter(key, expires_at=clock.stamp())
    assert refusal(text) == (401, "key_expired")


@pytest.mark.parametrize(
    ("address", "lets_in"),
    [
        ("203.0.113.7", True),
        ("::ffff:203.0.113.7", True),
        ("2001:db8::1", True),
        ("203.0.114.7", False),
        ("2001:db9::1", False),
        ("::ffff:203.0.114.7", False),
        ("", False),
        ("somewhere", False),
    ],
)
def test_a_key_lets_in_from_its_networks_only(world: World, address: str, lets_in: bool) -> None:
    key, text = make_key(world.context("alice", "acme"), addresses=("203.0.113.0/24", "2001:db8::/32"))
    for stored in (key.addresses, ["::ffff:203.0.113.0/120", "2001:db8::/32"]):  # the second as former versions did
        alter(key, addresses=stored)
        if lets_in:
            assert call(text, address)
        else:
            assert refusal(text, address) == (403, "address_not_allowed")


# --- what it does depends on it ---


def test_a_key_does_what_only_admins_may_where_its_scope_says_so(world: World) -> None:
    key, text = make_key(world.context("alice", "acme"), Scope.WEBHOOKS_MANAGE, name="Hooks")
    caller = call(text)
    item, _ = endpoint(caller.tenant_for(Scope.WEBHOOKS_MANAGE))
    assert [one.endpoint_id for one in endpoints.listed(caller.tenant.repository)] == [item.endpoint_id]
    alter(key, revoked_at=clock.stamp())
    with pytest.raises(KeyRefused) as refused:
        endpoint(caller.tenant_for(Scope.WEBHOOKS_MANAGE))
    assert (refused.value.status, refused.value.code) == (401, "key_revoked")


def test_what_a_key_does_is_refused_once_it_is_revoked(world: World) -> None:
    key, text = make_key(world.context("alice", "acme"))
    caller = call(text)
    entry = AuditEntry(key.tenant_id, AuditAction.EXPORT_MADE, caller.actor, "export", "x")

    def act() -> None:
        transaction = recording.Transaction()
        member_changes.require_role(transaction, caller.tenant)
        recording.commit(transaction, [entry])

    act()
    alter(key, revoked_at=clock.stamp())
    with pytest.raises(TransactionRefused) as refused:
        act()
    assert refused.value.reason(member_changes.ACTOR)
    alter(key, revoked_at=None, expires_at=clock.stamp())
    with pytest.raises(TransactionRefused):
        act()


# --- when it was last used ---


def test_a_use_is_noted_once_the_answer_was_sent_and_not_before(world: World) -> None:
    key, text = make_key(world.context("alice", "acme"))
    caller = call(text)
    assert keep(world, key).last_used_at is None
    key_authentication.note_use(caller)
    noted = keep(world, key)
    assert noted.last_used_at is not None
    assert noted.last_used_from == HERE


def test_a_request_costs_no_trip_more_for_being_noted(world: World) -> None:
    key, text = make_key(world.context("alice", "acme"))
    with _watching() as bills:
        assert ApiClient(text).ask("/tickets").status_code == 200
    assert bills[0].trips == 2
    assert keep(world, key).last_used_from == "127.0.0.1"


def test_a_fault_in_noting_a_use_is_logged_and_costs_the_caller_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(caller: ApiCaller) -> None:
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr(key_authentication, "note_use", fail)
    key, text = make_key(world.context("alice", "acme"))
    client = ApiClient(text)
    assert [client.ask("/tickets").status_code, Client().get("/in/").status_code] == [200, 302]
    (line,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert key.tenant_id in line.getMessage()
    assert line.exc_info


def test_uses_are_noted_once_in_five_minutes(world: World) -> None:
    key, text = make_key(world.context("alice", "acme"))

    def noted_after_a_call() -> str | None:
        key_authentication.note_use(call(text))
        return keep(world, key).last_used_at

    first = noted_after_a_call()
    with meter.measure() as counted:
        key_authentication.note_use(call(text))
    assert [one.operation for one in counted.calls] == ["BatchGetItem"]
    alter(keep(world, key), last_used_at=clock.stamp(clock.now() - timedelta(minutes=6)))
    second = noted_after_a_call()
    assert (first or "") < (second or "")


def test_of_processes_that_note_the_same_use_one_writes_it(world: World) -> None:
    key, text = make_key(world.context("alice", "acme"))
    for caller in [call(text, address) for address in (HERE, "192.0.2.1")]:  # each of them has read it unnoted
        key_authentication.note_use(caller)
    assert keep(world, key).last_used_from == HERE


def test_a_use_of_a_key_that_is_refused_is_not_noted(world: World) -> None:
    key, text = make_key(world.context("alice", "acme"), addresses=("192.0.2.0/24",))
    assert ApiClient(text).ask("/tickets").status_code == 403
    assert keep(world, key).last_used_at is None
