"""Collect what packages declare: their tables, and what each role may do with them, with queues and with objects.

A package declares in its own `stored.py`, which is imported when its app starts: see `portal/apps.py`. So a new package
is one folder, and deleting the folder deletes its tables, its rights and its part of the CloudFormation template.

Tables are named `{prefix}.{Feature}.{SubTable}`. Where the scope is "tenant", every leading key of the table and of its
indexes belongs to exactly one tenant, but for an index that no tenant reads. "platform" tables are read before a tenant
is known, through a client of their own. "worker" tables are what the workers need beside the streams.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Any, Final, Literal

from django.conf import settings

from portal.schema import keys

TENANT_ID: Final = "tenant_id"  # the partition key of a table whose partitions are tenants
Scope = Literal["tenant", "platform", "worker"]


@dataclass(frozen=True)
class Index:
    """A global secondary index. `include` lists the projected attributes beside the keys, `leading_keys` the pattern
    of its partition keys, "" where they are no tenant's and no tenant may read it: `shared` says why that has to be.

    DynamoDB cannot change an index. So its name ends with a digest of its keys and projection: a changed declaration
    names a new index, which is built beside the one that the version before still reads.
    """

    label: str
    hash: str
    range: str
    include: tuple[str, ...]
    leading_keys: str = keys.OWN_COLLECTIONS
    shared: str = ""

    def __post_init__(self) -> None:
        _refuse_without_reason(self.label, bool(self.leading_keys), self.shared)

    @property
    def name(self) -> str:
        shape = ",".join((self.hash, self.range, *sorted(self.include)))
        return f"{self.label}-{keys.digest(shape, size=3)}"

    @property
    def any_version(self) -> str:
        """The pattern, for a policy, of this index as this version and those before and after it declare it."""
        return f"{self.label}*"

    def definition(self) -> dict[str, Any]:
        """Return the arguments with which CreateTable and UpdateTable make it."""
        projection = {"ProjectionType": "INCLUDE", "NonKeyAttributes": sorted(self.include)}
        return {
            "IndexName": self.name,
            "KeySchema": _key_schema(self.hash, self.range),
            "Projection": projection if self.include else {"ProjectionType": "KEYS_ONLY"},
        }


@dataclass(frozen=True)
class Table:
    """One table: key names (all strings), indexes, TTL attribute and whether a stream carries its changes.

    Raises ValueError for one whose partition keys do not begin with a tenant and that does not say why in `shared`.
    """

    name: str
    scope: Scope
    hash: str
    range: str | None = None
    indexes: tuple[Index, ...] = field(default=(), compare=False)
    ttl: str | None = None
    stream: bool = False
    # For tenant tables: the pattern of every partition key.
    leading_keys: str = keys.OWN_ID
    # Rows are added, and none is ever written over, changed or deleted: the guard refuses it for every role.
    append_only: bool = False
    # The sort keys of items that go with their whole tenant alone: the guard lets the lifecycle role alone delete them.
    kept: tuple[str, ...] = ()
    # It holds content that a tenant can have in tables of its own; see portal/dynamo/placement.py.
    placed: bool = False
    # The collections that a move copies: changes of them are fenced and logged meanwhile; see portal/dynamo/fencing.py.
    copied: tuple[str, ...] = ()
    fences: bool = False  # the fences of a move and its log lie here: in one table of an application
    shared: str = ""

    def __post_init__(self) -> None:
        _refuse_without_reason(self.name, self.scope == "tenant" or self.hash == TENANT_ID, self.shared)

    @property
    def full_name(self) -> str:
        return f"{settings.DYNAMODB_TABLE_PREFIX}.{self.name}"

    @property
    def key_names(self) -> tuple[str, ...]:
        return (self.hash, self.range) if self.range else (self.hash,)

    def add_index(self, index: Index) -> None:
        """Add an index, which the model of its rows declares. Raises ValueError where its label is taken."""
        if any(other.label == index.label for other in self.indexes):
            raise ValueError(f"the index {index.label} of {self.name} is declared twice")
        object.__setattr__(self, "indexes", (*self.indexes, index))

    def definition(self) -> dict[str, Any]:
        """Return the arguments of CreateTable: on-demand billing, encryption at rest is AWS's default."""
        names = {self.hash, *([self.range] if self.range else [])}
        names |= {n for i in self.indexes for n in (i.hash, i.range)}
        definition: dict[str, Any] = {
            "TableName": self.full_name,
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": n, "AttributeType": "S"} for n in sorted(names)],
            "KeySchema": _key_schema(self.hash, self.range),
        }
        if self.indexes:
            definition["GlobalSecondaryIndexes"] = [i.definition() for i in self.indexes]
        if self.stream:
            definition["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
        return definition


def _refuse_without_reason(name: str, is_of_tenants: bool, shared: str) -> None:
    if is_of_tenants == bool(shared):
        raise ValueError(f"{name} has keys without a tenant and no reason, or a reason that it does not need")


def _key_schema(hash_name: str, range_name: str | None) -> list[dict[str, str]]:
    schema = [{"AttributeName": hash_name, "KeyType": "HASH"}]
    if range_name:
        schema.append({"AttributeName": range_name, "KeyType": "RANGE"})
    return schema


# "delivery" is the role of the processes that send to receivers outside; it may do little beside what they do as one
# tenant. "seed" is that of the commands that write sample data and imports in bulk. "lifecycle" is that of the
# commands that take up a whole tenant: it may read, write and delete all that a tenant has, one tenant at a time.
Role = Literal["tenant", "platform", "worker", "delivery", "seed", "lifecycle"]
ROLES: Final[tuple[Role, ...]] = ("tenant", "platform", "worker", "delivery", "seed", "lifecycle")


@dataclass(frozen=True)
class Grant:
    """The right of a role to send these operations to a table, or to one of its indexes or its stream.

    `leading_keys` bounds the partition keys of a role other than the tenant's; the tenant role is bound to the
    pattern that its table declares. Members of a transaction are authorised as the single operations that they are.
    """

    role: Role
    table: Table
    actions: tuple[str, ...]
    sid: str = ""  # of the policy's statement, where the table's name does not say enough
    index: Index | None = None
    leading_keys: str = ""
    stream: bool = False


@dataclass(frozen=True)
class QueueGrant:
    """The right of a role to send these operations of Amazon SQS to the queues whose names begin with `name`.

    The prefix of the tables stands in front of it, with dashes for dots, because a queue's name has no dots: `delivery`
    is `Pooldesk-Prod-delivery*`. A suffix, such as a number, has at most 4 characters. Raises ValueError for the tenant
    role: no condition of a policy tells whose message it is.
    """

    role: Role
    name: str
    actions: tuple[str, ...]
    sid: str = ""  # of the policy's statement, where the queues' name does not say enough

    def __post_init__(self) -> None:
        if self.role == "tenant":
            raise ValueError(f"the tenant role may have no right to {self.name}: a queue is not one tenant's")


@dataclass(frozen=True)
class ObjectGrant:
    """The right of a role to send these operations of Amazon S3 about the objects whose keys begin with `prefix`.

    `{tenant}` stands for the tenant that is acted for. Raises ValueError for a prefix of the tenant role without it,
    and for one that does not end with a slash.
    """

    role: Role
    prefix: str
    actions: tuple[str, ...]
    sid: str = ""  # of the policy's statement, where the prefix does not say enough

    def __post_init__(self) -> None:
        if not self.prefix.endswith("/"):
            raise ValueError(f"the prefix {self.prefix} ends in the midst of a name")
        if self.role == "tenant" and not self.prefix.startswith(TENANT_OBJECTS):
            raise ValueError(f"the tenant role may have no right to {self.prefix}: it is not one tenant's")


TENANT_OBJECTS: Final = "tenant/{tenant}/"  # the beginning of the keys of all objects of a tenant

_tables: dict[str, Table] = {}
_grants: dict[Grant, None] = {}
_queue_grants: dict[QueueGrant, None] = {}
_object_grants: dict[ObjectGrant, None] = {}


def declare(*tables: Table, grants: tuple[Grant | QueueGrant | ObjectGrant, ...] = ()) -> None:
    """Add a package's tables and grants. Raises ValueError for a name that another declaration has taken."""
    for table in tables:
        if _tables.setdefault(table.name, table) != table:
            raise ValueError(f"{table.name} is declared twice")
    for grant in grants:
        if isinstance(grant, QueueGrant):
            _queue_grants[grant] = None
        elif isinstance(grant, ObjectGrant):
            _object_grants[grant] = None
        else:
            _grants[grant] = None
    owner.cache_clear()


def tables() -> tuple[Table, ...]:
    return tuple(_tables[name] for name in sorted(_tables))


def grants(role: Role) -> tuple[Grant, ...]:
    """Return what a role may do, by table."""
    return tuple(sorted((g for g in _grants if g.role == role), key=lambda g: (g.table.name, g.sid)))


def queue_grants(role: Role) -> tuple[QueueGrant, ...]:
    """Return what a role may do with queues, by name."""
    return tuple(sorted((g for g in _queue_grants if g.role == role), key=lambda g: (g.name, g.sid)))


def object_grants(role: Role) -> tuple[ObjectGrant, ...]:
    """Return what a role may do with objects, by prefix."""
    return tuple(sorted((g for g in _object_grants if g.role == role), key=lambda g: (g.prefix, g.sid)))


def queues() -> tuple[str, ...]:
    """Return the names of all queues that some role has a right to."""
    return tuple(sorted({grant.name for grant in _queue_grants}))


def discover(app: str) -> None:
    """Import what every package of an app declares: `stored` (or `tables`, `items`, `holdings`) and `deployment`.

    A package that declares nothing is not imported: the operators' pages would take a third of a worker's start.
    """
    for package in iter_modules(import_module(app).__path__, f"{app}."):
        spec = find_spec(package.name) if package.ispkg else None
        for module in iter_modules((spec.submodule_search_locations if spec else None) or []):
            if module.name in ("stored", "tables", "items", "holdings", "deployment"):
                import_module(f"{package.name}.{module.name}")


# --- names of the tables that one tenant has to itself: `{prefix}.{tenant id}.{Feature}.{SubTable}` ---
# The id is of fixed width and stands between dots, so that a policy matches the tables of one tenant by its tag, and
# those of all of them by 32 `?`, and neither matches a table that is shared.

ANY_TENANT: Final = "?" * 32  # in a policy
_NAME: Final = re.compile(r"(?P<prefix>.+)\.(?P<tenant>[0-9a-f]{32})\.(?P<table>[A-Za-z]+\.[A-Za-z]+)\Z", re.DOTALL)


def placed_tables() -> tuple[Table, ...]:
    """Return the tables that a tenant can have to itself, by name."""
    return tuple(table for table in tables() if table.placed)


def physical(prefix: str, tenant_id: str, table: Table) -> str:
    """Return what a tenant's own table is called where names begin with this prefix. Raises ValueError for no id."""
    return f"{prefix}.{keys.tenant(tenant_id)}.{table.name}"


@lru_cache(maxsize=4096)
def owner(name: str) -> tuple[str, Table] | None:
    """Return whose own table has this name, and which one it is; None for any other name."""
    match = _NAME.match(name)
    table = next((t for t in placed_tables() if t.name == match["table"]), None) if match else None
    return (match["tenant"], table) if match and table else None
