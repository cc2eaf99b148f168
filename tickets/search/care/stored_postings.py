"""Read everything that a tenant's index holds, block by block, as a search would come upon it."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from portal.dynamo.repository import TenantRepository
from portal.errors import PortalError
from tickets.search import keys
from tickets.search.index import blocks, postings, segments
from tickets.search.index.segments import Header, IndexState
from tickets.search.tables import SEARCH

_UNREADABLE: Final = (zlib.error, IndexError, ValueError)


class IndexMoved(PortalError):
    """A segment was merged away while it was read. Whoever reads begins again."""

    code = "index_moved"


@dataclass
class WholeIndex:
    """Read one state of the index. `damage` are sentences about what no search can read; they grow while it is read."""

    repository: TenantRepository
    state: IndexState
    damage: list[str] = field(default_factory=list)

    @classmethod
    def now(cls, repository: TenantRepository) -> WholeIndex:
        return cls(repository, segments.read_state(repository, consistent=True))

    def postings(self) -> Iterator[tuple[bytes, dict[int, int]]]:
        """Return each term that a search can find with the postings of one of its entries, in no order.

        Costs half a read unit, consistently one, for each 4 KB of the index. Raises IndexMoved.
        """
        self.damage += [f"The row {sort_key} cannot be read." for sort_key in self.state.unreadable]
        for number, block in enumerate(self.state.tail):
            yield from self._entries(block, f"What is new, item {number + 1}")
        for header in self.state.headers:
            yield from self._segment(header)

    def _segment(self, header: Header) -> Iterator[tuple[bytes, dict[int, int]]]:
        named, lacking = f"Segment {header.segment}", set(range(header.blocks))
        stored = self.repository.query_all(SEARCH, keys.segment, header.segment, consistent=True)
        for raw in stored:
            number = int(raw["sk"]["S"]) if raw["sk"]["S"].isdigit() else -1
            if number not in lacking:
                self.damage.append(f"{named} has an item that its header does not name: {raw['sk']['S']}.")
                continue
            lacking.remove(number)
            for term, some in self._entries(raw.get("d", {}).get("B", b""), f"{named}, block {number}"):
                if number in header.span(term, term):
                    yield term, some
                else:
                    self.damage.append(f"{named} has “{readable(term)}” in block {number}, where nobody looks for it.")
        if lacking:
            if header.segment not in {one.segment for one in WholeIndex.now(self.repository).state.headers}:
                raise IndexMoved("The index was merged while it was read.")
            self.damage.append(f"{named} lacks {len(lacking):,} of its {header.blocks:,} blocks.")

    def _entries(self, block: bytes, name: str) -> Iterator[tuple[bytes, dict[int, int]]]:
        try:
            for term, entry in blocks.entries(block):
                yield term, postings.decode(entry)
        except _UNREADABLE:
            self.damage.append(f"{name} cannot be read.")


def readable(term: bytes) -> str:
    """Return a term as a person reads it."""
    word, mark, _ = term.partition(b"\x00")
    text = word.decode(errors="replace")
    return f"{text} (in a note)" if mark else text
