"""Hold each request of tenants, workers and bulk commands against its role's policy before it is sent.

A botocore hook takes the request apart (operation, table, index, every leading key of every member) and asks the
evaluator of `policies.py` with the very document that AWS would enforce. It needs no AWS, costs microseconds, and
fails closed: it reads what our own code sends, and refuses an operation, a parameter, a key condition or a shape that
it does not understand, because a key that is read wrongly would be authorised wrongly. To every role, the platform's
too, it refuses what would destroy a row and what IAM cannot refuse.

The person sees 404, as for anything of another tenant; the log gets a security event.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, Final

from portal.errors import NotFound
from portal.isolation import expressions, policies
from portal.isolation.expressions import NotUnderstood
from portal.schema import keys, registry
from portal.schema.registry import Role

_READS: Final = {"Get": "GetItem"}
_WRITES: Final = {
    "Put": "PutItem",
    "Update": "UpdateItem",
    "Delete": "DeleteItem",
    "ConditionCheck": "ConditionCheckItem",
}
_CHANGES: Final = {*_WRITES.values(), "PutRequest", "DeleteRequest"} - {"ConditionCheckItem"}
_DELETIONS: Final = {"DeleteItem", "DeleteRequest"}
# Anything else is refused: the parameters of the time before expressions, and those still to come.
_COMMON: Final = (
    "TableName ExpressionAttributeNames ExpressionAttributeValues ProjectionExpression ReturnConsumedCapacity "
    "ReturnItemCollectionMetrics ReturnValuesOnConditionCheckFailure ClientRequestToken "
)
_PARAMETERS: Final = {
    operation: frozenset((_COMMON + more).split())
    for operation, more in {
        "GetItem": "Key ConsistentRead",
        "PutItem": "Item ConditionExpression ReturnValues",
        "UpdateItem": "Key UpdateExpression ConditionExpression ReturnValues",
        "DeleteItem": "Key ConditionExpression ReturnValues",
        "ConditionCheckItem": "Key ConditionExpression",
        "Query": "IndexName KeyConditionExpression FilterExpression ExclusiveStartKey Limit ScanIndexForward "
        "ConsistentRead Select",
        "BatchGetItem": "RequestItems",
        "KeysAndAttributes": "Keys ConsistentRead",
        "BatchWriteItem": "RequestItems",
        "TransactGetItems": "TransactItems",
        "TransactWriteItems": "TransactItems",
        "PutRequest": "Item",
        "DeleteRequest": "Key",
    }.items()
}


def requests_of(operation: str, params: dict[str, Any], tenant: str | None) -> list[policies.Request]:
    """Return what AWS would authorise for this call: one request per table, or per member of a transaction.

    Raises NotUnderstood, and whatever Python raises for a malformed request. An unknown operation has no keys.
    """
    return list(_requests(operation, params, tenant))


def _requests(operation: str, params: dict[str, Any], tenant: str | None) -> Iterator[policies.Request]:
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
        yield policies.Request(
            f"dynamodb:{operation}", policies.table_arn(str(params.get("TableName", "*"))), (), tenant
        )


def _request(operation: str, table: str, holders: list[dict[str, Any]], tenant: str | None) -> policies.Request:
    name = _declared(table).hash
    leading = tuple(_text(holder[name]) for holder in holders)
    return policies.Request(f"dynamodb:{operation}", policies.table_arn(table), leading, tenant)


def _written(member: dict[str, Any]) -> dict[str, Any]:
    ((kind, body),) = member.items()
    holder: dict[str, Any] = body[{"PutRequest": "Item", "DeleteRequest": "Key"}[kind]]
    return holder


def _query(params: dict[str, Any], tenant: str | None) -> policies.Request:
    table, index = params["TableName"], params.get("IndexName")
    declared = _declared(table)
    name = declared.hash
    if index is not None:
        name = next((i.hash for i in declared.indexes if i.name == index), "")
        if not name:
            raise NotUnderstood("unknown index")
    values = params.get("ExpressionAttributeValues") or {}
    equal = []
    for attribute, operator, placeholder in expressions.key_conditions(params["KeyConditionExpression"]):
        if _real(attribute, params) == name:
            if operator != "=":
                raise NotUnderstood("the partition key needs equality")
            equal.append(_text(values[placeholder]))
    if len(equal) != 1:
        raise NotUnderstood("not exactly one equality on the partition key")
    start = params.get("ExclusiveStartKey") or {}
    if name in start and _text(start[name]) != equal[0]:
        raise NotUnderstood("starts in another partition")
    # A start in an index names an item of the table as well.
    if tenant is not None and not all(keys.belongs_to(tenant, _text(start[n])) for n in _hashes(table) if n in start):
        raise NotUnderstood("starts at an item that is not the tenant's")
    return policies.Request("dynamodb:Query", policies.table_arn(table, index), tuple(equal), tenant)


def _bodies(operation: str, params: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield table and parameters of each single request in this one. Raises NotUnderstood for an unknown parameter."""
    for action, table, body in _single_requests(operation, params):
        if action in _PARAMETERS and not body.keys() <= _PARAMETERS[action]:
            raise NotUnderstood("a parameter that is not understood")
        if not all(name.startswith("#") for name in body.get("ExpressionAttributeNames") or ()):
            raise NotUnderstood("a name that stands for another")
        yield table, body


def _single_requests(operation: str, params: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """Return the request itself and those that it is made of: action, table and parameters of each."""
    bodies = [(operation, params.get("TableName", ""), params)]
    if operation in ("TransactWriteItems", "TransactGetItems"):
        kinds = _READS | _WRITES
        bodies += [(kinds[kind], b["TableName"], b) for m in params["TransactItems"] for kind, b in m.items()]
    elif operation == "BatchGetItem":
        bodies += [("KeysAndAttributes", table, wanted) for table, wanted in params["RequestItems"].items()]
    elif operation == "BatchWriteItem":
        members = [(table, member) for table, group in params["RequestItems"].items() for member in group]
        bodies += [(kind, table, body) for table, member in members for kind, body in member.items()]
    return bodies


def tables_of(operation: str, params: dict[str, Any]) -> set[str]:
    """Return the tables that a request names, as it names them. Raises whatever Python raises for a malformed one."""
    return {str(table) for _, table, _ in _single_requests(operation, params)}


def refuse_lost_rows(operation: str, params: dict[str, Any], *, deletes: bool = False, purges: bool = False) -> None:
    """Raise NotUnderstood for a deletion in a batch or of an item that its table keeps, and for a write that could
    replace, change or delete a row of an append-only table. With `deletes` the first two may pass, with `purges` the
    deletion of such a row.

    IAM can say none of it: it authorises a batch as a whole, and knows neither sort keys nor conditions of writes.
    """
    for action, table, body in _single_requests(operation, params):
        if action == "DeleteRequest" and not deletes:
            raise NotUnderstood("a deletion in a batch")
        declared = _find(table)
        if declared is None:
            continue
        keeps = action in _DELETIONS and not deletes and declared.kept
        if keeps and _text(body["Key"].get(declared.range)) in keeps:
            raise NotUnderstood("the deletion of an item that goes with its tenant alone")
        if not declared.append_only or action not in _CHANGES:
            continue
        if purges and action in _DELETIONS:
            continue
        absent = expressions.demanded_absent(body.get("ConditionExpression") or "")
        if action != "PutItem" or not absent or _real(absent, body) not in (declared.hash, declared.range):
            raise NotUnderstood("a row that is there could be lost")


def refuse_planted(operation: str, params: dict[str, Any], tenant: str) -> None:
    """Raise NotUnderstood where a row would get into another tenant's index.

    IAM does not see that: its leading keys are those of the table that is written.
    """
    for table, body in _bodies(operation, params):
        if not all(keys.belongs_to(tenant, _text(value)) for value in _planted(table, body)):
            raise NotUnderstood("a key of an index that is not the tenant's")


def _planted(table: str, body: dict[str, Any]) -> Iterator[Any]:
    """Return what a write makes of the attributes that are keys of the table or of its indexes."""
    item, update = body.get("Item"), body.get("UpdateExpression")
    if item is None and update is None:
        return
    hashes = _hashes(table)
    if item is not None:
        yield from (item[name] for name in hashes if name in item)
    for attribute, placeholder in expressions.mentions(update) if update is not None else ():
        if _real(attribute, body) in hashes:
            if not placeholder:
                raise NotUnderstood("a key that is not set to one value")
            yield body["ExpressionAttributeValues"][placeholder]


@lru_cache(maxsize=512)
def _hashes(table: str) -> frozenset[str]:
    """Return the names of the keys that are a tenant's. Those of an index that no tenant reads are nobody's."""
    return frozenset((_declared(table).hash, *(i.hash for i in _declared(table).indexes if i.leading_keys)))


def _real(attribute: str, params: dict[str, Any]) -> str:
    """Return what a name in an expression stands for. Only what begins with the sign of a placeholder is one."""
    if not attribute.startswith("#"):
        return attribute
    name: str = params["ExpressionAttributeNames"][attribute]
    return name


def _declared(table: str) -> registry.Table:
    found = _find(table)
    if found is None:
        # An ARN in place of the name gets here too; nothing of ours sends one.
        raise NotUnderstood("unknown table")
    return found


def _find(name: str) -> registry.Table | None:
    """Return the table of this name: of all, or of a tenant's own."""
    own = registry.owner(name)
    return own[1] if own else _by_name().get(name)


@lru_cache(maxsize=1)
def _by_name() -> dict[str, registry.Table]:
    return {t.full_name: t for t in registry.tables()}


def _text(value: dict[str, Any]) -> str:
    ((kind, content),) = value.items()
    if kind != "S" or not isinstance(content, str):
        raise NotUnderstood("a leading key is not text")
    return content


# --- refuse, and report ---

log = logging.getLogger("pooldesk.security")

_tenant: ContextVar[str | None] = ContextVar("tenant", default=None)
_purged: ContextVar[str | None] = ContextVar("purged", default=None)


class IsolationError(NotFound):
    """A request that the policy does not allow. Never the user's mistake: a bug or an attack got past the keys."""

    code = "isolation"

    def __init__(self, operation: str, table: str, why: str) -> None:
        super().__init__("There is no such object.")
        self.operation, self.table, self.why, self.tenant = operation, table, why, _tenant.get()


@contextmanager
def acting_for(tenant_id: str) -> Iterator[None]:
    """Make the requests inside belong to this tenant. Nothing else can name it."""
    token = _tenant.set(keys.tenant(tenant_id))
    try:
        yield
    finally:
        _tenant.reset(token)


@contextmanager
def purging(tenant_id: str) -> Iterator[None]:
    """Act for this tenant, and let the lifecycle role delete even the rows of its that are otherwise never deleted."""
    token = _purged.set(keys.tenant(tenant_id))
    try:
        with acting_for(tenant_id):
            yield
    finally:
        _purged.reset(token)


def current_tenant() -> str:
    """Return the tenant whose request is being made. Raises IsolationError outside of `acting_for`."""
    tenant = _tenant.get()
    if tenant is None:
        raise IsolationError("?", "?", "no tenant")
    return tenant


def acted_for() -> str:
    """Return the tenant whose request is being made, "" for none."""
    return _tenant.get() or ""


def attach(client: Any, role: Role, *, prefix_of_site: str = "") -> None:
    """Guard every request of this botocore client with the policy of a role, at home or at a site of silos.

    The platform's role reads before a tenant is known and is bound to no key: of it the guard only holds what IAM
    cannot, and leaves its policy to IAM. Raises ValueError for any other role without a grant.
    """
    policy = None
    if role != "platform":
        document = policies.document(role, prefix_of_site=prefix_of_site)
        if not document["Statement"]:
            raise ValueError(f"the role {role} has no Grant: declare one before its first request")
        policy = policies.Policy(document)

    def check(params: dict[str, Any], model: Any, **_: Any) -> None:
        refuse_destruction(model.name, params, role)
        refuse_tables_of_others(model.name, params)
        if policy is not None:
            (refuse_foreign if role == "tenant" else refuse_strange)(policy, model.name, params)

    # Last, so that it sees what is sent; under the bare name, because botocore has handlers of its own under the
    # service's. PynamoDB turns parameter validation off: what is malformed is refused here.
    client.meta.events.register_last("before-parameter-build", check)


def refuse_destruction(operation: str, params: dict[str, Any], role: Role) -> None:
    """Raise IsolationError for a write that this role may not make, though IAM cannot refuse it.

    The lifecycle role deletes in batches, and rows of append-only tables inside of `purging` alone. That they are of
    the tenant that is purged is held by `refuse_strange`.
    """
    deletes = role == "lifecycle"
    purges = deletes and _purged.get() is not None and _purged.get() == _tenant.get()
    with refusals(operation, params):
        refuse_lost_rows(operation, params, deletes=deletes, purges=purges)


def refuse_tables_of_others(operation: str, params: dict[str, Any]) -> None:
    """Raise IsolationError for a table that is another tenant's own. The policies of most roles cannot tell whose."""
    with refusals(operation, params):
        owners = [registry.owner(name) for name in tables_of(operation, params)]
        if any(found and found[0] != current_tenant() for found in owners):
            raise NotUnderstood("a table that is another tenant's own")


def refuse_foreign(policy: policies.Policy, operation: str, params: dict[str, Any]) -> None:
    """Raise IsolationError unless the policy allows every part of this request to the current tenant."""
    with refusals(operation, params):
        tenant = current_tenant()
        parts = requests_of(operation, params, tenant)
        refuse_planted(operation, params, tenant)
        _refuse_disallowed(policy, parts)


def refuse_strange(policy: policies.Policy, operation: str, params: dict[str, Any]) -> None:
    """Raise IsolationError unless a policy that names no tenant allows this request, and its keys are one tenant's.

    The policies of the worker, of the commands that write in bulk and of those that take up a whole tenant serve all
    tenants. So each key in a table or index of the tenants is held against the tenant as well that is acted for.
    """
    with refusals(operation, params):
        parts = requests_of(operation, params, None)
        tenants = [part for part in parts if _is_of_tenants(part.resource)]
        if tenants:
            tenant = current_tenant()
            refuse_planted(operation, params, tenant)
            if not all(keys.belongs_to(tenant, key) for part in tenants for key in part.keys):
                raise NotUnderstood("a key that is not the tenant's")
        _refuse_disallowed(policy, parts)


def _is_of_tenants(arn: str) -> bool:
    """Tell whether this is the ARN of a table, or of an index, whose keys are tenants'."""
    table, _, index = arn.partition("/index/")
    own = registry.owner(table)
    if own is None:
        return arn in _arns_of_tenants()
    return not index or any(i.name == index and i.leading_keys for i in own[1].indexes)


@lru_cache(maxsize=1)
def _arns_of_tenants() -> frozenset[str]:
    own = [table for table in registry.tables() if table.scope == "tenant"]
    return frozenset(
        policies.table_arn(table.full_name, index)
        for table in own
        for index in (None, *(i.name for i in table.indexes if i.leading_keys))
    )


def _refuse_disallowed(policy: policies.Policy, parts: list[policies.Request]) -> None:
    for part in parts:
        if not policy.allows(part):
            reason = "a key is not of the form that is granted" if policy.is_about(part) else "no Grant names it"
            raise NotUnderstood(f"{part.action} of {len(part.keys)} keys is not allowed: {reason}")
    if not parts:
        raise NotUnderstood("empty request")


@contextmanager
def refusals(operation: str, params: dict[str, Any]) -> Iterator[None]:
    """Turn whatever is raised inside into an IsolationError that has been reported."""
    try:
        yield
    except Exception as error:  # a shape that nobody expected is refused like one that somebody did
        why = f"malformed: {type(error).__name__}"
        if isinstance(error, IsolationError | NotUnderstood):
            why = str(error) if isinstance(error, NotUnderstood) else error.why
        refusal = IsolationError(operation, _tables_of(params), why)
        report(refusal)
        raise refusal from error


def _tables_of(params: Any) -> str:
    """Return the tables that a request names, for the log, as far as it can be read at all."""
    try:
        named = params.get("RequestItems") or [b["TableName"] for m in params["TransactItems"] for b in m.values()]
        return ",".join(dict.fromkeys(map(str, named)))
    except Exception:
        return str(params.get("TableName", "?")) if isinstance(params, dict) else "?"


def report(error: IsolationError) -> None:
    """Log one event. It holds no keys and no values: in the tables of the platform those are addresses of people."""
    operation, table = (ascii(text)[1:-1][:255] for text in (error.operation, error.table))
    log.critical("Refused %s on %s for tenant %s: %s", operation, table, error.tenant or "(none)", error.why)
