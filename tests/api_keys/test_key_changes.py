"""What admins do with keys: what is stored, when a key ends, and what of it the audit trail says."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest

from portal import clock
from portal.errors import Conflict, Invalid, NotFound
from tenants.api_keys import key_authentication, key_changes, key_text
from tenants.api_keys.key_authentication import KeyRefused
from tenants.api_keys.key_changes import KeyChoice
from tenants.api_keys.scopes import Scope
from tenants.api_keys.stored import ApiKeyItem
from tenants.audit_trail import browsing
from tenants.audit_trail.recording import Actor
from tenants.membership import member_changes
from tenants.tenancy.context import Role
from tests.support.api_keys import alter, make_key
from tests.support.commands import everything
from tests.support.racing import succeed
from tests.support.world import World

BY = Actor("a" * 32, "alice@example.com")
DAY = timedelta(days=1)


def lets_in(text: str) -> bool:
    with suppress(KeyRefused):
        key_authentication.authenticate(text, address="203.0.113.7")
        return True
    return False


def rolled(world: World, key: ApiKeyItem, **how: Any) -> tuple[ApiKeyItem, str]:
    chosen = {"version": int(key.version), "grace": DAY, "expires_at": None, **how}
    return key_changes.roll(world.context("alice", "acme"), prefix=key.api_key_prefix, by=BY, **chosen)


def stored(world: World, key: ApiKeyItem) -> ApiKeyItem:
    return key_changes.find(world.context("alice", "acme").repository, key.api_key_prefix)


def trail(world: World) -> list[browsing.TrailRow]:
    rows = browsing.page(world.context("alice", "acme").repository, only=browsing.TrailFilter()).rows
    return [row for row in rows if row.entity_type == "api_key"]


# --- making ---


def test_nothing_that_is_stored_is_the_key(world: World) -> None:
    _, text = make_key(world.context("alice", "acme"))
    assert text[-38:] not in json.dumps(everything(), default=str)


def test_two_working_keys_have_different_names(world: World) -> None:
    alice = world.context("alice", "acme")
    key, _ = make_key(alice, name="Billing")
    with pytest.raises(Conflict) as refused:
        make_key(alice, name="BILLING")
    assert refused.value.field == "name"
    key_changes.revoke(alice, prefix=key.api_key_prefix, by=BY)
    assert make_key(alice, name="Billing")


def test_a_desk_has_a_bounded_number_of_working_keys(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_changes, "MOST", 2)
    alice = world.context("alice", "acme")
    first, _ = make_key(alice, name="a")
    make_key(alice, name="b")
    with pytest.raises(Conflict, match="up to 2 keys"):
        make_key(alice, name="c")
    key_changes.revoke(alice, prefix=first.api_key_prefix, by=BY)
    assert make_key(alice, name="c")


def test_ended_keys_do_not_pile_up_without_bound(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_changes, "MOST_KEPT", 2)
    alice = world.context("alice", "acme")
    for name in ("a", "b"):
        key, _ = make_key(alice, name=name)
        key_changes.revoke(alice, prefix=key.api_key_prefix, by=BY)
    alter(key, revoked_at=None)
    with pytest.raises(Conflict, match="2 keys in 30 days"):
        make_key(alice, name="c")
    with pytest.raises(Conflict, match="2 keys in 30 days"):
        rolled(world, stored(world, key))


def test_who_is_no_admin_any_more_makes_no_key(world: World) -> None:
    alice, bob = world.context("alice", "acme"), world.users["bob"]
    member_changes.set_role(user_id=bob.id, tenant_id=alice.tenant_id, role=Role.ADMIN, seen=Role.AGENT, by=BY)
    admin = world.context("bob", "acme")
    member_changes.set_role(user_id=bob.id, tenant_id=alice.tenant_id, role=Role.AGENT, seen=Role.ADMIN, by=BY)
    with pytest.raises(Conflict):
        make_key(admin)
    assert key_changes.listed(alice.repository) == []


def test_networks_of_ipv4_that_are_written_as_ipv6_are_stored_as_they_are_compared() -> None:
    written = ("::ffff:203.0.113.7", "::ffff:cb00:7100/120", "::ffff:0:0/96", "::/0")
    choice = KeyChoice(name="Billing", scopes=frozenset({Scope.TICKETS_READ}), addresses=written)
    assert choice.addresses == ("203.0.113.7", "203.0.113.0/24", "0.0.0.0/0", "::/0")
    with pytest.raises(Invalid, match=r"Write 203\.0\.113\.0/24 for all"):
        KeyChoice(name="Billing", scopes=frozenset({Scope.TICKETS_READ}), addresses=("::ffff:203.0.113.9/120",))


def test_places_are_stored_as_callers_show_them() -> None:
    choice = KeyChoice(
        name="Billing",
        scopes=frozenset({Scope.TICKETS_READ}),
        addresses=("203.0.113.7", "2001:DB8::/32", "203.0.113.7"),
        origins=("HTTPS://App.Example.com:443", "http://localhost:3000", "https://app.example.com:8443"),
    )
    assert choice.addresses == ("203.0.113.7", "2001:db8::/32")
    assert choice.origins == ("https://app.example.com", "http://localhost:3000", "https://app.example.com:8443")


# --- changing ---


def changed(world: World, key: ApiKeyItem, **values: Any) -> bool:
    choice = {"name": key.name, "scopes": frozenset(map(Scope, key.scopes)), "expires_at": ends(key), **values}
    alice = world.context("alice", "acme")
    return key_changes.change(
        alice, prefix=key.api_key_prefix, choice=KeyChoice(**choice), version=int(key.version), by=BY
    )


def ends(key: ApiKeyItem) -> datetime | None:
    return clock.parse(key.expires_at) if key.expires_at else None


def test_a_scope_that_is_taken_away_is_gone_at_the_next_call(world: World) -> None:
    key, text = make_key(world.context("alice", "acme"), Scope.TICKETS_READ, Scope.TICKETS_WRITE)
    assert changed(world, key, scopes=frozenset({Scope.TICKETS_READ}))
    assert key_authentication.authenticate(text, address="").scopes == {Scope.TICKETS_READ}


def test_a_key_gets_an_end_and_loses_it_again(world: World) -> None:
    key, _ = make_key(world.context("alice", "acme"))
    end = clock.now() + DAY
    changed(world, key, expires_at=end)
    assert stored(world, key).expires_at == clock.stamp(end)
    assert stored(world, key).kept_until == int((end + key_changes.KEPT).timestamp())
    changed(world, stored(world, key), expires_at=None)
    assert (stored(world, key).expires_at, stored(world, key).kept_until) == (None, None)


def test_what_changes_nothing_writes_nothing(world: World) -> None:
    key, _ = make_key(world.context("alice", "acme"))
    assert not changed(world, key)
    assert [row.action for row in trail(world)] == ["api_key.created"]


def test_a_key_gets_no_name_of_another(world: World) -> None:
    alice = world.context("alice", "acme")
    make_key(alice, name="Billing")
    other, _ = make_key(alice, name="Letters")
    with pytest.raises(Conflict, match="Another key has this name"):
        changed(world, other, name="billing")


def test_the_two_keys_of_a_roll_may_have_one_name(world: World) -> None:
    key, _ = make_key(world.context("alice", "acme"), name="Billing")
    successor, _ = rolled(world, key)
    assert changed(world, successor, name="BILLING")


# --- rolling ---


def test_a_rolled_key_works_beside_the_new_one_until_the_grace_is_over(world: World) -> None:
    key, text = make_key(world.context("alice", "acme"), Scope.NOTES_READ, addresses=("203.0.113.0/24",))
    successor, new_text = rolled(world, key)
    assert lets_in(text)
    assert lets_in(new_text)
    assert (successor.key_id, successor.name) == (key.key_id, key.name)
    assert key_authentication.authenticate(new_text, address="203.0.113.7").scopes == {Scope.NOTES_READ}
    old = stored(world, key)
    assert old.replaced_by == successor.api_key_prefix
    assert clock.now() + DAY >= clock.parse(str(old.expires_at)) > clock.now() + DAY - timedelta(minutes=1)
    alter(old, expires_at=clock.stamp())
    assert not lets_in(text)
    assert lets_in(new_text)


def test_without_grace_the_old_key_ends_at_once(world: World) -> None:
    key, text = make_key(world.context("alice", "acme"))
    _, new_text = rolled(world, key, grace=timedelta(0))
    assert (lets_in(text), lets_in(new_text)) == (False, True)


def test_rolling_gives_no_key_more_time_than_it_had(world: World) -> None:
    key, _ = make_key(world.context("alice", "acme"), expires_at=clock.now() + timedelta(hours=1))
    rolled(world, key)
    assert stored(world, key).expires_at == key.expires_at


def test_a_key_is_rolled_once_and_then_its_successor_is(world: World) -> None:
    key, _ = make_key(world.context("alice", "acme"))
    successor, text = rolled(world, key)
    with pytest.raises(Conflict, match="rolled already"):
        rolled(world, key)
    with pytest.raises(Conflict):
        changed(world, stored(world, key), name="Other")
    rolled(world, successor)
    assert lets_in(text)


def test_keys_that_are_rolled_count_as_long_as_they_work(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_changes, "MOST", 2)
    key, text = make_key(world.context("alice", "acme"))
    successor, _ = rolled(world, key)
    with pytest.raises(Conflict, match="up to 2 keys"):
        rolled(world, successor)
    assert stored(world, successor).replaced_by is None
    _, last = rolled(world, successor, grace=timedelta(0))  # which makes no key more
    assert [lets_in(text), lets_in(last)] == [True, True]


def test_of_many_who_roll_at_the_same_moment_one_does(world: World) -> None:
    key, _ = make_key(world.context("alice", "acme"))
    assert succeed([partial(rolled, world, key)] * 4) == 1
    assert len(key_changes.listed(world.context("alice", "acme").repository)) == 2


# --- revoking ---


def test_a_revoked_key_lets_in_nobody_at_its_next_call_and_never_again(world: World) -> None:
    alice = world.context("alice", "acme")
    key, text = make_key(alice)
    key_changes.revoke(alice, prefix=key.api_key_prefix, by=BY)
    assert not lets_in(text)
    for again in (
        lambda: key_changes.revoke(alice, prefix=key.api_key_prefix, by=BY),
        lambda: rolled(world, stored(world, key)),
        lambda: changed(world, stored(world, key), name="Other"),
    ):
        with pytest.raises(Conflict):
            again()


def test_a_change_that_was_read_before_does_not_bring_a_revoked_key_back(world: World) -> None:
    alice = world.context("alice", "acme")
    key, text = make_key(alice)
    read = key_changes.find(alice.repository, key.api_key_prefix)
    key_changes.revoke(alice, prefix=key.api_key_prefix, by=BY)
    change = key_changes.updated(read, key_changes.ending(clock.now() + DAY))
    row = key_changes.entry(read, browsing.AuditAction.API_KEY_CHANGED, BY)
    with pytest.raises(Conflict):
        key_changes.commit(alice, lambda: change, row)
    assert not lets_in(text)


@pytest.mark.parametrize("prefix", ["Ab0Cd1Ef", "", "../../..", "Ab0Cd1Ef\n", "x" * 9])
def test_another_tenants_key_is_as_one_that_does_not_exist(world: World, prefix: str) -> None:
    key, text = make_key(world.context("charlie", "globex"))
    alice = world.context("alice", "acme")
    for named in (prefix, key.api_key_prefix):
        with pytest.raises(NotFound):
            key_changes.revoke(alice, prefix=named, by=BY)
    assert lets_in(text)


# --- the audit trail ---


def test_each_change_is_in_the_trail_without_what_could_be_used(world: World) -> None:
    alice = world.context("alice", "acme")
    key, text = make_key(alice, name="Billing")
    changed(world, key, name="Invoices")
    successor, new_text = rolled(world, stored(world, key))
    key_changes.revoke(alice, prefix=successor.api_key_prefix, by=BY)
    rows = trail(world)
    assert [row.action for row in rows] == ["api_key.revoked", "api_key.rolled", "api_key.changed", "api_key.created"]
    assert {row.entity_id for row in rows} == {key.key_id}
    assert rows[2].changes == [("name", "Billing", "Invoices")]
    said = repr(rows)
    for secret in (text, new_text):
        named = key_text.read(secret)
        assert named
        assert secret.rpartition("_")[2].removeprefix(named.prefix) not in said
        assert key_text.digest(secret) not in said
