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
from portal.dynamo.repository import TenantRepository
from portal.errors import PortalError
from portal.streams import watermark
from portal.streams.watermark import Watermark
from tickets.counting import stream_barrier
from tickets.counting.stream_barrier import Say, WorkerAway
from tickets.search import stored, tokenizer
from tickets.search.index import fragments, merging, postings, segments
from tickets.search.index.fragments import Fragment
from tickets.search.index.segments import Header, IndexState
from tickets.search.stored import SEARCH
from tickets.ticket import stored as ticket_keys
from tickets.ticket.stored import TICKETS
from tickets.verification import stored as recount_keys
from tickets.verification.recount import last_number
from tickets.verification.stored import RoundItem

AT_ONCE: Final = 8  # tickets that are read side by side

Advance = Callable[[int], object]  # is called with the numbers that were read since the last call


def read(repository: TenantRepository, numbers: Sequence[int]) -> Iterator[tuple[int, list[Fragment]]]:
    """Read the tickets of these numbers, some at a time: a consistent Query for each number.

    Items under a number without a summary count too: a ticket that is being imported is indexed piece by piece.
    """
    for start in range(0, len(numbers), AT_ONCE):
        several = numbers[start : start + AT_ONCE]
        yield from zip(several, fan_out([partial(_fragments, repository, n) for n in several]), strict=True)


def _fragments(repository: TenantRepository, number: int) -> list[Fragment]:
    found = repository.query_all(TICKETS, ticket_keys.ticket, number, consistent=True)
    return [fragment for raw in found for fragment in _of_item(raw)]


def _of_item(raw: dict[str, Any]) -> list[Fragment]:
    sort_key = raw["sk"]["S"]
    if sort_key == ticket_keys.SUMMARY:
        return fragments.of_summary(raw)
    if sort_key == ticket_keys.DETAIL:
        return fragments.of_detail(raw)
    return fragments.of_activity(raw) if sort_key.startswith(ticket_keys.ACTIVITY_PREFIX) else []


# --- the whole index ---


_UNREADABLE: Final = (zlib.error, IndexError, ValueError)


class IndexMoved(PortalError):
    """A segment was merged away while it was read. Readers begin again."""

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
        found = self.repository.query_all(SEARCH, stored.segment, header.segment, consistent=True)
        for raw in found:
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
            for term, entry in postings.block_entries(block):
                yield term, postings.decode(entry)
        except _UNREADABLE:
            self.damage.append(f"{name} cannot be read.")


def readable(term: bytes) -> str:
    """Return a term as a person reads it."""
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


def report(repository: TenantRepository) -> IndexReport:
    """Read how the index stands: the Query with which each search begins, and the watermark.

    Raises Throttled, Unavailable.
    """
    rows = list(repository.query_all(SEARCH, stored.directory, between=stored.STATE_AND_DAMAGE))
    state = IndexState.of(row for row in rows if row["sk"]["S"] >= stored.NEW)
    return IndexReport(
        segments=len(state.headers),
        blocks=sum(header.blocks for header in state.headers),
        bytes=sum(header.size for header in state.headers),
        tail_items=len(state.tail),
        tail_bytes=sum(map(len, state.tail)),
        tokenizer_versions=state.versions,
        as_of=watermark.read(TICKETS, repository),
        damaged=tuple(sorted({*state.unreadable, *merging.damaged_rows(rows)})),
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

Postings = dict[bytes, dict[int, int]]


@dataclass(frozen=True, order=True)
class NamedPosting:
    """A term as people read it, and the number of a ticket."""

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

    def note(self, missing: Iterable[NamedPosting], foreign: Iterable[NamedPosting]) -> None:
        """Add what was found wrong."""
        lacking, left_over = sorted(missing), sorted(foreign)
        self.lacking += len(lacking)
        self.left_over += len(left_over)
        self.missing += lacking[: KEPT - len(self.missing)]
        self.foreign += left_over[: KEPT - len(self.foreign)]


def check(
    repository: TenantRepository,
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
    versions = WholeIndex.now(repository).state.versions
    if set(versions) - {tokenizer.VERSION}:
        verdict.state = UNKNOWN
        verdict.why = "parts of the index were made by other rules of the tokenizer; run rebuild_search"
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

    repository: TenantRepository
    numbers: range
    is_last: bool

    def run(self, verdict: IndexVerdict, settle: float, advance: Advance, say: Say) -> None:
        """Add what is wrong to the verdict. Raises WorkerAway."""
        expected = self._expected(self.numbers, verdict, advance)
        missing, foreign, damage = self._compared(expected)
        if missing:
            stream_barrier.wait_until_applied(self.repository, timeout=settle, say=say)
            missing, foreign, damage = self._compared(expected)
        # As the texts are now: what was missed may be gone by now, and what was foreign may be just written.
        now = self._now({number for _, number in (*missing, *foreign)})
        verdict.note(
            (NamedPosting(readable(term), number) for term, number in missing if number in now.get(term, ())),
            (NamedPosting(readable(term), number) for term, number in foreign if number not in now.get(term, ())),
        )
        verdict.damage += [one for one in damage if one not in verdict.damage]

    def _expected(self, numbers: Sequence[int], verdict: IndexVerdict | None, advance: Advance) -> Postings:
        expected: Postings = {}
        for _, texts in read(self.repository, numbers):
            for term, some in fragments.inverted(texts):
                expected.setdefault(term, {}).update(some)
            if verdict and texts:
                verdict.tickets += 1
            advance(1)
        return expected

    def _now(self, numbers: set[int]) -> Postings:
        return self._expected(sorted(numbers & set(self.numbers)), None, lambda number: None)

    def _compared(self, expected: Postings) -> tuple[set[tuple[bytes, int]], set[tuple[bytes, int]], list[str]]:
        """Return what the index lacks of these postings, what it has besides of these tickets, and what is damaged."""
        for _ in range(_TRIES):
            try:
                return self._read(expected)
            except IndexMoved:
                continue
        raise IndexMoved("The index is merged faster than it can be read. Run it again.")

    def _read(self, expected: Postings) -> tuple[set[tuple[bytes, int]], set[tuple[bytes, int]], list[str]]:
        left = {term: dict(postings) for term, postings in expected.items()}
        foreign: set[tuple[bytes, int]] = set()
        index = WholeIndex.now(self.repository)
        for term, some in index.postings():
            wanted = left.get(term, {})
            for number, byte in some.items():
                if number in wanted:
                    wanted[number] = _without(wanted[number], byte)
                elif self._is_ours(number):
                    foreign.add((term, number))
        missing = {(term, number) for term, wanted in left.items() for number, byte in wanted.items() if byte}
        return missing, foreign, index.damage

    def _is_ours(self, number: int) -> bool:
        return number in self.numbers or (self.is_last and number >= self.numbers.stop)


def _without(wanted: int, stored: int) -> int:
    """Return what is still wanted of a posting: places, and an impact that is at least as great."""
    impact = 0 if stored >> 4 >= wanted >> 4 else wanted & ~_PLACES
    return wanted & _PLACES & ~stored | impact


# --- what is kept of a check that was stopped ---


def _resumed(repository: TenantRepository) -> tuple[int, IndexVerdict]:
    item = repository.get(RoundItem, recount_keys.recounting, sort=stored.CHECK, consistent=True)
    if item is None or not item.data or item.expires_at <= time.time():
        return 0, IndexVerdict()
    kept: dict[str, Any] = json.loads(zlib.decompress(item.data))
    for name in ("missing", "foreign"):
        kept["verdict"][name] = [NamedPosting(**one) for one in kept["verdict"][name]]
    return int(kept["reached"]), IndexVerdict(**kept["verdict"])


def forget(repository: TenantRepository) -> None:
    """Let the next check begin anew, after what makes the results of a stopped one worthless."""
    _keep(repository, 0, IndexVerdict())


def _keep(repository: TenantRepository, reached: int, verdict: IndexVerdict) -> None:
    data = zlib.compress(json.dumps({"reached": reached, "verdict": asdict(verdict)}).encode()) if reached else b""
    item = RoundItem(repository.key(recount_keys.recounting), stored.CHECK)
    repository.update(item, [RoundItem.data.set(data), RoundItem.expires_at.set(int(time.time()) + _KEPT_SECONDS)])
