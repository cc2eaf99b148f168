"""Recount a tenant's tickets and hold the aggregates against the result.

The worker is always a moment behind and people go on writing, so a difference alone says nothing. A group of counts,
such as a day's, has drifted if it differs from the recount, nothing touched it from before the recount until now, and
all that was written until the recount's end is applied by now (barrier.py). Then whatever had changed while we read
would have touched it, so the recount was exact, as far as this group goes, and the group is wrong.

A recount that was killed or stopped is gone on with (recount_progress.py). Earlier touches of a group are stored with
it, so the same holds after any interruption; groups that changed meanwhile are recounted once more.

Runs under the tenant's own role: it reads tickets by their numbers, which need no index, and one partition.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Final, Literal

from django.utils.translation import gettext_noop

from portal import clock
from portal.dynamo.store import Action, Store
from portal.errors import ConditionFailed, Conflict
from tenants.tenancy.context import TenantContext
from tenants.tenancy.personal_data import DeskPerson, NewName, PersonalData, PersonalPlace
from tickets.counting import coding, contributions, stored, stored_counts, stream_barrier
from tickets.counting.contributions import Contribution, Counts, Part
from tickets.counting.leaders import Outside
from tickets.counting.stored import VerifiedItem, VerifyLeaseItem
from tickets.counting.stored_counts import Group, Stored
from tickets.counting.stream_barrier import WorkerAway
from tickets.ticket.fields import Status
from tickets.verification import recount as recounting
from tickets.verification.recount import Advance, Recount, RecountRound

ROUNDS: Final = 5
PAUSE: Final = 1.0  # seconds before the second round, doubled each time
SETTLE: Final = 10.0  # seconds that the worker may make no progress

OK: Final = "ok"
DRIFT: Final = "drift"
UNKNOWN: Final = "unknown"
_AWAY: Final = "the stream worker makes no progress; is it running (manage.py run_stream)"

Grouped = Mapping[Group, Counts]
Begun = Callable[[int], object]


@dataclass(frozen=True)
class Difference:
    """One count that is wrong. `item` is TOTALS, PEOPLE, TAGS or a date; `count` is its name in contributions.py."""

    item: str
    count: str
    stored: int
    recounted: int


@dataclass(frozen=True)
class Verdict:
    """The result of a verification. `why` says for "unknown" what was in the way; `uncountable` lists tickets whose
    summaries hold what no rule of ours writes."""

    state: Literal["ok", "drift", "unknown"]
    tickets: int
    differences: list[Difference] = field(default_factory=list)
    why: str = ""
    uncountable: list[int] = field(default_factory=list)


def price(store: Store) -> float:
    """Return the read units that one recount takes, at most; most verifications need one recount, and one that goes on
    with a former one takes less."""
    return recounting.last_number(store) * recounting.UNITS_PER_NUMBER


def verify(
    store: Store,
    *,
    settle: float = SETTLE,
    give_up_after: float = 3600.0,
    begun: Begun = lambda number: None,
    advance: Advance = lambda numbers: None,
) -> Verdict:
    """Recount the tenant and say whether its aggregates are right.

    The worker may take its time as long as it makes progress within `settle` seconds. No further attempt is begun
    `give_up_after` seconds from now. `begun` is called ahead of each recount with the ticket number behind which it
    goes on, 0 where it begins anew.
    """
    right: set[Group] = set()  # was so once, which drift never is
    why, started = "", time.monotonic()
    for attempt in range(ROUNDS):
        if attempt:
            pause = PAUSE * 2 ** (attempt - 1)
            if time.monotonic() + pause - started > give_up_after:
                break
            time.sleep(pause)
        going, before = _round(store, may_resume=not attempt)
        begun(going.reached)
        keep = partial(recounting.keep, store, going)
        truth = recounting.recount(store, total=going.total, behind=going.reached, keep=keep, advance=advance)
        after = stored_counts.read(store)
        # After a break a sum may be right by chance: there nothing counts but what has stood still.
        groups, equal = _compared(truth, after, at=(before, after) if before else ())
        right |= equal
        if groups - right:
            try:
                stream_barrier.wait_until_applied(store, timeout=settle)
            except WorkerAway:
                return Verdict(UNKNOWN, truth.tickets, why=_AWAY, uncountable=truth.uncountable)
            now = stored_counts.read(store)
            groups, equal = _compared(truth, now, at=(now,))
            unmoved = _unmoved(going, now, groups)
            wrong = unmoved - equal - right
            if wrong:
                recounting.end(store, going)
                return Verdict(DRIFT, truth.tickets, _differences(wrong, now, truth), uncountable=truth.uncountable)
            right |= unmoved
        recounting.end(store, going)
        if groups <= right:
            return Verdict(OK, truth.tickets, uncountable=truth.uncountable)
        why = f"the numbers kept changing in {attempt + 1} attempts"
    return Verdict(UNKNOWN, truth.tickets, why=why)


def _round(store: Store, *, may_resume: bool) -> tuple[RecountRound, Stored | None]:
    """Return the recount that is to be gone on with, or a new one with the aggregates as they were before it."""
    if may_resume and (resumed := recounting.resume(store)):
        return resumed, None
    before = stored_counts.read(store)
    return recounting.begin(store, before, last=recounting.last_number(store)), before


def _unmoved(going: RecountRound, now: Stored, groups: Iterable[Group]) -> set[Group]:
    """Return those groups that nothing has touched since the recount began, and no rebuild has corrected."""
    still = going.correction == now.recent.correction
    return {group for group in groups if still and going.touches.get(group) == now.touches.get(group)}


def label(group: Group) -> str:
    """Return the name of a group: its date, or else its kind."""
    return group[1] or group[0]


def _compared(truth: Recount, now: Stored, *, at: Iterable[Stored]) -> tuple[set[Group], set[Group]]:
    """Return all groups, and those whose counts were as recounted at one of these moments."""
    wanted = _grouped(truth.counts, now.weeks_from)
    groups = wanted.keys() | _grouped(now.counts, now.weeks_from).keys()
    at = list(at)
    have = [_grouped(one.counts, now.weeks_from) for one in at]
    return groups, {
        group
        for group in groups
        if any(
            _same(mine, wanted, group) and not _misshown(group, one, wanted) for mine, one in zip(have, at, strict=True)
        )
    }


def _grouped(counts: Contribution, weeks_from: str) -> dict[Group, Counts]:
    """Return counts by group, with the old weeks of all sides in one count."""
    return {
        group: coding.without_old_weeks(some, weeks_from) if group[0] == contributions.TOTALS else some
        for group, some in contributions.merged(counts).items()
    }


def _same(have: Grouped, wanted: Grouped, group: Group) -> bool:
    # Counter's equality takes a missing count for a zero one.
    return have.get(group, Counter()) == wanted.get(group, Counter())


def _misshown(group: Group, now: Stored, wanted: Grouped) -> list[Difference]:
    """Return what a dashboard says wrongly of people or tags: of those whom it lists, and of the others."""
    kind, read = group[0], now.dashboard
    if kind not in ("PEOPLE", "TAGS") or read is None:
        return []
    listed = contributions.merged(read.counts).get(group, Counter())
    said, part = read.recent.outside("P" if kind == "PEOPLE" else "G"), Part(kind, "", 0)
    true = coding.coded({part: wanted.get(group, Counter())})
    leading = {coding.entity(coding.code(part, name)) for name in listed}
    wrong = [
        Difference(kind, f"{name} as listed", listed[name], true[code])
        for name in sorted(listed.keys() | wanted.get(group, Counter()).keys())
        if coding.entity(code := coding.code(part, name)) in leading and listed[name] != true[code]
    ]
    others = Outside.of({code: n for code, n in true.items() if coding.entity(code) not in leading})
    if not said.is_unknown:
        for status in Status:
            mine, right = (some.tickets.get(status[0], 0) for some in (said, others))
            if mine != right:
                wrong.append(Difference(kind, f"{status} of the others", mine, right))
        if not said.least <= others.most <= said.most:
            wrong.append(Difference(kind, "number of the others", said.most, others.most))
        if others.bound > said.bound:
            most = others.unresolved_at_most
            wrong.append(Difference(kind, "unresolved of each of the others, at most", said.unresolved_at_most, most))
    return wrong


def _differences(groups: Iterable[Group], now: Stored, truth: Recount) -> list[Difference]:
    have, wanted = (_grouped(counts, now.weeks_from) for counts in (now.counts, truth.counts))
    wrong = []
    for group in sorted(groups):
        wrong += _misshown(group, now, wanted) if _same(have, wanted, group) else []
        mine, right = have.get(group, Counter()), wanted.get(group, Counter())
        for name in sorted(mine.keys() | right.keys()):
            if mine[name] != right[name]:
                wrong.append(Difference(label(group), name, mine[name], right[name]))
    return wrong


# --- the lease ---


DEAD_AFTER: Final = timedelta(minutes=10)  # without a renewal
_RENEW_AFTER: Final = timedelta(minutes=1)


@contextmanager
def held(store: Store, *, by: str, take_over: bool = False) -> Iterator[Callable[[], None]]:
    """Hold the tenant's lease; call what this yields now and then while there is progress.

    Raises Conflict where somebody else holds it, unless `take_over` says that whoever does is dead or is to end. The
    progress callback raises Conflict once another process has taken the lease.
    """
    holder = uuid.uuid4().hex
    item = VerifyLeaseItem(store.key(stored.aggregate), stored.VERIFYING)
    dead = VerifyLeaseItem.renewed_at < clock.stamp(clock.now() - DEAD_AFTER)
    actions = [VerifyLeaseItem.holder.set(holder), VerifyLeaseItem.by.set(by)]
    renewed = clock.now()
    try:
        store.update(
            item,
            [*actions, VerifyLeaseItem.renewed_at.set(clock.stamp(renewed))],
            condition=None
            if take_over
            else VerifyLeaseItem.holder.does_not_exist()
            | (VerifyLeaseItem.holder == "")
            | (VerifyLeaseItem.holder == holder)  # a lost answer, sent again
            | dead,
        )
    except ConditionFailed as failed:
        other = failed.stored(VerifyLeaseItem)
        by = other.by if other else "somebody else"
        raise Conflict(f"The numbers are being verified already, by {by}.") from failed

    def renew() -> None:
        nonlocal renewed
        if clock.now() - renewed > _RENEW_AFTER:
            renewed = clock.now()
            mine = VerifyLeaseItem.holder == holder
            try:
                store.update(item, [VerifyLeaseItem.renewed_at.set(clock.stamp(renewed))], condition=mine)
            except ConditionFailed as failed:
                raise Conflict("Somebody else has begun to verify the numbers.") from failed

    try:
        yield renew
    finally:
        with suppress(ConditionFailed):
            store.update(item, [VerifyLeaseItem.holder.set("")], condition=VerifyLeaseItem.holder == holder)


_Started = VerifiedItem | VerifyLeaseItem


def _items(tenant: TenantContext, person: DeskPerson) -> Iterator[_Started]:
    if verified := tenant.repository.get(VerifiedItem, stored.aggregate, sort=stored.VERIFIED, consistent=True):
        yield verified
    if lease := tenant.repository.get(VerifyLeaseItem, stored.aggregate, sort=stored.VERIFYING, consistent=True):
        yield lease


def _places(person: DeskPerson, names: Collection[str], item: _Started) -> Iterator[PersonalPlace]:
    if isinstance(item, VerifyLeaseItem):
        if item.by in names:
            yield PersonalPlace(gettext_noop("last start of a verification"), excerpt=item.renewed_at)
        return
    if item.by_name in names:
        yield PersonalPlace(gettext_noop("verification of the numbers"), excerpt=item.started_at)
    if any(name in item.why for name in names):
        yield PersonalPlace(gettext_noop("end of a verification of the numbers"), excerpt=item.why)


def _replace(tenant: TenantContext, new: NewName, item: _Started) -> None:
    if isinstance(item, VerifyLeaseItem):
        tenant.repository.update(item, [VerifyLeaseItem.by.set(new.name)], condition=VerifyLeaseItem.by == item.by)
        return
    by, why = item.by_name, item.why
    for name in sorted(new.names, key=len, reverse=True):  # one may be a part of another
        by, why = new.name if by == name else by, why.replace(name, new.name)
    actions: list[Action] = [VerifiedItem.by_name.set(by), VerifiedItem.why.set(why)]
    tenant.repository.update(item, actions, condition=VerifiedItem.run == item.run)


PEOPLE: Final = PersonalData(_items, _places, _replace)
