"""Form the key of the only items that a proof of isolation writes, and removes again."""

from __future__ import annotations

from portal.schema import keys


def proof(tenant_id: str) -> str:
    return keys.collection(tenant_id, "PROOF")
