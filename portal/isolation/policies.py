"""The policies of the roles, made from the one declaration of the tables.

What a role may do is what its code does, no more: the actions below are those that the repositories send. No
role has Scan, PartiQL or a wildcard action. Leading keys are bound with their delimiter, and `Null` closes the hole
that `ForAllValues` leaves for a request without keys.

Source: AWS, "Partitioning Pooled Multi-Tenant SaaS Data with Amazon DynamoDB"; there the pattern lacks the
delimiter and the empty set is let through.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.conf import settings

from portal.isolation.iam import LEADING_KEYS, TAG
from portal.schema import keys, tables
from portal.schema.tables import Table

ROLES: Final = ("tenant", "platform", "worker")

_TENANT_VARIABLE: Final = f"${{{TAG}}}"

# Members of a transaction are authorised as the single operations that they are.
_TENANT_ACTIONS: Final[dict[Table, tuple[str, ...]]] = {
    tables.TICKETS: ("BatchGetItem", "BatchWriteItem", "GetItem", "PutItem", "Query", "UpdateItem"),
    tables.MEMBERS: ("GetItem", "Query"),
    tables.INVITES: ("GetItem", "Query"),
    tables.AUDIT: ("GetItem", "Query"),
}
_PLATFORM_ACTIONS: Final[dict[Table, tuple[str, ...]]] = {
    tables.USERS: ("BatchGetItem", "BatchWriteItem", "DeleteItem", "GetItem", "PutItem", "UpdateItem"),
    tables.SESSIONS: ("BatchGetItem", "DeleteItem", "GetItem", "PutItem"),
    tables.THROTTLES: ("DeleteItem", "UpdateItem"),
    tables.DIRECTORY: ("DeleteItem", "PutItem", "Query", "UpdateItem"),
    tables.MEMBERSHIPS: (
        "BatchGetItem",
        "BatchWriteItem",
        "ConditionCheckItem",
        "DeleteItem",
        "PutItem",
        "Query",
        "UpdateItem",
    ),
    tables.TENANTS: ("BatchGetItem", "BatchWriteItem", "ConditionCheckItem", "GetItem", "PutItem", "UpdateItem"),
    tables.INVITES: ("BatchGetItem", "ConditionCheckItem", "DeleteItem", "PutItem"),
    tables.MEMBERS: ("BatchWriteItem", "ConditionCheckItem", "DeleteItem", "PutItem", "UpdateItem"),
    # Rows are added; nobody has the right to update or delete one.
    tables.AUDIT: ("PutItem",),
    tables.CHAINS: ("BatchGetItem", "PutItem", "Query"),
    tables.LEASES: ("GetItem", "Query"),
    tables.DEAD_LETTERS: ("BatchGetItem", "DeleteItem", "Query", "UpdateItem"),
}


def table_arn(name: str, index: str | None = None) -> str:
    """The ARN of a table by its full name, or of one of its indexes."""
    arn = f"arn:aws:dynamodb:{settings.AWS_REGION}:{settings.AWS_ACCOUNT_ID}:table/{name}"
    return f"{arn}/index/{index}" if index else arn


def document(role: str) -> dict[str, Any]:
    """The policy of "tenant", "platform" or "worker" as a JSON-ready document. Raises ValueError for another role."""
    statements = {"tenant": _tenant, "platform": _platform, "worker": _worker}.get(role)
    if statements is None:
        raise ValueError(f"there is no role {role}")
    return {"Version": "2012-10-17", "Statement": statements()}


def _allow(sid: str, actions: Sequence[str], resources: Sequence[str], leading: str | None = None) -> dict[str, Any]:
    statement: dict[str, Any] = {
        "Sid": sid,
        "Effect": "Allow",
        "Action": [f"dynamodb:{a}" for a in actions],
        "Resource": list(resources),
    }
    if leading:
        operator = "ForAllValues:StringLike" if "*" in leading else "ForAllValues:StringEquals"
        statement["Condition"] = {operator: {LEADING_KEYS: [leading]}, "Null": {LEADING_KEYS: "false"}}
    return statement


def _sid(prefix: str, table: Table) -> str:
    return prefix + table.name.replace(".", "")


def _tenant() -> list[dict[str, Any]]:
    statements = []
    for table, actions in _TENANT_ACTIONS.items():
        arn = table_arn(table.full_name)
        statements.append(_allow(_sid("Own", table), actions, [arn], _bound(table.leading_keys)))
        for pattern in dict.fromkeys(index.leading_keys for index in table.indexes):
            arns = [table_arn(table.full_name, i.name) for i in table.indexes if i.leading_keys == pattern]
            statements.append(_allow(_sid("OwnIndexesOf", table), ["Query"], arns, _bound(pattern)))
    return statements


def _bound(pattern: str) -> str:
    return pattern.replace("{tenant}", _TENANT_VARIABLE)


def _platform() -> list[dict[str, Any]]:
    statements = [
        _allow(_sid("All", table), actions, [table_arn(table.full_name)])
        for table, actions in _PLATFORM_ACTIONS.items()
    ]
    sessions = table_arn(tables.SESSIONS.full_name, tables.SESSIONS_BY_USER.name)
    everything = [table_arn(table.full_name) for table in tables.ALL]
    return [
        *statements,
        _allow("SessionsByUser", ["Query"], [sessions]),
        # An operator who replays a dead letter counts it: in aggregates, and in no ticket.
        _allow("ReplayDeadLetters", ["UpdateItem"], [table_arn(tables.TICKETS.full_name)], keys.ALL_AGGREGATES),
        # The operators' page of tables: states and estimates, no items.
        _allow("DescribeTables", ["DescribeTable"], everything),
    ]


def _worker() -> list[dict[str, Any]]:
    arn = table_arn(tables.TICKETS.full_name)
    return [
        _allow("ReadStream", ["DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"], [f"{arn}/stream/*"]),
        _allow("MaintainAggregates", ["DeleteItem", "Query", "UpdateItem"], [arn], keys.ALL_AGGREGATES),
        _allow("HoldLeases", ["Query", "UpdateItem"], [table_arn(tables.LEASES.full_name)]),
        _allow(
            "KeepDeadLetters",
            ["ConditionCheckItem", "DeleteItem", "PutItem", "Query"],
            [table_arn(tables.DEAD_LETTERS.full_name)],
        ),
    ]
