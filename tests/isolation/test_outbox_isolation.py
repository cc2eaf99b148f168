"""No tenant gets at another's rows of the outbox, nor at the index in which those of all tenants lie."""

from __future__ import annotations

import uuid

import pytest

from delivery.outbox import stored
from delivery.outbox.stored import OUTBOX, OutboxItem, PendingRow
from portal.isolation import guard, policies
from portal.isolation.guard import IsolationError
from tests.support.guarded import A, B
from tests.support.outbox import rows, subscribe
from tests.support.world import World
from tickets.desk import creating

TENANT = policies.Policy(policies.document("tenant"))
ROW = uuid.UUID(int=7).hex


def allowed(operation: str, key: str, *, index: str | None = None, tenant: str = A) -> bool:
    arn = policies.table_arn(OUTBOX.full_name, index)
    return TENANT.allows(policies.Request(f"dynamodb:{operation}", arn, (key,), tenant))


@pytest.mark.parametrize("operation", ["GetItem", "PutItem", "UpdateItem"])
def test_the_policy_binds_a_tenant_to_its_own_rows(operation: str) -> None:
    assert allowed(operation, stored.outbox_row(A, ROW))
    assert not allowed(operation, stored.outbox_row(B, ROW))


@pytest.mark.parametrize("operation", ["DeleteItem", "BatchGetItem"])
def test_what_no_rule_does_with_rows_no_tenant_may(operation: str) -> None:
    assert not allowed(operation, stored.outbox_row(A, ROW))


@pytest.mark.parametrize(
    "key", [*(stored.pending(shard) for shard in range(stored.SHARDS)), stored.outbox_row(A, ROW), A]
)
def test_no_tenant_may_query_the_index_of_pending_rows(key: str) -> None:
    assert not allowed("Query", key, index=PendingRow.gsi.name)
    with guard.acting_for(A), pytest.raises(IsolationError):
        guard.refuse_foreign(
            TENANT,
            "Query",
            {
                "TableName": OUTBOX.full_name,
                "IndexName": PendingRow.gsi.name,
                "KeyConditionExpression": "pending = :p",
                "ExpressionAttributeValues": {":p": {"S": key}},
            },
        )


def test_a_tenants_repository_neither_finds_nor_changes_anothers_row(world: World) -> None:
    subscribe(world, "acme")
    creating.create(world.context("alice", "acme"), title="Printer")
    (row,) = rows()
    globex = world.context("charlie", "globex").repository
    row_id = stored.row_parts(row.event_id)[1]
    assert globex.get(OutboxItem, stored.outbox_row, row_id, sort=row.timestamp) is None
    with pytest.raises(ValueError, match="another tenant"):
        globex.update(row, [OutboxItem.open.remove()])
    with guard.acting_for(globex.tenant_id), pytest.raises(IsolationError):
        guard.refuse_foreign(
            TENANT,
            "GetItem",
            {
                "TableName": OUTBOX.full_name,
                "Key": {"event_id": {"S": row.event_id}, "timestamp": {"S": row.timestamp}},
            },
        )
