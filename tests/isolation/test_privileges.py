"""Each right of each role, as the evaluator sees it, and what the guard holds beyond what a policy can say.

The table in docs/isolation.md is what the policies allow, for each table, role and operation; no more and no less.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from delivery.outbox import stored as outbox_keys
from delivery.queues import stored as queue_keys
from delivery.queues.stored import QUEUES
from portal.errors import NotFound
from portal.isolation import guard, policies
from portal.load import stored as noise_keys
from portal.load.stored import NOISE
from portal.schema import registry
from portal.schema.keys import PLATFORM
from portal.schema.registry import ROLES
from tenants.audit_trail.stored import AUDIT, RESTORE_DRILL, RESTORE_DRILLS, AuditByEntity, audit_entity_key
from tenants.sign_in.stored import USERS, suppressed_key, user_key
from tests.support.guarded import OWN, OWN_STATUS, A, B, Caught, batch, key, query
from tests.support.stored import client
from tickets.counting import stored as aggregate_keys
from tickets.ticket import stored as ticket_keys
from tickets.ticket.stored import STATUS_UPDATED, TICKETS

DOCUMENT = Path(settings.BASE_DIR) / "docs" / "isolation.md"
OPERATIONS = (
    "GetItem", "BatchGetItem", "Query", "Scan", "ConditionCheckItem", "PutItem", "UpdateItem", "DeleteItem",
    "BatchWriteItem", "PartiQLSelect", "PartiQLInsert", "PartiQLUpdate", "PartiQLDelete", "DescribeTable",
    "CreateTable", "UpdateTable", "DeleteTable", "UpdateTimeToLive", "ExportTableToPointInTime",
    "ListStreams", "DescribeStream", "GetShardIterator", "GetRecords",
)  # fmt: skip
QUEUE_OPERATIONS = (
    "SendMessage", "ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility", "GetQueueAttributes", "GetQueueUrl",
    "ListQueues", "PurgeQueue", "CreateQueue", "DeleteQueue", "SetQueueAttributes",
)  # fmt: skip
POLICIES = {role: policies.Policy(policies.document(role)) for role in ROLES}


def places() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Each table, index and stream by name, with its ARN and the partition keys that are asked for there."""
    for table in registry.tables():
        arn = policies.table_arn(table.full_name)
        if table.name == TICKETS.name:
            yield f"{table.name}: tickets", arn, (ticket_keys.ticket(A, 7), ticket_keys.counter(A))
            yield f"{table.name}: aggregates", arn, (aggregate_keys.aggregate(A),)
        elif table.name == QUEUES.name:
            yield table.name, arn, (queue_keys.SETS, queue_keys.GIVEN)
            yield f"{table.name}: depths", arn, (queue_keys.DEPTHS,)
        elif table.name == USERS.name:
            yield table.name, arn, (user_key(A),)
            yield f"{table.name}: suppressed addresses", arn, (suppressed_key("nora@example.org"),)
        elif table.name == NOISE.name:
            yield table.name, arn, (noise_keys.notes_of(0),)
            yield f"{table.name}: incidents", arn, (noise_keys.incidents_of("2026-11"),)
        else:
            yield table.name, arn, (leading(table.leading_keys) if table.scope == "tenant" else "x",)
        for index in table.indexes:
            of_index = (leading(index.leading_keys) or outbox_keys.pending(0),)
            yield f"{table.name}/{index.label}", policies.table_arn(table.full_name, index.name), of_index
        if table.stream:
            yield f"{table.name}, stream", f"{arn}/stream/2026", ()


def leading(pattern: str) -> str:
    return pattern.replace("{tenant}", A).replace("*", "x")


def rights(role: str, arn: str, keys: tuple[str, ...]) -> list[str]:
    tag = A if role == "tenant" else None
    return [
        operation
        for operation in OPERATIONS
        if (operation != "DescribeTable" or arn.count("/") == 1)  # which is asked of tables alone
        and all(
            POLICIES[role].allows(policies.Request(f"dynamodb:{operation}", arn, asked, tag)) for asked in per_key(keys)
        )
    ]


def per_key(keys: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [(one,) for one in keys] or [()]


def table_of_rights() -> list[str]:
    lines = [f"| | {' | '.join(ROLES)} |", "|---" * (len(ROLES) + 1) + "|"]
    for name, arn, keys in places():
        lines.append(f"| {name} | {' | '.join(', '.join(rights(role, arn, keys)) or '-' for role in ROLES)} |")
    for name in registry.queues():
        held = [[o for o in QUEUE_OPERATIONS if POLICIES[role].allows(of_queue(o, name))] for role in ROLES]
        lines.append(f"| {name}, queues | {' | '.join(', '.join(operations) or '-' for operations in held)} |")
    return lines


def of_queue(operation: str, name: str) -> policies.Request:
    return policies.Request(f"sqs:{operation}", policies.queue_arn(name).replace("*", "-1"))


def test_the_document_says_what_each_role_may_do_with_each_table() -> None:
    text = DOCUMENT.read_text()
    written = re.search(r"<!-- rights -->\n(.*?)\n<!-- end of rights -->", text, re.DOTALL)
    assert written is not None
    assert written[1].splitlines() == table_of_rights()


def test_the_document_lists_every_table_and_index_whose_keys_have_no_tenant() -> None:
    written = re.search(r"<!-- shared -->\n(.*?)\n<!-- end of shared -->", DOCUMENT.read_text(), re.DOTALL)
    assert written is not None
    shared = [(table.name, table.shared) for table in registry.tables()]
    shared += [(f"{table.name}/{index.label}", index.shared) for table in registry.tables() for index in table.indexes]
    rows = [f"| {name} | {why} |" for name, why in sorted(shared) if why]
    assert written[1].splitlines() == ["| table or index | why |", "|---|---|", *rows]


def test_what_a_tenant_may_do_it_may_with_its_own_keys_only() -> None:
    for _, arn, keys in places():
        foreign = tuple(text.replace(A, B) for text in keys)
        if foreign != keys:
            assert rights("tenant", arn, foreign) == []


def test_of_the_audit_trail_the_platform_reads_the_restore_drills_alone() -> None:
    arn = policies.table_arn(AUDIT.full_name, AuditByEntity.gsi.name)
    other = audit_entity_key(PLATFORM, "user", A), audit_entity_key(A, *RESTORE_DRILL), f"{RESTORE_DRILLS}#x"
    asked = {key: policies.Request("dynamodb:Query", arn, (key,), None) for key in (RESTORE_DRILLS, *other)}
    assert [key for key, one in asked.items() if POLICIES["platform"].allows(one)] == [RESTORE_DRILLS]


# --- what the guard holds ---


@pytest.fixture(scope="module")
def of_role() -> dict[str, Caught]:
    return {role: Caught(client.make_client(role)) for role in ROLES}


def refused(caught: Caught, operation: str, params: dict[str, Any]) -> bool:
    caught.sent.clear()
    try:
        caught.ask(operation, params)
    except NotFound:
        return not caught.sent
    return False


def test_the_lifecycle_role_takes_up_one_tenant_at_a_time(of_role: dict[str, Caught]) -> None:
    caught, deletion = of_role["lifecycle"], {"DeleteRequest": {"Key": key(ticket_keys.ticket(B, 7))}}
    shard, index = ticket_keys.tenant_status(B, "OPEN", 0), {"IndexName": STATUS_UPDATED.name}
    assert not refused(caught, "Query", query(OWN))
    assert not refused(caught, "Query", query(OWN_STATUS, name=STATUS_UPDATED.hash, **index))
    assert refused(caught, "Query", query(ticket_keys.ticket(B, 7)))
    assert refused(caught, "Query", query(shard, name=STATUS_UPDATED.hash, **index))
    assert refused(caught, "BatchWriteItem", batch(deletion))
    assert refused(caught, "Scan", {"TableName": TICKETS.full_name})


def test_a_row_of_the_audit_trail_goes_with_its_tenant_alone(of_role: dict[str, Caught]) -> None:
    caught, alone, batched = of_role["lifecycle"], audit(Key=AUDITED), {"DeleteRequest": {"Key": AUDITED}}
    with guard.purging(A):
        assert not refused(caught, "DeleteItem", alone)
        assert not refused(caught, "BatchWriteItem", batch(batched, table=AUDIT.full_name))
        assert refused(of_role["platform"], "DeleteItem", alone)
        assert refused(caught, "PutItem", audit(Item=AUDITED))
        assert refused(caught, "UpdateItem", audit(Key=AUDITED, UpdateExpression="SET a = :a"))
    with guard.purging(B):
        assert refused(caught, "DeleteItem", alone)
    assert refused(caught, "DeleteItem", alone)


AUDITED = {"tenant_id": {"S": A}, "timestamp_event_id": {"S": "2026"}}
NEW = "attribute_not_exists (#0)"
NAMES = {"#0": AUDIT.range}


def audit(**more: Any) -> dict[str, Any]:
    return {"TableName": AUDIT.full_name, **more}


def test_a_new_row_is_added_to_the_audit_trail(of_role: dict[str, Caught]) -> None:
    row = audit(Item=AUDITED, ConditionExpression=NEW, ExpressionAttributeNames=NAMES)
    assert not refused(of_role["platform"], "PutItem", row)
    assert not refused(of_role["platform"], "TransactWriteItems", {"TransactItems": [{"Put": row}]})
