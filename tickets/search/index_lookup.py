"""Read what the index has of some ranges of terms: two round trips, or one where the process knows the headers.

First the state of the index: what is new, and the headers of the segments. Their fences say which blocks can hold the
terms, and all of these are read at once, in shares: the first block of each range in each segment, then the second
ones, up to a limit. A range of which not all was read is said to be incomplete. So is one of which a block is lost:
what the other blocks have is found.

The headers are remembered for each tenant. With them the blocks are asked for while the state is read, which says
whether they still are the right ones; what turns out to be missing is read afterwards.
"""

from __future__ import annotations

import logging
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from portal.dynamo.client import fan_out
from portal.dynamo.repository import TenantRepository
from tickets.search import keys, tokenizer
from tickets.search.index import blocks
from tickets.search.index.segments import Header, IndexState, read_state
from tickets.search.index_terms import TermRange
from tickets.search.tables import SEARCH

log = logging.getLogger("pooldesk.search")

BLOCKS_LIMIT: Final = 96  # that one search reads
_LOST: Final = "Block %s of the index of tenant %s %s. What it held is not found until: manage.py rebuild_search"
_REMEMBERED: Final = 64  # tenants whose headers a process remembers

BlockId = tuple[str, int]  # of a segment, and the number in it
Ask = Callable[[Sequence[int]], Sequence[TermRange]]  # the ranges to read, by versions of the tokenizer


@dataclass
class RangeRead:
    """Hold the terms of a range with their encoded postings, and whether these are all that there are."""

    entries: list[tuple[bytes, bytes]] = field(default_factory=list)
    is_complete: bool = True


@dataclass(frozen=True)
class _Plan:
    """Which blocks are wanted, each with the places of the ranges that want it, and the ranges that were cut off."""

    ranges: Sequence[TermRange]
    wanted: dict[BlockId, list[int]]
    cut: set[int]


class IndexLookup:
    """Read the index once for one query: call `begin`, then `finish`. A caller may read other things beside each."""

    def __init__(self, repository: TenantRepository, ask: Ask, *, limit: int = BLOCKS_LIMIT) -> None:
        self._repository, self._ask, self._limit = repository, ask, limit
        self._state = IndexState([], [], ())
        self._blocks: dict[BlockId, bytes] = {}
        self.is_damaged = False  # a block is lost, or cannot be read

    @property
    def versions(self) -> Sequence[int]:
        """Return the versions of the tokenizer that the index was made by."""
        return _versions(self._state)

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing was ever indexed for the tenant."""
        return not self._state.headers and not self._state.tail

    def begin(self) -> None:
        """Read the state, and beside it the blocks that it probably names. Raises Throttled, Unavailable."""
        known = _recall(self._repository.tenant_id)
        if known is None:
            self._state = read_state(self._repository)
        else:
            guess = self._plan(known)
            fan_out([self._read_state, lambda: self._read_blocks(guess.wanted, consistent=False)])
        _remember(self._repository.tenant_id, self._state)

    def finish(self) -> list[RangeRead]:
        """Return what was asked for, range by range, reading the blocks that are not there yet.

        A block that is missing was merged with others after its header was read, so all begins anew, once. One that is
        missing still is lost. Raises Throttled, Unavailable.
        """
        plan = self._plan(self._state)
        if not self._have(plan, consistent=False):
            self._state = read_state(self._repository, consistent=True)
            _remember(self._repository.tenant_id, self._state)
            plan = self._plan(self._state)
            self._have(plan, consistent=True)
        return self._collected(plan)

    def _read_state(self) -> None:
        self._state = read_state(self._repository)

    def _plan(self, state: IndexState) -> _Plan:
        ranges = self._ask(_versions(state))
        return _planned(state.headers, ranges, self._limit)

    def _have(self, plan: _Plan, *, consistent: bool) -> bool:
        """Read the blocks that are not there yet, and tell whether all of them exist."""
        missing = [block for block in plan.wanted if block not in self._blocks]
        if missing:
            self._read_blocks(missing, consistent=consistent)
        return all(block in self._blocks for block in plan.wanted)

    def _read_blocks(self, wanted: Iterable[BlockId], *, consistent: bool) -> None:
        asked = [(keys.segment, (segment,), keys.block(number)) for segment, number in wanted]
        if not asked:
            return
        for raw in self._repository.get_stored(SEARCH, asked, consistent=consistent):
            self._blocks[keys.block_of(raw["pk"]["S"], raw["sk"]["S"])] = bytes(raw["d"]["B"])

    def _collected(self, plan: _Plan) -> list[RangeRead]:
        found = [RangeRead(is_complete=at not in plan.cut) for at in range(len(plan.ranges))]
        everything = range(len(plan.ranges))
        of_segments = ((f"{number} of segment {s}", (s, number), at) for (s, number), at in plan.wanted.items())
        read: list[tuple[str, bytes | None, Sequence[int]]]
        read = [(name, self._blocks.get(block), wanting) for name, block, wanting in of_segments]
        self.is_damaged = bool(self._state.unreadable)
        read += [(f"{n} of what is new", tail, everything) for n, tail in enumerate(self._state.tail)]
        for name, data, wanting in read:
            if data is not None and _collect(data, plan.ranges, wanting, found):
                continue
            self.is_damaged = True
            log.error(_LOST, name, self._repository.tenant_id, "cannot be read" if data is not None else "is missing")
            for at in wanting:
                found[at].is_complete = False
        return found


def _planned(headers: Iterable[Header], ranges: Sequence[TermRange], limit: int) -> _Plan:
    """Choose the blocks in fair shares, up to the limit."""
    turns = sorted(
        (turn, at, header.segment, number)
        for header in headers
        for at, one in enumerate(ranges)
        for turn, number in enumerate(header.span(one.low, one.high)[: limit + 1])
    )
    plan = _Plan(ranges, {}, set())
    for _, at, segment, number in turns:
        block = (segment, number)
        if block in plan.wanted:
            plan.wanted[block].append(at)
        elif len(plan.wanted) < limit:
            plan.wanted[block] = [at]
        else:
            plan.cut.add(at)
    return plan


def _collect(block: bytes, ranges: Sequence[TermRange], wanting: Sequence[int], found: Sequence[RangeRead]) -> bool:
    """Add the entries of a block to the ranges that want them. False where it cannot be read."""
    bounds = [(ranges[at].low, ranges[at].high, found[at].entries) for at in wanting]
    lowest, highest = min(low for low, _, _ in bounds), max(high for _, high, _ in bounds)
    try:
        for term, entry in blocks.entries(block):
            if term < lowest:
                continue
            if term > highest:
                break
            for low, high, entries in bounds:
                if low <= term <= high:
                    entries.append((term, entry))
    except (zlib.error, IndexError):
        return False
    return True


# --- the headers that this process has seen ---

_known: Final[OrderedDict[str, IndexState]] = OrderedDict()
_lock: Final = threading.Lock()


def _recall(tenant_id: str) -> IndexState | None:
    with _lock:
        state = _known.get(tenant_id)
        if state is not None:
            _known.move_to_end(tenant_id)
        return state


def _remember(tenant_id: str, state: IndexState) -> None:
    with _lock:
        _known[tenant_id] = IndexState([], state.headers, state.versions)
        _known.move_to_end(tenant_id)
        if len(_known) > _REMEMBERED:
            _known.popitem(last=False)


def forget() -> None:
    """Forget all headers, as a process has that was just started."""
    with _lock:
        _known.clear()


def _versions(state: IndexState) -> tuple[int, ...]:
    """Return the versions by which words are folded. One that this process does not know yet waits for one that
    does."""
    return tuple(version for version in state.versions if version in tokenizer.RULES) or (tokenizer.VERSION,)
