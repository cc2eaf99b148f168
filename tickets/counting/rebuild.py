"""Makes a tenant's aggregates right again while people go on working, by moving its tickets to a new epoch.

Aggregate items are kept per epoch and readers add all epochs up. A rebuild raises the tenant's epoch, in which new
tickets are born, and then touches every older ticket once, so that the stream takes it out of the items of its old
epoch and adds it to those of the new one. Nothing is counted from outside of the stream, so nothing can be counted
twice or missed, and the sums that readers see are the same at every moment. Once no ticket bears an old epoch and
the worker has folded all that, whatever is left in the old epochs' items is what was wrong. It is taken away.

The emptied items stay for two days and then go by TTL: until then they remember which changes they have taken, and
a worker that comes late with a batch must find that. A change that is folded into one meanwhile (an import may
have reserved its numbers, and with them the epoch, long before) calls the TTL off.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final

from portal import clock
from portal.dynamo.client import fan_out
from portal.dynamo.repository import Condition, TenantRepository
from portal.dynamo.retry import retrying
from portal.errors import ConditionFailed, PortalError, Throttled
from portal.streams import watermark
from portal.streams import worker as stream_worker
from tickets.counting import aggregate_store, aggregates, verify
from tickets.counting import keys as aggregate_keys
from tickets.counting.items import DeadLetterItem
from tickets.counting.verify import Advance, Difference
from tickets.ticket import keys as ticket_keys
from tickets.ticket.fields import Priority
from tickets.ticket.items import CounterItem, SummaryItem
from tickets.ticket.tables import TICKETS

TIMEOUT: Final = 120.0  # seconds that the worker may make no progress at all
KEPT_SECONDS: Final = 2 * 86400  # that an emptied item is kept; a stream keeps its records for one day
_REMOVED_AT_ONCE: Final = 150  # attributes; an expression has at most 4 KB
_LOOK_EVERY: Final = 0.5  # seconds
_TRIES: Final = 5  # for a ticket that is in a transaction of somebody else's

Say = Callable[[str], object]


class WorkerAway(PortalError):
    """The worker did not fold what had to be folded. Nothing is wrong: the sums stay what they were."""

    code = "worker_away"


@dataclass(frozen=True)
class Rebuilt:
    """`tickets` were moved to `epoch`; `removed` is the drift that was found and is gone: what each sum had too much
    (`stored`, negative where it had too little) against 0; `letters` are dead letters that no longer matter."""

    epoch: int
    tickets: int
    removed: list[Difference]
    letters: int


@dataclass(frozen=True)
class _Look:
    """All tickets, each seen once: those that had to be moved, and those that are counted in the new epoch."""

    moved: int
    counted: int
    ended: datetime


def rebuild(
    repository: TenantRepository,
    *,
    timeout: float = TIMEOUT,
    settle: float = verify.SETTLE,
    advance: Advance = lambda numbers: None,
    say: Say = lambda sentence: None,
) -> Rebuilt:
    """Rebuild this tenant's aggregates. Raises WorkerAway where the stream worker makes no progress for `timeout`
    seconds; run again, it begins a new epoch, which does no harm."""
    raised = repository.update(
        CounterItem(repository.key(ticket_keys.counter), ticket_keys.COUNTER_TICKET),
        [CounterItem.epoch.add(1), CounterItem.last.add(0)],
    )
    epoch = int(raised["epoch"]["N"])
    moved = 0
    removed: list[Difference] = []
    look = _look(repository, epoch, advance)
    while True:
        moved += look.moved
        _wait(repository, epoch, look, timeout=timeout, settle=settle, say=say)
        # From here on an old item that does not move has nothing to come: no ticket is in its epoch any more.
        looked_at = clock.stamp()
        old = [raw for raw in verify.stored(repository) if _epoch(raw) < epoch]
        look = _look(repository, epoch, lambda numbers: None)
        if look.moved:
            continue
        _wait(repository, epoch, look, timeout=timeout, settle=settle, say=say)
        done = [_retire(repository.tenant_id, raw, removed) for raw in old]
        if all(done):
            break
    letters = _drop_letters(repository.tenant_id, epoch, before=looked_at)
    return Rebuilt(epoch, moved, _summed(removed), letters)


def _epoch(raw: dict[str, Any]) -> int:
    parts = aggregate_keys.aggregate_parts(raw["sk"]["S"])
    return parts[2] if parts else -1


# --- the tickets ---


def _look(repository: TenantRepository, epoch: int, advance: Advance) -> _Look:
    """Move every ticket that is in an older epoch."""
    moved = counted = 0
    for lanes in verify.groups(verify.last_number(repository)):
        for m, c in fan_out([partial(_move, repository, epoch, lane) for lane in lanes]):
            moved, counted = moved + m, counted + c
        advance(sum(map(len, lanes)))
    return _Look(moved, counted, clock.now())


def _move(repository: TenantRepository, epoch: int, numbers: range) -> tuple[int, int]:
    """How many of these tickets were in an older epoch, and how many there are that can be counted."""
    moved = counted = 0
    for image in repository.get_raw(TICKETS, ticket_keys.ticket, numbers, sort=ticket_keys.SUMMARY):
        with suppress(*aggregates.UNCOUNTABLE):
            aggregates.contribution(image)
            counted += 1
        if int(image.get("epoch", {"N": "0"})["N"]) < epoch:
            _touch(repository, image["pk"]["S"], epoch)
            moved += 1
    return moved, counted


def _touch(repository: TenantRepository, pk: str, epoch: int) -> None:
    """The version stays: nobody's form becomes stale by this."""
    condition: Condition = SummaryItem.pk.exists() & (SummaryItem.epoch.does_not_exist() | (SummaryItem.epoch < epoch))
    summary = SummaryItem(pk, ticket_keys.SUMMARY)
    with suppress(ConditionFailed):  # deleted meanwhile, or moved by a request whose answer was lost
        retrying(
            lambda: repository.update(summary, [SummaryItem.epoch.set(epoch)], condition=condition),
            again=lambda error: isinstance(error, Throttled),
            attempts=_TRIES,
            first=0.2,
            longest=2,
        )


# --- the worker ---


def _wait(repository: TenantRepository, epoch: int, look: _Look, *, timeout: float, settle: float, say: Say) -> None:
    """Return when the worker has folded all that was written until the look's end.

    It says so by its watermark. Where there is none, by having counted in the new epoch all tickets that we saw there,
    and having stood still for the settling time. Raises WorkerAway after `timeout` without any progress.
    """
    before: object = None
    changed_at = time.monotonic()
    while True:
        beat = watermark.read(TICKETS)
        if beat is not None and beat.as_of > look.ended + verify.MARGIN:
            return
        counted, applied = _progress(repository, epoch)
        if (beat, counted, applied) != before:
            before, changed_at = (beat, counted, applied), time.monotonic()
        still = time.monotonic() - changed_at
        if beat is None and counted >= look.counted and still >= settle:
            return
        if still >= timeout:
            raise WorkerAway(
                "The stream worker has not counted everything yet and makes no progress. Is it running "
                "(manage.py run_stream)? Nothing is lost or wrong by this: the sums are what they were. Run it again."
            )
        say(f"waiting for the stream worker, {min(counted, look.counted):,} of {look.counted:,} tickets counted anew")
        time.sleep(_LOOK_EVERY)


def _progress(repository: TenantRepository, epoch: int) -> tuple[int, list[str]]:
    """How many tickets are counted in the new epoch, and when each item was last updated."""
    items = verify.stored(repository)
    priorities = tuple(f".{p}" for p in Priority)
    counted = sum(
        n
        for raw in items
        if raw["sk"]["S"].startswith("TOTALS") and _epoch(raw) >= epoch
        for name, n in aggregates.counts_of(raw).items()
        if name.endswith(priorities)
    )
    return counted, [raw.get("applied_at", {"S": ""})["S"] for raw in items]


# --- the old items ---


def _retire(tenant_id: str, raw: dict[str, Any], removed: list[Difference]) -> bool:
    """Empty an old item that is still as it was read, and leave it to TTL. False where it was updated meanwhile."""
    counts = sorted(aggregates.counts_of(raw))
    if not counts and "expires_at" in raw:
        return True
    marks = {name: v for name, v in raw.items() if name.startswith(aggregates.MARK_PREFIX) or name == "applied_at"}
    names = {f"#m{i}": name for i, name in enumerate(marks)} | {"#ttl": str(TICKETS.ttl)}
    values: dict[str, Any] = {f":m{i}": value for i, value in enumerate(marks.values())}
    values[":ttl"] = {"N": str(int(time.time()) + KEPT_SECONDS)}
    unchanged = " AND ".join(f"#m{i} = :m{i}" for i in range(len(marks))) or "attribute_not_exists(applied_at)"
    for start in range(0, max(1, len(counts)), _REMOVED_AT_ONCE):
        some = counts[start : start + _REMOVED_AT_ONCE]
        gone = {f"#c{i}": name for i, name in enumerate(some)}
        try:
            aggregate_store.update(
                tenant_id,
                raw["sk"]["S"],
                UpdateExpression="SET #ttl = :ttl" + (" REMOVE " + ", ".join(gone) if gone else ""),
                ConditionExpression=f"attribute_exists(pk) AND {unchanged}",
                ExpressionAttributeNames=names | gone,
                ExpressionAttributeValues=values,
            )
        except ConditionFailed:
            return False
        removed += _counts(raw, some)
    return True


def _counts(raw: dict[str, Any], names: list[str]) -> Iterator[Difference]:
    kind, day, _ = aggregate_keys.aggregate_parts(raw["sk"]["S"]) or ("", "", 0)
    counts = aggregates.counts_of(raw)
    yield from (Difference(verify.label((kind, day)), name, counts[name], 0) for name in names)


def _summed(removed: list[Difference]) -> list[Difference]:
    """The same over all old epochs."""
    found: dict[tuple[str, str], int] = {}
    for one in removed:
        found[one.item, one.count] = found.get((one.item, one.count), 0) + one.stored
    return [Difference(item, count, n, 0) for (item, count), n in sorted(found.items()) if n]


def _drop_letters(tenant_id: str, epoch: int, *, before: str) -> int:
    """Remove the tenant's dead letters that are about old epochs only: what they hold is counted anew, or in no sum."""
    dropped = 0
    for letter in stream_worker.items(DeadLetterItem, TICKETS.name):
        if letter.tenant_id == tenant_id and letter.at < before and max(_epochs_of(letter), default=0) < epoch:
            stream_worker.remove(letter)
            dropped += 1
    return dropped


def _epochs_of(letter: DeadLetterItem) -> Iterator[int]:
    if letter.aggregate:
        yield (aggregate_keys.aggregate_parts(letter.aggregate) or ("", "", 0))[2]
        return
    data = json.loads(letter.record).get("dynamodb", {})
    for image in (data.get("OldImage", {}), data.get("NewImage", {})):
        with suppress(*aggregates.UNCOUNTABLE):  # an image that is broken in this too
            yield int(image["epoch"]["N"])
