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
# AWS, "IAM and AWS STS quotas": characters of a managed policy. "Quotas in Amazon DynamoDB": of a table's name.
SIZE_LIMIT: Final = 6144
_TABLE_NAME_LIMIT: Final = 255
_LONGEST_ARN: Final = "arn:aws-us-gov:dynamodb:us-gov-west-1:000000000000:table/"


def table_arn(name: str, index: str | None = None) -> str:
    """Return the ARN of a table by its full name, or of one of its indexes."""
    arn = f"arn:aws:dynamodb:{settings.AWS_REGION}:{settings.AWS_ACCOUNT_ID}:table/{name}"
    return f"{arn}/index/{index}" if index else arn


def document(role: str) -> dict[str, Any]:
    """Return the policy of a role as a JSON-ready document. Raises ValueError for what is no role."""
    if role not in ROLES:
        raise ValueError(f"there is no role {role}")
    if role == "tenant":
        statements = _tenant()
    else:
        statements = [_granted(grant) for grant in registry.grants(role)]
        if role == "platform":
            everything = [table_arn(table.full_name) for table in registry.tables()]
            # The operators' page of tables: states and estimates, no items.
            statements.append(_allow("DescribeTables", ["DescribeTable"], everything))
    return {"Version": "2012-10-17", "Statement": statements}


def size(role: str, *, prefix: str | None = None) -> int:
    """Count the characters of a role's policy as IAM does, for a prefix of the tables' names, this portal's if None.

    The ARNs are counted at their longest, so that the answer is the same in every partition, region and account.
    """
    ours = table_arn(f"{settings.DYNAMODB_TABLE_PREFIX}.")
    longest = f"{_LONGEST_ARN}{settings.DYNAMODB_TABLE_PREFIX if prefix is None else prefix}."
    text = json.dumps(document(role), separators=(",", ":"))  # IAM does not count white space
    return len(text.replace(ours, longest))


def longest_prefix() -> int:
    """Return the most characters that a prefix of the tables' names may have, so that IAM takes every role's policy."""
    room = []
    for role in ROLES:
        without = size(role, prefix="")
        names = size(role, prefix="x") - without
        room.append((SIZE_LIMIT - without) // max(1, names))
    return min(*room, _TABLE_NAME_LIMIT - max(len(f".{table.name}") for table in registry.tables()))


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


def _tenant() -> list[dict[str, Any]]:
    statements = []
    for grant in registry.grants("tenant"):
        table = grant.table
        arn = table_arn(table.full_name)
        statements.append(_allow(_sid("Own", grant), grant.actions, [arn], _bound(table.leading_keys)))
        if "Query" not in grant.actions:
            continue
        for pattern in dict.fromkeys(index.leading_keys for index in table.indexes):
            arns = [table_arn(table.full_name, i.name) for i in table.indexes if i.leading_keys == pattern]
            statements.append(_allow(_sid("OwnIndexesOf", grant), ["Query"], arns, _bound(pattern)))
    return statements


def _granted(grant: Grant) -> dict[str, Any]:
    arn = table_arn(grant.table.full_name, grant.index.name if grant.index else None)
    return _allow(
        _sid("All", grant), grant.actions, [f"{arn}/stream/*" if grant.stream else arn], grant.leading_keys or None
    )


def _sid(prefix: str, grant: Grant) -> str:
    return grant.sid or prefix + grant.table.name.replace(".", "")


def _bound(pattern: str) -> str:
    return pattern.replace("{tenant}", _TENANT_VARIABLE)
