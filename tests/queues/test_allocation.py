"""Each tenant gets a set of queues when it is made, and keeps it when queues are added."""

from __future__ import annotations

import json

import pytest
from django.test import override_settings

from delivery.queues import allocation, queue_sets
from delivery.queues.stored import QUEUES, GivenItem
from portal.dynamo import meter
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Transaction
from portal.errors import Conflict, NotFound
from tenants.audit_trail.recording import SYSTEM, Actor
from tenants.audit_trail.stored import AUDIT, AuditItem
from tenants.lifecycle import tenant_lifecycle
from tenants.tenancy import tenant_directory
from tenants.tenancy.stored import TenantItem
from tests.support.commands import everything
from tests.support.world import World

BY = Actor(origin="a test")


def new(number: int) -> TenantItem:
    return tenant_lifecycle.create(name=f"Tenant {number}", by=SYSTEM)


def queues_of(tenant_id: str) -> list[int]:
    return sorted(allocation.queues_of(tenant_directory.get(tenant_id)))


def given() -> dict[str, int]:
    items = (GivenItem.from_raw_data(raw) for raw in everything(QUEUES) if raw["kind"]["S"] == "GIVEN")
    return {item.name: int(item.given) for item in items}


def without_set(tenant_id: str) -> None:
    """As tenants are that were made before there were queues."""
    tenant = tenant_directory.get(tenant_id)
    transaction = Transaction()
    transaction.update(tenant, [TenantItem.queues.remove()])
    PLATFORM.transact(transaction)


def test_each_new_tenant_gets_the_next_set_and_its_requests_know_it(world: World) -> None:
    every = queue_sets.sets(8)
    assert frozenset(world.context("alice", "acme").queues) == every[0]
    assert frozenset(world.context("charlie", "globex").queues) == every[1]
    assert allocation.queues_of(tenant_directory.get(new(2).tenant_id)) == every[2]
    assert given() == {"008": 3}


def test_the_sets_of_all_tenants_are_read_by_one_query(world: World, bill: meter.Meter) -> None:
    sets_of = allocation.allocated()
    assert sets_of == {
        world.tenants["acme"].tenant_id: queue_sets.nth(0, 8),
        world.tenants["globex"].tenant_id: queue_sets.nth(1, 8),
    }
    assert [call.operation for call in bill.calls] == ["Query"]


def test_a_tenant_that_cannot_be_made_takes_no_set(world: World) -> None:
    with pytest.raises(Conflict, match="The slug acme is taken"):
        tenant_lifecycle.create(name="Acme", by=SYSTEM)
    assert given() == {"008": 2}
    assert len(allocation.allocated()) == 2


def test_two_tenants_made_at_the_same_moment_get_different_sets(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    take = allocation._take_next
    faster: list[TenantItem] = []

    def take_and_be_overtaken(transaction: Transaction) -> queue_sets.QueueSet:
        taken = take(transaction)
        if not faster:
            faster.append(world.tenants["acme"])  # only once
            faster[0] = new(3)
        return taken

    monkeypatch.setattr(allocation, "_take_next", take_and_be_overtaken)
    slower = new(4)
    assert queues_of(faster[0].tenant_id) == sorted(queue_sets.nth(2, 8))
    assert queues_of(slower.tenant_id) == sorted(queue_sets.nth(3, 8))
    assert given() == {"008": 4}


def test_when_queues_are_added_tenants_keep_their_sets_and_new_ones_use_the_added_queues(world: World) -> None:
    before = allocation.allocated()
    with override_settings(DELIVERY_QUEUES=16):
        later = [frozenset(queues_of(new(n).tenant_id)) for n in range(5)]
    assert before.items() <= allocation.allocated().items()
    assert all(max(one) >= 8 for one in later)
    assert len(set(later)) == 5
    assert given() == {"008": 2, "016": 5}


def test_a_tenant_of_before_is_assigned_a_set_once_with_a_row_in_its_trail(world: World) -> None:
    acme = world.tenants["acme"].tenant_id
    without_set(acme)
    assert allocation.assign(acme, by=BY) == queue_sets.nth(2, 8)
    assert allocation.assign(acme, by=BY) is None
    assert allocation.allocated()[acme] == queue_sets.nth(2, 8)
    (row,) = rows(acme)
    assert (json.loads(row.before), json.loads(row.after)) == (
        {"queues": "none"},
        {"queues": allocation.said(queue_sets.nth(2, 8))},
    )


def test_a_set_of_queues_that_are_no_more_is_replaced(world: World) -> None:
    with override_settings(DELIVERY_QUEUES=16):
        tenant_id = new(3).tenant_id
    assert max(queues_of(tenant_id)) >= 8
    assert allocation.assign(tenant_id, by=BY) == queue_sets.nth(2, 8)


def test_a_tenant_is_moved_to_a_set_of_ones_choice_or_to_the_next(world: World) -> None:
    acme = world.tenants["acme"].tenant_id
    wanted = queue_sets.nth(7, 8)
    assert allocation.move(acme, to=wanted, seen=queue_sets.nth(0, 8), by=BY) == wanted
    assert frozenset(queues_of(acme)) == allocation.allocated()[acme] == wanted
    assert allocation.move(acme, by=BY) == queue_sets.nth(2, 8)
    assert [json.loads(row.after)["queues"] for row in rows(acme)] == [
        allocation.said(wanted),
        allocation.said(queue_sets.nth(2, 8)),
    ]


def test_moving_to_where_it_is_already_changes_nothing(world: World) -> None:
    acme = world.tenants["acme"].tenant_id
    allocation.move(acme, to=queue_sets.nth(0, 8), by=BY)
    assert rows(acme) == []


def test_who_was_shown_another_set_is_told_and_changes_nothing(world: World) -> None:
    acme = world.tenants["acme"].tenant_id
    with pytest.raises(Conflict, match="just changed"):
        allocation.move(acme, to=queue_sets.nth(3, 8), seen=queue_sets.nth(5, 8), by=BY)
    assert allocation.allocated()[acme] == queue_sets.nth(0, 8)


def test_a_tenant_that_does_not_exist_has_no_queues(engine: None) -> None:
    with pytest.raises(NotFound):
        allocation.move("f" * 32, by=BY)


def test_a_move_is_one_write(world: World, bill: meter.Meter) -> None:
    allocation.move(world.tenants["acme"].tenant_id, by=BY)
    writes = [call.operation for call in bill.calls if call.operation not in ("GetItem", "BatchGetItem", "Query")]
    assert writes == ["TransactWriteItems"]


def rows(tenant_id: str) -> list[AuditItem]:
    found = [AuditItem.from_raw_data(raw) for raw in everything(AUDIT) if raw["tenant_id"]["S"] == tenant_id]
    found.sort(key=lambda row: row.timestamp_event_id)
    return [row for row in found if row.action == "tenant.queues_changed"]
