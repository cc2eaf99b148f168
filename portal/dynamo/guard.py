"""The second wall: every request of a tenant-scoped client is held against the policy before it is sent.

A botocore hook takes the request apart (operation, table, index, every leading key of every member) and asks the
evaluator of `iam.py` with the very document that AWS would enforce. It needs no AWS, costs microseconds, and
fails closed: an operation, a key condition or a shape that it does not understand is refused.

The person sees 404, as for anything of another tenant; the log gets a security event.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, Final

from portal.dynamo import iam, keys, policies, tables
from portal.errors import NotFound

log = logging.getLogger("pooldesk.security")

_tenant: ContextVar[str | None] = ContextVar("tenant", default=None)


class IsolationError(NotFound):
    """A request that the policy does not allow. Never the user's mistake: a bug or an attack got past the keys."""

    code = "isolation"

    def __init__(self, operation: str, table: str, why: str) -> None:
        super().__init__("There is no such object.")
        self.operation, self.table, self.why, self.tenant = operation, table, why, _tenant.get()


@contextmanager
def acting_for(tenant_id: str) -> Iterator[None]:
    """Requests made inside belong to this tenant. Nothing else can name it."""
    token = _tenant.set(keys.tenant(tenant_id))
    try:
        yield
    finally:
        _tenant.reset(token)


def current_tenant() -> str:
    """The tenant whose request is being made. Raises IsolationError outside of `acting_for`."""
    tenant = _tenant.get()
    if tenant is None:
        raise IsolationError("?", "?", "no tenant")
    return tenant


def attach(client: Any) -> None:
    """Guard every request of this botocore client with the tenant role's policy."""
    policy = iam.Policy(policies.document("tenant"))

    def check(params: dict[str, Any], model: Any, **_: Any) -> None:
        refuse_foreign(policy, model.name, params)

    # Last, so that it sees what is sent; under the bare name, because botocore has handlers of its own under the
    # service's. PynamoDB turns parameter validation off: what is malformed is refused here.
    client.meta.events.register_last("before-parameter-build", check)


def refuse_foreign(policy: iam.Policy, operation: str, params: dict[str, Any]) -> None:
    """Raise IsolationError unless the policy allows every part of this request to the current tenant."""
    table = str(params.get("TableName", "")) or ",".join(map(str, params.get("RequestItems", ())))
    try:
        tenant = current_tenant()
        parts = list(requests_of(operation, params, tenant))
    except IsolationError as error:
        error.operation, error.table = operation, error.table if error.table != "?" else table
        _report(error)
        raise
    except Exception as error:  # any shape that the code above did not expect
        refusal = IsolationError(operation, table, f"malformed: {type(error).__name__}")
        _report(refusal)
        raise refusal from error
    if any(keys.names_another_tenant(tenant, text) for text in _texts(operation, params)):
        # IAM sees only the keys of the table: it would let a row be planted in another tenant's index.
        refusal = IsolationError(operation, table, "a value that is another tenant's key")
        _report(refusal)
        raise refusal
    for request in parts:
        if not policy.allows(request):
            refusal = IsolationError(operation, table, f"{request.action} {list(request.keys)[:3]!r:.200}")
            _report(refusal)
            raise refusal
    if not parts:
        refusal = IsolationError(operation, table, "empty request")
        _report(refusal)
        raise refusal


def _report(error: IsolationError) -> None:
    log.critical(
        "Refused %s on %s for tenant %s: %s", error.operation, error.table, error.tenant or "(none)", error.why
    )


# --- what a request asks for ---

_MEMBERS: Final = {
    "Put": "PutItem",
    "Update": "UpdateItem",
    "Delete": "DeleteItem",
    "ConditionCheck": "ConditionCheckItem",
    "Get": "GetItem",
}


def requests_of(operation: str, params: dict[str, Any], tenant: str) -> Iterator[iam.Request]:
    """What AWS would authorise for this call: one request per table, or per member of a transaction.

    Raises IsolationError for what cannot be read safely; an unknown operation has no keys and no table of ours.
    """
    if operation in ("GetItem", "UpdateItem", "DeleteItem"):
        yield _request(operation, params["TableName"], [params["Key"]], tenant)
    elif operation == "PutItem":
        yield _request(operation, params["TableName"], [params["Item"]], tenant)
    elif operation == "Query":
        yield _query(params, tenant)
    elif operation == "BatchGetItem":
        for table, wanted in params["RequestItems"].items():
            yield _request(operation, table, wanted["Keys"], tenant)
    elif operation == "BatchWriteItem":
        for table, members in params["RequestItems"].items():
            yield _request(operation, table, [_written(m) for m in members], tenant)
    elif operation in ("TransactWriteItems", "TransactGetItems"):
        for member in params["TransactItems"]:
            ((kind, body),) = member.items()
            holder = body["Item"] if kind == "Put" else body["Key"]
            yield _request(_MEMBERS[kind], body["TableName"], [holder], tenant)
    else:
        yield iam.Request(f"dynamodb:{operation}", policies.table_arn(str(params.get("TableName", "*"))), (), tenant)


def _texts(operation: str, params: dict[str, Any]) -> Iterator[str]:
    """Every text that the request would write into an attribute that an index is keyed by, or compare with a key."""
    bodies: list[dict[str, Any]] = [params]
    if operation == "TransactWriteItems":
        bodies = [body for member in params["TransactItems"] for body in member.values()]
    elif operation == "BatchWriteItem":
        bodies = [body for ms in params["RequestItems"].values() for m in ms for body in m.values()]
    hashes = {i.hash for t in tables.ALL for i in t.indexes}
    for body in bodies:
        written = [v for name, v in (body.get("Item") or {}).items() if name in hashes]
        values = (body.get("ExpressionAttributeValues") or {}).values()
        yield from (v["S"] for v in (*written, *values) if "S" in v)


def _request(operation: str, table: str, holders: list[dict[str, Any]], tenant: str) -> iam.Request:
    name = _declared(table).hash
    leading = tuple(_text(operation, table, holder[name]) for holder in holders)
    return iam.Request(f"dynamodb:{operation}", policies.table_arn(table), leading, tenant)


def _written(member: dict[str, Any]) -> dict[str, Any]:
    ((kind, body),) = member.items()
    holder: dict[str, Any] = body[{"PutRequest": "Item", "DeleteRequest": "Key"}[kind]]
    return holder


def _query(params: dict[str, Any], tenant: str) -> iam.Request:
    table, index = params["TableName"], params.get("IndexName")
    declared = _declared(table)
    name = declared.hash
    if index is not None:
        name = next((i.hash for i in declared.indexes if i.name == index), "")
        if not name:
            raise IsolationError("Query", table, "unknown index")
    if "KeyConditions" in params or "QueryFilter" in params or "ConditionalOperator" in params:
        raise IsolationError("Query", table, "legacy parameters")
    names = params.get("ExpressionAttributeNames") or {}
    values = params.get("ExpressionAttributeValues") or {}
    equal = []
    for attribute, operator, placeholder in key_conditions(params["KeyConditionExpression"]):
        real = names[attribute] if attribute.startswith("#") else attribute
        if real == name:
            if operator != "=":
                raise IsolationError("Query", table, "the partition key needs equality")
            equal.append(_text("Query", table, values[placeholder]))
    if len(equal) != 1:
        raise IsolationError("Query", table, "not exactly one equality on the partition key")
    start = params.get("ExclusiveStartKey") or {}
    if name in start and _text("Query", table, start[name]) != equal[0]:
        raise IsolationError("Query", table, "starts in another partition")
    return iam.Request("dynamodb:Query", policies.table_arn(table, index), tuple(equal), tenant)


def _declared(table: str) -> tables.Table:
    found = _by_name().get(table)
    if found is None:
        # A table ARN in place of a name would get here too; nothing of ours sends one.
        raise IsolationError("?", str(table), "unknown table")
    return found


@lru_cache(maxsize=1)
def _by_name() -> dict[str, tables.Table]:
    return {t.full_name: t for t in tables.ALL}


def _text(operation: str, table: str, value: dict[str, Any]) -> str:
    ((kind, content),) = value.items()
    if kind != "S" or not isinstance(content, str):
        raise IsolationError(operation, table, "a leading key is not text")
    return content


# --- key conditions: the whole grammar that a Query may use ---

_NAME = r"(?:#\w+|[A-Za-z_]\w*)"
_VALUE = r":\w+"
_CLAUSE = (
    rf"(?:(?P<name_{{i}}>{_NAME})\s*(?P<op_{{i}}>=|<=|>=|<|>)\s*(?P<value_{{i}}>{_VALUE})"
    rf"|(?P<between_{{i}}>{_NAME})\s+BETWEEN\s+{_VALUE}\s+AND\s+{_VALUE}"
    rf"|begins_with\s*\(\s*(?P<begins_{{i}}>{_NAME})\s*,\s*{_VALUE}\s*\))"
)
_CONDITION = re.compile(
    rf"\s*{_CLAUSE.format(i=1)}(?:\s+AND\s+{_CLAUSE.format(i=2)})?\s*".replace("{{", "{").replace("}}", "}"),
    re.ASCII,
)
_RESERVED = {"and", "or", "not", "between", "in", "begins_with"}


@lru_cache(maxsize=512)
def key_conditions(expression: str) -> tuple[tuple[str, str, str], ...]:
    """The clauses of a key condition as (name, operator, value placeholder). Raises IsolationError unless the whole
    expression is one or two clauses joined by AND, optionally in one pair of parentheses."""
    text = expression.strip()
    if text.startswith("(") and text.endswith(")") and text.count("(") - text.count("begins_with (") == 1:
        text = text[1:-1]
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise IsolationError("Query", "?", "a key condition that is not understood")
    clauses = []
    for i in (1, 2):
        name = match[f"name_{i}"] or match[f"between_{i}"] or match[f"begins_{i}"]
        if name is None:
            continue
        if name.lower() in _RESERVED:
            raise IsolationError("Query", "?", "a reserved word as a name")
        operator = match[f"op_{i}"] or ("between" if match[f"between_{i}"] else "begins_with")
        clauses.append((name, operator, match[f"value_{i}"] or ""))
    return tuple(clauses)
