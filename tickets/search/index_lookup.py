"""Ask the index for the words of a query: two round trips, or one where the process knows the headers.

Few words narrow a search down far enough, and the text of each ticket decides anyway. So the index is asked for at most
WORDS_LIMIT words, the longest of each phrase first, and for the reserved terms of tags and of the requester.

First the state of the index is read: what is new, and the headers of the segments. Their fences say which blocks can
hold the words, and all of these are read at once, in shares: the first block of each range of terms in each segment,
then the second ones, up to a limit. A word of which not all was read is said to be incomplete. So is one of which a
block is lost: what the other blocks have is found.

The headers are remembered for each tenant. With them the blocks are asked for while the state is read, which says
whether they still are the right ones; what turns out to be missing is read afterwards. With the headers a process
remembers how many tickets there are, which only ranks: it asks for the number again once the headers have changed.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from itertools import chain, count, pairwise, zip_longest
from typing import Final, NamedTuple

from portal.dynamo.client import fan_out
from portal.dynamo.store import Store
from portal.quotas import BoundedCache
from tickets.search import stored, tokenizer
from tickets.search.index import postings
from tickets.search.index.fragments import custom_term, requester_term, tag_term
from tickets.search.index.postings import Places, noted
from tickets.search.index.segments import IndexState, read_state
from tickets.search.search_query import Phrase, SearchQuery
from tickets.search.stored import BlockItem, SegmentItem
from tickets.search.text_match import BEGINS, EXACT, FORM, WordMatcher, matchers
from tickets.ticket import stored as ticket_keys
from tickets.ticket.stored import CounterItem

log = logging.getLogger("pooldesk.search")

WORDS_LIMIT: Final = 4
BLOCKS_LIMIT: Final = 96  # that one search reads
_BEGINNING_LEAST: Final = 3  # characters of a beginning that narrows a search down
_BEHIND: Final = b"\xff"  # in no UTF-8: greater than all that can follow a beginning
_NOTE_MARK: Final = noted(b"")
_LOST: Final = "%s of the index of tenant %s %s. What it held is not found until: manage.py rebuild_search"
_REMEMBERED: Final = 64  # tenants whose headers a process remembers
_LEVEL: Final = 16  # one step of the impact in a posting
_LOWER: Final = {EXACT: 0, FORM: _LEVEL, BEGINS: 2 * _LEVEL}  # for words that are not spelt as they were typed
_PLACES: Final = 15

BlockId = tuple[str, int]  # of a segment, and the number in it


@dataclass(frozen=True)
class AskedTerm:
    """Hold a word that the index is asked for. `part` counts the parts of the query: phrases, tags, the requester.

    A ticket without it does not match, unless it `only_ranks`. With `places` it must stand in one of these. Words of
    internal notes count only `with_notes`.
    """

    matcher: WordMatcher
    part: int
    only_ranks: bool = False
    places: Places | None = None
    with_notes: bool = False

    @cached_property
    def ranges(self) -> list[tuple[bytes, bytes]]:
        """Return the first and the last terms of the ranges in which its forms lie in the index."""
        if self.matcher.has_forms or self.matcher.is_beginning:
            beginnings = {*self.matcher.spellings} if self.matcher.is_beginning else set()
            beginnings |= {*self.matcher.beginnings}
            return [(b.encode(), b.encode() + _BEHIND) for b in _shortest(beginnings)]
        found = [spelling.encode() for spelling in self.matcher.spellings]
        return [(low, noted(low) if self.with_notes else low) for low in found]

    def weight(self, term: bytes) -> float:
        """Return how much a term of the index counts for this word, 0 for one that is not meant."""
        if term.endswith(_NOTE_MARK):
            if not self.with_notes:
                return 0.0
            term = term.removesuffix(_NOTE_MARK)
        return self.matcher.weight(term.decode(errors="replace"))


@dataclass(frozen=True)
class TermRead:
    """Hold the postings of an asked term for each term of the index, and whether these are all."""

    term: AskedTerm
    is_complete: bool
    by_term: Mapping[str, Mapping[int, int]]

    @cached_property
    def postings(self) -> Mapping[int, int]:
        return postings.merged(self.by_term.values())

    @classmethod
    def of(cls, term: AskedTerm, is_complete: bool, entries: Mapping[bytes, list[bytes]]) -> TermRead:
        """Decode the entries that are meant; one that was tampered with has no tickets."""
        by_term = {}
        for name, encoded in entries.items():
            if weight := term.weight(name):
                lowering = _lowering(_LOWER[weight], term.places)
                decoded = [_decoded(entry, lowering) for entry in encoded]
                by_term[name.decode(errors="replace")] = postings.merged(decoded)
        return cls(term, is_complete, by_term)


def _decoded(entry: bytes, lowering: bytes | None) -> Mapping[int, int]:
    try:
        return postings.decode(entry, lowering)
    except (IndexError, ValueError):
        return {}


@cache
def _lowering(by: int, places: Places | None) -> bytes | None:
    """Return what each posting counts whose impact is lowered, none but those in these places; None for the same."""
    if places is None and not by:
        return None
    mask = _PLACES if places is None else int(places)
    lowered = (byte - by if byte >= by + _LEVEL else byte & _PLACES for byte in range(256))
    return bytes(counts if byte & mask else 0 for byte, counts in enumerate(lowered))


# --- what to ask for ---


def asked_terms(query: SearchQuery, *, people: Sequence[str] = (), with_notes: bool = False) -> list[AskedTerm]:
    """Return what the index is asked for. `people` are the ids of those who are meant by `from:`, where it is known."""
    of_phrases = [_of_phrase(n, phrase) for n, phrase in enumerate(query.phrases)]
    of_phrases.sort(key=lambda terms: max((_length(term.matcher) for term in terms), default=0), reverse=True)
    in_turns = chain.from_iterable(zip_longest(*of_phrases))
    found = [term for term in in_turns if term is not None][:WORDS_LIMIT]
    parts = count(len(query.phrases))
    found += [AskedTerm(WordMatcher((tag_term(tag),)), next(parts)) for tag in query.tags]
    own = [custom_term(one.field_id, one.first) for one in query.custom if one.is_one_value]
    found += [AskedTerm(WordMatcher((term,)), next(parts)) for term in own]
    if people:
        found.append(AskedTerm(WordMatcher(tuple(map(requester_term, people))), next(parts)))
    elif query.requester:
        longest = max(matchers(Phrase(query.requester, is_exact=True)), key=_length)
        found.append(AskedTerm(longest, next(parts), places=Places.LABEL))
    return [replace(term, with_notes=with_notes) for term in found]


def tell_all(query: SearchQuery) -> bool:
    """Tell whether who has all terms matches, so that no text can deny it: plain words, and nothing left out."""
    plain = [p for p in query.phrases if (p.is_prefix or not p.is_exact) and len(tokenizer.words(p.text)) == 1]
    return len(plain) == len(query.phrases) <= WORDS_LIMIT and not query.without and not query.number


def _of_phrase(at: int, phrase: Phrase) -> list[AskedTerm]:
    """Return the terms that a ticket with the phrase has, the most telling one first."""
    parts = matchers(phrase)
    telling = [part for part in parts if part.is_beginning or not tokenizer.is_function_word(part.spellings[0])]
    if tokenizer.is_unspaced(phrase.text):
        others = [part for part in telling if not tokenizer.is_unspaced(part.spellings[0])]
        return [AskedTerm(part, at) for part in (*_of_characters(phrase.text), *others)]
    # Too many terms begin with a last part that is short: the others narrow down, and the compound's beginning ranks.
    is_short = phrase.is_prefix and _length(parts[-1]) < _BEGINNING_LEAST
    if is_short and len(telling) > 1:
        telling.remove(parts[-1])
    found = [AskedTerm(part, at) for part in sorted(dict.fromkeys(telling), key=_length, reverse=True)]
    joined = tokenizer.whole(phrase.text) if is_short or not phrase.is_prefix else None
    if joined:
        found.insert(1, AskedTerm(WordMatcher((joined,), is_beginning=is_short), at, only_ranks=True))
    return found


def _of_characters(text: str) -> list[WordMatcher]:
    """Return what stands without spaces in a text: pairs of its characters, or all that begin with its only one. A
    space between words makes no pair."""
    found: list[WordMatcher] = []
    for run in filter(None, tokenizer.unspaced_runs(text)):
        found += [WordMatcher((a + b,)) for a, b in pairwise(run)] or [WordMatcher((*run,), is_beginning=True)]
    return list(dict.fromkeys(found))


def _length(matcher: WordMatcher) -> int:
    return len(matcher.spellings[0])


def _shortest(beginnings: Iterable[str]) -> list[str]:
    """Leave out what begins with another one."""
    kept: list[str] = []
    for one in sorted(beginnings):
        if not kept or not one.startswith(kept[-1]):
            kept.append(one)
    return kept


# --- the lookup ---


@dataclass
class _Plan:
    """Hold which blocks are wanted, each with the ranges that want it; `cut` are words of which not all is read."""

    wanted: dict[BlockId, list[_Range]] = field(default_factory=lambda: defaultdict(list))
    cut: set[AskedTerm] = field(default_factory=set)


_Range = tuple[bytes, bytes, AskedTerm]
Ask = Callable[[], Sequence[AskedTerm]]  # the words to ask for


class IndexLookup:
    """Read the index once for one query: call `begin`, then `finish`. A caller may read other things beside each."""

    def __init__(self, repository: Store, ask: Ask, *, limit: int = BLOCKS_LIMIT) -> None:
        self._repository, self._ask, self._limit = repository, ask, limit
        self._state = IndexState()
        self._blocks: dict[BlockId, bytes] = {}
        self.tickets = 0  # that there are, or were when the headers were first seen
        self.is_damaged = False  # a block is lost, or cannot be read

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing was ever indexed for the tenant."""
        return not self._state.headers and not self._state.new

    def begin(self) -> None:
        """Read the state and, beside it, the blocks that it probably names and the number of tickets where that is not
        known. Raises Throttled, Unavailable."""
        known = _known.get(self._repository.tenant_id)
        reads: list[Callable[[], object]] = [self._read_state]
        if known:
            self.tickets = known.tickets
            reads.append(partial(self._read_blocks, self._plan(known.headers), consistent=False))
        if not self.tickets:
            reads.append(self._read_counter)
        fan_out(reads)
        is_number_new = known is None or not known.tickets or _ids(known.headers) == _ids(self._state.headers)
        self._remember(self.tickets if is_number_new else 0)

    def finish(self) -> dict[AskedTerm, TermRead]:
        """Return what the index has of each word, reading the blocks that are not there yet.

        A block that is missing was merged with others after its header was read, so all begins anew, once. One that is
        missing still is lost. Raises Throttled, Unavailable.
        """
        plan = self._plan(self._state.headers)
        if not self._read_blocks(plan, consistent=False):
            self._read_state(consistent=True)
            self._remember(0)
            plan = self._plan(self._state.headers)
            self._read_blocks(plan, consistent=True)
        return self._collected(plan)

    def _read_state(self, *, consistent: bool = False) -> None:
        self._state = read_state(self._repository, consistent=consistent)

    def _read_counter(self) -> None:
        item = self._repository.get(CounterItem, ticket_keys.counter, sort=ticket_keys.COUNTER_TICKET)
        self.tickets = int(item.last) if item else 0

    def _remember(self, tickets: int) -> None:
        _known.put(self._repository.tenant_id, _Known(self._state.headers, tickets))

    def _plan(self, headers: Iterable[SegmentItem]) -> _Plan:
        ranges = [(*bounds, term) for term in dict.fromkeys(self._ask()) for bounds in term.ranges]
        return _planned(headers, ranges, self._limit)

    def _read_blocks(self, plan: _Plan, *, consistent: bool) -> bool:
        """Read the blocks that are not there yet, and tell whether all of them exist."""
        missing = [block for block in plan.wanted if block not in self._blocks]
        asked = [(stored.segment, (segment,), stored.block(number)) for segment, number in missing]
        found = self._repository.get_many(BlockItem, asked, consistent=consistent)
        self._blocks |= {block: item.block for block, item in zip(missing, found, strict=True) if item}
        return None not in found

    def _collected(self, plan: _Plan) -> dict[AskedTerm, TermRead]:
        asked = dict.fromkeys(self._ask())
        everything = [(*bounds, term) for term in asked for bounds in term.ranges]
        read = [
            (f"Block {number} of segment {segment}", self._blocks.get((segment, number)), wanting)
            for (segment, number), wanting in plan.wanted.items()
        ]
        read += [(f"Block {n} of what is new", row.block, everything) for n, row in enumerate(self._state.new)]
        entries: dict[AskedTerm, dict[bytes, list[bytes]]] = {term: defaultdict(list) for term in asked}
        incomplete = {*plan.cut}
        self.is_damaged = bool(self._state.unreadable)
        for name, data, wanting in read:
            if not wanting or (data is not None and _collect(data, wanting, entries)):
                continue
            self.is_damaged = True
            log.error(_LOST, name, self._repository.tenant_id, "cannot be read" if data is not None else "is missing")
            incomplete |= {term for _, _, term in wanting}
        return {term: TermRead.of(term, term not in incomplete, entries[term]) for term in asked}


def _planned(headers: Iterable[SegmentItem], ranges: Sequence[_Range], limit: int) -> _Plan:
    """Choose the blocks in fair shares, up to the limit."""
    turns = sorted(
        (turn, at, header.segment, number)
        for header in headers
        for at, (low, high, _) in enumerate(ranges)
        for turn, number in enumerate(header.span(low, high)[: limit + 1])
    )
    plan = _Plan()
    for _, at, segment, number in turns:
        if (segment, number) in plan.wanted or len(plan.wanted) < limit:
            plan.wanted[segment, number].append(ranges[at])
        else:
            plan.cut.add(ranges[at][2])
    return plan


def _collect(block: bytes, wanting: Sequence[_Range], entries: Mapping[AskedTerm, dict[bytes, list[bytes]]]) -> bool:
    """Add the entries of a block to the words that want them. False where it cannot be read."""
    bounds = [(low, high, entries[term]) for low, high, term in wanting]
    lowest, highest = min(low for low, _, _ in bounds), max(high for _, high, _ in bounds)
    try:
        for term, entry in postings.block_entries(block):
            if term < lowest:
                continue
            if term > highest:
                break
            for low, high, found in bounds:
                if low <= term <= high:
                    found[term].append(entry)
    except stored.UNREADABLE:
        return False
    return True


class _Known(NamedTuple):
    """Hold the headers of an index as this process saw them, and the number of tickets then, 0 to be read."""

    headers: tuple[SegmentItem, ...]
    tickets: int


def _ids(headers: Iterable[SegmentItem]) -> list[str]:
    return [header.segment for header in headers]


_known: Final[BoundedCache[str, _Known]] = BoundedCache(_REMEMBERED)
forget: Final = _known.clear  # as a process that was just started
