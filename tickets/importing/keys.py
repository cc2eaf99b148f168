"""Form the keys of what an import remembers."""

from __future__ import annotations

import re
from typing import Final

from portal.schema import keys

_LISTED: Final = re.compile(r"[0-9a-f]{32}\Z")


def import_source(tenant_id: str, source: str) -> str:
    """Return the partition key of what was imported from one archive; the sort key is the row's own id in there."""
    return import_source_listed(tenant_id, listed_source(source))


def import_source_listed(tenant_id: str, listed: str) -> str:
    """Return the same partition key, by the sort key under which the archive is listed. Raises ValueError for what is
    none."""
    if not _LISTED.match(listed):
        raise ValueError("an archive is listed by a digest")
    return keys.collection(tenant_id, "IMPORT", listed)


def import_sources(tenant_id: str) -> str:
    """Return the partition key of the archives that something was imported from; the sort key is a digest of the
    source."""
    return keys.collection(tenant_id, "IMPORTS")


def listed_source(source: str) -> str:
    """Return the sort key of one of these archives."""
    return keys.digest(source)
