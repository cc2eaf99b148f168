"""Form the keys of deliveries that are dead."""

from __future__ import annotations

from typing import Final

from portal.schema import keys

LISTED: Final = keys.part("LISTED")  # the one partition of the index that lists those of all tenants


def dead_delivery(timestamp: str, event_id: str, member: str) -> str:
    """Return the sort key of a dead delivery within its tenant: the moment of its event, and a digest of what it is."""
    return keys.joined(timestamp, keys.digest(f"{event_id} {member}", size=8))
