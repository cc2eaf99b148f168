"""Make a tenant's aggregates right again while people go on working, by moving its tickets to a new epoch.

Counts are kept per epoch and readers add all epochs up. A rebuild raises the tenant's epoch, in which new tickets are
born, and then touches every older ticket once, so that the stream takes it out of the counts of its old epoch and adds
it to those of the new one. Nothing is counted from outside of the stream, so nothing can be counted twice or missed,
and the sums that readers see are the same at every moment. Once no ticket bears an old epoch, and all of that is
applied, whatever is left in the old epochs is what was wrong. It is taken away.

A stream barrier says when all is applied, never a clock. And an old group of counts is taken away only
as it was read before the last look at the tickets, under the condition that nothing has touched it since; so whatever
the worker may still have to say of it, it is not said in vain.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from portal import clock
from portal.dynamo.client import fan_out
from portal.dynamo.retry import retrying
from portal.dynamo.store import Action, Condition, Store, chunked
from portal.errors import ConditionFailed, PortalError, Throttled
from portal.streams import shards
from portal.streams.worker import WORKER
from tenants.tenancy import context, tenant_directory
from tickets.counting import coding, dead_letters, exactly_once, merge, stored, stored_counts, stream_barrier
from tickets.counting.contributions import Counts, Part
from tickets.counting.stored import TOUCHED, PartItem, Recent
from tickets.counting.stored_counts import Stored
from tickets.counting.stream_barrier import Say, WorkerAway
from tickets.counting.stream_handler import Positions
from tickets.ticket import stored as ticket_keys
from tickets.ticket.stored import TICKETS, CounterItem, SummaryItem
from tickets.verification import recount as recounting
from tickets.verification.recount import Advance
from tickets.verification.verify import Difference, label

__all__ = ["NotCounted", "Rebuilt", "WorkerAway", "rebuild"]

TIMEOUT: Final = stream_barrier.TIMEOUT
_AT_ONCE: Final = 60  # counts that are taken away by one update
_LOOKS: Final = 20  # at all tickets, before a rebuild gives up finding them all in the new epoch
_CROWDED: Final = "Too many write this tenant's aggregates at once."
_TRIES: Final = 5  # for a ticket that is in a transaction of somebody else's, and for RECENT


class NotCounted(PortalError):
    """Tickets could not be counted anew: the records of their touches became dead letters."""

    code = "not_counted"


@dataclass(frozen=True)
class Rebuilt:
    """`tickets` were moved to `epoch`; `removed` is the drift that was there and is gone: what each sum had too much
    (`stored`, negative where it had too little) against 0; `dead_letters` were dropped, because their tickets are
    counted now."""

    epoch: int
    tickets: int
    removed: list[Difference]
    dead_letters: int


def rebuild(
    store: Store,
    *,
    timeout: float = TIMEOUT,
    advance: Advance = lambda numbers: None,
    say: Say = lambda sentence: None,
) -> Rebuilt:
    """Rebuild this tenant's aggregates. Raises WorkerAway where the stream worker makes no progress for `timeout`
    seconds, and NotCounted; run again, it begins a new epoch, which is safe."""
    with store.here():
        return _rebuild(store, timeout=timeout, advance=advance, say=say)


def _rebuild(store: Store, *, timeout: float, advance: Advance, say: Say) -> Rebuilt:
    raised = store.update(
        CounterItem(store.key(ticket_keys.counter), ticket_keys.COUNTER_TICKET),
        [CounterItem.epoch.add(1), CounterItem.last.add(0), CounterItem.count_form.set(ticket_keys.COUNT_FORM)],
    )
    epoch = int(raised.epoch)
    zone = context.for_system(tenant_directory.get(store.tenant_id)).zone
    worker = store.as_role("worker")
    wait = partial(stream_barrier.wait_until_applied, store, timeout=timeout, say=say)
    moved = _look(store, epoch, zone, advance)
    removed: list[Difference] = []
    for _ in range(_LOOKS):
        wait()
        # From here on an old part that nothing touches has nothing to come, if the next look finds no ticket in it.
        old = _settled(worker, epoch)
        if old is None:
            continue
        late = _look(store, epoch, zone, lambda numbers: None)
        moved += late
        if late:
            continue
        wait()
        if _retire(worker, old, epoch, removed):
            # What a leader has too much and the tail too little, or the other way around, is no drift of a sum.
            merge.choose_leaders(worker, position=Positions(shards.arn(TICKETS)))
            return Rebuilt(epoch, moved, _summed(removed), _drop_dead_letters(store, epoch))
    raise WorkerAway("The old counts kept moving. Nothing is lost or wrong by this; run it again.")


# --- the tickets ---


def _look(store: Store, epoch: int, zone: str, advance: Advance) -> int:
    """Move every ticket that is in an older epoch, and say how many that were."""
    moved = 0
    for several in recounting.groups(recounting.last_number(store)):
        moved += _move(store, epoch, zone, several)
        advance(sum(map(len, several)))
    return moved


def _move(store: Store, epoch: int, zone: str, several: list[range]) -> int:
    """Write the epoch, the form of counting and the desk's time zone, and leave the version as it is: no form becomes
    stale by this.

    Each ticket alone: transactions of many would be quicker on a local engine, but take twice the write units, and
    refuse what people write meanwhile. As many as there are threads are touched at once, and about in the order of
    their numbers: tickets of near numbers count on the same days, so that the worker writes each day's counts seldom.
    """
    condition: Condition = SummaryItem.pk.exists() & (SummaryItem.epoch.does_not_exist() | (SummaryItem.epoch < epoch))
    in_zone: Action = SummaryItem.zone.set(zone) if zone != clock.UTC_NAME else SummaryItem.zone.remove()
    actions = [SummaryItem.epoch.set(epoch), SummaryItem.count_form.set(ticket_keys.COUNT_FORM), in_zone]
    touch = store.updating(SummaryItem, ticket_keys.SUMMARY, actions, condition=condition)
    read = fan_out([partial(recounting.images, store, numbers) for numbers in several])
    old = [image["pk"]["S"] for images in read for image in images if _epoch(image) < epoch]
    fan_out([partial(_touch_each, touch, old[first :: recounting.AT_ONCE]) for first in range(recounting.AT_ONCE)])
    return len(old)


def _touch_each(touch: Callable[[str], None], partitions: list[str]) -> None:
    for pk in partitions:
        _patiently(partial(touch, pk))


def _patiently(touch: Callable[[], None]) -> None:
    """Touch a ticket, again where it is in somebody else's transaction."""
    with suppress(ConditionFailed):  # deleted meanwhile, or moved by a request whose answer was lost
        retrying(touch, again=lambda error: isinstance(error, Throttled), attempts=_TRIES, first=0.2, longest=2)


def _epoch(image: dict[str, Any]) -> int:
    return int(image.get("epoch", {}).get("N", 0))


# --- the old counts ---


def _settled(store: Store, epoch: int) -> Stored | None:
    """Return all counts, while RECENT holds none of older epochs; None where that cannot be had now."""
    _merge_older(store, epoch)
    old = stored_counts.read(store)
    return None if _pending(old.recent, epoch) else old


def _merge_older(store: Store, epoch: int) -> Recent:
    """Merge until RECENT holds nothing of older epochs. Raises Throttled where others write it too fast for that."""
    position = Positions(shards.arn(TICKETS))
    for _ in range(_TRIES * 10):
        recent = stored.recent(store)
        if not _pending(recent, epoch):
            return recent
        merge.merge(store, recent, position=position)
    raise Throttled(_CROWDED)


def _pending(recent: Recent, epoch: int) -> bool:
    return any(part.epoch < epoch for part in coding.decoded(recent.counts))


def _retire(store: Store, old: Stored, epoch: int, removed: list[Difference]) -> bool:
    """Take away what the parts of older epochs hold. False where one of them was touched since it was read."""
    for part, counts in sorted(old.counts.items()):
        for names in chunked(sorted(counts) if part.epoch < epoch else [], _AT_ONCE):
            some = Counter({name: counts[name] for name in names})
            if not _take_away(store, old, part, some, epoch):
                return False
            removed += [Difference(label((part.kind, part.date)), name, n, 0) for name, n in some.items()]
    _merge_older(store, epoch)
    _delete_empty(store, epoch)
    return True


def _take_away(store: Store, old: Stored, part: Part, counts: Counts, epoch: int) -> bool:
    """Subtract counts of one old part, through RECENT as all changes go, if nothing has touched the part since.

    Changes that touched it are either still in RECENT or merged; the number of merges is unchanged in between.
    """
    token, holder = uuid.uuid4().hex, merge.holder(part)
    coded = coding.coded({part: Counter({name: -n for name, n in counts.items()})})
    untouched = stored.named(coding.code(part, coding.TOUCHES)).does_not_exist()
    is_new = Recent.correction.does_not_exist() | (Recent.correction != token)  # no lost answer, sent again
    for _ in range(_TRIES * 10):
        recent = _merge_older(store, epoch)
        held = store.get(PartItem, stored.aggregate, sort=holder, consistent=True)
        if (held.last_touches().get(part, 0) if held else 0) != old.last_touches.get(part, 0):
            return False
        actions = [Recent.correction.set(token), *stored.adding(coded)]
        condition: Condition = exactly_once.as_merged(recent) & untouched & is_new
        try:
            store.update(stored.blank(store), actions, condition=condition)
        except ConditionFailed as failed:
            stood = failed.stored(Recent)
            if stood is None or stood.correction != token:
                continue
        return True
    raise Throttled(_CROWDED)


def _delete_empty(store: Store, epoch: int) -> None:
    """Delete the items of older epochs that hold nothing any more, if no merge touches them meanwhile."""
    marks = {name: getattr(PartItem, name) for name in TOUCHED.values()}

    def delete(item: PartItem) -> None:
        unchanged: Condition = PartItem.pk.exists()
        for name, mark in marks.items():
            value = getattr(item, name)
            unchanged &= mark.does_not_exist() if value is None else mark == value
        with suppress(ConditionFailed):
            store.delete(item, condition=unchanged)

    found = [*store.query_all(stored.AGGREGATES, stored.aggregate, consistent=True)]
    parts = [item for item in found if isinstance(item, PartItem)]
    fan_out([partial(delete, item) for item in parts if item.part.epoch < epoch and not item.counts])


def _summed(removed: Iterable[Difference]) -> list[Difference]:
    """Return the differences, summed over all old epochs."""
    totals: dict[tuple[str, str], int] = {}
    for one in removed:
        totals[one.item, one.count] = totals.get((one.item, one.count), 0) + one.stored
    return [Difference(item, count, n, 0) for (item, count), n in sorted(totals.items()) if n]


# --- dead letters ---


def _drop_dead_letters(store: Store, epoch: int) -> int:
    """Remove dead letters that are about older epochs, and whose tickets are counted in this one by now.

    Raises NotCounted where touches of this rebuild have become dead letters themselves.
    """
    kept = [
        one
        for one in dead_letters.all_letters(tenant_id=store.tenant_id)
        if dead_letters.placement_of(one) == store.placement  # a copy that is kept elsewhere has its own
    ]
    failed = [one for one in kept if max(dead_letters.epochs_of(one), default=0) >= epoch]
    broken = {dead_letters.ticket_of(one) for one in failed}
    counted = [one for one in kept if one not in failed and dead_letters.ticket_of(one) not in broken]
    for one in counted:
        WORKER.delete(one)
    if failed:
        named = ", ".join(str(number) for number in sorted(broken)[:10])
        raise NotCounted(
            f"Not counted: ticket {named}. Its record is a dead letter: {failed[0].reason}. See manage.py dead_letters."
        )
    return len(counted)
