"""Wait until the worker has applied everything that was written before: by markers in the stream, not by any clock.

A marker is an item that means nothing but that it was written. It passes through the stream like every change; the
worker applies what its shard held for the tenant before, and then says which shard that was. Markers lie in partitions
of their own, so they spread over the stream's shards. A shard of before is passed when a marker has come by in it or
in a descendant, which is read only when all of its ancestors have been read to their ends. Where markers have missed
a shard, more are written. One that was closed and has no child, because it was merged into another one's, takes none:
it is passed when it is finished. None of that depends on how fast anybody's clock or stream is.

Markers and answers go by TTL.
"""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

from portal.dynamo.store import Store
from portal.errors import PortalError
from portal.plain_text import amount
from portal.streams import positions, shards, watermark
from portal.streams.shards import Shard
from tickets.counting import stored
from tickets.counting.stored import BarrierAnswerItem, MarkerItem
from tickets.ticket.stored import TICKETS

TIMEOUT: Final = 120.0  # seconds without any answer of the worker's
_KEPT_SECONDS: Final = 86400
_LOOK_EVERY: Final = 0.1  # seconds
_SPREAD: Final = 3  # markers for each shard that has not been met: they fall where they fall
_ROUNDS: Final = 40
_AWAY: Final = (
    "The stream worker has not applied everything yet and makes no progress. Is it running (manage.py run_stream)? "
    "Nothing is lost or wrong by this: the sums are what they were. Run it again."
)

Say = Callable[[str], object]


class WorkerAway(PortalError):
    """The worker did not apply what had to be applied. Nothing is wrong: the sums stay what they were."""

    code = "worker_away"


def wait_until_applied(
    store: Store,
    *,
    timeout: float = TIMEOUT,
    say: Say = lambda sentence: None,
    for_good: bool = False,
) -> None:
    """Return when all that was written to this tenant's tickets until now is applied, or kept as dead letters.

    With `for_good` whoever follows the stream has noted that too, so that another worker in its place does not begin
    before it.

    Costs two write units for each marker: one marker where the stream has one shard, some n * ln(n) for n of them.
    Raises WorkerAway when `timeout` seconds go by without an answer; Throttled, Unavailable.
    """
    with store.here():
        _wait(store, timeout=timeout, say=say, for_good=for_good)


def _wait(store: Store, *, timeout: float, say: Say, for_good: bool) -> None:
    """Wait for the stream in which this tenant's changes are."""
    wait_for = partial(_wait_for, timeout=timeout, say=say)
    arn = shards.arn(TICKETS)
    before = _leaves(shards.listing(arn).shards)
    barrier, written = uuid.uuid4().hex, 0
    left, ended = before, set[str]()
    answers: list[BarrierAnswerItem] = []

    def unseen() -> int:
        answers[:] = _answers(store, barrier)
        return written - len(answers)

    for _ in range(_ROUNDS):
        many = 1 if len(before) == 1 else _SPREAD * len(left)
        for number in range(written, written + many):
            _write(store, barrier, number)
        written += many
        wait_for(unseen, lambda n: f", {written - n:,} of {written:,} markers seen")  # noqa: B023  # called at once
        met = {answer.shard for answer in answers}
        known = shards.listing(arn).shards
        left = before - _ancestry(met, {shard.id: shard.parent for shard in known})
        ended = left & _leaves(known) & {shard.id for shard in known if shard.closed}
        left -= ended
        if not left:
            break
    else:
        raise WorkerAway(f"{len(left)} shards of the stream took no marker in {_ROUNDS} rounds. Run it again.")
    wait_for(lambda: len(ended - watermark.finished(arn, ended)), lambda n: f" to finish {amount(n, 'closed shard')}")
    if for_good:
        wait_for(
            lambda: sum(positions.read(arn, one.shard) < one.sequence for one in answers),
            lambda n: f" to note its position in {amount(n, 'shard')}",
        )


def _wait_for(left: Callable[[], int], sentence: Callable[[int], str], *, timeout: float, say: Say) -> None:
    """Return when nothing is left. Raises WorkerAway when it has not become less for `timeout` seconds."""
    fewest, since = math.inf, time.monotonic()
    while many := left():
        if many < fewest:
            fewest, since = many, time.monotonic()
        if time.monotonic() - since > timeout:
            raise WorkerAway(_AWAY)
        say(f"waiting for the stream worker{sentence(many)}")
        time.sleep(_LOOK_EVERY)


def _write(store: Store, barrier: str, number: int) -> None:
    item = MarkerItem(store.key(stored.marker, barrier, number), stored.MARKER)
    store.update(item, [MarkerItem.expires_at.set(int(time.time()) + _KEPT_SECONDS)])


def _answers(store: Store, barrier: str) -> list[BarrierAnswerItem]:
    """Return the answers of the worker to those markers that it has met."""
    beginning = stored.markers_seen(barrier)
    return [*store.query_all(BarrierAnswerItem, stored.aggregate, begins_with=beginning, consistent=True)]


# --- the tree of shards: pure ---


def _leaves(all_shards: Iterable[Shard]) -> set[str]:
    """Return the shards without children: whoever has read all of these has read all of the stream."""
    known = list(all_shards)
    parents = {shard.parent for shard in known}
    return {shard.id for shard in known if shard.id not in parents}


def _ancestry(met: Iterable[str], parents: Mapping[str, str]) -> set[str]:
    """Return these shards with all of their ancestors."""
    ancestry: set[str] = set()
    for shard in met:
        while shard and shard not in ancestry:
            ancestry.add(shard)
            shard = parents.get(shard, "")
    return ancestry
