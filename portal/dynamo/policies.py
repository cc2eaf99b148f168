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

from portal.dynamo import keys, tables
from portal.dynamo.iam import LEADING_KEYS, TAG
from portal.dynamo.tables import Table

ROLES: Final = ("tenant", "platform", "worker")

_TENANT_VARIABLE: Final = f"${{{TAG}}}"

# Members of a transaction are authorised as the single operations that they are.
_TENANT_ACTIONS: Final[dict[Table, tuple[str, ...]]] = {
    tables.TICKETS: ("BatchGetItem", "BatchWriteItem", "GetItem", "PutItem", "Query", "UpdateItem"),
    tables.MEMBERS: ("GetItem", "Query"),
}
_PLATFORM_ACTIONS: Final[dict[Table, tuple[str, ...]]] = {
    tables.USERS: ("BatchGetItem", "BatchWriteItem", "GetItem", "PutItem", "UpdateItem"),
    tables.SESSIONS: ("BatchGetItem", "DeleteItem", "GetItem", "PutItem"),
    tables.THROTTLES: ("DeleteItem", "UpdateItem"),
    tables.DIRECTORY: ("DeleteItem", "PutItem", "Query", "UpdateItem"),
    tables.MEMBERSHIPS: (
        "BatchGetItem",
        "BatchWriteItem",
        "DeleteItem",
        "PutItem",
        "Query",
        "UpdateItem",
    ),
    tables.TENANTS: ("BatchGetItem", "BatchWriteItem", "GetItem", "PutItem", "UpdateItem"),
    tables.MEMBERS: ("BatchWriteItem", "DeleteItem", "PutItem", "UpdateItem"),
    tables.LEASES: ("GetItem", "Query"),
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
        own = table.leading_keys.replace("{tenant}", _TENANT_VARIABLE)
        statements.append(_allow(_sid("Own", table), actions, [table_arn(table.full_name)], own))
        if table.indexes:
            arns = [table_arn(table.full_name, i.name) for i in table.indexes]
            statements.append(_allow(_sid("OwnIndexesOf", table), ["Query"], arns, own))
    return statements


def _platform() -> list[dict[str, Any]]:
    return [
        _allow(_sid("All", table), actions, [table_arn(table.full_name)])
        for table, actions in _PLATFORM_ACTIONS.items()
    ]


def _worker() -> list[dict[str, Any]]:
    arn = table_arn(tables.TICKETS.full_name)
    return [
        _allow("ReadStream", ["DescribeStream", "GetRecords", "GetShardIterator"], [f"{arn}/stream/*"]),
        _allow("MaintainAggregates", ["DeleteItem", "Query", "UpdateItem"], [arn], keys.ALL_AGGREGATES),
        _allow("HoldLeases", ["Query", "UpdateItem"], [table_arn(tables.LEASES.full_name)]),
        _allow("KeepDeadLetters", ["DeleteItem", "PutItem", "Query"], [table_arn(tables.DEAD_LETTERS.full_name)]),
    ]
