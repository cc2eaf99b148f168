"""Name the partitions of the directory in which reshardings are: the last of each tenant, and those before."""

from __future__ import annotations

from typing import Final

from portal.schema import keys

RESHARDINGS: Final = keys.part("RESHARDING")
HEAT: Final = keys.part("HEAT")  # what each stream worker has seen of partitions that are written much
_HISTORY: Final = "RESHARDED"
ALL_HISTORIES: Final = f"{keys.beginning(_HISTORY)}*"


def history(tenant_id: str) -> str:
    """Partition of a tenant's reshardings that have ended, by the moment at which they began."""
    return keys.joined(_HISTORY, keys.tenant(tenant_id))
