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
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from portal.dynamo.client import fan_out
from portal.dynamo.repository import Condition, TenantRepository
from portal.dynamo.retry import retrying
from portal.errors import ConditionFailed, PortalError, Throttled
from portal.streams import shards, worker
from tickets.counting import aggregate_store, coding, dead_letters, merge, stored, stored_counts, stream_barrier
from tickets.counting.contributions import Counts, Part
from tickets.counting.exactly_once import CORRECTION, MERGES, VERSION, Recent
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
    repository: TenantRepository,
    *,
    timeout: float = TIMEOUT,
    advance: Advance = lambda numbers: None,
    say: Say = lambda sentence: None,
) -> Rebuilt:
    """Rebuild this tenant's aggregates. Raises WorkerAway where the stream worker makes no progress for `timeout`
    seconds, and NotCounted; run again, it begins a new epoch, which is safe."""
    with repository.here():
        return _rebuild(repository, timeout=timeout, advance=advance, say=say)


def _rebuild(repository: TenantRepository, *, timeout: float, advance: Advance, say: Say) -> Rebuilt:
    raised = repository.update(
        CounterItem(repository.key(ticket_keys.counter), ticket_keys.COUNTER_TICKET),
        [CounterItem.epoch.add(1), CounterItem.last.add(0)],
    )
    epoch = int(raised.epoch)
    wait = partial(stream_barrier.wait_until_applied, repository, timeout=timeout, say=say)
    moved = _look(repository, epoch, advance)
    removed: list[Difference] = []
    for _ in range(_LOOKS):
        wait()
        # From here on an old part that nothing touches has nothing to come, if the next look finds no ticket in it.
        old = _settled(repository, epoch)
        if old is None:
            continue
        late = _look(repository, epoch, lambda numbers: None)
        moved += late
        if late:
            continue
        wait()
        if _retire(repository.tenant_id, old, epoch, removed):
            # What a leader has too much and the tail too little, or the other way around, is no drift of a sum.
            merge.choose_leaders(repository.tenant_id, position=Positions(shards.arn(TICKETS)))
            return Rebuilt(epoch, moved, _summed(removed), _drop_dead_letters(repository, epoch))
    raise WorkerAway("The old counts kept moving. Nothing is lost or wrong by this; run it again.")


# --- the tickets ---


def _look(repository: TenantRepository, epoch: int, advance: Advance) -> int:
    """Move every ticket that is in an older epoch, and say how many that were."""
    moved = 0
    for several in recounting.groups(recounting.last_number(repository)):
        moved += sum(fan_out([partial(_move, repository, epoch, numbers) for numbers in several]))
        advance(sum(map(len, several)))
    return moved


def _move(repository: TenantRepository, epoch: int, numbers: range) -> int:
    moved = 0
    for image in repository.get_raw(TICKETS, ticket_keys.ticket, numbers, sort=ticket_keys.SUMMARY):
        if int(image.get("epoch", {"N": "0"})["N"]) < epoch:
            _touch(repository, image["pk"]["S"], epoch)
            moved += 1
    return moved


def _touch(repository: TenantRepository, pk: str, epoch: int) -> None:
    """Write the epoch, and leave the version as it is: nobody's form becomes stale by this."""
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


# --- the old counts ---


def _settled(repository: TenantRepository, epoch: int) -> Stored | None:
    """Return all counts, while RECENT holds none of older epochs; None where that cannot be had now."""
    _merge_older(repository.tenant_id, epoch)
    old = stored_counts.read(repository)
    return None if _pending(old.recent, epoch) else old


def _merge_older(tenant_id: str, epoch: int) -> None:
    """Merge until RECENT holds nothing of older epochs. Raises Throttled where others write it too fast for that."""
    position = Positions(shards.arn(TICKETS))
    for _ in range(_TRIES * 10):
        recent = _recent(tenant_id)
        if not _pending(recent, epoch):
            return
        merge.merge(tenant_id, recent, position=position)
    raise Throttled("Too many write this tenant's aggregates at once.")


def _recent(tenant_id: str) -> Recent:
    return Recent.of(aggregate_store.get(tenant_id, stored.RECENT))


def _pending(recent: Recent, epoch: int) -> bool:
    return any(part.epoch < epoch for part in coding.decoded(recent.counts))


def _retire(tenant_id: str, old: Stored, epoch: int, removed: list[Difference]) -> bool:
    """Take away what the parts of older epochs hold. False where one of them was touched since it was read."""
    for part, counts in sorted(old.counts.items()):
        names = sorted(counts) if part.epoch < epoch else []
        for start in range(0, len(names), _AT_ONCE):
            some = Counter({name: counts[name] for name in names[start : start + _AT_ONCE]})
            if not _take_away(tenant_id, old, part, some, epoch):
                return False
            removed += [Difference(label((part.kind, part.date)), name, n, 0) for name, n in sorted(some.items())]
    _merge_older(tenant_id, epoch)
    _delete_empty(tenant_id, epoch)
    return True


def _take_away(tenant_id: str, old: Stored, part: Part, counts: Counts, epoch: int) -> bool:
    """Subtract counts of one old part, through RECENT as all changes go, if nothing has touched the part since.

    Changes that touched it are either still in RECENT or merged; the number of merges is unchanged in between.
    """
    token = uuid.uuid4().hex
    for _ in range(_TRIES * 10):
        _merge_older(tenant_id, epoch)
        recent = _recent(tenant_id)
        if _last_touch(tenant_id, part) != old.last_touches.get(part, 0):
            return False
        try:
            aggregate_store.update(tenant_id, stored.RECENT, **_subtraction(part, counts, recent, token))
        except ConditionFailed as failed:
            if (failed.item or {}).get(CORRECTION, {}).get("S") != token:
                continue  # else it is a lost answer, sent again
        return True
    raise Throttled("Too many write this tenant's aggregates at once.")


def _last_touch(tenant_id: str, part: Part) -> int:
    """Return the last merge that has touched a part."""
    raw = aggregate_store.get(tenant_id, merge.holder(part))
    return coding.numbers(raw).get(merge.WIDE_TOUCHED.get(part.kind, merge.TOUCHED), 0)


def _subtraction(part: Part, counts: Counts, recent: Recent, token: str) -> dict[str, Any]:
    """Return an update of RECENT under this number of merges and while it holds no touch of the part."""
    coded = coding.coded({part: Counter({name: -n for name, n in counts.items()})})
    names = {f"#c{i}": name for i, name in enumerate(coded)}
    adds = ", ".join(["#version :one", *(f"{name} :c{i}" for i, name in enumerate(names))])
    merges = "#merges = :merges" if recent.merges else "attribute_not_exists(#merges)"
    return {
        "UpdateExpression": f"SET #correction = :token ADD {adds}",
        "ConditionExpression": f"{merges} AND attribute_not_exists(#touch)",
        "ExpressionAttributeNames": {
            "#version": VERSION, "#merges": MERGES, "#correction": CORRECTION,
            "#touch": coding.code(part, coding.TOUCHES), **names,
        },
        "ExpressionAttributeValues": {
            ":one": {"N": "1"}, ":token": {"S": token},
            **({":merges": {"N": str(recent.merges)}} if recent.merges else {}),
            **{f":c{i}": {"N": str(n)} for i, n in enumerate(coded.values())},
        },
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }  # fmt: skip


def _delete_empty(tenant_id: str, epoch: int) -> None:
    """Delete the items of older epochs that hold nothing any more, if no merge touches them meanwhile."""
    for raw in list(aggregate_store.query(tenant_id)):
        parts = stored.aggregate_parts(raw["sk"]["S"])
        marks = (merge.TOUCHED, *merge.WIDE_TOUCHED.values())
        if parts and parts[2] < epoch and not any(coding.numbers(raw).keys() - set(marks)):
            with suppress(ConditionFailed):
                aggregate_store.delete(tenant_id, raw["sk"]["S"], unchanged={n: raw.get(n) for n in marks})


def _summed(removed: Iterable[Difference]) -> list[Difference]:
    """Return the differences, summed over all old epochs."""
    totals: dict[tuple[str, str], int] = {}
    for one in removed:
        totals[one.item, one.count] = totals.get((one.item, one.count), 0) + one.stored
    return [Difference(item, count, n, 0) for (item, count), n in sorted(totals.items()) if n]


# --- dead letters ---


def _drop_dead_letters(repository: TenantRepository, epoch: int) -> int:
    """Remove dead letters that are about older epochs, and whose tickets are counted in this one by now.

    Raises NotCounted where touches of this rebuild have become dead letters themselves.
    """
    kept = [
        one
        for one in dead_letters.all_letters(tenant_id=repository.tenant_id)
        if dead_letters.placement_of(one) == repository.placement  # a copy that is kept elsewhere has its own
    ]
    failed = [one for one in kept if max(dead_letters.epochs_of(one), default=0) >= epoch]
    broken = {dead_letters.ticket_of(one) for one in failed}
    counted = [one for one in kept if one not in failed and dead_letters.ticket_of(one) not in broken]
    for one in counted:
        worker.remove(one)
    if failed:
        named = ", ".join(str(number) for number in sorted(broken)[:10])
        raise NotCounted(
            f"Not counted: ticket {named}. Its record is a dead letter: {failed[0].reason}. See manage.py dead_letters."
        )
    return len(counted)
