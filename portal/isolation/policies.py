"""Make the policies of the roles from what the rooms declare.

What a role may do is what its code does, no more: a room grants the operations that its code sends. No
role has Scan, PartiQL or a wildcard action. Leading keys are bound with their delimiter, and `Null` closes the hole
that `ForAllValues` leaves for a request without keys.

Source: AWS, "Partitioning Pooled Multi-Tenant SaaS Data with Amazon DynamoDB"; there the pattern lacks the
delimiter and the empty set is let through.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from django.conf import settings

from portal.isolation.iam import LEADING_KEYS, TAG
from portal.schema import registry
from portal.schema.registry import ROLES, Grant

_TENANT_VARIABLE: Final = f"${{{TAG}}}"
# AWS, "IAM and AWS STS quotas": characters of a managed policy. "Quotas in Amazon DynamoDB": of a table's name. "Amazon
# SQS queue quotas": of a queue's name.
SIZE_LIMIT: Final = 6144
_TABLE_NAME_LIMIT: Final = 255
_QUEUE_NAME_LIMIT: Final = 80
_QUEUE_SUFFIX: Final = 4
_LONGEST_REGION: Final = "arn:aws-us-gov:{service}:us-gov-west-1:000000000000:"
_TABLES_IN_A_STATEMENT: Final = 15  # so that a statement fits into a policy, however long the tables' names


def table_arn(name: str, index: str | None = None) -> str:
    """Return the ARN of a table by its full name, or of one of its indexes."""
    arn = f"arn:aws:dynamodb:{settings.AWS_REGION}:{settings.AWS_ACCOUNT_ID}:table/{name}"
    return f"{arn}/index/{index}" if index else arn


def queue_arn(name: str) -> str:
    """Return the ARN of the queues whose names begin with the prefix and this."""
    return f"arn:aws:sqs:{settings.AWS_REGION}:{settings.AWS_ACCOUNT_ID}:{_queue_prefix()}-{name}*"


def _queue_prefix() -> str:
    return settings.DYNAMODB_TABLE_PREFIX.replace(".", "-")


def document(role: str) -> dict[str, Any]:
    """Return the whole policy of a role as a JSON-ready document. Raises ValueError for what is no role."""
    if role not in ROLES:
        raise ValueError(f"there is no role {role}")
    if role == "tenant":
        statements = _tenant()
    else:
        statements = [_granted(grant) for grant in registry.grants(role)]
        if role == "platform":
            statements += _describing()
        if role == "lifecycle":
            statements += _whole_tenants()
    for queue in registry.queue_grants(role):
        sid = queue.sid or "Queues" + queue.name.title().replace("-", "")
        statements.append(_allow(sid, "sqs", queue.actions, [queue_arn(queue.name)]))
    return _document(statements)


def managed(role: str) -> list[dict[str, Any]]:
    """Return the policy of a role as the managed policies that IAM takes, in the order of its statements.

    Where one ends and the next begins is the same for every prefix, so that a template can leave the prefix open.
    """
    found: list[list[dict[str, Any]]] = [[]]
    for statement in document(role)["Statement"]:
        if found[-1] and size(_document([*found[-1], statement])) > SIZE_LIMIT:
            found.append([])
        found[-1].append(statement)
    return [_document(statements) for statements in found]


def _document(statements: list[dict[str, Any]]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": statements}


def size(policy: dict[str, Any]) -> int:
    """Count the characters of a policy as IAM does, at most: for the longest prefix in the longest-named region."""
    text = json.dumps(policy, separators=(",", ":"))  # IAM does not count white space
    prefix = "P" * longest_prefix()
    for service, ours, end in (
        ("dynamodb", table_arn(f"{settings.DYNAMODB_TABLE_PREFIX}."), f"table/{prefix}."),
        ("sqs", queue_arn("").rstrip("*"), f"{prefix}-"),
    ):
        text = text.replace(ours, _LONGEST_REGION.format(service=service) + end)
    return len(text)


def longest_prefix() -> int:
    """Return the most characters that a prefix may have, so that each table and queue gets a name that AWS takes."""
    tables = [_TABLE_NAME_LIMIT - len(f".{table.name}") for table in registry.tables()]
    queues = [_QUEUE_NAME_LIMIT - len(f"-{name}") - _QUEUE_SUFFIX for name in registry.queues()]
    return min(tables + queues)


def _allow(
    sid: str, service: str, actions: Sequence[str], resources: Sequence[str], leading: str | None = None
) -> dict[str, Any]:
    statement: dict[str, Any] = {
        "Sid": sid,
        "Effect": "Allow",
        "Action": [f"{service}:{a}" for a in actions],
        "Resource": list(resources),
    }
    if leading:
        operator = "ForAllValues:StringLike" if "*" in leading else "ForAllValues:StringEquals"
        statement["Condition"] = {operator: {LEADING_KEYS: [leading]}, "Null": {LEADING_KEYS: "false"}}
    return statement


def _tenant() -> list[dict[str, Any]]:
    statements = []
    for grant in registry.grants("tenant"):
        table = grant.table
        arn = table_arn(table.full_name)
        statements.append(_allow(_sid("Own", grant), "dynamodb", grant.actions, [arn], _bound(table.leading_keys)))
        if "Query" not in grant.actions:
            continue
        for pattern in dict.fromkeys(index.leading_keys for index in table.indexes if index.leading_keys):
            arns = [table_arn(table.full_name, i.name) for i in table.indexes if i.leading_keys == pattern]
            statements.append(_allow(_sid("OwnIndexesOf", grant), "dynamodb", ["Query"], arns, _bound(pattern)))
    return statements


def _granted(grant: Grant) -> dict[str, Any]:
    arn = table_arn(grant.table.full_name, grant.index.name if grant.index else None)
    where = [f"{arn}/stream/*" if grant.stream else arn]
    return _allow(_sid("All", grant), "dynamodb", grant.actions, where, grant.leading_keys or None)


def _describing() -> list[dict[str, Any]]:
    """The operators' page of tables: states and estimates, no items."""
    arns, step = [table_arn(table.full_name) for table in registry.tables()], _TABLES_IN_A_STATEMENT
    return [
        _allow(f"DescribeTables{start // step or ''}", "dynamodb", ["DescribeTable"], arns[start : start + step])
        for start in range(0, len(arns), step)
    ]


def _whole_tenants() -> list[dict[str, Any]]:
    """Whatever a tenant has, in each table that a room declares for tenants: a new one needs no word here."""
    own, step = [table for table in registry.tables() if table.scope == "tenant"], _TABLES_IN_A_STATEMENT
    actions = ("BatchGetItem", "BatchWriteItem", "DeleteItem", "GetItem", "Query")
    indexes = [table_arn(table.full_name, i.name) for table in own for i in table.indexes if i.leading_keys]
    return [
        *(
            _allow(
                f"WholeTenants{start // step or ''}",
                "dynamodb",
                actions,
                [table_arn(table.full_name) for table in own[start : start + step]],
            )
            for start in range(0, len(own), step)
        ),
        _allow("IndexesOfWholeTenants", "dynamodb", ["Query"], indexes),
    ]


def _sid(prefix: str, grant: Grant) -> str:
    return grant.sid or prefix + grant.table.name.replace(".", "")


def _bound(pattern: str) -> str:
    return pattern.replace("{tenant}", _TENANT_VARIABLE)
