"""Form the keys of what an import remembers."""

from __future__ import annotations

from portal.schema import keys


def import_source(tenant_id: str, source: str) -> str:
    """Partition key of what was imported from one archive; the sort key is the row's own id in there."""
    return keys.collection(tenant_id, "IMPORT", keys.digest(source))


def import_sources(tenant_id: str) -> str:
    """Partition key of the archives that something was imported from; the sort key is a digest of the source."""
    return keys.collection(tenant_id, "IMPORTS")


def listed_source(source: str) -> str:
    """Sort key of one of these archives."""
    return keys.digest(source)
