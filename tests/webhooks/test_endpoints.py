"""Setting up endpoints: rules that hold whoever asks, and what the tenant's own item says afterwards."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from delivery.webhooks import endpoints
from delivery.webhooks.endpoints import EndpointChoice
from delivery.webhooks.stored import SECRETS, EndpointItem, SecretItem
from portal import clock
from portal.errors import Conflict
from portal.schema import keys
from tenants.audit_trail import browsing
from tenants.audit_trail.recording import Actor
from tenants.membership import member_changes
from tenants.tenancy.context import Role
from tests.support.commands import everything
from tests.support.endpoints import URL, endpoint
from tests.support.stored import put_all
from tests.support.world import World


def subscriptions(world: World, slug: str = "acme") -> dict[str, tuple[str, ...]]:
    who = "alice" if slug == "acme" else "charlie"
    return dict(world.context(who, slug).subscriptions)


def trail(world: World) -> list[browsing.TrailRow]:
    found = browsing.page(world.context("alice", "acme").repository, only=browsing.TrailFilter()).rows
    return [row for row in found if row.entity_type == "webhook"]


def by(world: World) -> Actor:
    return Actor(world.users["alice"].id)


def test_an_endpoint_is_subscribed_to_what_was_chosen(world: World) -> None:
    alice = world.context("alice", "acme")
    first, _ = endpoint(alice, types=("parcel.sent", "parcel.lost"))
    second, _ = endpoint(alice, types=("parcel.sent",))
    both = tuple(sorted((first.endpoint_id, second.endpoint_id)))
    assert subscriptions(world) == {"parcel.sent": both, "parcel.lost": (first.endpoint_id,)}
    assert subscriptions(world, "globex") == {}


def test_each_change_is_what_the_tenants_item_says_and_has_its_row_in_the_audit_trail(world: World) -> None:
    alice = world.context("alice", "acme")
    item, secret = endpoint(alice)
    which = {"endpoint_id": item.endpoint_id, "by": by(world)}
    endpoints.rotate(alice, version=1, **which)
    choice = EndpointChoice(url=f"{URL}/2", event_types=("parcel.lost",))
    acts = (
        (lambda: endpoints.change(alice, choose=lambda _: choice, version=2, **which), ("parcel.lost",)),
        (lambda: endpoints.pause(alice, **which), ()),
        (lambda: endpoints.resume(alice, **which), ("parcel.lost",)),
        (lambda: endpoints.remove(alice, **which), ()),
    )
    for act, subscribed in acts:
        act()
        assert subscriptions(world) == dict.fromkeys(subscribed, (item.endpoint_id,))
    assert everything(SECRETS) == []
    found = trail(world)
    done = ["removed", "resumed", "paused", "changed", "rotated", "added"]
    assert [row.action for row in found] == [f"webhook.{word}" for word in done]
    assert ("address", URL, f"{URL}/2") in found[3].changes
    assert not any("whsec_" in str(row) or secret in str(row) for row in found)


def test_a_change_of_a_paused_endpoint_subscribes_it_to_nothing(world: World) -> None:
    alice = world.context("alice", "acme")
    item, _ = endpoint(alice)
    endpoints.pause(alice, endpoint_id=item.endpoint_id, by=by(world))
    choice = EndpointChoice(url=URL, event_types=("parcel.lost",))
    endpoints.change(alice, endpoint_id=item.endpoint_id, choose=lambda _: choice, version=2, by=by(world))
    assert subscriptions(world) == {}


def test_saving_what_is_there_already_changes_nothing(world: World) -> None:
    alice = world.context("alice", "acme")
    item, _ = endpoint(alice)
    choice = EndpointChoice(url=URL, event_types=("parcel.sent",))
    same = endpoints.change(alice, endpoint_id=item.endpoint_id, choose=lambda _: choice, version=1, by=by(world))
    assert same.version == 1
    assert [row.action for row in trail(world)] == ["webhook.added"]


def test_of_many_who_add_at_the_same_moment_ten_get_an_endpoint(world: World) -> None:
    alice = world.context("alice", "acme")
    for _ in range(8):
        endpoint(alice)

    def add(number: int) -> bool:
        with suppress(Conflict):
            endpoint(alice, name=f"{number}")
            return True
        return False

    with ThreadPoolExecutor(5) as pool:
        assert sum(pool.map(add, range(5))) == 2
    assert len(endpoints.listed(alice.repository, consistent=True)) == endpoints.MOST
    assert len(subscriptions(world)["parcel.sent"]) == endpoints.MOST


def test_a_list_that_is_older_than_what_is_subscribed_is_read_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, read = world.context("alice", "acme"), endpoints.listed
    for _ in range(endpoints.MOST - 1):
        endpoint(alice)
    older = [read(alice.repository, consistent=True)]
    endpoint(alice)
    monkeypatch.setattr(endpoints, "listed", lambda *a, **how: older.pop() if older else read(*a, **how))
    with pytest.raises(Conflict, match=f"up to {endpoints.MOST} endpoints"):
        endpoint(alice, name="late")


def test_an_admin_whose_role_has_just_changed_is_refused(world: World) -> None:
    world.join("bob", "globex", Role.ADMIN)
    bob = world.context("bob", "globex")
    user_id, tenant_id = world.users["bob"].id, bob.tenant_id
    member_changes.set_role(user_id=user_id, tenant_id=tenant_id, role=Role.VIEWER, seen=Role.ADMIN, by=by(world))
    with pytest.raises(Conflict):
        endpoint(bob)
    assert endpoints.listed(bob.repository) == []
    assert everything(SECRETS) == []


# --- secrets ---


def stored_secret(world: World, item: EndpointItem) -> SecretItem:
    found = world.context("alice", "acme").repository.get(SecretItem, keys.tenant, sort=item.endpoint_id)
    assert found is not None
    return found


def test_a_replaced_secret_signs_beside_the_new_ones_for_its_own_24_hours(world: World) -> None:
    alice = world.context("alice", "acme")
    item, first = endpoint(alice)
    assert endpoints.signing(stored_secret(world, item)) == [first]
    _, second = endpoints.rotate(alice, endpoint_id=item.endpoint_id, version=1, by=by(world))
    ends = stored_secret(world, item).previous_until
    assert (clock.parse(ends) - clock.now()).total_seconds() == pytest.approx(24 * 3600, abs=60)
    _, third = endpoints.rotate(alice, endpoint_id=item.endpoint_id, version=2, by=by(world))
    stored = stored_secret(world, item)
    assert endpoints.signing(stored) == [third, second, first]
    assert stored.earlier == [f"{ends} {first}"]
    stored.earlier = [f"{clock.stamp()} {first}"]
    assert endpoints.signing(stored) == [third, second]
    stored.previous_until = clock.stamp()
    assert endpoints.signing(stored) == [third]


def test_a_secret_is_not_replaced_where_that_would_end_one_that_still_signs(world: World) -> None:
    alice = world.context("alice", "acme")
    item, _ = endpoint(alice)
    for version in range(1, endpoints.MOST_OLD + 1):
        endpoints.rotate(alice, endpoint_id=item.endpoint_id, version=version, by=by(world))
    before = stored_secret(world, item)
    with pytest.raises(Conflict, match=r"replaced 3 times .* You can replace it again after"):
        endpoints.rotate(alice, endpoint_id=item.endpoint_id, version=endpoints.MOST_OLD + 1, by=by(world))
    assert endpoints.signing(stored_secret(world, item)) == endpoints.signing(before)
    before.earlier = [*before.earlier[:-1], f"{clock.stamp()} {before.current}"]
    put_all([before])
    endpoints.rotate(alice, endpoint_id=item.endpoint_id, version=endpoints.MOST_OLD + 1, by=by(world))
