"""Name the partitions of the directory in which moves are: the last of each tenant, and those before."""

from __future__ import annotations

from typing import Final

from portal.schema import keys

MOVES: Final = keys.part("MOVING")
_HISTORY: Final = "MOVED"


def history(tenant: str) -> str:
    """Return the platform's partition of a tenant's moves that have ended, by when they began."""
    return keys.joined(_HISTORY, keys.tenant(tenant))
