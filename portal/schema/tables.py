"""Declare tables: `create_tables`, the models and, on AWS, the template and the policies follow the declarations.

Each package declares its tables in its own `tables.py`; `registry.py` collects them.

Names are `{prefix}.{Feature}.{SubTable}`. Where the scope is "tenant", every leading key of the table and of its
indexes belongs to exactly one tenant, but for an index that no tenant reads. "platform" tables are the stated
exceptions: they are read before a tenant is known, through a client of their own. "worker" tables are what the workers
need beside the streams.
"""

from __future__ import annotations

from dataclasses import dataclass, field
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
        """The attributes of the primary key."""
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
