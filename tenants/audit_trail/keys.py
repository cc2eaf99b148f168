"""Form the keys of the audit trail. Its partition key is the tenant's id, or PLATFORM."""

from __future__ import annotations

from portal.schema import keys


def audit_row(at: str, event_id: str) -> str:
    """Return the sort key of an audit row, in the table and in its indexes: they sort by time."""
    return keys.joined(keys.part(at, "a timestamp"), keys.part(event_id, "an event id"))


def audited_at(row: str) -> str:
    """Return the time stamp in a key that `audit_row` formed."""
    return keys.split(row)[0]


def event_id(row: str) -> str:
    """Return the event's id in a key that `audit_row` formed."""
    return keys.split(row)[1]


def audit_actor(tenant_id: str, actor: str) -> str:
    """Return the partition key of gsi-actor: everything that one person did in one tenant."""
    return keys.composite(tenant_id, actor)


def audit_entity(tenant_id: str, kind: str, entity_id: str) -> str:
    """Return the partition key of gsi-entity: everything that was done to one entity."""
    return keys.composite(tenant_id, kind, entity_id)
