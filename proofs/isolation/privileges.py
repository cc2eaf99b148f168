"""The promises about what no role may do, whoever's data it is, and the layer that each of them rests on.

Written from docs/isolation.md without a look at the declarations: a right that is granted by mistake breaks one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from django.conf import settings

from delivery.outbox.stored import OUTBOX
from delivery.webhooks.stored import ENDPOINTS, SECRETS
from portal.isolation import guard, iam, policies
from portal.noise.tables import NOISE
from portal.nosql.stored import SESSIONS
from portal.schema.registry import ROLES, Role
from portal.schema.tables import Table
from portal.streams.tables import LEASES
from tenants.api_keys.stored import API_KEYS
from tenants.audit_trail.stored import AUDIT, CHAINS
from tenants.membership.stored import INVITES, MEMBERS
from tenants.sign_in.stored import FACTORS, THROTTLES, USERS
from tenants.tenancy.stored import DIRECTORY, MEMBERSHIPS, TENANTS
from tickets.counting import keys as aggregate_keys
from tickets.counting.tables import DEAD_LETTERS
from tickets.ticket import stored
from tickets.ticket.stored import TICKETS

_TENANT, _OTHER = "a" * 32, "b" * 32
_TICKET: Final = {"pk": {"S": stored.ticket(_TENANT, 7)}, "sk": {"S": stored.SUMMARY}}
_ROW: Final = {"tenant_id": {"S": _TENANT}, "timestamp_event_id": {"S": "2026"}}
_UPDATE: Final = {"UpdateExpression": "SET title = :t", "ExpressionAttributeValues": {":t": {"S": "x"}}}
IAM, GUARD = "IAM", "guard"
_PEOPLE: Final = (USERS, FACTORS, SESSIONS, THROTTLES, MEMBERSHIPS, DIRECTORY)
_TENANTS: Final = (TENANTS, INVITES, MEMBERS, AUDIT)
_READS: Final = ("GetItem", "BatchGetItem", "Query")
_WRITES: Final = ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem")
_PARTIQL: Final = ("PartiQLSelect", "PartiQLInsert", "PartiQLUpdate", "PartiQLDelete")
_OF_TABLES: Final = ("CreateTable", "UpdateTable", "DeleteTable", "UpdateTimeToLive")
Policies = Mapping[Role, iam.Policy]


@dataclass(frozen=True)
class Promise:
    """A request that a layer refuses to a role."""

    words: str
    layer: str
    role: Role
    is_kept: Callable[[Policies], bool]  # by that layer alone


def promises() -> Iterator[Promise]:
    """Yield each promise of the document, for each role that it is about."""
    for role in ROLES:
        yield from _of_every_role(role)
        yield from _of_own_tables(role)
        if role != "platform":
            for table in _PEOPLE:
                yield from _refused("only the platform knows of people", role, table, *_READS, *_WRITES)
            if role != "lifecycle":
                yield from _refused("API keys are written by the platform alone", role, API_KEYS, *_WRITES)
            yield from _refused("what processes noted is read by the platform alone", role, NOISE, *_READS)
        changing = ("UpdateItem", "DeleteItem", "BatchWriteItem")
        yield from _refused("nobody changes what another process noted", role, NOISE, *changing)
        if role == "delivery":
            yield from _of_deliveries(role)
        elif role != "platform":
            yield from _refused("rows are added by the platform, and by who pauses an endpoint", role, AUDIT, "PutItem")
            moving = (*_READS, *(w for w in _WRITES if (role, w) != ("lifecycle", "DeleteItem")))
            yield from _refused("ends of chains are moved by who adds rows", role, CHAINS, *moving)
        if role not in ("tenant", "platform", "lifecycle"):
            yield from _refused("API keys are read by their tenant, and by who asks them", role, API_KEYS, *_READS)
        if role not in ("tenant", "lifecycle"):
            yield from _refused("tickets change for a tenant alone", role, TICKETS, "PutItem", "UpdateItem")
            yield from _refused("tickets are read for a tenant alone", role, TICKETS, *_READS)
            yield from _refused("webhook secrets are read for a tenant alone", role, SECRETS, *_READS)
        if role != "worker":
            reading = ("GetShardIterator", "GetRecords")
            yield from _refused("the worker alone follows the stream", role, TICKETS, *reading, stream=True)
            # The platform deletes what is left of the streams of a tenant that is no more.
            holding = [operation for operation in _WRITES if (role, operation) != ("platform", "DeleteItem")]
            yield from _refused("the worker alone holds leases", role, LEASES, *holding)
        if role in ("worker", "seed"):
            if role == "worker":
                other = ("BatchGetItem", "Query", "PutItem", "DeleteItem", "BatchWriteItem")
                yield from _refused("the worker changes a tenant's shards, and makes none", role, TENANTS, *other)
            for table in _TENANTS if role == "seed" else _TENANTS[1:]:
                yield from _refused("it has no right to what is not tickets", role, table, *_READS, *_WRITES)
        if role in ("tenant", "delivery", "seed", "lifecycle"):
            for table in (LEASES, DEAD_LETTERS):
                yield from _refused("it has no right to the worker's tables", role, table, *_READS, *_WRITES)
        if role in ("worker", "seed", "lifecycle"):
            yield from _of_one_tenant(role)
        if role == "lifecycle":
            yield from _of_whole_tenants(role)
    # What IAM cannot say the guard holds in the same way for every other role.
    for operation, params in _destroying():
        kept = partial(_guarded, _platform_destroys, operation, params)
        yield Promise("nothing is lost that IAM cannot keep", GUARD, "platform", kept)


def _of_deliveries(role: Role) -> Iterator[Promise]:
    """Yield what the process cannot do that talks to receivers outside, with what is its own beside the tenants'."""
    for table in (INVITES, MEMBERS):
        yield from _refused("whoever delivers knows no members", role, table, *_READS, *_WRITES)
    for table in (TENANTS, ENDPOINTS):
        yield from _refused("whoever delivers adds and removes nothing", role, table, "PutItem", "DeleteItem")
    yield from _refused("whoever delivers adds and removes nothing", role, CHAINS, "DeleteItem")
    yield from _refused("whoever delivers reads no endpoint in its own name", role, ENDPOINTS, *_READS)
    yield from _refused("whoever delivers reads no row in its own name", role, OUTBOX, *_READS)


def _of_whole_tenants(role: Role) -> Iterator[Promise]:
    """Yield what the commands cannot do that take up a whole tenant: rows of its audit trail go with it alone."""
    yield from _refused("whoever takes up a tenant makes none", role, TENANTS, "PutItem", "UpdateItem")
    deletion = {"Key": _ROW} | {"TableName": AUDIT.full_name}
    batched = {"RequestItems": {AUDIT.full_name: [{"DeleteRequest": {"Key": _ROW}}]}}
    for operation, params in (("DeleteItem", deletion), ("BatchWriteItem", batched)):
        for purged in (None, _OTHER):
            kept = partial(_kept_outside_of, purged, role, operation, params)
            yield Promise("a row of the audit trail goes with its tenant alone", GUARD, role, kept)
    replaced = {"RequestItems": {AUDIT.full_name: [{"PutRequest": {"Item": _ROW}}]}}
    kept = partial(_kept_outside_of, _TENANT, role, "BatchWriteItem", replaced)
    yield Promise("a row of the audit trail goes with its tenant alone", GUARD, role, kept)


def _kept_outside_of(
    purged: str | None, role: Role, operation: str, params: dict[str, Any], documents: Policies
) -> bool:
    """Tell whether the guard refuses it while this tenant is purged, or none; the row is that of `_TENANT`."""

    def both(operation: str, params: dict[str, Any]) -> None:
        guard.refuse_destruction(operation, params, role)
        guard.refuse_strange(documents[role], operation, params)

    with guard.purging(purged) if purged else guard.acting_for(_TENANT):
        return _guarded(both, operation, params, documents)


def _platform_destroys(operation: str, params: dict[str, Any]) -> None:
    guard.refuse_destruction(operation, params, "platform")


def _of_every_role(role: Role) -> Iterator[Promise]:
    for table in (TICKETS, USERS, AUDIT):
        yield from _refused("no table is scanned", role, table, "Scan", keyless=True)
        yield from _refused("nobody speaks PartiQL", role, table, *_PARTIQL)
        yield from _refused("no role makes or removes a table", role, table, *_OF_TABLES, keyless=True)
    yield from _refused("no row of the audit trail is changed", role, AUDIT, "UpdateItem")
    if role != "lifecycle":
        yield from _refused("no ticket is deleted", role, TICKETS, "DeleteItem")
        yield from _refused("no row of the audit trail is deleted", role, AUDIT, "DeleteItem", "BatchWriteItem")
    if role not in ("seed", "lifecycle"):
        yield from _refused("only commands that write in bulk do so", role, TICKETS, "BatchWriteItem")


def _of_own_tables(role: Role) -> Iterator[Promise]:
    """Yield what no role may do with a table that a tenant has to itself."""
    mine, anothers = (f"{settings.DYNAMODB_TABLE_PREFIX}.{tenant}.{TICKETS.name}" for tenant in (_TENANT, _OTHER))
    if role != "lifecycle":
        for operation in _OF_TABLES:
            asked = iam.Request(f"dynamodb:{operation}", policies.table_arn(mine), (), _tag(role))
            words = "only who takes up a whole tenant makes and removes tables of its own"
            yield Promise(words, IAM, role, partial(_not_allowed, role, asked))
    if role == "tenant":
        for operation in (*_READS, "PutItem", "UpdateItem"):
            asked = iam.Request(
                f"dynamodb:{operation}", policies.table_arn(anothers), (stored.ticket(_TENANT, 7),), _TENANT
            )
            yield Promise("own tables are their tenant's alone", IAM, role, partial(_not_allowed, role, asked))

    def kept(documents: Policies) -> bool:
        wanted = {"TableName": anothers, "Key": _TICKET}
        with guard.acting_for(_TENANT):
            return _guarded(guard.refuse_tables_of_others, "GetItem", wanted, documents)

    yield Promise("own tables are their tenant's alone", GUARD, role, kept)


def _tag(role: Role) -> str | None:
    return _TENANT if role == "tenant" else None


def _refused(
    words: str, role: Role, table: Table, *operations: str, keyless: bool = False, stream: bool = False
) -> Iterator[Promise]:
    """Yield the promise that the policy has none of these operations on a table, not even with a tenant's own keys."""
    arn = policies.table_arn(table.full_name) + ("/stream/2026" if stream else "")
    own = () if keyless or stream else (stored.ticket(_TENANT, 7) if table is TICKETS else _TENANT,)
    for operation in operations:
        asked = iam.Request(f"dynamodb:{operation}", arn, own, _tag(role))
        yield Promise(words, IAM, role, partial(_not_allowed, role, asked))


def _not_allowed(role: Role, asked: iam.Request, documents: Policies) -> bool:
    return not documents[role].allows(asked)


def _of_one_tenant(role: Role) -> Iterator[Promise]:
    """Yield what the guard adds to a policy that serves all tenants: one at a time."""
    foreign = {"pk": {"S": aggregate_keys.aggregate(_OTHER)}, "sk": {"S": aggregate_keys.totals(0)}}
    written: tuple[str, dict[str, Any]] = ("UpdateItem", {"TableName": TICKETS.full_name, "Key": foreign} | _UPDATE)
    if role in ("seed", "lifecycle"):
        written = ("BatchWriteItem", {"RequestItems": {TICKETS.full_name: [{"PutRequest": {"Item": foreign}}]}})

    def kept(documents: Policies) -> bool:
        with guard.acting_for(_TENANT):
            return _guarded(partial(guard.refuse_strange, documents[role]), *written, documents)

    yield Promise("it writes for one tenant at a time", GUARD, role, kept)


def _guarded(refuse: Callable[..., None], operation: str, params: dict[str, Any], documents: Policies) -> bool:
    try:
        refuse(operation, params)
    except guard.IsolationError:
        return True
    return False


def _destroying() -> Iterator[tuple[str, dict[str, Any]]]:
    ticket, row = {"TableName": TICKETS.full_name}, {"TableName": AUDIT.full_name}
    new = {"ConditionExpression": "attribute_not_exists (#k)", "ExpressionAttributeNames": {"#k": str(AUDIT.range)}}
    put = row | {"Item": _ROW}
    yield "BatchWriteItem", {"RequestItems": {TICKETS.full_name: [{"DeleteRequest": {"Key": _TICKET}}]}}
    yield "BatchWriteItem", {"RequestItems": {AUDIT.full_name: [{"PutRequest": {"Item": _ROW}}]}}
    yield "PutItem", put
    yield "PutItem", put | new | {"ConditionExpression": "attribute_exists (#k)"}
    yield "PutItem", put | new | {"ExpressionAttributeNames": {"#k": "colour"}}
    yield "UpdateItem", row | {"Key": _ROW} | _UPDATE | new
    yield "TransactWriteItems", {"TransactItems": [{"Put": put | new}, {"Put": put}]}
    yield (
        "TransactWriteItems",
        {"TransactItems": [{"Put": ticket | {"Item": _TICKET}}, {"Delete": row | {"Key": _ROW}}]},
    )


def first_broken() -> tuple[str, int]:
    """Return the first promise that is not kept, "" where all are, and how many were looked at."""
    looked_at, documents = 0, {role: iam.Policy(policies.document(role)) for role in ROLES}
    for looked_at, promise in enumerate(promises(), start=1):
        if not promise.is_kept(documents):
            return f"{promise.words} ({promise.layer}, {promise.role})", looked_at
    return "", looked_at
