"""Store the rows of the audit trail and the ends of its chain. The partition is a tenant's id, or PLATFORM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from portal.dynamo.models import IndexModel
from portal.schema import keys, row_forms
from portal.schema.access_patterns import declare_along, declare_keys
from portal.schema.holdings import FilePlace, Holding, Raw, Reader, Stage, StoredItem, declare_holding, own_partition
from portal.schema.registry import Grant, Table, declare
from portal.schema.row_forms import RowForm

AUDIT = Table(
    "Audit.AdminActions",
    "tenant",
    "tenant_id",
    "timestamp_event_id",
    append_only=True,
)
# The end of each partition of a tenant's audit chain.
CHAINS = Table("Audit.Chains", "platform", "tenant_id", "partition")

declare(
    AUDIT,
    CHAINS,
    grants=(
        Grant("tenant", AUDIT, ("GetItem", "Query")),
        # No role may update or delete a row. That none is written over is held by the guard: IAM knows no conditions.
        Grant("platform", AUDIT, ("PutItem",)),
        Grant("platform", CHAINS, ("BatchGetItem", "PutItem", "Query")),
    ),
)


def audit_row_key(at: str, event_id: str) -> str:
    """Return the sort key of an audit row, in the table and in its indexes: they sort by time."""
    return keys.joined(keys.part(at, "a timestamp"), keys.part(event_id, "an event id"))


def audited_at_key(row: str) -> str:
    """Return the time stamp in a key that `audit_row` formed."""
    return keys.split(row)[0]


def event_id(row: str) -> str:
    """Return the event's id in a key that `audit_row` formed."""
    return keys.split(row)[1]


def audit_actor_key(tenant_id: str, actor: str) -> str:
    """Return the partition key of gsi-actor: everything that one person did in one tenant."""
    return keys.composite(tenant_id, actor)


def audit_entity_key(tenant_id: str, kind: str, entity_id: str) -> str:
    """Return the partition key of gsi-entity: everything that was done to one entity."""
    return keys.composite(tenant_id, kind, entity_id)


class AuditItem(Item):
    """One row of the audit trail. `before` and `after` are JSON objects of strings, "" if there is nothing to say.

    `partition`, `sequence`, `previous` and `hash` are its place in the chain; see tenants/audit_trail/chain.py.
    """

    table = AUDIT

    tenant_id = UnicodeAttribute(hash_key=True)
    timestamp_event_id = UnicodeAttribute(range_key=True)
    tenant_actor = UnicodeAttribute()
    tenant_entity = UnicodeAttribute()
    action = UnicodeAttribute()
    actor_id = UnicodeAttribute()
    actor_email = UnicodeAttribute(default="")
    origin = UnicodeAttribute(default="")
    entity_type = UnicodeAttribute()
    entity_id = UnicodeAttribute()
    entity_name = UnicodeAttribute(default="")
    before = UnicodeAttribute(default="")
    after = UnicodeAttribute(default="")
    partition = UnicodeAttribute()
    sequence = NumberAttribute()
    previous = UnicodeAttribute(default="")
    hash = UnicodeAttribute()


class _AuditedRow(IndexModel):
    """The attributes that a page shows. The chain that holds the rows together is read from the table alone."""

    table = AUDIT
    leading_keys = keys.OWN_COMPOSITES

    tenant_id = UnicodeAttribute()
    timestamp_event_id = UnicodeAttribute(range_key=True)
    action = UnicodeAttribute()
    actor_id = UnicodeAttribute()
    actor_email = UnicodeAttribute(null=True)
    origin = UnicodeAttribute(null=True)
    entity_type = UnicodeAttribute()
    entity_id = UnicodeAttribute()
    entity_name = UnicodeAttribute(null=True)
    before = UnicodeAttribute(null=True)
    after = UnicodeAttribute(null=True)


class AuditByActor(_AuditedRow):
    """A row of what one actor did."""

    label = "gsi-actor"
    tenant_actor = UnicodeAttribute(hash_key=True)


class AuditByEntity(_AuditedRow):
    """A row of what was done to one thing."""

    label = "gsi-entity"
    tenant_entity = UnicodeAttribute(hash_key=True)


RESTORE_DRILL: Final = ("drill", "restore")  # type and id, as an entity, of all restore drills
RESTORE_DRILLS: Final = audit_entity_key(keys.PLATFORM, *RESTORE_DRILL)
# Pages of tenants show the last drill. They read this one partition as the platform, so that none acts as a tenant that
# its visitor is no member of.
declare(
    AUDIT,
    grants=(Grant("platform", AUDIT, ("Query",), "ReadDrills", index=AuditByEntity.gsi, leading_keys=RESTORE_DRILLS),),
)


class ChainItem(Item):
    """The end of one partition of a tenant's audit chain: the number of its rows, and the hash of the last one."""

    table = CHAINS

    tenant_id = UnicodeAttribute(hash_key=True)
    partition = UnicodeAttribute(range_key=True)
    sequence = NumberAttribute()
    hash = UnicodeAttribute()


_TRAIL = "audit trail"
_LONGEST = 150_000  # bytes of a row: an import writes twenty in a transaction, which takes 4 MB
_HASH = row_forms.like("[0-9a-f]{64}")


_rows = own_partition(AUDIT)
_ends = own_partition(CHAINS)


def _whole(reader: Reader) -> Iterator[StoredItem]:
    """Yield the ends first, and then the rows up to them: those are all there, and nothing of what comes meanwhile."""
    ends: dict[str, int] = {}
    for stored in _ends(reader):
        ends[stored.item["partition"]["S"]] = int(stored.item["sequence"]["N"])
        yield stored
    for stored in _rows(reader):
        if int(stored.item["sequence"]["N"]) <= ends.get(stored.item["partition"]["S"], 0):
            yield stored


def _row_key(tenant_id: str, item: Raw) -> tuple[str, str]:
    row = item["timestamp_event_id"]["S"]
    return tenant_id, audit_row_key(audited_at_key(row), event_id(row))


def _forms() -> tuple[RowForm, ...]:
    chained = {"hash": _HASH, "partition": row_forms.like("[0-9]{1,3}")}
    told = row_forms.json_object(row_forms.is_text)
    checks = {
        **chained,
        "before": told,
        "after": told,
        "timestamp_event_id": lambda value: row_forms.moment(audited_at_key(value)),
    }
    return (
        RowForm(AuditItem, _row_key, checks=checks, most_bytes=_LONGEST),
        RowForm(ChainItem, lambda own, item: (own, item["partition"]["S"]), checks=chained, most_bytes=_LONGEST),
    )


class TrailEnds:
    """Looks whether the ends in a file name no more rows than it has: the chain is followed from there."""

    of = (_TRAIL,)

    def __init__(self) -> None:
        self._rows = self._named = 0
        self._at = FilePlace(0, "")

    def look(self, holding: str, item: Raw, place: FilePlace) -> str:
        if "action" in item:
            self._rows += 1
        else:
            self._named += int(item["sequence"]["N"])
            self._at = place
        return ""

    def fault(self) -> tuple[FilePlace, str] | None:
        """Return the last end, where they name more."""
        return (self._at, "names more rows than the file has") if self._named > self._rows else None


declare_holding(
    Holding(_TRAIL, (AUDIT,), _rows, Stage.TRAIL, export=_whole, forms=_forms, together=TrailEnds),
    Holding("ends of the audit chain", (CHAINS,), _ends, Stage.TRAIL, left_out="they are exported with the trail"),
)


declare_keys(
    AUDIT, {"audit row": ""}, indexes={"audit rows by actor": "gsi-actor", "audit rows by object": "gsi-entity"}
)
declare_keys(CHAINS, {"audit chain": ""})
declare_along("audit row", ("get", "audit chain"), ("write", "audit chain"))
