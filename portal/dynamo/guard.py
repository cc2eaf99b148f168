"""The second wall: every request of a tenant-scoped client is held against the policy before it is sent.

A botocore hook takes the request apart (operation, table, index, every leading key of every member) and asks the
evaluator of `iam.py` with the very document that AWS would enforce. It needs no AWS, costs microseconds, and
fails closed: an operation, a key condition or a shape that it does not understand is refused.

The person sees 404, as for anything of another tenant; the log gets a security event.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, Final

from portal.dynamo import expressions, iam, keys, policies, tables
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
    try:
        tenant = current_tenant()
        parts = list(requests_of(operation, params, tenant))
        for table, body in _bodies(operation, params):
            _refuse_planted(operation, table, body, tenant)
        for part in parts:
            if not policy.allows(part):
                raise IsolationError(operation, "?", f"{part.action} of {len(part.keys)} keys is not allowed")
        if not parts:
            raise IsolationError(operation, "?", "empty request")
    except IsolationError as error:
        error.operation, error.table = operation, error.table if error.table != "?" else _tables_of(params)
        _report(error)
        raise
    except Exception as error:  # any shape that the code above did not expect
        why = str(error) if isinstance(error, expressions.NotUnderstood) else f"malformed: {type(error).__name__}"
        refusal = IsolationError(operation, _tables_of(params), why)
        _report(refusal)
        raise refusal from error


def _tables_of(params: Any) -> str:
    """The tables that a request names, for the log, as far as it can be read at all."""
    try:
        named = params.get("RequestItems") or [b["TableName"] for m in params["TransactItems"] for b in m.values()]
        return ",".join(dict.fromkeys(map(str, named)))
    except Exception:
        return str(params.get("TableName", "?")) if isinstance(params, dict) else "?"


def _report(error: IsolationError) -> None:
    """One event. It holds no keys and no values: in the tables of the platform those are addresses of people."""
    operation, table = (ascii(text)[1:-1][:255] for text in (error.operation, error.table))
    log.critical("Refused %s on %s for tenant %s: %s", operation, table, error.tenant or "(none)", error.why)


# --- what a request asks for ---

_READS: Final = {"Get": "GetItem"}
_WRITES: Final = {
    "Put": "PutItem",
    "Update": "UpdateItem",
    "Delete": "DeleteItem",
    "ConditionCheck": "ConditionCheckItem",
}
# Anything else is refused: the parameters of the time before expressions, and those still to come.
_PARAMETERS: Final = frozenset(
    "TableName IndexName Key Item RequestItems TransactItems KeyConditionExpression FilterExpression "
    "ProjectionExpression ConditionExpression UpdateExpression ExpressionAttributeNames ExpressionAttributeValues "
    "ExclusiveStartKey Limit ScanIndexForward ConsistentRead Select ReturnValues ReturnValuesOnConditionCheckFailure "
    "ReturnConsumedCapacity ReturnItemCollectionMetrics ClientRequestToken".split()
)


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
        kinds = _READS if operation == "TransactGetItems" else _WRITES
        for member in params["TransactItems"]:
            ((kind, body),) = member.items()
            holder = body["Item"] if kind == "Put" else body["Key"]
            yield _request(kinds[kind], body["TableName"], [holder], tenant)
    else:
        yield iam.Request(f"dynamodb:{operation}", policies.table_arn(str(params.get("TableName", "*"))), (), tenant)


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
    values = params.get("ExpressionAttributeValues") or {}
    equal = []
    for attribute, operator, placeholder in expressions.key_conditions(params["KeyConditionExpression"]):
        if _real(attribute, params) == name:
            if operator != "=":
                raise IsolationError("Query", table, "the partition key needs equality")
            equal.append(_text("Query", table, values[placeholder]))
    if len(equal) != 1:
        raise IsolationError("Query", table, "not exactly one equality on the partition key")
    start = params.get("ExclusiveStartKey") or {}
    if name in start and _text("Query", table, start[name]) != equal[0]:
        raise IsolationError("Query", table, "starts in another partition")
    return iam.Request("dynamodb:Query", policies.table_arn(table, index), tuple(equal), tenant)


def _bodies(operation: str, params: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Table and parameters of each single request in this one. Raises IsolationError for an unknown parameter."""
    bodies = [("", params)]
    if operation in ("TransactWriteItems", "TransactGetItems"):
        bodies += [(body["TableName"], body) for member in params["TransactItems"] for body in member.values()]
    elif operation == "BatchWriteItem":
        members = [(table, member) for table, wanted in params["RequestItems"].items() for member in wanted]
        bodies += [(table, body) for table, member in members for body in member.values()]
    else:
        bodies = [(params.get("TableName", ""), params)]
    for table, body in bodies:
        if not body.keys() <= _PARAMETERS:
            raise IsolationError(operation, "?", "a parameter that is not understood")
        if not all(name.startswith("#") for name in body.get("ExpressionAttributeNames") or ()):
            raise IsolationError(operation, "?", "a name that stands for another")
        yield table, body


def _refuse_planted(operation: str, table: str, body: dict[str, Any], tenant: str) -> None:
    """IAM sees the keys of the table, not those of its indexes: it would let a row be planted in another tenant's."""
    item, update = body.get("Item"), body.get("UpdateExpression")
    if item is None and update is None:
        return
    hashes = {_declared(table).hash, *(i.hash for i in _declared(table).indexes)}
    planted = [item[name] for name in hashes if name in item] if item is not None else []
    for attribute, placeholder in expressions.mentions(update) if update is not None else ():
        if _real(attribute, body) in hashes:
            if not placeholder:
                raise IsolationError(operation, table, "a key that is not set to one value")
            planted.append(body["ExpressionAttributeValues"][placeholder])
    if not all(keys.belongs_to(tenant, _text(operation, table, value)) for value in planted):
        raise IsolationError(operation, table, "a key of an index that is not the tenant's")


def _real(attribute: str, params: dict[str, Any]) -> str:
    """What a name in an expression stands for. Only what begins with the sign of a placeholder is one."""
    if not attribute.startswith("#"):
        return attribute
    name: str = params["ExpressionAttributeNames"][attribute]
    return name


def _declared(table: str) -> tables.Table:
    found = _by_name().get(table)
    if found is None:
        # A table ARN in place of a name would get here too; nothing of ours sends one.
        raise IsolationError("?", "?", "unknown table")
    return found


@lru_cache(maxsize=1)
def _by_name() -> dict[str, tables.Table]:
    return {t.full_name: t for t in tables.ALL}


def _text(operation: str, table: str, value: dict[str, Any]) -> str:
    ((kind, content),) = value.items()
    if kind != "S" or not isinstance(content, str):
        raise IsolationError(operation, table, "a leading key is not text")
    return content
