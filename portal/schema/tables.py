"""The one declaration of the tables: `create_tables`, the models and, on AWS, the template and the policies follow it.

Names are `{prefix}.{Feature}.{SubTable}`. Where the scope is "tenant", every leading key of the table and of
its indexes belongs to exactly one tenant. "platform" tables are the stated exceptions: they are read before a
tenant is known, through a client of their own. "worker" tables are what the workers need beside the streams.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from django.conf import settings

from portal.schema import keys

Scope = Literal["tenant", "platform", "worker"]


@dataclass(frozen=True)
class Index:
    """A global secondary index. `include` lists the projected attributes beside the keys, `leading_keys` the pattern
    of its partition keys, "" where they are no tenant's."""

    name: str
    hash: str
    range: str
    include: tuple[str, ...]
    leading_keys: str = keys.OWN_COLLECTIONS


@dataclass(frozen=True)
class Table:
    """One table: key names (all strings), indexes, TTL attribute and whether a stream carries its changes."""

    name: str
    scope: Scope
    hash: str
    range: str | None = None
    indexes: tuple[Index, ...] = ()
    ttl: str | None = None
    stream: bool = False
    # For tenant tables: the pattern of every partition key.
    leading_keys: str = keys.OWN_ID

    @property
    def full_name(self) -> str:
        return f"{settings.DYNAMODB_TABLE_PREFIX}.{self.name}"

    def definition(self) -> dict[str, Any]:
        """The arguments of CreateTable: on-demand billing, encryption at rest is AWS's default."""
        names = {self.hash, *([self.range] if self.range else [])}
        names |= {n for i in self.indexes for n in (i.hash, i.range)}
        definition: dict[str, Any] = {
            "TableName": self.full_name,
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": n, "AttributeType": "S"} for n in sorted(names)],
            "KeySchema": _key_schema(self.hash, self.range),
        }
        if self.indexes:
            definition["GlobalSecondaryIndexes"] = [
                {
                    "IndexName": i.name,
                    "KeySchema": _key_schema(i.hash, i.range),
                    "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(i.include)},
                }
                for i in self.indexes
            ]
        if self.stream:
            definition["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
        return definition


def _key_schema(hash_name: str, range_name: str | None) -> list[dict[str, str]]:
    schema = [{"AttributeName": hash_name, "KeyType": "HASH"}]
    if range_name:
        schema.append({"AttributeName": range_name, "KeyType": "RANGE"})
    return schema


USERS = Table("Platform.Users", "platform", "pk")
# Of sessions that somebody has signed in to, and no others: what a list of them shows.
SESSIONS_BY_USER = Index("gsi-user", "user_id", "started_at", ("tenant_id", "address", "agent", "expires_at"), "")
SESSIONS = Table("Platform.Sessions", "platform", "session_key", indexes=(SESSIONS_BY_USER,), ttl="expires_at")
THROTTLES = Table("Platform.Throttles", "platform", "bucket", ttl="expires_at")
MEMBERSHIPS = Table("Platform.Memberships", "platform", "platform_user_id", "tenant_id")
# One partition per kind of object, so that commands and operators find all tenants by a Query.
DIRECTORY = Table("Platform.Directory", "platform", "kind", "name")
TENANTS = Table("Tenants.Config", "tenant", "tenant_id")
INVITES = Table("Tenants.Invites", "tenant", "tenant_id", "invite_id")
MEMBERS = Table("Admin.Users", "tenant", "tenant_id", "user_id")

# What a list row shows, and nothing else: each projected attribute is written to both indexes on every change.
# An index always carries the base table's keys and its own; the other index's key is listed because a row's
# select box states its resolver.
_LIST_ROW = (
    "number",
    "title",
    "status",
    "priority",
    "tags",
    "resolver",
    "resolver_name",
    "requester_name",
    "created_at",
    "comment_count",
    "version",
    # Where there is one: when it was last resolved, reopened, commented on. The dashboard's numbers lead to lists.
    "resolved_at",
    "reopened_at",
    "commented_at",
)

STATUS_UPDATED = Index("gsi-status-updated", "tenant_status", "updated_at", _LIST_ROW)
STATUS_RESOLVER = Index("gsi-status-resolver", "tenant_status", "resolver_updated", (*_LIST_ROW, "updated_at"))

TICKETS = Table(
    "Support.Tickets",
    "tenant",
    "pk",
    "sk",
    indexes=(STATUS_UPDATED, STATUS_RESOLVER),
    ttl="expires_at",
    stream=True,
    leading_keys=keys.OWN_COLLECTIONS,
)

# What a row of the audit trail says. The chain that holds the rows together is read from the table alone.
_AUDIT_ROW = (
    "action",
    "actor_id",
    "actor_email",
    "origin",
    "entity_type",
    "entity_id",
    "entity_name",
    "before",
    "after",
)
AUDIT_ACTOR = Index("gsi-actor", "tenant_actor", "timestamp_event_id", _AUDIT_ROW, keys.OWN_COMPOSITES)
AUDIT_ENTITY = Index("gsi-entity", "tenant_entity", "timestamp_event_id", _AUDIT_ROW, keys.OWN_COMPOSITES)
AUDIT = Table("Audit.AdminActions", "tenant", "tenant_id", "timestamp_event_id", indexes=(AUDIT_ACTOR, AUDIT_ENTITY))
# Where each lane of a tenant's audit chain ends.
CHAINS = Table("Audit.Chains", "platform", "tenant_id", "lane")

LEASES = Table("Streams.Leases", "worker", "stream", "shard", ttl="expires_at")
DEAD_LETTERS = Table("Streams.DeadLetters", "worker", "stream", "sequence", ttl="expires_at")

ALL: tuple[Table, ...] = (
    USERS,
    SESSIONS,
    THROTTLES,
    MEMBERSHIPS,
    DIRECTORY,
    TENANTS,
    INVITES,
    MEMBERS,
    TICKETS,
    AUDIT,
    CHAINS,
    LEASES,
    DEAD_LETTERS,
)
