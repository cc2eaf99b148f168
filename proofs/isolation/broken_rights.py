"""Give a role one right too many, or let the guard misread a write: the promises of `privileges.py` notice each.

For each sentence of docs/isolation.md about what a role may not do, there is a mistake here that makes it untrue.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final
from unittest.mock import patch

from django.conf import settings

from delivery.outbox.stored import OUTBOX
from delivery.webhooks.stored import ENDPOINTS, SECRETS
from portal.isolation import expressions, guard, policies
from portal.load.stored import NOISE
from portal.nosql.stored import SESSIONS
from portal.schema import registry
from portal.schema.registry import ROLES
from portal.schema.tables import Table
from portal.streams.stored import LEASES
from tenants.api_keys.stored import API_KEYS
from tenants.audit_trail.stored import AUDIT, CHAINS
from tenants.membership.stored import INVITES, MEMBERS
from tenants.sign_in.stored import USERS
from tenants.tenancy.stored import MEMBERSHIPS, TENANTS
from tickets.counting.stored import DEAD_LETTERS
from tickets.ticket.stored import TICKETS

Document = dict[str, Any]


@dataclass(frozen=True)
class Mutant:
    """A change to the policy document, to the code, or to both."""

    document: Callable[[Document], None] = lambda document: None
    patched: Callable[[], Any] = nullcontext
    breaks_a_promise: bool = False  # about rights, which the tenants' attempts do not try


def _granted(role: str, table: Table, action: str, stream: bool = False, own: bool = False) -> Mutant:
    """Return a role that somebody gave one right too many: to a table of all, or to those of tenants' `own`."""
    name = registry.physical(settings.DYNAMODB_TABLE_PREFIX, "a" * 32, table) if own else table.full_name
    real = policies.document

    def wrong(asked: str, **where: str) -> Document:
        document = real(asked, **where)
        if asked == role:
            arn = policies.table_arn(name) + ("/stream/*" if stream else "")
            document["Statement"].append({"Effect": "Allow", "Action": [f"dynamodb:{action}"], "Resource": arn})
        return document

    return Mutant(patched=partial(patch.object, policies, "document", wrong), breaks_a_promise=True)


def _misread(name: str, wrong: Callable[..., Any], *, of: Any = guard) -> Mutant:
    """Return a guard that reads a write wrongly."""
    return Mutant(patched=partial(patch.object, of, name, wrong), breaks_a_promise=True)


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


def _but(*roles: str) -> tuple[str, ...]:
    return tuple(role for role in ROLES if role not in roles)


# A right that no such role has: what it lets the role do, to which roles it is given, on which table, which operation.
_RIGHTS: Final = (
    ("updates audit rows", ROLES, AUDIT, "UpdateItem"),
    ("scans", ROLES, USERS, "Scan"),
    ("speaks PartiQL", ROLES, TICKETS, "PartiQLSelect"),
    ("removes tables", ROLES, TICKETS, "DeleteTable"),
    ("changes what processes noted", ROLES, NOISE, "UpdateItem"),
    ("makes tenants", ("lifecycle", "worker"), TENANTS, "PutItem"),
    ("deletes tickets", _but("lifecycle"), TICKETS, "DeleteItem"),
    ("deletes audit rows", _but("lifecycle"), AUDIT, "DeleteItem"),
    ("writes audit rows in batches", _but("lifecycle"), AUDIT, "BatchWriteItem"),
    ("reads API keys", _but("lifecycle", "tenant", "platform"), API_KEYS, "GetItem"),
    ("changes API keys", _but("lifecycle", "platform"), API_KEYS, "UpdateItem"),
    ("writes in batches", _but("lifecycle", "seed"), TICKETS, "BatchWriteItem"),
    ("reads tickets", _but("lifecycle", "tenant"), TICKETS, "GetItem"),
    ("lists tickets", _but("lifecycle", "tenant"), TICKETS, "Query"),
    ("reads webhook secrets", _but("lifecycle", "tenant"), SECRETS, "GetItem"),
    ("updates tickets", _but("lifecycle", "tenant"), TICKETS, "UpdateItem"),
    ("reads what processes noted", _but("platform"), NOISE, "Query"),
    ("reads accounts", _but("platform"), USERS, "GetItem"),
    ("reads sessions", _but("platform"), SESSIONS, "BatchGetItem"),
    ("writes memberships", _but("platform"), MEMBERSHIPS, "PutItem"),
    ("adds audit rows", _but("platform", "delivery"), AUDIT, "PutItem"),
    ("moves the ends of the chains", _but("platform", "delivery"), CHAINS, "PutItem"),
    ("reads members", ("delivery",), MEMBERS, "Query"),
    ("removes endpoints", ("delivery",), ENDPOINTS, "DeleteItem"),
    ("reads endpoints", ("delivery",), ENDPOINTS, "GetItem"),
    ("reads the outbox", ("delivery",), OUTBOX, "GetItem"),
    ("takes leases", _but("worker"), LEASES, "PutItem"),
    ("reads invitations", ("worker", "seed"), INVITES, "Query"),
    ("writes members", ("worker", "seed"), MEMBERS, "PutItem"),
    ("reads dead letters", ("tenant", "delivery", "seed", "lifecycle"), DEAD_LETTERS, "Query"),
)


def _of_each_role() -> dict[str, Mutant]:
    found = {f"rights: the {role} role {does}": _granted(role, t, o) for does, to, t, o in _RIGHTS for role in to}
    for role in _but("lifecycle"):
        found[f"rights: the {role} role removes own tables"] = _granted(role, TICKETS, "DeleteTable", own=True)
    for role in _but("worker"):
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
    "guard: worker and seed are not held": _misread("refuse_strange", lambda *a: None, of=guard),
}
