"""The second layer: requests of tenants, workers and bulk commands are held against their role's policy before sending.

A botocore hook takes the request apart (operation, table, index, every leading key of every member) and asks the
evaluator of `iam.py` with the very document that AWS would enforce. It needs no AWS, costs microseconds, and
fails closed: an operation, a key condition or a shape that it does not understand is refused. To every role, the
platform's too, it refuses what would destroy a row and what IAM cannot refuse.

The person sees 404, as for anything of another tenant; the log gets a security event.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

from portal.errors import NotFound
from portal.isolation import iam, policies, request_parser
from portal.schema import keys, placed_names, registry
from portal.schema.registry import Role

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
    cannot, and leaves its policy to IAM.
    """
    policy = None if role == "platform" else iam.Policy(policies.document(role, prefix_of_site=prefix_of_site))

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
    with _refusals(operation, params):
        request_parser.refuse_destruction(operation, params, deletes=deletes, purges=purges)


def refuse_tables_of_others(operation: str, params: dict[str, Any]) -> None:
    """Raise IsolationError for a table that is another tenant's own. The policies of most roles cannot tell whose."""
    with _refusals(operation, params):
        owners = [placed_names.owner(name) for name in request_parser.tables_of(operation, params)]
        if any(found and found[0] != current_tenant() for found in owners):
            raise request_parser.NotUnderstood("a table that is another tenant's own")


def refuse_foreign(policy: iam.Policy, operation: str, params: dict[str, Any]) -> None:
    """Raise IsolationError unless the policy allows every part of this request to the current tenant."""
    with _refusals(operation, params):
        tenant = current_tenant()
        parts = request_parser.requests_of(operation, params, tenant)
        request_parser.refuse_planted(operation, params, tenant)
        _refuse_disallowed(policy, parts)


def refuse_strange(policy: iam.Policy, operation: str, params: dict[str, Any]) -> None:
    """Raise IsolationError unless a policy that names no tenant allows this request, and its keys are one tenant's.

    The policies of the worker, of the commands that write in bulk and of those that take up a whole tenant serve all
    tenants. So each key in a table or index of the tenants is held against the tenant as well that is acted for.
    """
    with _refusals(operation, params):
        parts = request_parser.requests_of(operation, params, None)
        tenants = [part for part in parts if _is_of_tenants(part.resource)]
        if tenants:
            tenant = current_tenant()
            request_parser.refuse_planted(operation, params, tenant)
            if not all(keys.belongs_to(tenant, key) for part in tenants for key in part.keys):
                raise request_parser.NotUnderstood("a key that is not the tenant's")
        _refuse_disallowed(policy, parts)


def _is_of_tenants(arn: str) -> bool:
    """Tell whether this is the ARN of a table, or of an index, whose keys are tenants'."""
    table, _, index = arn.partition("/index/")
    own = placed_names.owner(table)
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


def _refuse_disallowed(policy: iam.Policy, parts: list[iam.Request]) -> None:
    for part in parts:
        if not policy.allows(part):
            raise request_parser.NotUnderstood(f"{part.action} of {len(part.keys)} keys is not allowed")
    if not parts:
        raise request_parser.NotUnderstood("empty request")


@contextmanager
def _refusals(operation: str, params: dict[str, Any]) -> Iterator[None]:
    """Turn whatever is raised inside into an IsolationError that has been reported."""
    try:
        yield
    except Exception as error:  # a shape that nobody expected is refused like one that somebody did
        why = f"malformed: {type(error).__name__}"
        if isinstance(error, IsolationError | request_parser.NotUnderstood):
            why = str(error) if isinstance(error, request_parser.NotUnderstood) else error.why
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
