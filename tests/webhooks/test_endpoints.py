"""Setting up endpoints: rules that hold whoever asks, and what the tenant's own item says afterwards."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from delivery.webhooks import endpoints
from delivery.webhooks.endpoints import EndpointChoice
from delivery.webhooks.stored import SECRETS, EndpointItem, SecretItem
from portal import clock
from portal.errors import Conflict, Invalid, NotFound
from portal.schema import keys
from tenants.audit_trail import browsing
from tenants.audit_trail.recording import Actor
from tenants.membership import member_changes
from tenants.tenancy.roles import Role
from tests.support.commands import everything
from tests.support.endpoints import URL, endpoint, rows, tell
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


def test_a_change_a_pause_and_a_removal_are_what_the_tenants_item_says(world: World) -> None:
    alice = world.context("alice", "acme")
    item, _ = endpoint(alice)
    other = EndpointChoice(url=URL, event_types=("parcel.lost",))
    endpoints.change(alice, endpoint_id=item.endpoint_id, choose=lambda _: other, version=1, by=by(world))
    assert subscriptions(world) == {"parcel.lost": (item.endpoint_id,)}
    endpoints.pause(alice, endpoint_id=item.endpoint_id, by=by(world))
    assert subscriptions(world) == {}
    endpoints.resume(alice, endpoint_id=item.endpoint_id, by=by(world))
    assert subscriptions(world) == {"parcel.lost": (item.endpoint_id,)}
    endpoints.remove(alice, endpoint_id=item.endpoint_id, by=by(world))
    assert subscriptions(world) == {}
    assert everything(SECRETS) == []


def test_a_change_of_a_paused_endpoint_subscribes_it_to_nothing(world: World) -> None:
    alice = world.context("alice", "acme")
    item, _ = endpoint(alice)
    endpoints.pause(alice, endpoint_id=item.endpoint_id, by=by(world))
    choice = EndpointChoice(url=URL, event_types=("parcel.lost",))
    endpoints.change(alice, endpoint_id=item.endpoint_id, choose=lambda _: choice, version=2, by=by(world))
    assert subscriptions(world) == {}


def test_what_happens_while_an_endpoint_is_paused_is_written_for_nobody(world: World) -> None:
    alice = world.context("alice", "acme")
    item, _ = endpoint(alice)
    endpoints.pause(alice, endpoint_id=item.endpoint_id, by=by(world))
    tell(world.context("alice", "acme"), 1)
    assert rows() == []


def test_each_change_has_its_row_in_the_audit_trail_and_no_secret_in_it(world: World) -> None:
    alice = world.context("alice", "acme")
    item, secret = endpoint(alice)
    endpoints.rotate(alice, endpoint_id=item.endpoint_id, version=1, by=by(world))
    choice = EndpointChoice(url=f"{URL}/2", event_types=("parcel.sent",))
    endpoints.change(alice, endpoint_id=item.endpoint_id, choose=lambda _: choice, version=2, by=by(world))
    endpoints.pause(alice, endpoint_id=item.endpoint_id, by=by(world))
    endpoints.resume(alice, endpoint_id=item.endpoint_id, by=by(world))
    endpoints.remove(alice, endpoint_id=item.endpoint_id, by=by(world))
    found = trail(world)
    done = ["removed", "resumed", "paused", "changed", "rotated", "added"]
    assert [row.action for row in found] == [f"webhook.{word}" for word in done]
    assert found[3].changes == [("address", URL, f"{URL}/2")]
    assert not any("whsec_" in str(row) or secret in str(row) for row in found)


def test_saving_what_is_there_already_changes_nothing(world: World) -> None:
    alice = world.context("alice", "acme")
    item, _ = endpoint(alice)
    choice = EndpointChoice(url=URL, event_types=("parcel.sent",))
    same = endpoints.change(alice, endpoint_id=item.endpoint_id, choose=lambda _: choice, version=1, by=by(world))
    assert same.version == 1
    assert [row.action for row in trail(world)] == ["webhook.added"]


def test_a_form_that_is_sent_twice_makes_one_endpoint(world: World) -> None:
    alice = world.context("alice", "acme")
    choice = EndpointChoice(url=URL, event_types=("parcel.sent",))
    endpoints.add(alice, choice=choice, request_id="a" * 32, by=by(world))
    with pytest.raises(Conflict, match="added already"):
        endpoints.add(alice, choice=choice, request_id="a" * 32, by=by(world))
    assert len(endpoints.listed(alice.repository)) == 1


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


def test_of_two_who_change_an_endpoint_at_the_same_time_the_second_is_told(world: World) -> None:
    alice = world.context("alice", "acme")
    item, _ = endpoint(alice)
    for version, url in ((1, f"{URL}/a"), (1, f"{URL}/b")):
        choice = EndpointChoice(url=url, event_types=("parcel.sent",))
        try:
            endpoints.change(
                alice,
                endpoint_id=item.endpoint_id,
                choose=lambda _, choice=choice: choice,
                version=version,
                by=by(world),
            )
        except Conflict as error:
            refused = error
    assert "Somebody else" in refused.message
    assert endpoints.find(alice.repository, item.endpoint_id).url == f"{URL}/a"


def test_an_admin_whose_role_has_just_changed_is_refused(world: World) -> None:
    world.join("bob", "globex", Role.ADMIN)
    bob = world.context("bob", "globex")
    user_id, tenant_id = world.users["bob"].id, bob.tenant_id
    member_changes.set_role(user_id=user_id, tenant_id=tenant_id, role=Role.VIEWER, seen=Role.ADMIN, by=by(world))
    with pytest.raises(Conflict):
        endpoint(bob)
    assert endpoints.listed(bob.repository) == []
    assert everything(SECRETS) == []


@pytest.mark.parametrize(
    ("values", "field", "said"),
    [
        ({"url": "http://hooks.example.com/"}, "url", "https"),
        ({"url": "https://127.0.0.1/"}, "url", "host of the internet"),
        ({"event_types": ()}, "event_types", "at least one"),
        ({"event_types": ("parcel.sent", "parcel.eaten")}, "event_types", "no event type “parcel.eaten”"),
        ({"event_types": ("webhook.test",)}, "event_types", "no event type"),
        ({"description": "x" * 201}, "description", "200 characters"),
        ({"description": "a\u202eb"}, "description", "seen"),
    ],
)
def test_what_cannot_be_is_refused_at_its_field(values: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(Invalid, match=said) as refused:
        EndpointChoice(**{"url": URL, "event_types": ("parcel.sent",), **values})
    assert refused.value.field == field


@pytest.mark.parametrize("endpoint_id", ["", "ep_", "ep_0123456789abcdef", "ep_../..", "x" * 600, "ep_0#1|2"])
def test_an_endpoint_that_does_not_exist_is_not_found(world: World, endpoint_id: str) -> None:
    alice = world.context("alice", "acme")
    for act in (endpoints.pause, endpoints.resume, endpoints.remove):
        with pytest.raises(NotFound):
            act(alice, endpoint_id=endpoint_id, by=by(world))


def test_another_tenants_endpoint_is_not_found(world: World) -> None:
    item, _ = endpoint(world.context("alice", "acme"))
    charlie = world.context("charlie", "globex")
    with pytest.raises(NotFound):
        endpoints.find(charlie.repository, item.endpoint_id)
    with pytest.raises(NotFound):
        endpoints.rotate(charlie, endpoint_id=item.endpoint_id, version=1, by=by(world))
    assert endpoints.listed(charlie.repository) == []


# --- secrets ---


def stored_secret(world: World, item: EndpointItem) -> SecretItem:
    found = world.context("alice", "acme").repository.get(SecretItem, keys.tenant, sort=item.endpoint_id)
    assert found is not None
    return found


def test_a_replaced_secret_signs_beside_the_new_one_until_its_time_is_over(world: World) -> None:
    alice = world.context("alice", "acme")
    item, old = endpoint(alice)
    assert endpoints.signing(stored_secret(world, item)) == [old]
    _, new = endpoints.rotate(alice, endpoint_id=item.endpoint_id, version=1, by=by(world))
    stored = stored_secret(world, item)
    assert endpoints.signing(stored) == [new, old]
    ends = clock.parse(stored.previous_until) - clock.now()
    assert ends.total_seconds() == pytest.approx(24 * 3600, abs=60)
    stored.previous_until = clock.stamp()
    assert endpoints.signing(stored) == [new]


def test_a_secret_that_is_replaced_again_signs_for_its_own_24_hours(world: World) -> None:
    alice = world.context("alice", "acme")
    item, first = endpoint(alice)
    _, second = endpoints.rotate(alice, endpoint_id=item.endpoint_id, version=1, by=by(world))
    ends = stored_secret(world, item).previous_until
    _, third = endpoints.rotate(alice, endpoint_id=item.endpoint_id, version=2, by=by(world))
    stored = stored_secret(world, item)
    assert endpoints.signing(stored) == [third, second, first]
    assert stored.earlier == [f"{ends} {first}"]
    stored.earlier = [f"{clock.stamp()} {first}"]
    assert endpoints.signing(stored) == [third, second]


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


def test_a_form_that_is_sent_twice_replaces_the_secret_once(world: World) -> None:
    alice = world.context("alice", "acme")
    item, _ = endpoint(alice)
    _, new = endpoints.rotate(alice, endpoint_id=item.endpoint_id, version=1, by=by(world))
    with pytest.raises(Conflict):
        endpoints.rotate(alice, endpoint_id=item.endpoint_id, version=1, by=by(world))
    assert stored_secret(world, item).current == new


def test_the_list_of_endpoints_reads_no_secret(world: World) -> None:
    alice = world.context("alice", "acme")
    _, secret = endpoint(alice)
    assert secret not in str([item.serialize() for item in endpoints.listed(alice.repository)])
