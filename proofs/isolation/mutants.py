"""Break guard and policies by one mistake at a time, of those that people make. An attack has to notice each.

Each broken layer is attacked in memory by the same attempts, and nothing is sent. The oracle alone says whether what it
lets through was the tenant's, and an honest request that it refuses gives it away as well. One right too many of a
role, and a guard that misreads a write, break a promise of `privileges.py`.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, Final
from unittest.mock import patch

from django.conf import settings

from portal.dynamo import placement
from portal.dynamo.placement import POOL, Placement
from portal.isolation import expressions, guard, object_guard, policies
from portal.isolation.policies import LEADING_KEYS, TAG
from portal.schema import keys, registry
from portal.schema.registry import Table
from proofs.isolation import privileges
from proofs.isolation.attempts.attempt import AttackAttempt
from proofs.isolation.data_attack import AttackPlan
from proofs.isolation.oracle import Oracle
from proofs.isolation.privileges import but
from proofs.isolation.transport import listening
from tenants.audit_trail.stored import AUDIT
from tickets.counting import stored as aggregate_keys
from tickets.ticket.stored import TICKETS

ATTEMPTS: Final = 20_000  # before a mutant counts as a survivor
CONTROL: Final = "none: the layers as they are"


Document = dict[str, Any]


@dataclass(frozen=True)
class Mutant:
    """A change to the policy document, to the code, or to both."""

    document: Callable[[Document], None] = lambda document: None
    patched: Callable[[], Any] = nullcontext
    breaks_a_promise: bool = False  # about rights, which the tenants' attempts do not try


@dataclass(frozen=True)
class Fate:
    """The end of a mutant: by which kind of attempt it was found out, and after how many; "" for a survivor."""

    mistake: str
    killed_by: str
    attempts: int

    @property
    def as_expected(self) -> bool:
        return bool(self.killed_by) != (self.mistake == CONTROL)


def run(plan: AttackPlan, advance: Callable[[int], object]) -> list[Fate]:
    fates = []
    for mistake, broken in MUTANTS.items():
        limit = ATTEMPTS if mistake != CONTROL else ATTEMPTS // 10
        with listening(lambda: None):
            # A context of its own: one of the mistakes leaves a tenant behind.
            fates.append(copy_context().run(_hunt, plan, mistake, broken, limit))
        advance(1)
    return fates


def _hunt(plan: AttackPlan, mistake: str, broken: Mutant, limit: int) -> Fate:
    oracles = {t.id: Oracle(t.id) for t in plan.targets}
    document = policies.document("tenant")
    broken.document(document)
    policy = policies.Policy(document)
    with broken.patched():
        promise, looked_at = privileges.first_broken()
        if promise or broken.breaks_a_promise:
            return Fate(mistake, promise and f"not kept: {promise}", looked_at)
        for number in range(limit):
            attempt = plan.attempt(number)
            if attempt.call is not None:
                continue
            # Every other tenant has tables of its own, here where nothing is sent.
            where = Placement("bridge") if attempt.draw.rng.random() < 0.5 else POOL
            passed, sent = _passes(policy, attempt, where)
            if passed and not oracles[attempt.draw.me.id].allows(attempt.operation, sent):
                return Fate(mistake, f"let through: {attempt.kind}", number + 1)
            if attempt.honest and not passed:
                return Fate(mistake, f"refused an honest {attempt.operation}", number + 1)
    return Fate(mistake, "", limit)


def _passes(policy: policies.Policy, attempt: AttackAttempt, where: Placement) -> tuple[bool, dict[str, Any]]:
    """Tell whether the guard lets a request through, and what would be sent of it."""
    sent = attempt.params
    try:
        with guard.acting_for(attempt.draw.me.id), placement.at(where):
            try:
                sent = placement.addressed(sent).params
            except Exception:  # what has no form of a request is left to the guard
                sent = attempt.params
            guard.refuse_destruction(attempt.operation, sent, "tenant")
            guard.refuse_tables_of_others(attempt.operation, sent)
            guard.refuse_foreign(policy, attempt.operation, sent)
    except guard.IsolationError:
        return False, sent
    return True, sent


# --- policies ---


def _pattern(change: Callable[[str], str]) -> Callable[[Document], None]:
    def apply(document: Document) -> None:
        for statement in document["Statement"]:
            for entries in statement["Condition"].values():
                if isinstance(entries.get(LEADING_KEYS), list):
                    entries[LEADING_KEYS] = [change(text) for text in entries[LEADING_KEYS]]

    return apply


def _without_null(document: Document) -> None:
    for statement in document["Statement"]:
        statement["Condition"].pop("Null", None)  # those of objects have none


def _also(*actions: str) -> Callable[[Document], None]:
    """Return a statement that somebody added in a hurry."""
    statement = {"Effect": "Allow", "Action": [f"dynamodb:{a}" for a in actions], "Resource": "*"}
    return lambda document: document["Statement"].append(copy.deepcopy(statement))


def _any_action(document: Document) -> None:
    for statement in document["Statement"]:
        statement["Action"] = "dynamodb:*"


def _without_an_index(document: Document) -> None:
    for statement in document["Statement"]:
        del statement["Resource"][1:]


# The first delimiter behind the variable, and everything from the variable on.
_OWN, _ANYBODY = (
    keys.OWN_COLLECTIONS.replace("{tenant}", f"${{{TAG}}}"),
    aggregate_keys.ALL_AGGREGATES.partition("*")[0] + "*",
)


# --- code ---


def _asks(change: Callable[[str, dict[str, Any]], dict[str, Any]]) -> Mutant:
    """Let the guard take something else apart than what is sent."""
    real = guard.requests_of

    def wrong(operation: str, params: dict[str, Any], tenant: str) -> list[policies.Request]:
        return real(operation, change(operation, params), tenant)

    return _patched("requests_of", wrong)


def _first_member(operation: str, params: dict[str, Any]) -> dict[str, Any]:
    if operation.startswith("Transact"):
        return params | {"TransactItems": params["TransactItems"][:1]}
    if operation == "BatchWriteItem":
        return params | {"RequestItems": {table: members[:1] for table, members in params["RequestItems"].items()}}
    return params


def _no_index(operation: str, params: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if name != "IndexName"}


def _first_equality(params: dict[str, Any], tenant: str) -> policies.Request:
    """Take the first comparison for that of the partition key, whatever its name stands for."""
    found = re.search(r"=\s*(:\w+)", params["KeyConditionExpression"])
    value = params["ExpressionAttributeValues"][found[1] if found else ""]["S"]
    arn = policies.table_arn(params["TableName"], params.get("IndexName"))
    return policies.Request("dynamodb:Query", arn, (value,), tenant)


def _knows_only(policy: policies.Policy, operation: str, params: dict[str, Any]) -> None:
    if operation in ("GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query") or "Items" in operation:
        _REAL_REFUSAL(policy, operation, params)


@contextmanager
def _leaking(tenant_id: str) -> Iterator[None]:
    """Set the tenant once, and do not take it back."""
    if guard._tenant.get() is None:
        guard._tenant.set(tenant_id)
    yield


def _of_the_wrong_tenant(prefix: str, tenant_id: str, table: Table) -> str:
    return _REAL_PHYSICAL(prefix, tenant_id[::-1], table)


_REAL_REFUSAL, _REAL_PHYSICAL = guard.refuse_foreign, registry.physical


# --- rights: for each sentence of docs/isolation.md about what a role may not do, a mistake that makes it untrue ---


def _granted(role: str, table: Table, action: str, stream: bool = False, own: bool = False) -> Mutant:
    """Return a role that somebody gave one right too many: to a table of all, or to those of tenants' `own`."""
    name = registry.physical(settings.DYNAMODB_TABLE_PREFIX, "a" * 32, table) if own else table.full_name
    return _allowed(role, f"dynamodb:{action}", policies.table_arn(name) + ("/stream/*" if stream else ""))


def _allowed(role: str, action: str, arn: str) -> Mutant:
    real = policies.document

    def wrong(asked: str, **where: str) -> Document:
        document = real(asked, **where)
        if asked == role:
            document["Statement"].append({"Effect": "Allow", "Action": [action], "Resource": arn})
        return document

    return _patched("document", wrong, of=policies, breaks_a_promise=True)


def _patched(name: str, wrong: Any, *, of: Any = guard, breaks_a_promise: bool = False) -> Mutant:
    return Mutant(patched=partial(patch.object, of, name, wrong), breaks_a_promise=breaks_a_promise)


_misread = partial(_patched, breaks_a_promise=True)  # a guard that reads a write wrongly


_SINGLE_REQUESTS, _TABLES_BY_NAME = guard._single_requests, guard._by_name
_NAMES = policies._names
_REFUSE_DESTRUCTION = guard.refuse_lost_rows


def _but_deletions(operation: str, params: dict[str, Any]) -> list[Any]:
    return [one for one in _SINGLE_REQUESTS(operation, params) if one[0] != "DeleteRequest"]


def _but_the_last(operation: str, params: dict[str, Any]) -> list[Any]:
    alone, *members = _SINGLE_REQUESTS(operation, params)
    return [alone, *(members[:-1] or members)]


def _of_anybody(table: Table, tenant: str, prefix_of_site: str) -> list[str]:
    """Return the tables of every tenant's own, where a variable stands for one."""
    return _NAMES(table, registry.ANY_TENANT if tenant.startswith("$") else tenant, prefix_of_site)


def _none_append_only() -> dict[str, Table]:
    return {name: replace(table, append_only=False) for name, table in _TABLES_BY_NAME().items()}


def _of_each_role() -> dict[str, Mutant]:
    """Return one right too many for each role and table of each promise."""
    found = {}
    for row, (_, roles, tables, operations) in enumerate(privileges.REFUSED):
        for turn, (role, table) in enumerate(product(roles, tables)):
            operation = operations[(row + turn) % len(operations)]
            found[f"rights: the {role} role has {operation} on {table.name}"] = _granted(role, table, operation)
    for role in but("lifecycle"):
        found[f"rights: the {role} role removes own tables"] = _granted(role, TICKETS, "DeleteTable", own=True)
    for role in but("worker"):
        found[f"rights: the {role} role follows the stream"] = _granted(role, TICKETS, "GetRecords", stream=True)
    return found


MISTAKES: Final[dict[str, Mutant]] = {
    **_of_each_role(),
    "guard: deletions in a batch pass": _misread("_single_requests", _but_deletions),
    "guard: no table is append-only": _misread("_by_name", _none_append_only),
    "guard: any condition of a put will do": _misread("demanded_absent", lambda text: AUDIT.range, of=expressions),
    "guard: only a lone put is looked at": _misread(
        "_single_requests", lambda operation, params: _SINGLE_REQUESTS(operation, params)[:1]
    ),
    "guard: the last of several members is not looked at": _misread("_single_requests", _but_the_last),
    "guard: audit rows are deleted while another tenant is purged": _misread(
        "refuse_lost_rows", lambda o, p, **k: _REFUSE_DESTRUCTION(o, p, **(k | {"purges": k["deletes"]}))
    ),
    "guard: worker and seed write for any tenant": _misread("_arns_of_tenants", frozenset, of=guard),
    "policy: own tables are anybody's": _misread("_names", _of_anybody, of=policies),
    "guard: nobody looks whose own a table is": _misread("refuse_tables_of_others", lambda *a: None, of=guard),
    "policy: objects are anybody's": _allowed("tenant", "s3:GetObject", policies.object_arn("tenant/*")),
    "objects: nobody looks at a request": _misread("refuse_foreign_object", lambda *a: None, of=object_guard),
    "objects: the tenant in a key is not compared": _misread("_OF_TENANT", re.compile(r"\Znothing"), of=object_guard),
    "objects: any form of a key will do": _misread("_KEY", re.compile(r"(?s).*"), of=object_guard),
    "objects: the source of a copy is not compared": _misread("_READ_BY_COPY", (), of=object_guard),
    "guard: worker and seed are not held": _misread("refuse_strange", lambda *a: None, of=guard),
}

MUTANTS: Final[dict[str, Mutant]] = {
    CONTROL: Mutant(),
    "policy: no delimiter behind the tenant's id": Mutant(_pattern(lambda t: t if "*" not in t else t[:-2] + "*")),
    "policy: a pattern that fits every tenant": Mutant(_pattern(lambda t: _ANYBODY if t == _OWN else t)),
    "policy: no Null condition": Mutant(_without_null),
    "policy: Scan is allowed": Mutant(_also("Scan")),
    "policy: PartiQL is allowed": Mutant(_also("PartiQL*", "*Statement", "ExecuteTransaction")),
    "policy: any action": Mutant(_any_action),
    "policy: an index is missing": Mutant(_without_an_index),
    "guard: the hook is gone": _patched("refuse_foreign", lambda *a: None),
    "guard: only the first member is read": _asks(_first_member),
    "guard: the index is ignored": _asks(_no_index),
    "guard: unknown operations pass": _patched("refuse_foreign", _knows_only),
    "guard: the first equality is the key": _patched("_query", _first_equality),
    "guard: keys of indexes are not looked at": _patched("refuse_planted", lambda *a: None),
    "guard: the tenant before stays": _patched("acting_for", _leaking),
    "placement: the table of another tenant is named": _patched("physical", _of_the_wrong_tenant, of=registry),
    **MISTAKES,
}
