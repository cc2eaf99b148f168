"""Note which rows of an index cannot be merged, so that they stay where they are and all others are merged.

It is a row of what is new or a header that cannot be read, or a segment of which a block is lost. The note lies in the
same partition for all processes to see, and for the operators, until the index is made anew.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Iterable
from typing import Final

from tickets.search import keys
from tickets.search.index.index_store import IndexStorage, MissingBlock, Raw, RowWrite

log = logging.getLogger("pooldesk.stream")

UNREADABLE: Final = (MissingBlock, KeyError, IndexError, TypeError, ValueError, zlib.error)


class DamagedSource(Exception):
    """A source of a merge, by its number among them, cannot be read to its end."""

    def __init__(self, source: int) -> None:
        super().__init__(source)
        self.source = source


def note(store: IndexStorage, sort_key: str) -> None:
    """Keep a row out of all merges from now on, and say so in the log. Raises Throttled, Unavailable."""
    if not next(iter(store.rows(sort_key, sort_key)), None):  # it has gone meanwhile, and its blocks with it
        return
    store.write(RowWrite(keys.damage(sort_key), {}))
    log.error(
        "%s of the index of tenant %s is damaged and merged no more. Run: manage.py rebuild_search",
        sort_key,
        store.tenant_id,
    )


def noted(rows: Iterable[Raw]) -> set[str]:
    """Return the sort keys of the rows that notes among these are about."""
    names = (row["sk"]["S"] for row in rows)
    return {name.removeprefix(keys.DAMAGE) for name in names if name.startswith(keys.DAMAGE)}
