"""The designs of keys that are compared: under which partition key a ticket and its index rows stand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from proofs.hot_spots.suffix_skew import code_point_product
from tickets.ticket import keys
from tickets.ticket.keys import status_shard

OURS: Final = "ours"
_STATUS: Final = "OPEN"


@dataclass(frozen=True)
class KeyDesign:
    """Say where a ticket stands. `shards` is how many partitions a desk has in the beginning."""

    name: str
    title: str
    base: Callable[[str, int], str] = keys.ticket  # from tenant and number, the partition key in the table
    shelf: Callable[[str, int], str] = lambda tenant_id, shard: keys.tenant_status(tenant_id, _STATUS, shard)
    suffix: Callable[[int, int], int] = status_shard
    shards: int = 1
    adapts: bool = False  # the product's code sees what is hot, and asks for more shards


KEY_DESIGNS: Final = {
    design.name: design
    for design in (
        KeyDesign("status", "One index partition for a status of all tenants", shelf=lambda tenant_id, shard: _STATUS),
        KeyDesign("tenant", "The tenant's id alone, in table and index", base=lambda tenant_id, _: tenant_id),
        KeyDesign("one", "Our keys with one shard"),
        KeyDesign(
            "product",
            "Our keys with 16 shards, chosen by the product of the code points",
            suffix=lambda number, shards: code_point_product(str(number)) % shards,
            shards=16,
        ),
        KeyDesign("sixteen", "Our keys with 16 shards", shards=16),
        KeyDesign(OURS, "Ours: one shard, and more by itself", adapts=True),
    )
}
