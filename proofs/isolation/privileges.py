"""The promises about what no role may do, whoever's data it is, and the layer that each of them rests on.

Written from docs/isolation.md without a look at the declarations: a right that is granted by mistake breaks one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from itertools import product
from typing import Any, Final, NamedTuple

from django.conf import settings

from delivery.outbox.stored import OUTBOX
from delivery.webhooks.stored import ENDPOINTS, SECRETS
from portal.isolation import guard, object_guard, policies
from portal.load import stored as noise_keys
from portal.load.stored import NOISE
from portal.nosql.stored import SESSIONS
from portal.schema.registry import ROLES, Role, Table
from portal.streams.stored import LEASES
from tenants.api_keys.stored import API_KEYS
from tenants.audit_trail.stored import AUDIT, CHAINS
from tenants.membership.stored import INVITES, MEMBERS
from tenants.sign_in.stored import FACTORS, THROTTLES, USERS
from tenants.tenancy.stored import DIRECTORY, MEMBERSHIPS, TENANTS
from tickets.counting import stored as aggregate_keys
from tickets.counting.stored import DEAD_LETTERS
from tickets.ticket import stored
from tickets.ticket.stored import TICKETS

_TENANT, _OTHER = "a" * 32, "b" * 32
_TICKET: Final = {"pk": {"S": stored.ticket(_TENANT, 7)}, "sk": {"S": stored.SUMMARY}}
# A key of the rows that a promise is about, where it is not the tenant's id.
_KEYS: Final = {TICKETS: stored.ticket(_TENANT, 7), NOISE: noise_keys.notes_of(0)}
_ROW: Final = {"tenant_id": {"S": _TENANT}, "timestamp_event_id": {"S": "2026"}}
_UPDATE: Final = {"UpdateExpression": "SET title = :t", "ExpressionAttributeValues": {":t": {"S": "x"}}}
IAM, GUARD = "IAM", "guard"
_PEOPLE: Final = (USERS, FACTORS, SESSIONS, THROTTLES, MEMBERSHIPS, DIRECTORY)
_TENANTS: Final = (TENANTS, INVITES, MEMBERS, AUDIT)
_READS: Final = ("GetItem", "BatchGetItem", "Query")
_WRITES: Final = ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem")
_PARTIQL: Final = ("PartiQLSelect", "PartiQLInsert", "PartiQLUpdate", "PartiQLDelete")
_OF_TABLES: Final = ("CreateTable", "UpdateTable", "DeleteTable", "UpdateTimeToLive")
_HELD_TO_ONE_TENANT: Final[tuple[Role, ...]] = ("worker", "seed", "lifecycle")
_KEYLESS: Final = (*_OF_TABLES, "Scan")
Documents = Mapping[Role, policies.Policy]


class Promise(NamedTuple):
    """A request that a layer refuses to a role, and whether it does."""

    words: str
    layer: str
    role: Role
    kept: bool


def but(*roles: Role) -> tuple[Role, ...]:
    return tuple(role for role in ROLES if role not in roles)


_ALL: Final = (*_READS, *_WRITES)
_ADDING: Final = ("PutItem", "DeleteItem")
_CHANGING: Final = ("UpdateItem", "DeleteItem", "BatchWriteItem")
# What IAM refuses, even with a tenant's own keys: in which words, to which roles, on which tables, which operations.
REFUSED: Final[tuple[tuple[str, tuple[Role, ...], tuple[Table, ...], tuple[str, ...]], ...]] = (
    ("no table is scanned", ROLES, (TICKETS, USERS, AUDIT), ("Scan",)),
    ("nobody speaks PartiQL", ROLES, (TICKETS, USERS, AUDIT), _PARTIQL),
    ("no role makes or removes a table", ROLES, (TICKETS, USERS, AUDIT), _OF_TABLES),
    ("no row of the audit trail is changed", ROLES, (AUDIT,), ("UpdateItem",)),
    ("nothing of a ticket is deleted but by its tenant", but("tenant", "lifecycle"), (TICKETS,), ("DeleteItem",)),
    ("no row of the audit trail is deleted", but("lifecycle"), (AUDIT,), ("DeleteItem", "BatchWriteItem")),
    ("only commands that write in bulk do so", but("seed", "lifecycle"), (TICKETS,), ("BatchWriteItem",)),
    ("only the platform knows of people", but("platform"), _PEOPLE, _ALL),
    ("API keys are written by the platform alone", but("platform", "lifecycle"), (API_KEYS,), _WRITES),
    ("API keys are read by their tenant, and by who asks them", ("worker", "delivery", "seed"), (API_KEYS,), _READS),
    ("what processes noted is read by the platform alone", but("platform"), (NOISE,), _READS),
    ("nobody changes what another process noted", ROLES, (NOISE,), _CHANGING),
    ("whoever delivers knows no members", ("delivery",), (INVITES, MEMBERS), _ALL),
    ("whoever delivers adds and removes nothing", ("delivery",), (TENANTS, ENDPOINTS), _ADDING),
    ("whoever delivers adds and removes nothing", ("delivery",), (CHAINS,), ("DeleteItem",)),
    ("whoever delivers reads no endpoint in its own name", ("delivery",), (ENDPOINTS,), _READS),
    ("whoever delivers reads no row in its own name", ("delivery",), (OUTBOX,), _READS),
    (
        "rows are added by the platform, and by who pauses an endpoint",
        but("platform", "delivery"), (AUDIT,), ("PutItem",),
    ),
    ("ends of chains are moved by who adds rows", ("tenant", "worker", "seed"), (CHAINS,), _ALL),
    (
        "ends of chains are moved by who adds rows",
        ("lifecycle",), (CHAINS,), (*_READS, "PutItem", "UpdateItem", "BatchWriteItem"),
    ),
    ("tickets change for a tenant alone", but("tenant", "lifecycle"), (TICKETS,), ("PutItem", "UpdateItem")),
    ("tickets are read for a tenant alone", but("tenant", "lifecycle"), (TICKETS,), _READS),
    ("webhook secrets are read for a tenant alone", but("tenant", "lifecycle"), (SECRETS,), _READS),
    ("the worker alone holds leases", but("worker", "platform"), (LEASES,), _WRITES),
    # The platform deletes what is left of the streams of a tenant that is no more.
    ("the worker alone holds leases", ("platform",), (LEASES,), ("PutItem", "UpdateItem", "BatchWriteItem")),
    (
        "the worker changes a tenant's shards, and makes none",
        ("worker",), (TENANTS,), ("Query", "PutItem", "DeleteItem", "BatchWriteItem"),
    ),
    ("it has no right to what is not tickets", ("worker", "seed"), _TENANTS[1:], _ALL),
    ("it has no right to what is not tickets", ("seed",), _TENANTS[:1], _ALL),
    (
        "it has no right to the worker's tables",
        ("tenant", "delivery", "seed", "lifecycle"), (LEASES, DEAD_LETTERS), _ALL,
    ),
    ("whoever takes up a tenant makes none", ("lifecycle",), (TENANTS,), ("PutItem", "UpdateItem")),
)  # fmt: skip


def promises() -> Iterator[Promise]:
    """Yield each promise of the document, for each role that it is about."""
    documents = {role: policies.Policy(policies.document(role)) for role in ROLES}
    for words, roles, tables, operations in REFUSED:
        for role, table, operation in product(roles, tables, operations):
            yield _refused(documents, words, role, policies.table_arn(table.full_name), operation, table)
    stream = policies.table_arn(TICKETS.full_name) + "/stream/2026"
    for role, operation in product(but("worker"), ("GetShardIterator", "GetRecords")):
        yield _refused(documents, "the worker alone follows the stream", role, stream, operation)
    for role in ROLES:
        yield from _of_own_tables(documents, role)
    for role in _HELD_TO_ONE_TENANT:
        yield _of_one_tenant(documents, role)
    yield from _of_whole_tenants(documents)
    yield from _of_objects(documents)
    # What IAM cannot say the guard holds in the same way for every role. The lifecycle role deletes whole tenants.
    for role, (operation, params) in product(ROLES, _destroying()):
        if role != "lifecycle" or TICKETS.full_name not in guard.tables_of(operation, params):
            kept = _stops(guard.refuse_destruction, operation, params, role, within=nullcontext())
            yield Promise("nothing is lost that IAM cannot keep", GUARD, role, kept)


def _refused(documents: Documents, words: str, role: Role, arn: str, operation: str, table: Table = LEASES) -> Promise:
    """Return the promise that the policy has no such right there, even with a tenant's own key."""
    own = _KEYS.get(table, _TENANT)
    asked_keys = () if operation in (*_KEYLESS, "GetShardIterator", "GetRecords") else (own,)
    asked = policies.Request(f"dynamodb:{operation}", arn, asked_keys, _TENANT if role == "tenant" else None)
    return Promise(words, IAM, role, not documents[role].allows(asked))


def _stops(check: Callable[..., object], *asked: Any, within: AbstractContextManager[object] | None = None) -> bool:
    """Tell whether the guard stops this for who acts for the tenant, or does what else is said."""
    with within or guard.acting_for(_TENANT):
        try:
            check(*asked)
        except guard.IsolationError:
            return True
    return False


def _of_whole_tenants(documents: Documents) -> Iterator[Promise]:
    """Yield what the commands cannot do that take up a whole tenant: rows of its audit trail go with it alone."""

    def check(operation: str, params: dict[str, Any]) -> None:
        guard.refuse_destruction(operation, params, "lifecycle")
        guard.refuse_strange(documents["lifecycle"], operation, params)

    deletion: dict[str, Any] = {"Key": _ROW, "TableName": AUDIT.full_name}
    deleted, replaced = (
        {"RequestItems": {AUDIT.full_name: [member]}}
        for member in ({"DeleteRequest": {"Key": _ROW}}, {"PutRequest": {"Item": _ROW}})
    )
    cases = [("DeleteItem", deletion, within) for within in (None, guard.purging(_OTHER))]
    cases += [("BatchWriteItem", deleted, within) for within in (None, guard.purging(_OTHER))]
    for operation, params, within in (*cases, ("BatchWriteItem", replaced, guard.purging(_TENANT))):
        kept = _stops(check, operation, params, within=within)
        yield Promise("a row of the audit trail goes with its tenant alone", GUARD, "lifecycle", kept)


# Keys of objects that are not the tenant's, however much they look like it.
_MINE, _ANOTHERS = f"tenant/{_TENANT}", f"tenant/{_OTHER}"
_FOREIGN_OBJECTS: Final = (
    *(f"{_ANOTHERS}/{folder}/one" for folder in ("letters", "files", "uploads", "previews")),
    f"{_MINE}/letters/../../{_OTHER}/letters/one", f"{_MINE}/../{_OTHER}/letters/one", f"{_MINE}{_OTHER}/letters/one",
    f"tenant//{_OTHER}/letters/one", f"/{_ANOTHERS}/letters/one", f"{_MINE}/letters/", f"{_MINE}/letters/.",
    f"{_MINE}/others/one", _MINE, f"{_MINE}/letters/a%2F..%2Fb", f"{_MINE}/letters/\0",
    f"{_MINE.upper()}/letters/one", "tenant/*/letters/one", "incoming/one", "unclaimed/one", "",
)  # fmt: skip


def _of_objects(documents: Documents) -> Iterator[Promise]:
    """Yield the promises about objects: they are their tenant's alone, and most roles know none."""
    words, bucket = "objects are their tenant's alone", settings.MAIL_BUCKET

    def stops(role: Role, action: str, **named: str) -> bool:
        params = {"Bucket": bucket, **named}
        return _stops(object_guard.refuse_foreign_object, documents[role], role, bucket, action, params)

    for role, action in product(ROLES, ("GetObject", "PutObject", "DeleteObject")):
        if role != "lifecycle":  # its policy serves all tenants, and the guard holds it to one
            resource = policies.object_arn(_FOREIGN_OBJECTS[0])
            asked = policies.Request(f"s3:{action}", resource, (), _TENANT if role == "tenant" else None)
            yield Promise(words, IAM, role, not documents[role].allows(asked))
        for key in _FOREIGN_OBJECTS if role == "tenant" else _FOREIGN_OBJECTS[:1]:
            yield Promise(words, GUARD, role, stops(role, action, Key=key))
    for prefix in ("", "tenant/", f"{_ANOTHERS}/letters/", "incoming/"):
        yield Promise(words, GUARD, "tenant", stops("tenant", "ListObjectsV2", Prefix=prefix))
    for key in _FOREIGN_OBJECTS:
        for source, to in ((key, f"{_MINE}/files/one"), (f"{_MINE}/uploads/one", key)):
            kept = stops("tenant", "CopyObject", Key=to, CopySource=f"{bucket}/{source}")
            yield Promise("no object is copied from or to another tenant", GUARD, "tenant", kept)


def _of_own_tables(documents: Documents, role: Role) -> Iterator[Promise]:
    """Yield what no role may do with a table that a tenant has to itself."""
    mine, anothers = (f"{settings.DYNAMODB_TABLE_PREFIX}.{tenant}.{TICKETS.name}" for tenant in (_TENANT, _OTHER))
    if role != "lifecycle":
        words = "only who takes up a whole tenant makes and removes tables of its own"
        yield from (_refused(documents, words, role, policies.table_arn(mine), one) for one in _OF_TABLES)
    words = "own tables are their tenant's alone"
    if role == "tenant":
        for operation in (*_READS, "PutItem", "UpdateItem"):
            yield _refused(documents, words, role, policies.table_arn(anothers), operation, TICKETS)
    kept = _stops(guard.refuse_tables_of_others, "GetItem", {"TableName": anothers, "Key": _TICKET})
    yield Promise(words, GUARD, role, kept)


def _of_one_tenant(documents: Documents, role: Role) -> Promise:
    """Return what the guard adds to a policy that serves all tenants: one at a time."""
    foreign = {"pk": {"S": aggregate_keys.aggregate(_OTHER)}, "sk": {"S": aggregate_keys.totals(0)}}
    written: tuple[str, dict[str, Any]] = ("UpdateItem", {"TableName": TICKETS.full_name, "Key": foreign} | _UPDATE)
    if role in ("seed", "lifecycle"):
        written = ("BatchWriteItem", {"RequestItems": {TICKETS.full_name: [{"PutRequest": {"Item": foreign}}]}})
    kept = _stops(guard.refuse_strange, documents[role], *written)
    return Promise("it writes for one tenant at a time", GUARD, role, kept)


def _destroying() -> Iterator[tuple[str, dict[str, Any]]]:
    ticket, row = {"TableName": TICKETS.full_name}, {"TableName": AUDIT.full_name}
    new = {"ConditionExpression": "attribute_not_exists (#k)", "ExpressionAttributeNames": {"#k": str(AUDIT.range)}}
    put = row | {"Item": _ROW}
    deletion = {"DeleteRequest": {"Key": _TICKET}}
    yield "BatchWriteItem", {"RequestItems": {TICKETS.full_name: [deletion]}}
    yield "BatchWriteItem", {"RequestItems": {TICKETS.full_name: [{"PutRequest": {"Item": _TICKET}}, deletion]}}
    yield "DeleteItem", ticket | {"Key": _TICKET}
    yield "TransactWriteItems", {"TransactItems": [{"Delete": ticket | {"Key": _TICKET}}]}
    yield "BatchWriteItem", {"RequestItems": {AUDIT.full_name: [{"PutRequest": {"Item": _ROW}}]}}
    yield "PutItem", put
    yield "PutItem", put | new | {"ConditionExpression": "attribute_exists (#k)"}
    yield "PutItem", put | new | {"ExpressionAttributeNames": {"#k": "colour"}}
    yield "PutItem", put | new | {"ConditionExpression": f"{new['ConditionExpression']} OR attribute_exists (#k)"}
    yield "UpdateItem", row | {"Key": _ROW} | _UPDATE
    yield "DeleteItem", row | {"Key": _ROW}
    yield "UpdateItem", row | {"Key": _ROW} | _UPDATE | new
    yield "TransactWriteItems", {"TransactItems": [{"Put": put | new}, {"Put": put}]}
    yield (
        "TransactWriteItems",
        {"TransactItems": [{"Put": row | {"Item": _ROW} | new}, {"Delete": row | {"Key": _ROW}}]},
    )


def first_broken() -> tuple[str, int]:
    """Return the first promise that is not kept, "" where all are, and how many were looked at."""
    looked_at = 0
    for looked_at, promise in enumerate(promises(), start=1):
        if not promise.kept:
            return f"{promise.words} ({promise.layer}, {promise.role})", looked_at
    return "", looked_at
