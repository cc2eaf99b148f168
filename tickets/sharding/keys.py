"""Name the partitions of the directory in which reshardings are: the last of each tenant, and those before."""

from __future__ import annotations

from typing import Final

from portal.schema import keys

RESHARDINGS: Final = keys.part("RESHARDING")
HEAT: Final = keys.part("HEAT")  # what each stream worker has seen of partitions that are written much
_HISTORY: Final = "RESHARDED"
ALL_HISTORIES: Final = f"{keys.beginning(_HISTORY)}*"


def history(tenant: str) -> str:
    """Return the platform's partition of a tenant's reshardings that have ended, by when they began."""
    return keys.joined(_HISTORY, keys.tenant(tenant))
