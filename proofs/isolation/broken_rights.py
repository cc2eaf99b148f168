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
from portal.isolation import expressions, guard, policies, request_parser
from portal.noise.tables import NOISE
from portal.nosql.stored import SESSIONS
from portal.schema import placed_names
from portal.schema.registry import ROLES
from portal.schema.tables import Table
from portal.streams.tables import LEASES
from tenants.api_keys.stored import API_KEYS
from tenants.audit_trail.stored import AUDIT, CHAINS
from tenants.membership.stored import INVITES, MEMBERS
from tenants.sign_in.stored import USERS
from tenants.tenancy.stored import MEMBERSHIPS, TENANTS
from tickets.counting.tables import DEAD_LETTERS
from tickets.ticket.stored import TICKETS

Document = dict[str, Any]


@dataclass(frozen=True)
class Mutant:
    """A change to the policy document, to the code, or to both."""

    document: Callable[[Document], None] = lambda document: None
    patched: Callable[[], Any] = nullcontext
    breaks_a_promise: bool = False  # about rights, which the tenants' attempts do not try


def _granted(role: str, table: Table, *actions: str, stream: bool = False, own: bool = False) -> Mutant:
    """Return a role that somebody gave one right too many: to a table of all, or to those of tenants' `own`."""
    name = placed_names.physical(settings.DYNAMODB_TABLE_PREFIX, "a" * 32, table) if own else table.full_name
    real = policies.document

    def wrong(asked: str, **where: str) -> Document:
        document = real(asked, **where)
        if asked == role:
            actions_of_statement = [f"dynamodb:{action}" for action in actions]
            arn = policies.table_arn(name) + ("/stream/*" if stream else "")
            document["Statement"].append({"Effect": "Allow", "Action": actions_of_statement, "Resource": arn})
        return document

    return Mutant(patched=partial(patch.object, policies, "document", wrong), breaks_a_promise=True)


def _misread(name: str, wrong: Callable[..., Any], *, of: Any = request_parser) -> Mutant:
    """Return a guard that reads a write wrongly."""
    return Mutant(patched=partial(patch.object, of, name, wrong), breaks_a_promise=True)


_SINGLE_REQUESTS, _TABLES_BY_NAME = request_parser._single_requests, request_parser._by_name
_NAMES = policies._names
_REFUSE_DESTRUCTION = request_parser.refuse_destruction


def _but_deletions(operation: str, params: dict[str, Any]) -> list[Any]:
    return [one for one in _SINGLE_REQUESTS(operation, params) if one[0] != "DeleteRequest"]


def _but_the_last(operation: str, params: dict[str, Any]) -> list[Any]:
    alone, *members = _SINGLE_REQUESTS(operation, params)
    return [alone, *(members[:-1] or members)]


def _of_anybody(table: Table, tenant: str, prefix_of_site: str) -> list[str]:
    """Return the tables of every tenant's own, where a variable stands for one."""
    return _NAMES(table, placed_names.ANY_TENANT if tenant.startswith("$") else tenant, prefix_of_site)


def _none_append_only() -> dict[str, Table]:
    return {name: replace(table, append_only=False) for name, table in _TABLES_BY_NAME().items()}


def _of_each_role() -> dict[str, Mutant]:
    """Return the rights that no role has, given to each in turn."""
    found: dict[str, Mutant] = {}
    for role in ROLES:
        found |= {
            f"rights: the {role} role updates audit rows": _granted(role, AUDIT, "UpdateItem"),
            f"rights: the {role} role scans": _granted(role, USERS, "Scan"),
            f"rights: the {role} role speaks PartiQL": _granted(role, TICKETS, "PartiQLSelect"),
            f"rights: the {role} role removes tables": _granted(role, TICKETS, "DeleteTable"),
        }
        found[f"rights: the {role} role changes what processes noted"] = _granted(role, NOISE, "UpdateItem")
        if role == "lifecycle":
            found[f"rights: the {role} role makes tenants"] = _granted(role, TENANTS, "PutItem")
        else:
            found |= _that_the_lifecycle_role_has(role)
            found[f"rights: the {role} role removes own tables"] = _granted(role, TICKETS, "DeleteTable", own=True)
        if role != "platform":
            found[f"rights: the {role} role reads what processes noted"] = _granted(role, NOISE, "Query")
        if role not in ("platform", "delivery"):
            found[f"rights: the {role} role adds audit rows"] = _granted(role, AUDIT, "PutItem")
            found[f"rights: the {role} role moves the ends of the chains"] = _granted(role, CHAINS, "PutItem")
        if role != "platform":
            found[f"rights: the {role} role reads accounts"] = _granted(role, USERS, "GetItem")
            found[f"rights: the {role} role reads sessions"] = _granted(role, SESSIONS, "BatchGetItem")
            found[f"rights: the {role} role writes memberships"] = _granted(role, MEMBERSHIPS, "PutItem")
        if role == "delivery":
            found[f"rights: the {role} role reads members"] = _granted(role, MEMBERS, "Query")
            found[f"rights: the {role} role removes endpoints"] = _granted(role, ENDPOINTS, "DeleteItem")
            found[f"rights: the {role} role reads endpoints"] = _granted(role, ENDPOINTS, "GetItem")
            found[f"rights: the {role} role reads the outbox"] = _granted(role, OUTBOX, "GetItem")
        if role not in ("tenant", "lifecycle"):
            found[f"rights: the {role} role updates tickets"] = _granted(role, TICKETS, "UpdateItem")
        if role == "worker":
            found[f"rights: the {role} role makes tenants"] = _granted(role, TENANTS, "PutItem")
        else:
            found[f"rights: the {role} role follows the stream"] = _granted(role, TICKETS, "GetRecords", stream=True)
            found[f"rights: the {role} role takes leases"] = _granted(role, LEASES, "PutItem")
        if role in ("worker", "seed"):
            found[f"rights: the {role} role reads invitations"] = _granted(role, INVITES, "Query")
            found[f"rights: the {role} role writes members"] = _granted(role, MEMBERS, "PutItem")
        if role in ("tenant", "delivery", "seed", "lifecycle"):
            found[f"rights: the {role} role reads dead letters"] = _granted(role, DEAD_LETTERS, "Query")
    return found


def _that_the_lifecycle_role_has(role: str) -> dict[str, Mutant]:
    """Return the rights to whole tenants, given to a role that has no business with them."""
    found = {
        f"rights: the {role} role deletes tickets": _granted(role, TICKETS, "DeleteItem"),
        f"rights: the {role} role deletes audit rows": _granted(role, AUDIT, "DeleteItem"),
        f"rights: the {role} role writes audit rows in batches": _granted(role, AUDIT, "BatchWriteItem"),
    }
    if role not in ("tenant", "platform"):
        found[f"rights: the {role} role reads API keys"] = _granted(role, API_KEYS, "GetItem")
    if role != "platform":
        found[f"rights: the {role} role changes API keys"] = _granted(role, API_KEYS, "UpdateItem")
    if role != "seed":
        found[f"rights: the {role} role writes in batches"] = _granted(role, TICKETS, "BatchWriteItem")
    if role != "tenant":
        found[f"rights: the {role} role reads tickets"] = _granted(role, TICKETS, "GetItem")
        found[f"rights: the {role} role lists tickets"] = _granted(role, TICKETS, "Query")
        found[f"rights: the {role} role reads webhook secrets"] = _granted(role, SECRETS, "GetItem")
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
        "refuse_destruction", lambda o, p, **k: _REFUSE_DESTRUCTION(o, p, **(k | {"purges": k["deletes"]}))
    ),
    "guard: worker and seed write for any tenant": _misread("_arns_of_tenants", frozenset, of=guard),
    "policy: own tables are anybody's": _misread("_names", _of_anybody, of=policies),
    "guard: nobody looks whose own a table is": _misread("refuse_tables_of_others", lambda *a: None, of=guard),
    "guard: worker and seed are not held": _misread("refuse_strange", lambda *a: None, of=guard),
}
