"""Form the keys of what a verification keeps while it recounts."""

from __future__ import annotations

from typing import Final

from portal.schema import keys

ROUND: Final = "ROUND"


def recounting(tenant_id: str) -> str:
    """Return the partition key of what a tenant's verification keeps, beside neither tickets nor aggregates."""
    return keys.collection(tenant_id, "RECOUNT")


def sums(round_id: str) -> str:
    """Return the beginning of the sort keys of a round's sums, in the order of the tickets' numbers."""
    return keys.beginning("SUM", round_id)


def sum_behind(round_id: str, number: int) -> str:
    """Return the sort key of the sum over the group of tickets that ends with this number."""
    return keys.joined("SUM", round_id, f"{number:015}")


def end_of(sort_key: str) -> int:
    """Return the number in what `sum_behind` made."""
    return int(keys.split(sort_key)[2])
