"""The stream worker's own layer: it keeps aggregates and indexes, for one tenant at a time, and reads no ticket."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from portal.dynamo import client
from portal.errors import NotFound
from portal.isolation import guard, policies
from portal.streams.stored import LEASES
from portal.streams.worker import WORKER
from tests.support import folding
from tests.support.world import World
from tickets.counting import stored
from tickets.counting import stored as aggregate_keys
from tickets.counting.stored import DEAD_LETTERS, DeadLetterItem
from tickets.search import stored as search_keys
from tickets.search.stored import SEARCH
from tickets.ticket import stored as ticket_keys
from tickets.ticket.stored import STATUS_UPDATED, TICKETS

A, B = "a" * 32, "b" * 32
TICKETS, SEARCH = TICKETS.full_name, SEARCH.full_name
VALUES = {":n": {"N": "1"}}
PLANTED = {":n": {"S": ticket_keys.tenant_status(B, "OPEN", 0)}}
LEASED = {"TableName": LEASES.full_name, "Key": {"stream": {"S": "x"}, "shard": {"S": "1"}}}


def update(pk: str, **more: Any) -> dict[str, Any]:
    key = {"pk": {"S": pk}, "sk": {"S": aggregate_keys.totals(0)}}
    return {
        "TableName": TICKETS,
        "Key": key,
        "UpdateExpression": "ADD n :n",
        "ExpressionAttributeValues": VALUES,
    } | more


def block_of(tenant: str) -> dict[str, Any]:
    return {"pk": {"S": search_keys.segment(tenant, "0000000001")}, "sk": {"S": "000000"}, "d": {"B": b"x"}}


def query(pk: str) -> dict[str, Any]:
    return {"TableName": TICKETS, "KeyConditionExpression": "pk = :h", "ExpressionAttributeValues": {":h": {"S": pk}}}


REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "another tenant's aggregates": ("UpdateItem", update(aggregate_keys.aggregate(B))),
    "a ticket": ("UpdateItem", update(ticket_keys.ticket(A, 1))),
    "an index row of another tenant": (
        "UpdateItem",
        update(aggregate_keys.aggregate(A), UpdateExpression="SET tenant_status = :n")
        | {"ExpressionAttributeValues": PLANTED},
    ),
    "an index": ("Query", query(ticket_keys.tenant_status(A, "OPEN", 0)) | {"IndexName": STATUS_UPDATED.name}),
    "a block of another tenant's index beside one of its own": (
        "TransactWriteItems",
        {"TransactItems": [{"Put": {"TableName": SEARCH, "Item": block_of(tenant)}} for tenant in (A, B)]},
    ),
}


@pytest.mark.parametrize(("operation", "params"), REFUSED.values(), ids=REFUSED.keys())
def test_a_worker_that_acts_for_a_tenant_is_refused(
    operation: str, params: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    policy = policies.Policy(policies.document("worker"))
    with (
        guard.acting_for(A),
        caplog.at_level(logging.CRITICAL, "pooldesk.security"),
        pytest.raises(guard.IsolationError),
    ):
        guard.refuse_strange(policy, operation, params)
    assert len(caplog.records) == 1


def test_a_worker_that_acts_for_nobody_touches_no_tenants_item() -> None:
    policy = policies.Policy(policies.document("worker"))
    with pytest.raises(guard.IsolationError):
        guard.refuse_strange(policy, "UpdateItem", update(aggregate_keys.aggregate(A)))


def test_what_a_worker_does_is_allowed() -> None:
    policy = policies.Policy(policies.document("worker"))
    dead_letter = {"owner": {"S": "x"}, "sequence": {"S": "1"}}
    with guard.acting_for(A):
        guard.refuse_strange(policy, "UpdateItem", update(aggregate_keys.aggregate(A)))
        guard.refuse_strange(policy, "Query", query(aggregate_keys.aggregate(A)))
        guard.refuse_strange(policy, "PutItem", {"TableName": SEARCH, "Item": block_of(A)})
    guard.refuse_strange(policy, "PutItem", {"TableName": DEAD_LETTERS.full_name, "Item": dead_letter})
    guard.refuse_strange(policy, "UpdateItem", update("x") | LEASED)


def test_the_guard_stands_before_the_workers_client(world: World) -> None:
    tenant = world.tenants["acme"].tenant_id
    connection = client.connection("worker")
    with guard.acting_for(tenant), pytest.raises(NotFound):
        connection.dispatch("UpdateItem", update(aggregate_keys.aggregate(world.tenants["globex"].tenant_id)))
    with pytest.raises(NotFound):
        connection.dispatch("Query", query(aggregate_keys.aggregate(tenant)))


def test_aggregates_and_dead_letters_pass_it(world: World) -> None:
    tenant = world.tenants["acme"].tenant_id
    store = folding.store_of(tenant)
    store.update(stored.blank(store), stored.adding({"T0::on": 1}))
    assert stored.recent(store).counts == {"T0::on": 1}
    WORKER.put(DeadLetterItem("s", "1", reason="r", record="{}", at="now"))
    assert [one.reason for one in WORKER.query_all(DeadLetterItem, "s")] == ["r"]
