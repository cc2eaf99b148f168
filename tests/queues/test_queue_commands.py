"""The commands for queues, as an operator types them."""

from __future__ import annotations

import json

from delivery.queues import allocation, queue_sets
from delivery.queues.allocation import said
from delivery.queues.queue_transport import QueueTransport
from delivery.queues.stored import SETS, QueueSetItem
from portal.dynamo import meter
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Action, Transaction
from tenants.audit_trail.recording import SYSTEM
from tenants.lifecycle import tenant_lifecycle
from tenants.tenancy.stored import TenantItem
from tests.support.commands import run
from tests.support.stored import put_all
from tests.support.world import World


def store(tenant: TenantItem, action: Action) -> None:
    """Change a tenant's own item behind everybody's back."""
    transaction = Transaction()
    transaction.update(tenant, [action])
    PLATFORM.transact(transaction)


def test_create_queues_makes_them_and_again_does_nothing(engine: None) -> None:
    assert "9 queues created, 0 there before." in run("create_queues", "--wait").out
    assert QueueTransport().missing() == []
    assert "0 queues created, 9 there before." in run("create_queues").out


def test_queues_show_says_who_has_which_and_who_shares_most(world: World) -> None:
    out = run("queues", "show").out
    assert f"acme: {said(queue_sets.nth(0, 8))}\n" in out
    assert f"globex: {said(queue_sets.nth(1, 8))}\n" in out
    assert "queue 0: 1 tenant\n" in out
    assert "share" not in out  # these two have nothing in common
    tenant_lifecycle.create(name="Initech", by=SYSTEM)
    assert "acme and initech share" in run("queues", "show").out


def test_queues_move_gives_a_tenant_the_set_that_is_named_or_the_next(world: World) -> None:
    wanted = sorted(queue_sets.nth(9, 8))
    assert f"acme: {said(wanted)}." in run("queues", "move", "--tenant", "acme", "--to", *wanted).out
    assert f"acme: {said(queue_sets.nth(2, 8))}." in run("queues", "move", "--tenant", "acme").out
    refused = run("queues", "move", "--tenant", "acme", "--to", 0, 1, 2, 4)
    assert refused.status == 1
    assert "0 1 2 4 is no set of 8 queues" in refused.err


def test_queues_check_names_what_is_wrong_and_assign_makes_it_right(world: World) -> None:
    run("create_queues")
    assert run("queues", "check").status == 0
    store(world.tenants["acme"], TenantItem.queues.remove())
    checked = run("queues", "check")
    assert checked.status == 1
    assert "acme has no queues" in checked.err
    assert f"acme: {said(queue_sets.nth(2, 8))}" in run("queues", "assign").out
    assert "0 sets given, 0 of tenants" in run("queues", "assign").out
    assert run("queues", "check").status == 0


def test_queues_check_names_the_set_of_a_tenant_that_does_not_exist_and_assign_forgets_it(world: World) -> None:
    run("create_queues")
    put_all([QueueSetItem(SETS, "f" * 32, queues="[0, 1, 2, 3]")])
    assert f"0 1 2 3 are given to {'f' * 32}, and there is no such tenant" in run("queues", "check").err
    assert "1 of tenants that do not exist forgotten." in run("queues", "assign").out
    assert run("queues", "check").status == 0


def test_queues_check_names_a_set_that_differs_in_the_list_and_a_missing_queue(world: World) -> None:
    store(world.tenants["acme"], TenantItem.queues.set(json.dumps(sorted(queue_sets.nth(5, 8)))))
    checked = run("queues", "check")
    assert "acme has" in checked.err
    assert "another set in the list of all" in checked.err
    assert "the queue Pooldesk-delivery-00 does not exist" in checked.err


def test_the_survey_of_all_tenants_is_two_queries(world: World, bill: meter.Meter) -> None:
    found = allocation.survey()
    assert list(found.slugs) == ["acme", "globex"]
    assert [call.operation for call in bill.calls] == ["Query", "Query"]
    assert bill.trips == 1
