"""Read an index as a search does: what is new and all headers, then the blocks that can hold a term."""

from __future__ import annotations

from collections.abc import Iterable

from tests.search.memory_store import MemoryStore
from tickets.search import stored
from tickets.search.index import postings
from tickets.search.index.index_store import IndexStore, MissingBlock
from tickets.search.index.segments import IndexState


def looked_up(store: IndexStore | MemoryStore, term: bytes) -> dict[int, int]:
    """The postings of a term. Who misses a block begins anew, once."""
    try:
        return _looked_up(store, term)
    except MissingBlock:
        return _looked_up(store, term)


def _looked_up(store: IndexStore | MemoryStore, term: bytes) -> dict[int, int]:
    state = IndexState.of(store.rows(stored.STATE))
    read: list[Iterable[bytes]] = [[row.block for row in state.new]]
    read += [store.blocks(header.segment, header.span(term, term)) for header in state.headers if header.blocks]
    found = [entry for some in read for block in some for name, entry in postings.block_entries(block) if name == term]
    return postings.merged(map(postings.decode, found))


def tickets_with(tenant_id: str, word: str) -> set[int]:
    """The tickets that the stored index proposes for a word, notes left out."""
    return set(looked_up(IndexStore(tenant_id), word.encode()))
