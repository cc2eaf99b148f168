"""Read what the index has of some ranges of terms: two round trips, or one where the process knows the headers.

First the state of the index: what is new, and the headers of the segments. Their fences say which blocks can hold the
terms, and all of these are read at once, in shares: the first block of each range in each segment, then the second
ones, up to a limit. A range of which not all was read is said to be incomplete. So is one of which a block is lost:
what the other blocks have is found.

The headers are remembered for each tenant. With them the blocks are asked for while the state is read, which says
whether they still are the right ones; what turns out to be missing is read afterwards.

Few words narrow a search down far enough, and the text of each ticket decides anyway. So the index is asked for at most
WORDS_LIMIT words, the longest of each phrase first, and for the reserved terms of tags and of the requester.
"""

from __future__ import annotations

import logging
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise, zip_longest
from typing import Final

from portal.dynamo.client import fan_out
from portal.dynamo.repository import TenantRepository
from tickets.search import stored, tokenizer
from tickets.search.index import postings
from tickets.search.index.fragments import requester_term, tag_term
from tickets.search.index.postings import Places, noted
from tickets.search.index.segments import Header, IndexState, read_state
from tickets.search.search_query import Phrase, SearchQuery
from tickets.search.stored import SEARCH
from tickets.search.text_match import WordMatcher, matchers

WORDS_LIMIT: Final = 4
_BEGINNING_LEAST: Final = 3  # characters of a beginning that narrows a search down
_BEHIND: Final = b"\xff"  # in no UTF-8: greater than all that can follow a beginning
_NOTE_MARK: Final = noted(b"")


@dataclass(frozen=True, slots=True)
class TermRange:
    """Hold the first and the last term of a range, both included."""

    low: bytes
    high: bytes


@dataclass(frozen=True)
class AskedTerm:
    """Hold a word that the index is asked for. `part` counts the parts of the query: phrases, tags, the requester.

    A ticket without it does not match, unless it `only_ranks`. With `places` it must stand in one of these.
    """

    matcher: WordMatcher
    part: int
    only_ranks: bool = False
    places: Places | None = None

    def ranges(self, *, with_notes: bool) -> list[TermRange]:
        """Return where the term's forms lie in the index, those of internal notes only where they are wanted."""
        if self.matcher.has_forms or self.matcher.is_beginning:
            beginnings = {*self.matcher.spellings} if self.matcher.is_beginning else set()
            beginnings |= {*self.matcher.beginnings}
            return [TermRange(low := b.encode(), low + _BEHIND) for b in sorted(_shortest(beginnings))]
        found = [spelling.encode() for spelling in self.matcher.spellings]
        return [TermRange(low, noted(low) if with_notes else low) for low in found]

    def weight(self, term: bytes, *, with_notes: bool) -> float:
        """Return how much a term of the index counts for this word, 0 for one that is not meant."""
        if term.endswith(_NOTE_MARK):
            if not with_notes:
                return 0.0
            term = term.removesuffix(_NOTE_MARK)
        return self.matcher.weight(term.decode(errors="replace"))


def asked_terms(query: SearchQuery, *, people: Sequence[str], version: int) -> list[AskedTerm]:
    """Return what the index is asked for. `people` are the ids of those who are meant by `from:`, where it is known."""
    of_phrases = [_of_phrase(n, phrase, version) for n, phrase in enumerate(query.phrases)]
    in_turns = chain.from_iterable(zip_longest(*sorted(of_phrases, key=_usefulness, reverse=True)))
    found = [term for term in in_turns if term is not None][:WORDS_LIMIT]
    for tag in query.tags:
        found.append(AskedTerm(WordMatcher((tag_term(tag),)), _next_part(query, found)))
    if people:
        found.append(AskedTerm(WordMatcher(tuple(map(requester_term, people))), _next_part(query, found)))
    elif query.requester:
        longest = max(matchers(Phrase(query.requester, is_exact=True), version), key=_length)
        found.append(AskedTerm(longest, _next_part(query, found), places=Places.LABEL))
    return found


def tell_all(query: SearchQuery) -> bool:
    """Tell whether who has all terms matches, so that no text can deny it: plain words, and nothing left out."""
    plain = [p for p in query.phrases if (p.is_prefix or not p.is_exact) and len(tokenizer.words(p.text)) == 1]
    return len(plain) == len(query.phrases) <= WORDS_LIMIT and not query.without and not query.number


def _next_part(query: SearchQuery, found: Sequence[AskedTerm]) -> int:
    return max([len(query.phrases) - 1, *(term.part for term in found)]) + 1


def _of_phrase(at: int, phrase: Phrase, version: int) -> list[AskedTerm]:
    """Return the terms that a ticket with the phrase has, the most telling one first."""
    parts = matchers(phrase, version)
    telling = [
        part for part in parts if part.is_beginning or not tokenizer.is_function_word(part.spellings[0], version)
    ]
    if tokenizer.is_unspaced(phrase.text):
        return _of_characters(at, phrase.text) + [
            AskedTerm(part, at) for part in telling if not tokenizer.is_unspaced(part.spellings[0])
        ]
    # Too many terms begin with a last part that is short: the others narrow down, and the compound's beginning ranks.
    is_short = phrase.is_prefix and _length(parts[-1]) < _BEGINNING_LEAST
    if is_short and len(telling) > 1:
        telling.remove(parts[-1])
    found = [AskedTerm(part, at) for part in sorted(dict.fromkeys(telling), key=_length, reverse=True)]
    joined = tokenizer.whole(phrase.text) if is_short or not phrase.is_prefix else None
    if joined:
        found.insert(1, AskedTerm(WordMatcher((joined,), is_beginning=is_short), at, only_ranks=True))
    return found


def _of_characters(at: int, text: str) -> list[AskedTerm]:
    """Return the terms of what stands without spaces in a text: pairs of its characters, or all that begin with its
    only one.

    A space between words makes no pair.
    """
    matchers_of = {
        matcher: None
        for run in tokenizer.unspaced_runs(text)
        for matcher in ([WordMatcher((a + b,)) for a, b in pairwise(run)] or [WordMatcher((*run,), is_beginning=True)])
        if run
    }
    return [AskedTerm(matcher, at) for matcher in matchers_of]


def _length(matcher: WordMatcher) -> int:
    return len(matcher.spellings[0])


def _usefulness(terms: Sequence[AskedTerm]) -> int:
    return max((_length(term.matcher) for term in terms), default=0)


def _shortest(beginnings: Iterable[str]) -> list[str]:
    """Leave out what begins with another one."""
    kept: list[str] = []
    for one in sorted(beginnings):
        if not kept or not one.startswith(kept[-1]):
            kept.append(one)
    return kept


# --- the lookup ---


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
        asked = [(stored.segment, (segment,), stored.block(number)) for segment, number in wanted]
        if not asked:
            return
        for raw in self._repository.get_stored(SEARCH, asked, consistent=consistent):
            self._blocks[stored.block_of(raw["pk"]["S"], raw["sk"]["S"])] = bytes(raw["d"]["B"])

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
        for term, entry in postings.block_entries(block):
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
