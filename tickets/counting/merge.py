"""Move the counts in RECENT on to the items that hold them for good, and prune marks that are no longer needed.

A merge is one transaction on the condition that RECENT is still as it was read, so it may be tried by anybody, at any
time, and be killed anywhere. It writes whole items: no other code writes them, and every merge changes RECENT.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Final

from portal import clock
from portal.dynamo.client import fan_out
from portal.dynamo.store import Condition, Store, Transaction
from portal.errors import ConditionFailed, TransactionRefused
from tickets.counting import coding, leaders, stored
from tickets.counting.contributions import Counts, Kind, Part
from tickets.counting.leaders import Choice, Outside, of_family
from tickets.counting.record_changes import Change
from tickets.counting.stored import AGGREGATES, TOUCHED, WIDE, CountsItem, PartItem, Recent

FULL: Final = 2048  # bytes of RECENT
_COUNTS_FULL: Final = 1500  # bytes of counts from which on they are merged
_RUN_FULL: Final = 2500  # bytes of counts of people and tags that one merge adds to those of RECENT
_MARKS_FULL: Final = 8  # marks since the last merge that make a full RECENT worth merging for them alone
# That one merge writes, beside RECENT, LEADERS and a run: a transaction has at most 100 members. So large because each
# merge of a batch writes the months, and mostly the same days, again.
_ITEMS: Final = 95

Position = Callable[[str], str]  # of a mark: the packed position of its shard, "" where nobody knows it


def is_full(state: Recent) -> bool:
    """Tell whether RECENT is worth merging. Marks that could not be pruned the last time are no reason to."""
    if sum(map(_code_bytes, state.counts)) >= _COUNTS_FULL:
        return True
    return len(state.marks.keys() - state.kept) >= _MARKS_FULL and state.size >= FULL


def merge(store: Store, state: Recent, *, position: Position) -> Recent | None:
    """Merge all that RECENT holds, a part at a time. None where somebody else has written it since it was read."""
    while state.counts or state.marks:
        merged = merge_some(store, state, position=position)
        if merged is None or not merged.counts:
            return merged
        state = merged
    return state


def first_group(state: Recent | None, changes: Sequence[Change]) -> tuple[list[Change], bool]:
    """Return the first of these changes, up to one that cannot be counted, that one merge takes together with RECENT,
    and whether they fill it: a tenant's part of a batch that does would be merged at once anyway, so it need not be
    written there first."""
    codes = set(state.counts) if state else set()
    holders, run_bytes = _holders(codes), 0
    group: list[Change] = []
    for change in changes:
        new = change.counts.keys() - codes
        holders |= _holders(new)
        run_bytes += sum(_code_bytes(code) for code in new if coding.is_wide(code))
        if change.reason or len(holders) > _ITEMS or run_bytes > _RUN_FULL:
            break
        codes |= new
        group.append(change)
    return group, bool(group) and sum(map(_code_bytes, codes)) >= _COUNTS_FULL


def add_and_merge(
    store: Store, state: Recent, mark: str, *, last: str, counts: Counts, position: Position
) -> Recent | None:
    """Add counts by code, set the shard's mark to `last`, and merge, in one transaction.

    It stands on RECENT being as it was read, so what was known to be applied then still is all that is applied. None
    where somebody else has written RECENT since it was read; then nothing was written.
    """
    total = coding.nonzero(coding.added(state.counts, counts))
    marks = {**state.marks, mark: last}
    added = state.changed(counts=total, marks=marks, applied_at=clock.stamp())
    return merge_some(store, added, position=position)


def _code_bytes(code: str) -> int:
    return len(code) + 3


def merge_some(store: Store, state: Recent, *, position: Position, choice: Choice | None = None) -> Recent | None:
    """Merge as many parts as one transaction takes. With a `choice` the leaders are those.

    None where somebody else has written RECENT since it was read; then nothing was written.
    """
    counts = _some(state.counts)
    sort_keys = [stored.LEADERS, *_holders(counts)]
    read = store.get_many(AGGREGATES, [(stored.aggregate, (), sort_key) for sort_key in sort_keys])
    known = {item.sk: item for item in read if isinstance(item, CountsItem)}
    after, changed = plan_merge(state.changed(counts=counts), known, position=position, choice=choice)
    after.counts = Counter({code: n for code, n in state.counts.items() if code not in counts})
    unchanged: Condition = Recent.version == state.version if state.version else Recent.pk.does_not_exist()
    writing = Transaction()
    writing.put(after, condition=unchanged)
    for item in changed:
        writing.put(item)
    try:
        store.transact(writing)
    except TransactionRefused:
        return None
    return after


def _some(counts: Mapping[str, int]) -> Counts:
    """Return as many of the counts as lie in few enough items."""
    chosen, holders = Counts(), set[str]()
    for code, n in sorted(counts.items()):
        holders |= _holders([code])
        if len(holders) > _ITEMS:
            break
        chosen[code] = n
    return chosen


def _holders(codes: Iterable[str]) -> set[str]:
    return {holder(known[0]) for code in codes if (known := coding.decode(code))}


@lru_cache(maxsize=4096)
def holder(part: Part) -> str:
    """Return the sort key of the item that says which merge touched the part last.

    The counts of TOTALS, days and months lie in it too.
    """
    if part.kind == "MONTH":
        return stored.month(part.date, part.epoch)
    return stored.day(part.date, part.epoch) if part.kind == "DAY" else stored.totals(part.epoch)


# --- the plan: pure ---


def plan_merge(
    state: Recent, known: Mapping[str, CountsItem], *, position: Position, choice: Choice | None = None
) -> tuple[Recent, list[CountsItem]]:
    """Work out one merge of RECENT as read, from the stored items that it concerns, by sort key.

    Return RECENT as it is to be, and all other items that are to be written.
    """
    number, key = int(state.merges) + 1, state.pk
    parts: dict[str, PartItem] = {}
    wide = Counts()
    for part, counts in coding.decoded(state.counts).items():
        sort_key = holder(part)
        item = parts.get(sort_key) or known.get(sort_key) or PartItem(key, sort_key)
        assert isinstance(item, PartItem)  # noqa: S101  # by its sort key
        if part.kind not in WIDE:
            item = _added(item, part.kind, counts)
        else:
            wide.update({coding.code(part, name): n for name, n in counts.items() if name != coding.TOUCHES})
            if not counts[coding.TOUCHES] and sort_key not in parts:
                continue
        # A correction by a rebuild touches nothing, so that the rebuild sees whether anything else has.
        parts[sort_key] = item.changed(**{TOUCHED[part.kind]: number}) if counts[coding.TOUCHES] else item
    led = known[stored.LEADERS].counts if stored.LEADERS in known else Counts()
    leading, run = leaders.split(led, wide, has_tail=state.has_tail, choice=choice)
    changed: list[CountsItem] = [*parts.values()]
    if dict(leading) != dict(led):  # with counts of zero
        changed.append((known.get(stored.LEADERS) or CountsItem(key, stored.LEADERS)).changed(counts=leading))
    run_item = CountsItem(key, stored.run(number), counts=run)
    changed += [run_item] if run else []
    marks = {mark: sequence for mark, sequence in state.marks.items() if position(mark) < sequence}
    after = state.changed(
        version=state.version + 1,
        merges=number,
        marks=marks,
        floors={**state.floors, **state.marks},
        kept=frozenset(marks),
        **_tail(state, leading, run_item, choice),
    )
    return after, changed


def _added(item: PartItem, kind: Kind, counts: Counts) -> PartItem:
    """Return a TOTALS, DAY or MONTH with these counts added."""
    total = coding.nonzero(coding.added(item.by_name(), counts))
    total.pop(coding.TOUCHES, None)
    start = item.weeks_from or ""
    if kind == "TOTALS":
        start = coding.weeks_from(total, start)
        total = coding.nonzero(coding.without_old_weeks(total, start))
    numbers = Counter({coding.short(kind, name): n for name, n in total.items()})
    return item.changed(counts=numbers, weeks_from=start or None, touched=item.touched or 0)


def _tail(state: Recent, leading: Counts, run: CountsItem, choice: Choice | None) -> dict[str, object]:
    """Return what RECENT says of those who are no leaders when the run has been added to them."""
    size = run.size if run.counts else 0
    new_bytes = 0 if choice else state.new_bytes + size
    if not (state.has_tail or size):
        return {"people": None, "tags": None, "new_bytes": new_bytes}
    said: dict[str, object] = {"run_bytes": state.run_bytes + size, "new_bytes": new_bytes}
    for name, family in (("people", "P"), ("tags", "G")):
        mine = of_family(run.counts, family)
        now = state.outside(family).after(mine)
        if choice:
            now = Outside.of(coding.added(of_family(choice.outside, family), mine))
        said[name] = replace(now, floor=leaders.floor(leading, family, mine))
    return said


# --- people and tags that are no leaders ---


RUN_BYTES: Final = 16 * 1024  # of runs at least, before they are compacted
READ_AGAIN: Final = 16  # bytes of the tail that are read for each byte of new runs, to choose leaders
PAGE_LIMIT: Final = 3500  # bytes
_KEY_BYTES: Final = 200  # of a page's key
_REFRESHES: Final = 4  # attempts; each fails where the tenant is written in between


def is_due(state: Recent) -> bool:
    """Tell whether the runs are worth compacting: a compaction writes all pages anew."""
    return state.run_bytes > max(RUN_BYTES, state.page_bytes // 2)


def needs_leaders(state: Recent) -> bool:
    """Tell whether leaders are to be chosen: somebody outside may outrank one, and reading the tail is worth it."""
    worth = state.new_bytes * READ_AGAIN >= state.run_bytes + state.page_bytes
    outside = (state.outside(family) for family in "PG")
    return state.has_tail and any(some.is_unknown or (worth and some.may_outrank) for some in outside)


def paged(counts: Mapping[str, int]) -> Iterator[Counts]:
    """Yield the counts in the order of their codes, in pages of limited size."""
    page, room = Counts(), PAGE_LIMIT - _KEY_BYTES
    for code, n in sorted(counts.items()):
        size = len(code.encode()) + len(str(n)) // 2 + 2
        if page and size > room:
            yield page
            page, room = Counts(), PAGE_LIMIT - _KEY_BYTES
        page[code] = n
        room -= size
    if page:
        yield page


def _read(store: Store) -> tuple[Recent, list[CountsItem]]:
    """Read RECENT, and then runs and pages: one that it points to may have gone by then, and a switch fails."""
    state = stored.recent(store)
    beginnings = (stored.RUNS, stored.pages())
    return state, [
        item
        for beginning in beginnings
        for item in store.query_all(CountsItem, stored.aggregate, begins_with=beginning, consistent=True)
    ]


def _total(state: Recent, tail: Iterable[CountsItem]) -> Counts:
    return coding.nonzero(coding.added(*(item.counts for item in tail if state.holds(item))))


def compact(store: Store, *, position: Position) -> None:
    """Write new pages out of pages and runs, and choose the leaders anew. Nothing is done where somebody was faster."""
    state, tail = _read(store)
    known = [i for i in tail if not i.sk.startswith(stored.RUNS) or stored.run_number(i.sk) <= state.merges]
    generation = uuid.uuid4().hex[:12]
    pages = [
        CountsItem(state.pk, stored.page(generation, next(iter(page))), counts=page)
        for page in paged(_total(state, known))
    ]
    fan_out([partial(store.put, page) for page in pages])
    runs = [item for item in known if item.sk.startswith(stored.RUNS) and state.holds(item)]
    same: Condition = Recent.generation == (state.generation or "")
    unchanged = (same if state.generation else Recent.generation.does_not_exist() | same) & (
        Recent.runs_from == state.runs_from
    )
    actions = [
        Recent.generation.set(generation if pages else ""),
        Recent.runs_from.set(state.merges + 1),
        Recent.page_bytes.set(sum(page.size for page in pages)),
        Recent.run_bytes.add(-sum(run.size for run in runs)),
        *stored.adding({}),
    ]
    try:
        store.update(Recent(state.pk, stored.RECENT), actions, condition=unchanged)
    except ConditionFailed:
        fan_out([partial(store.delete, page) for page in pages])
        return
    # Everything else that was there before the switch belongs to the past, or to a compaction that comes too late.
    fan_out([partial(store.delete, item) for item in known])
    choose_leaders(store, position=position)


def choose_leaders(store: Store, *, position: Position) -> bool:
    """Make leaders of those who have most, by a merge. False where the tenant never stood still for that."""
    for _ in range(_REFRESHES):
        state, tail = _read(store)
        led = store.get(CountsItem, stored.aggregate, sort=stored.LEADERS, consistent=True)
        outside = _total(state, tail)
        latest = {code: n for family in "PG" for code, n in of_family(state.counts, family).items()}
        everybody = coding.added(led.counts if led else {}, outside, latest)
        choice = Choice(leaders.chosen(everybody), outside)
        if merge_some(store, state, position=position, choice=choice) is not None:
            return True
    return False
