"""Operators see what is dead of what leaves the desks, replay or drop it, and hold one desk's deliveries."""

from __future__ import annotations

import pytest
from django.contrib.admin.utils import quote

from delivery.consuming import dead_deliveries
from delivery.consuming.items import DeadDeliveryItem
from delivery.holding import holds
from delivery.outbox import keys
from delivery.outbox.items import OutboxItem
from portal.dynamo.repository import TenantRepository
from portal.errors import Conflict
from tenants.audit_trail.recording import SYSTEM
from tenants.operators.facades import AuditRow
from tests.support import deliveries
from tests.support.operators import Operator, make_operator, tenant_url
from tests.support.world import World

LIST = "/admin/delivery/deaddelivery/"


@pytest.fixture
def root(world: World) -> Operator:
    make_operator()
    return Operator.signed_in()


def dead(world: World, slug: str, to: str = "ep_gone", reason: str = "It answered 410.") -> OutboxItem:
    tenant_id = world.tenants[slug].tenant_id
    row = deliveries.row(tenant_id, to)
    dead_deliveries.keep(TenantRepository(tenant_id), row, index=0, destination=to, reason=reason)
    return row


def url(letter: DeadDeliveryItem) -> str:
    return f"{LIST}{quote(f'{letter.tenant_id}/{letter.letter_id}')}/change/"


def test_dead_deliveries_of_all_tenants_and_of_one(world: World, root: Operator) -> None:
    assert "It answered" not in root.says(LIST)
    dead(world, "acme")
    dead(world, "globex", reason="Its attempts are used up.")
    everything = root.says(LIST)
    assert "It answered 410." in everything
    assert "Its attempts are used up." in everything
    assert "2 deliveries are dead" in root.says("/admin/")
    of_acme = root.says(f"{LIST}?tenant_id=acme")
    assert "It answered 410." in of_acme
    assert "Its attempts are used up." not in of_acme


def test_a_dead_delivery_that_is_replayed_is_due_again_and_gone_from_the_list(world: World, root: Operator) -> None:
    row = dead(world, "acme")
    (letter,) = dead_deliveries.stored()
    assert "ticket/7" in root.says(url(letter))
    page = root.act(url(letter), "_replay", follow=True)
    assert "It is sent again." in page.content.decode()
    again = deliveries.stored(row)
    assert again.open == {"0/ep_gone"}
    assert again.pending == keys.pending_of(keys.row_parts(row.event_id)[1])
    assert list(dead_deliveries.stored()) == []
    assert root.act(url(letter), "_replay").status_code == 404


def test_a_dead_delivery_that_is_dropped_is_not_delivered(world: World, root: Operator) -> None:
    row = dead(world, "acme")
    (letter,) = dead_deliveries.stored()
    root.act(url(letter), "_drop")
    assert deliveries.stored(row).pending is None
    assert list(dead_deliveries.stored(tenant_id=letter.tenant_id)) == []


def test_many_are_replayed_or_dropped_at_once(world: World, root: Operator) -> None:
    for number in range(3):
        dead(world, "acme", f"ep_{number}")
    chosen = [f"{letter.tenant_id}/{letter.letter_id}" for letter in dead_deliveries.stored()]
    page = root.post(LIST, {"action": "replay", "_selected_action": chosen[:2]}, follow=True)
    assert "2 replayed." in page.content.decode()
    root.post(LIST, {"action": "drop", "_selected_action": chosen[2:]})
    assert list(dead_deliveries.stored()) == []


def test_who_replayed_and_who_dropped_is_in_the_tenants_trail(world: World, root: Operator) -> None:
    dead(world, "acme")
    dead(world, "acme", "ep_2")
    first, second = dead_deliveries.stored()
    root.act(url(first), "_replay")
    root.act(url(second), "_drop")
    trail = AuditRow.objects.filter(tenant_id=world.tenants["acme"].tenant_id)[:20]
    assert {"dead_delivery.replayed", "dead_delivery.dropped"} <= {row.action for row in trail}
    assert {row.actor_email for row in trail if row.action.startswith("dead")} == {"root@example.com"}


def test_what_the_outbox_has_no_longer_cannot_be_replayed(world: World, root: Operator) -> None:
    dead(world, "acme")
    (letter,) = dead_deliveries.stored()
    letter.event_id = keys.outbox_row(letter.tenant_id, "0" * 32)
    with pytest.raises(Conflict, match="no such event any more"):
        dead_deliveries.replay(letter, by=SYSTEM)
    assert list(dead_deliveries.stored())


def test_a_desks_deliveries_are_paused_and_resumed_on_its_page(world: World, root: Operator) -> None:
    acme = tenant_url(world, "acme")
    assert "They go out." in root.says(acme)
    assert root.post(acme, {"_pause_deliveries": "1"}).status_code == 200  # it asks for the reason first
    page = root.act(acme, "_pause_deliveries", follow=True)
    assert "everything waits" in page.content.decode()
    assert set(holds.read()) == {world.tenants["acme"].tenant_id}
    assert "They go out." in root.says(tenant_url(world, "globex"))
    root.act(acme, "_resume_deliveries")
    assert "They go out." in root.says(acme)
    assert "are not paused" in root.act(acme, "_resume_deliveries", follow=True).content.decode()


@pytest.mark.parametrize(
    ("action", "says"), [("_drain_deliveries", "They drain"), ("_drop_deliveries", "is being dropped")]
)
def test_a_desks_deliveries_are_drained_and_dropped_on_its_page(
    world: World, root: Operator, action: str, says: str
) -> None:
    acme = tenant_url(world, "acme")
    root.act(acme, action)
    assert says in root.says(acme)


def test_members_see_none_of_it(world: World) -> None:
    browser = world.browser("alice", "acme")
    assert browser.get(LIST).status_code in (302, 403, 404)
