"""Hold a tenant's index against its stored texts: what it lacks, and what it holds of texts that are gone.

For some thousands of tickets at a time their texts are read, and then the whole index once. Missing postings are looked
up again after a barrier has shown that everything written before is indexed, and once more in the current texts: so
neither a late stream nor concurrent changes count as errors.

A posting of a text that was changed or deleted stays until the index is rebuilt. No search shows it, because the
stored text decides. It is named all the same: whoever has erased something wants to know that nothing of it is left.

How far a check has come is kept for a day, after each PASS of tickets: one that was stopped goes on there.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Final, Literal

from portal.dynamo.client import fan_out
from portal.dynamo.retry import retrying
from portal.dynamo.store import Store, chunked
from portal.errors import PortalError
from portal.streams import watermark
from portal.streams.watermark import Watermark
from tickets.counting import stream_barrier
from tickets.counting.stream_barrier import Say, WorkerAway
from tickets.search import stored, tokenizer
from tickets.search.index import fragments, postings, segments
from tickets.search.index.fragments import Fragment
from tickets.search.index.segments import IndexState
from tickets.search.stored import BlockItem, SegmentItem
from tickets.ticket import stored as ticket_keys
from tickets.ticket.stored import TICKET_ITEMS, TICKETS
from tickets.verification import stored as recount_keys
from tickets.verification.recount import last_number
from tickets.verification.stored import RoundItem

AT_ONCE: Final = 8  # tickets that are read side by side

Advance = Callable[[int], object]  # is called with the numbers that were read since the last call


def read(repository: Store, numbers: Iterable[int]) -> Iterator[tuple[int, list[Fragment]]]:
    """Read the tickets of these numbers, some at a time: a consistent Query for each number.

    Items under a number without a summary count too: a ticket that is being imported is indexed piece by piece.
    """

    def texts(number: int) -> list[Fragment]:
        items = repository.query_all(TICKET_ITEMS, ticket_keys.ticket, number, consistent=True)
        return [fragment for item in items for fragment in fragments.of_item(item)]

    for some in chunked(numbers, AT_ONCE):
        yield from zip(some, fan_out([partial(texts, number) for number in some]), strict=True)


# --- the whole index ---


class IndexMoved(PortalError):
    """A segment was merged away while it was read. Readers begin again."""

    code = "index_moved"


def whole_index(repository: Store, damage: list[str]) -> Iterator[tuple[bytes, dict[int, int]]]:
    """Yield each term that a search can find with the postings of one of its entries, in no order. `damage` gets
    sentences about what no search can read.

    Costs half a read unit, consistently one, for each 4 KB of the index. Raises IndexMoved.
    """
    state = segments.read_state(repository, consistent=True)
    damage += [f"The row {sort_key} cannot be read." for sort_key in state.unreadable]
    for number, row in enumerate(state.new, 1):
        yield from _entries(row.block, f"What is new, item {number}", damage)
    for header in state.headers:
        yield from _of_segment(repository, header, damage)


def _of_segment(repository: Store, header: SegmentItem, damage: list[str]) -> Iterator[tuple[bytes, dict[int, int]]]:
    named, lacking = f"Segment {header.segment}", {stored.block(n): n for n in range(int(header.blocks))}
    for item in repository.query_all(BlockItem, stored.segment, header.segment, consistent=True):
        if item.sk not in lacking:
            damage.append(f"{named} has an item that its header does not name: {item.sk}.")
            continue
        number = lacking.pop(str(item.sk))
        for term, some in _entries(item.block, f"{named}, block {number}", damage):
            if number in header.span(term, term):
                yield term, some
            else:
                damage.append(f"{named} has “{readable(term)}” in block {number}, where nobody looks for it.")
    if lacking:
        now = segments.read_state(repository, consistent=True)
        if header.segment not in {one.segment for one in now.headers}:
            raise IndexMoved("The index is merged faster than it can be read. Run it again.")
        damage.append(f"{named} lacks {len(lacking):,} of its {header.blocks:,} blocks.")


def _entries(block: bytes, name: str, damage: list[str]) -> Iterator[tuple[bytes, dict[int, int]]]:
    try:
        for term, entry in postings.block_entries(block):
            yield term, postings.decode(entry)
    except stored.UNREADABLE:
        damage.append(f"{name} cannot be read.")


def readable(term: bytes) -> str:
    word, mark, _ = term.partition(b"\x00")
    text = word.decode(errors="replace")
    return f"{text} (in a note)" if mark else text


# --- the state of the index ---


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


def report(repository: Store) -> IndexReport:
    """Read how the index stands: the Query with which each search begins, and the watermark.

    Raises Throttled, Unavailable.
    """
    bounds = stored.STATE_AND_DAMAGE
    state = IndexState.of(repository.query_all(stored.DIRECTORY_ROWS, stored.directory, between=bounds))
    return IndexReport(
        segments=len(state.headers),
        blocks=sum(int(header.blocks) for header in state.headers),
        bytes=sum(int(header.size) for header in state.headers),
        tail_items=len(state.new),
        tail_bytes=sum(len(row.block) for row in state.new),
        tokenizer_versions=state.versions,
        as_of=watermark.read(TICKETS, repository),
        damaged=tuple(sorted({*state.unreadable, *state.noted})),
    )


# --- the check ---


SETTLE: Final = 10.0  # seconds that the stream worker may make no progress
PASS: Final = 10_000  # tickets whose postings are held in memory at a time, some 100 MB
KEPT: Final = 1000  # postings of each kind that are named; beyond that they are counted
_KEPT_SECONDS: Final = 86400
_TRIES: Final = 10  # to read the index between two merges
_PLACES: Final = 0x0F

OK: Final = "ok"
WRONG: Final = "wrong"
UNKNOWN: Final = "unknown"

Wanted = dict[bytes, dict[int, int]]  # postings by term and ticket
Found = tuple[set[tuple[bytes, int]], set[tuple[bytes, int]], list[str]]  # what is missing and foreign, and the damage


@dataclass(frozen=True, order=True)
class NamedPosting:
    term: str
    ticket: int


@dataclass
class IndexVerdict:
    """The result of a check. `missing` and `foreign` name up to KEPT postings each, of `lacking` and `left_over`.

    "wrong" is an index in which a search would miss something; what is foreign makes it no less right. `why` says for
    "unknown" what was in the way. `damage` are sentences about items that no search can read.
    """

    state: Literal["ok", "wrong", "unknown"] = OK
    tickets: int = 0
    lacking: int = 0
    left_over: int = 0
    missing: list[NamedPosting] = field(default_factory=list)
    foreign: list[NamedPosting] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)
    why: str = ""

    def note(self, missing: Iterable[NamedPosting], foreign: Iterable[NamedPosting], damage: Iterable[str]) -> None:
        lacking, left_over = sorted(missing), sorted(foreign)
        self.lacking += len(lacking)
        self.left_over += len(left_over)
        self.missing += lacking[: KEPT - len(self.missing)]
        self.foreign += left_over[: KEPT - len(self.foreign)]
        self.damage += [one for one in damage if one not in self.damage]


def check(
    repository: Store,
    *,
    settle: float = SETTLE,
    many: int = PASS,
    begun: Callable[[int], object] = lambda number: None,
    advance: Advance = lambda numbers: None,
    say: Say = lambda sentence: None,
) -> IndexVerdict:
    """Check all tickets, `many` at a time, behind those that a check before has come to.

    `begun` is called with the number behind which it begins. Raises Throttled, Unavailable.
    """
    reached, verdict = _resumed(repository)
    begun(reached)
    last = last_number(repository)
    if set(segments.read_state(repository, consistent=True).versions) - {tokenizer.VERSION}:
        why = "parts of the index were made by other rules of the tokenizer; run rebuild_search"
        verdict.state, verdict.why = UNKNOWN, why
        return verdict
    # One more pass at least: a posting of a number that was never given out is foreign too.
    for start in range(reached + 1, max(last, reached + 1) + 1, many):
        numbers = range(start, min(start + many, last + 1))
        try:
            _Pass(repository, numbers, is_last=numbers.stop > last).run(verdict, settle, advance, say)
        except WorkerAway:
            verdict.state, verdict.why = UNKNOWN, "the stream worker makes no progress; is it running (run_stream)"
            return verdict
        _keep(repository, numbers.stop - 1, verdict)
    forget(repository)
    verdict.state = WRONG if verdict.lacking or verdict.damage else OK
    return verdict


@dataclass
class _Pass:
    """The check of some tickets. `is_last` takes the numbers behind them as well, which no ticket has."""

    repository: Store
    numbers: range
    is_last: bool

    def run(self, verdict: IndexVerdict, settle: float, advance: Advance, say: Say) -> None:
        """Add what is wrong to the verdict. Raises WorkerAway."""
        expected, tickets = self._expected(self.numbers, advance)
        verdict.tickets += tickets
        missing, foreign, damage = self._compared(expected)
        if missing:
            stream_barrier.wait_until_applied(self.repository, timeout=settle, say=say)
            missing, foreign, damage = self._compared(expected)
        # As the texts are now: what was missed may be gone by now, and what was foreign may be just written.
        numbers = {number for _, number in (*missing, *foreign)} & {*self.numbers}
        now, _ = self._expected(sorted(numbers), lambda number: None)
        verdict.note(
            (NamedPosting(readable(term), number) for term, number in missing if number in now.get(term, ())),
            (NamedPosting(readable(term), number) for term, number in foreign if number not in now.get(term, ())),
            damage,
        )

    def _expected(self, numbers: Sequence[int], advance: Advance) -> tuple[Wanted, int]:
        """Return the postings of these tickets, and how many there are."""
        expected: Wanted = {}
        tickets = 0
        for _, texts in read(self.repository, numbers):
            for term, some in fragments.inverted(texts):
                expected.setdefault(term, {}).update(some)
            tickets += bool(texts)
            advance(1)
        return expected, tickets

    def _compared(self, expected: Wanted) -> Found:
        """Return what the index lacks of these postings, what it has besides of these tickets, and what is damaged."""
        again = partial(self._read, expected)
        return retrying(again, again=lambda error: isinstance(error, IndexMoved), attempts=_TRIES)

    def _read(self, expected: Wanted) -> Found:
        left = {term: dict(postings) for term, postings in expected.items()}
        foreign: set[tuple[bytes, int]] = set()
        damage: list[str] = []
        for term, some in whole_index(self.repository, damage):
            wanted = left.get(term, {})
            for number, byte in some.items():
                if number in wanted:
                    wanted[number] = _without(wanted[number], byte)
                elif number in self.numbers or (self.is_last and number >= self.numbers.stop):
                    foreign.add((term, number))
        missing = {(term, number) for term, wanted in left.items() for number, byte in wanted.items() if byte}
        return missing, foreign, damage


def _without(wanted: int, stored: int) -> int:
    """Return what is still wanted of a posting: places, and an impact that is at least as great."""
    impact = 0 if stored >> 4 >= wanted >> 4 else wanted & ~_PLACES
    return wanted & _PLACES & ~stored | impact


# --- what is kept of a check that was stopped ---


def _resumed(repository: Store) -> tuple[int, IndexVerdict]:
    item = repository.get(RoundItem, recount_keys.recounting, sort=stored.CHECK, consistent=True)
    if item is None or not item.data or item.expires_at <= time.time():
        return 0, IndexVerdict()
    kept: dict[str, Any] = json.loads(zlib.decompress(item.data))
    try:
        for name in ("missing", "foreign"):
            kept["verdict"][name] = [NamedPosting(**one) for one in kept["verdict"][name]]
        return int(kept["reached"]), IndexVerdict(**kept["verdict"])
    except TypeError:  # of another version, which looks for more or for less
        return 0, IndexVerdict()


def forget(repository: Store) -> None:
    """Let the next check begin anew, after what makes the results of a stopped one worthless."""
    _keep(repository, 0, IndexVerdict())


def _keep(repository: Store, reached: int, verdict: IndexVerdict) -> None:
    data = zlib.compress(json.dumps({"reached": reached, "verdict": asdict(verdict)}).encode()) if reached else b""
    item = RoundItem(repository.key(recount_keys.recounting), stored.CHECK)
    repository.update(item, [RoundItem.data.set(data), RoundItem.expires_at.set(int(time.time()) + _KEPT_SECONDS)])
