"""Say how a tenant's index stands: how large it is, by which rules it was made, and up to when it is complete."""

from __future__ import annotations

from dataclasses import dataclass

from portal.dynamo.repository import TenantRepository
from portal.streams import watermark
from portal.streams.watermark import Watermark
from tickets.search import keys, tokenizer
from tickets.search.index import damage
from tickets.search.index.segments import IndexState
from tickets.search.tables import SEARCH
from tickets.ticket.stored import TICKETS


@dataclass(frozen=True)
class IndexReport:
    """Count what a tenant's index consists of; sizes are compressed bytes.

    `tail_items` are what is newer than all segments. `damaged` are the sort keys of rows that no search can read, or
    that no merge could: what they held is missing until the index is made anew. `as_of` is up to when the stream is
    applied, None where nobody follows it.
    """

    segments: int
    blocks: int
    bytes: int
    tail_items: int
    tail_bytes: int
    tokenizer_versions: tuple[int, ...]
    as_of: Watermark | None
    damaged: tuple[str, ...] = ()

    @property
    def was_built(self) -> bool:
        """True where there is an index at all: a tenant of before has none until it is rebuilt."""
        return bool(self.segments or self.tail_items)

    @property
    def is_current(self) -> bool:
        """True where all of it was made by the present rules of the tokenizer."""
        return set(self.tokenizer_versions) <= {tokenizer.VERSION}


def report(repository: TenantRepository) -> IndexReport:
    """Read how the index stands: the Query with which each search begins, and the watermark.

    Raises Throttled, Unavailable.
    """
    rows = list(repository.query_all(SEARCH, keys.directory, between=keys.STATE_AND_DAMAGE))
    state = IndexState.of(row for row in rows if row["sk"]["S"] >= keys.NEW)
    return IndexReport(
        segments=len(state.headers),
        blocks=sum(header.blocks for header in state.headers),
        bytes=sum(header.size for header in state.headers),
        tail_items=len(state.tail),
        tail_bytes=sum(map(len, state.tail)),
        tokenizer_versions=state.versions,
        as_of=watermark.read(TICKETS, repository),
        damaged=tuple(sorted({*state.unreadable, *damage.noted(rows)})),
    )
