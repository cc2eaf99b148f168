"""Make a tenant's index anew from the stored texts, while people search and write.

Everything that is in the index is frozen first: what is new becomes a segment, a number is taken that no segment has,
and segments below it are merged no more. Then all texts are read and written into new segments, which are read beside
the old ones from their first moment; what people write meanwhile comes by the stream, into still other ones. In the end
the frozen segments go. Whatever was in them and is in a stored text was read after they were frozen, so nothing that
can be found is missing at any moment; what was in them alone is gone. Only of a text that is changed while this goes
on, what it said before may come by the stream again; the next rebuild takes that.

Progress is stored after each new segment, so an interrupted rebuild resumes. A second one takes over from the first.

An erasure is a rebuild that leaves nothing of the old index. It waits until the stream worker has indexed all that was
written before and no worker will begin before it again, begins anew each time, and deletes the blocks of everything
that is not read any more at once: those of writers too that have died, under every number that was ever given out.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

from portal import clock
from portal.dynamo.client import fan_out
from portal.dynamo.retry import retrying
from portal.dynamo.store import Store, chunked
from portal.errors import ConditionFailed, Conflict
from tickets.counting import stream_barrier
from tickets.counting.stream_barrier import Say
from tickets.search import index_check, stored, tokenizer
from tickets.search.index import fragments, merging, postings, publishing
from tickets.search.index.fragments import Fragment
from tickets.search.index.index_store import IndexLock, IndexStore, LockLost
from tickets.search.index.segments import IndexState
from tickets.search.index_check import Advance
from tickets.search.stored import FrozenItem
from tickets.verification.recount import last_number

TIMEOUT: Final = stream_barrier.TIMEOUT
POSTINGS: Final = 300_000  # in one new segment, some 600 KB of blocks and 60 MB of memory
SHARE_SECONDS: Final = 3.0  # of reading, after which a segment is written too: so much is done again at most
_LOCK_TRIES: Final = 600
_LOCK_PAUSE: Final = 0.3  # seconds at most; whoever merges has the lock for seconds
_SWEPT_AT_ONCE: Final = 16


@dataclass(frozen=True)
class RebuiltIndex:
    """`tickets` were read into `segments` new segments; `removed` old ones went. `swept` blocks were left of writers
    that had died, and are deleted; 0 where nothing was to be erased."""

    tickets: int
    segments: int
    removed: int
    swept: int = 0


def rebuild(
    repository: Store,
    *,
    erase: bool = False,
    timeout: float = TIMEOUT,
    begun: Callable[[int], object] = lambda number: None,
    advance: Advance = lambda numbers: None,
    say: Say = lambda sentence: None,
) -> RebuiltIndex:
    """Rebuild the index of this tenant. `begun` is called with the number of the ticket behind which it goes on.

    Raises Conflict where another rebuild has taken over, WorkerAway where an erasure waits for the stream worker in
    vain, Throttled, Unavailable. Run again, it goes on, or begins anew where something is to be erased.
    """
    with repository.here():
        store = IndexStore(repository.tenant_id)
        if erase:
            stream_barrier.wait_until_applied(repository, timeout=timeout, say=say, for_good=True)
        frozen = _begin(store, erase=erase)
        begun(int(frozen.reached))
        tickets = segments = 0
        for reached, texts in _shares(repository, int(frozen.reached), advance):
            tickets += sum(1 for one in texts if one)
            found = fragments.inverted(fragment for one in texts for fragment in one)
            if found:
                terms = ((term, postings.entries(some)) for term, some in found)
                publishing.write(store, terms, tokenizer.VERSION)
                segments += 1
            frozen.reached = reached
            _note(store, frozen, frozen.holder)
        removed = _end(store, frozen, erase=erase)
        index_check.forget(repository)
        return RebuiltIndex(tickets, segments, removed, _sweep(store, frozen) if erase else 0)


# --- the frozen part ---


def _begin(store: IndexStore, *, erase: bool) -> FrozenItem:
    """Freeze what there is, or go on with a rebuild that has."""
    me, former = uuid.uuid4().hex, store.frozen()
    if former and not erase and former.version == tokenizer.VERSION:
        holder, former.holder = former.holder, me
        _note(store, former, holder)
        return former
    # Under the lock nobody is in the midst of a merge of old segments that would get a higher number.
    with _locked(store) as lock:
        # Every text that an item of what is new speaks of was stored before the item, so it is read after this.
        merging.merge_new(store, lock)
        _drop_damaged(store, *stored.ALL_NEW)
        frozen = store.row(FrozenItem, stored.FROZEN, through=store.next_segment(), reached=0, holder=me)
        frozen.version, frozen.at = tokenizer.VERSION, clock.stamp()
        store.put(frozen)
    return frozen


def _note(store: IndexStore, frozen: FrozenItem, holder: str) -> None:
    """Write how far the rebuild is. Raises Conflict where another process than the `holder` is at it by now."""
    frozen.at = clock.stamp()
    try:
        store.put(frozen, condition=FrozenItem.holder == holder)
    except ConditionFailed as failed:
        raise Conflict("Another rebuild of this tenant's index has taken over.") from failed


def _end(store: IndexStore, frozen: FrozenItem, *, erase: bool) -> int:
    """Let the frozen segments go; how many there were."""
    with _locked(store):
        _note(store, frozen, frozen.holder)
        publishing.clear(store)  # what a dead merge has left half done names headers that are still there
        state = IndexState.of(store.rows(stored.STATE))
        old = [header for header in state.headers if header.segment <= frozen.through]
        publishing.discard(store, old)
        _drop_damaged(store, stored.ALL_NEW[1], stored.header(frozen.through))
        store.delete(frozen)
        publishing.clear(store, at_once=erase)
    return len(old)


@contextmanager
def _locked(store: IndexStore) -> Iterator[IndexLock]:
    lock = IndexLock(store)

    def take() -> None:
        if not lock.take():
            raise LockLost("Somebody else merges this tenant's segments all the time.")

    retrying(
        take,
        again=lambda error: isinstance(error, LockLost),
        attempts=_LOCK_TRIES,
        first=_LOCK_PAUSE,
        longest=_LOCK_PAUSE,
    )
    with lock:
        yield lock


def _drop_damaged(store: IndexStore, first: str, last: str) -> None:
    """Delete the rows between these that nobody can read, and the notes that they are damaged."""
    state = IndexState.of(store.rows(stored.STATE_AND_DAMAGE))
    gone = sorted(name for name in {*state.unreadable, *state.noted} if first <= name <= last)
    store.delete_rows([*gone, *map(stored.damage, gone)])


def _sweep(store: IndexStore, frozen: FrozenItem) -> int:
    """Delete every block of a segment that is not read, under all numbers that were given out; how many there were."""
    live = {header.segment for header in IndexState.of(store.rows(stored.STATE)).headers}
    dead = [s for n in range(1, int(frozen.through) + 1) if (s := stored.segment_id(n)) not in live]
    swept = 0
    for some in chunked(dead, _SWEPT_AT_ONCE):
        for segment, numbers in zip(some, fan_out([partial(store.block_numbers, s) for s in some]), strict=True):
            store.delete_blocks(segment, numbers)
            swept += len(numbers)
    return swept


def _shares(repository: Store, reached: int, advance: Advance) -> Iterator[tuple[int, list[list[Fragment]]]]:
    """Yield the texts of tickets behind a number, with the last number, in shares of some POSTINGS or SHARE_SECONDS."""
    texts: list[list[Fragment]] = []
    held, since, last = 0, time.monotonic(), last_number(repository)
    for number, found in index_check.read(repository, range(reached + 1, last + 1)):
        texts.append(found)
        held += sum(len(fragment.terms) for fragment in found)
        advance(1)
        if held >= POSTINGS or time.monotonic() - since >= SHARE_SECONDS or number == last:
            yield number, texts
            texts, held, since = [], 0, time.monotonic()
