"""Operators see what is dead of what leaves the desks, replay or drop it, and hold one desk's deliveries."""

from __future__ import annotations

import pytest
from django.contrib.admin.utils import quote

from delivery.admin import held_tenant_admin
from delivery.outbox import stored
from delivery.outbox.outbox_rows import Work
from delivery.outbox.stored import OutboxItem
from delivery.queues import dead_deliveries, depths, holds
from delivery.queues.stored import DeadDeliveryItem
from portal.dynamo.store import Store
from portal.errors import Conflict
from tenants.audit_trail.recording import SYSTEM
from tenants.operators.facades import AuditRow
from tests.support import deliveries
from tests.support.operators import Operator, tenant_url, text_of
from tests.support.world import World

LIST = "/admin/delivery/deaddelivery/"


def dead(world: World, slug: str, to: str = "ep_gone", reason: str = "It answered 410.") -> OutboxItem:
    tenant_id = world.tenants[slug].tenant_id
    row = deliveries.row(tenant_id, to)
    dead_deliveries.keep(Work(Store("tenant", tenant_id), row, 0, to), reason=reason)
    return row


def url(letter: DeadDeliveryItem) -> str:
    return f"{LIST}{quote(f'{letter.tenant_id}/{letter.letter_id}')}/change/"


def test_dead_deliveries_of_all_tenants_and_of_one(world: World, root: Operator) -> None:
    assert world.browser("alice", "acme").get(LIST).status_code in (302, 403, 404)
    assert "It answered" not in root.says(LIST)
    dead(world, "acme")
    dead(world, "globex", reason="Its attempts are used up.")
    everything = root.says(LIST)
    assert "It answered 410." in everything
    assert "globex" in everything.lower()
    assert "Its attempts are used up." not in everything, "there is access to Acme alone"
    assert "2 deliveries are dead" in root.says("/admin/")
    of_acme = root.says(f"{LIST}?tenant_id=acme")
    assert "It answered 410." in of_acme
    assert "Its attempts are used up." not in of_acme
    (letter,) = deliveries.dead(world.tenants["acme"].tenant_id)
    assert b'name="_save"' not in root.get(url(letter)).content, "nothing of it can be changed"
    assert b'name="_save"' in root.get(tenant_url(world, "acme")).content


def test_a_dead_delivery_that_is_replayed_is_due_again_and_gone_from_the_list(world: World, root: Operator) -> None:
    row = dead(world, "acme")
    (letter,) = deliveries.dead()
    assert "ticket 7" in root.says(url(letter))
    page = root.act(url(letter), "_replay", follow=True)
    assert "It is sent again." in page.content.decode()
    again = deliveries.stored(row)
    assert again.open == {"0/ep_gone"}
    assert again.pending == stored.pending_of(stored.row_parts(row.event_id)[1])
    assert list(deliveries.dead()) == []
    assert root.act(url(letter), "_replay").status_code == 404


def test_a_dead_delivery_that_is_dropped_is_not_delivered(world: World, root: Operator) -> None:
    row = dead(world, "acme")
    (letter,) = deliveries.dead()
    assert "This cannot be taken back." in text_of(root.post(url(letter), {"_drop": "1"}))
    assert list(deliveries.dead()), "the page only asks"
    root.act(url(letter), "_drop")
    assert deliveries.stored(row).pending is None
    assert list(deliveries.dead(letter.tenant_id)) == []


def test_many_are_replayed_or_dropped_at_once(world: World, root: Operator) -> None:
    for number in range(3):
        dead(world, "acme", f"ep_{number}")
    chosen = [f"{letter.tenant_id}/{letter.letter_id}" for letter in deliveries.dead()]
    page = root.post(LIST, {"action": "replay", "_selected_action": chosen[:2]}, follow=True)
    assert "2 replayed." in page.content.decode()
    drop = {"action": "drop", "_selected_action": chosen[2:]}
    asked = text_of(root.post(LIST, drop))
    assert "Drop 1 dead delivery?" in asked
    assert "It answered 410." in asked
    assert list(deliveries.dead()), "the page only asks"
    assert "1 dropped." in text_of(root.post(LIST, drop | {"confirmed": "1"}, follow=True))
    assert list(deliveries.dead()) == []


def test_who_replayed_and_who_dropped_is_in_the_tenants_trail(world: World, root: Operator) -> None:
    dead(world, "acme")
    dead(world, "acme", "ep_2")
    first, second = deliveries.dead()
    root.act(url(first), "_replay")
    root.act(url(second), "_drop")
    trail = AuditRow.objects.filter(tenant_id=world.tenants["acme"].tenant_id)[:20]
    assert {"dead_delivery.replayed", "dead_delivery.dropped"} <= {row.action for row in trail}
    assert {row.actor_email for row in trail if row.action.startswith("dead")} == {"root@example.com"}


def test_what_the_outbox_has_no_longer_cannot_be_replayed(world: World, root: Operator) -> None:
    dead(world, "acme")
    (letter,) = deliveries.dead()
    letter.event_id = stored.outbox_row(letter.tenant_id, "0" * 32)
    with pytest.raises(Conflict, match="no such event any more"):
        dead_deliveries.replay(letter, by=SYSTEM)
    assert list(deliveries.dead())


def test_a_desks_deliveries_are_paused_and_resumed_on_its_page(world: World, root: Operator) -> None:
    acme = tenant_url(world, "acme")
    assert "Going out." in root.says(acme)
    assert root.post(acme, {"_pause_deliveries": "1"}).status_code == 200  # it asks for the reason first
    page = root.act(acme, "_pause_deliveries", follow=True)
    assert "Deliveries of Acme are paused: everything waits." in text_of(page)
    assert set(holds.read()) == {world.tenants["acme"].tenant_id}
    assert "Going out." in root.says(tenant_url(world, "globex"))
    root.act(acme, "_resume_deliveries")
    assert "Going out." in root.says(acme)
    assert "are not paused" in root.act(acme, "_resume_deliveries", follow=True).content.decode()


@pytest.mark.parametrize(
    ("before", "offered", "says"),
    [
        ("", ["Pause", "Drain", "Drop"], "Going out."),
        ("_pause_deliveries", ["Resume", "Drain", "Drop"], "Paused"),
        ("_drain_deliveries", ["Resume", "Pause", "Drop"], "Draining: what was written after"),
        ("_drop_deliveries", None, "is being dropped"),
    ],
)
def test_a_desks_page_says_how_its_deliveries_stand_and_offers_what_makes_sense(
    world: World, root: Operator, before: str, offered: list[str] | None, says: str
) -> None:
    acme = tenant_url(world, "acme")
    if before:
        root.act(acme, before)
    page = root.get(acme)
    assert says in text_of(page)
    labels = [action.label for action in page.context["object_actions"] if action.label.endswith(" deliveries")]
    assert offered is None or labels == [f"{word} deliveries" for word in offered]


def test_the_front_page_names_desks_whose_deliveries_are_held_back_and_says_when_no_worker_looks_any_more(
    world: World, root: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    depths.write([])
    front = root.says("/admin/")
    assert [text for text in ("held back", "No worker has looked") if text in front] == []
    monkeypatch.setattr(depths, "LATE_SECONDS", -1)
    root.act(tenant_url(world, "acme"), "_pause_deliveries")
    root.act(tenant_url(world, "globex"), "_drop_deliveries")
    front = root.says("/admin/")
    assert "No worker has looked at the queues since" in front
    assert "Deliveries of Acme have been held back since" in front
    assert "Deliveries of Globex have been" not in front, "what is dropped does not wait"
    root.act(tenant_url(world, "globex"), "_drain_deliveries")
    monkeypatch.setattr(held_tenant_admin, "NOTICED", 1)
    assert "Deliveries of more tenants are held back." in root.says("/admin/")
