"""Form the key of what an import remembers."""

from __future__ import annotations

from portal.schema import keys


def import_source(tenant_id: str, source: str) -> str:
    """Partition key of what was imported from one archive; the sort key is the row's own id in there."""
    return keys.collection(tenant_id, "IMPORT", keys.digest(source))
