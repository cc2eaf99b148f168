"""Move the counts in RECENT on to the items that hold them for good, and prune marks that are no longer needed.

A merge is one transaction on the condition that RECENT is still as it was read, so it may be tried by anybody, at any
time, and be killed anywhere. It writes whole items: no other code writes them, and every merge changes RECENT.
"""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from portal import clock
from portal.dynamo.meter import item_size
from portal.errors import ConditionFailed, TransactionRefused
from tickets.counting import aggregate_store, coding, leaders, stored
from tickets.counting.aggregate_store import Bill, Raw
from tickets.counting.contributions import Counts, Kind, Part
from tickets.counting.exactly_once import VERSION, Recent, Tail
from tickets.counting.leaders import Choice, Leaders, Outside, of_family
from tickets.counting.record_changes import Change

FULL: Final = 2048  # bytes of RECENT
_COUNTS_FULL: Final = 1500  # bytes of counts from which on they are merged
_RUN_FULL: Final = 2500  # bytes of counts of people and tags that one merge adds to those of RECENT
_MARKS_FULL: Final = 8  # marks since the last merge that make a full RECENT worth merging for them alone
_ITEMS: Final = 60  # that one merge writes; a transaction has at most 100 members
TOUCHED: Final = "n"  # attribute: the last merge that touched the item's own part
WIDE_TOUCHED: Final[dict[Kind, str]] = {"PEOPLE": "nP", "TAGS": "nG"}  # attributes of TOTALS, likewise

Position = Callable[[str], str]  # of a mark: the packed position of its shard, "" where nobody knows it


def is_full(state: Recent) -> bool:
    """Tell whether RECENT is worth merging. Marks that could not be pruned the last time are no reason to."""
    if sum(map(_code_bytes, state.counts)) >= _COUNTS_FULL:
        return True
    return len(state.marks.keys() - state.kept) >= _MARKS_FULL and item_size(state.item()) >= FULL


def merge(tenant_id: str, state: Recent, *, position: Position, bill: Bill | None = None) -> Recent | None:
    """Merge all that RECENT holds, a part at a time. None where somebody else has written it since it was read."""
    while state.counts or state.marks:
        merged = merge_some(tenant_id, state, position=position, bill=bill)
        if merged is None or len(merged.counts) == 0:
            return merged
        state = merged
    return state


def first_group(state: Recent, changes: Sequence[Change]) -> tuple[list[Change], bool]:
    """Return the first of these changes, up to one that cannot be counted, that one merge takes together with RECENT,
    and whether they fill it: a tenant's part of a batch that does would be merged at once anyway, so it need not be
    written there first."""
    codes, items, run_bytes = set(state.counts), _items(state.counts), 0
    group: list[Change] = []
    for change in changes:
        new = change.counts.keys() - codes
        items |= _items(new)
        run_bytes += sum(_code_bytes(code) for code in new if code[0] in "PG")
        if change.reason or len(items) > _ITEMS or run_bytes > _RUN_FULL:
            break
        codes |= new
        group.append(change)
    return group, bool(group) and sum(map(_code_bytes, codes)) >= _COUNTS_FULL


def add_and_merge(
    tenant_id: str,
    state: Recent,
    mark: str,
    *,
    last: str,
    counts: Mapping[str, int],
    position: Position,
    bill: Bill | None = None,
) -> Recent | None:
    """Add counts by code, set the shard's mark to `last`, and merge, in one transaction.

    It stands on RECENT being as it was read, so what was known to be applied then still is all that is applied. None
    where somebody else has written RECENT since it was read; then nothing was written.
    """
    total = Counter(state.counts)
    total.update(counts)
    added = replace(
        state,
        counts={code: n for code, n in total.items() if n},
        marks={**state.marks, mark: last},
        applied_at=clock.stamp(),
    )
    return merge_some(tenant_id, added, position=position, bill=bill)


def _code_bytes(code: str) -> int:
    return len(code) + 3


def merge_some(
    tenant_id: str,
    state: Recent,
    *,
    position: Position,
    choice: Choice | None = None,
    bill: Bill | None = None,
) -> Recent | None:
    """Merge as many parts as one transaction takes. With a `choice` the leaders are those.

    None where somebody else has written RECENT since it was read; then nothing was written.
    """
    counts = _some(state.counts)
    rows = aggregate_store.get_many(tenant_id, [stored.LEADERS, *_items(counts)])
    plan = plan_merge(replace(state, counts=counts), rows, position=position, choice=choice)
    kept = {name: n for name, n in state.counts.items() if name not in counts}
    after = replace(plan.recent, counts=kept)
    unchanged = _if_version(state.version)
    members = [aggregate_store.put(tenant_id, stored.RECENT, after.item(), **unchanged)]
    members += [aggregate_store.put(tenant_id, sort_key, raw) for sort_key, raw in plan.items.items()]
    try:
        aggregate_store.transact(tenant_id, members, bill)
    except TransactionRefused:
        return None
    return after


def _if_version(version: int) -> dict[str, Any]:
    condition = {"ConditionExpression": "#version = :version", "ExpressionAttributeNames": {"#version": "version"}}
    values = {"ExpressionAttributeValues": {":version": {"N": str(version)}}}
    return condition | values if version else {"ConditionExpression": "attribute_not_exists(pk)"}


def _some(counts: Mapping[str, int]) -> dict[str, int]:
    """Return as many of the counts as lie in few enough items."""
    chosen: dict[str, int] = {}
    items: set[str] = set()
    for name, n in sorted(counts.items()):
        items |= _items([name])
        if len(items) > _ITEMS:
            break
        chosen[name] = n
    return chosen


def _items(codes: Iterable[str]) -> set[str]:
    return {holder(known[0]) for code in codes if (known := coding.decode(code))}


@lru_cache(maxsize=4096)
def holder(part: Part) -> str:
    """Return the sort key of the item that says which merge touched the part last.

    The counts of TOTALS and of days lie in it too.
    """
    return stored.day(part.date, part.epoch) if part.kind == "DAY" else stored.totals(part.epoch)


# --- the plan: pure ---


@dataclass(frozen=True)
class MergePlan:
    """RECENT as it is to be, and the attributes of all other items that are to be written, by sort key."""

    recent: Recent
    items: dict[str, Raw]


def plan_merge(
    state: Recent,
    rows: Mapping[str, Raw],
    *,
    position: Position,
    choice: Choice | None = None,
) -> MergePlan:
    """Work out one merge of RECENT as read, from the stored items that it concerns."""
    number = state.merges + 1
    items: dict[str, Raw] = {}
    wide: Counts = Counts()
    touched: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for part, counts in coding.decoded(state.counts).items():
        if part.kind in WIDE_TOUCHED:
            wide.update({coding.code(part, name): n for name, n in counts.items() if name != coding.TOUCHES})
            if counts[coding.TOUCHES]:
                touched[holder(part)][WIDE_TOUCHED[part.kind]] = number
        else:
            items[holder(part)] = _added(part, counts, rows.get(holder(part), {}), number)
    for sort_key, last in touched.items():
        items[sort_key] = {**_without_key(items.get(sort_key) or rows.get(sort_key, {})), **coding.typed(last)}
    before = Leaders.of(rows.get(stored.LEADERS, {}))
    after, run = leaders.split(before, wide, has_tail=not state.tail.is_empty, choice=choice)
    if after != before:
        items[stored.LEADERS] = after.item()
    if run:
        items[stored.run(number)] = coding.typed(run)
    marks, floors = _pruned(state, position)
    tail = _tail(state.tail, after, run, choice)
    recent = replace(state, version=state.version + 1, merges=number, counts={}, tail=tail)
    return MergePlan(replace(recent, marks=marks, floors=floors, kept=frozenset(marks)), items)


def _added(part: Part, counts: Counts, rows: Raw, number: int) -> Raw:
    """Return the item of a TOTALS or DAY part with these counts added."""
    former = rows.get(coding.WEEKS_FROM, {}).get("S", "")
    names = {name: n for name, n in coding.numbers(rows).items() if name not in (TOUCHED, *WIDE_TOUCHED.values())}
    total: Counts = Counts({coding.long(part.kind, name): n for name, n in names.items()})
    total.update({name: n for name, n in counts.items() if name != coding.TOUCHES})
    total = Counts({name: n for name, n in total.items() if n})
    attributes: Raw = {}
    if part.kind == "TOTALS":
        start = coding.weeks_from(total, former)
        total = coding.without_old_weeks(total, start)
        attributes = {name: rows[name] for name in WIDE_TOUCHED.values() if name in rows}
        attributes |= {coding.WEEKS_FROM: {"S": start}} if start else {}
    numbers = {coding.short(part.kind, name): n for name, n in total.items() if n}
    # A correction by a rebuild touches nothing, so that the rebuild sees whether anything else has.
    last = number if counts[coding.TOUCHES] else coding.numbers(rows).get(TOUCHED, 0)
    return {**coding.typed(numbers), **attributes, TOUCHED: {"N": str(last)}}


def _without_key(raw: Raw) -> Raw:
    return {name: value for name, value in raw.items() if name not in ("pk", "sk")}


def _pruned(state: Recent, position: Position) -> tuple[dict[str, str], dict[str, str]]:
    """Return the marks to keep, and the floors that this process knows afterwards."""
    kept = {mark: sequence for mark, sequence in state.marks.items() if position(mark) < sequence}
    return kept, {**state.floors, **state.marks}


def _tail(tail: Tail, leading: Leaders, run: Mapping[str, int], choice: Choice | None) -> Tail:
    """Return what is known of the tail when the run has been added to it."""
    size = item_size(coding.typed(run)) if run else 0
    known = {}
    for family, former in (("P", tail.people), ("G", tail.tags)):
        mine = of_family(run, family)
        now = former.after(mine)
        if choice:
            total = Counter(of_family(choice.outside, family))
            total.update(mine)
            now = Outside.of(total)
        known[family] = replace(now, floor=leaders.floor(leading, family, mine))
    return replace(
        tail,
        run_bytes=tail.run_bytes + size,
        new_bytes=0 if choice else tail.new_bytes + size,
        people=known["P"],
        tags=known["G"],
    )


# --- people and tags that are no leaders ---


RUN_BYTES: Final = 16 * 1024  # of runs at least, before they are compacted
READ_AGAIN: Final = 16  # bytes of the tail that are read for each byte of new runs, to choose leaders
PAGE_LIMIT: Final = 3500  # bytes
_KEY_BYTES: Final = 200  # of a page's key
_REFRESHES: Final = 4  # attempts; each fails where the tenant is written in between


def is_due(tail: Tail) -> bool:
    """Tell whether the runs are worth compacting: a compaction writes all pages anew."""
    return tail.run_bytes > max(RUN_BYTES, tail.page_bytes // 2)


def needs_leaders(tail: Tail) -> bool:
    """Tell whether leaders are to be chosen: somebody outside may outrank one, and reading the tail is worth it."""
    if tail.is_empty:
        return False
    outside = tail.people, tail.tags
    worth = tail.new_bytes * READ_AGAIN >= tail.run_bytes + tail.page_bytes
    return any(some.is_unknown or (worth and some.may_outrank) for some in outside)


def total(items: Iterable[Mapping[str, Any]], tail: Tail) -> Counter[str]:
    """Return the counts by code in those of these items that are the tail's current pages and runs."""
    counts: Counter[str] = Counter()
    for raw in items:
        if _is_current(raw, tail):
            counts.update({name: n for name, n in coding.numbers(raw).items() if coding.decode(name)})
    return counts


def _is_current(raw: Mapping[str, Any], tail: Tail) -> bool:
    sort_key: str = raw["sk"]["S"]
    if sort_key.startswith(stored.RUNS):
        return stored.run_number(sort_key) >= tail.runs_from
    return bool(tail.generation) and sort_key.startswith(stored.pages(tail.generation))


def paged(counts: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Yield the counts in the order of their codes, in pages of limited size, without zeros."""
    page: dict[str, int] = {}
    room = PAGE_LIMIT - _KEY_BYTES
    for code, n in sorted(counts.items()):
        if not n:
            continue
        size = len(code.encode()) + len(str(n)) // 2 + 2
        if page and size > room:
            yield page
            page, room = {}, PAGE_LIMIT - _KEY_BYTES
        page[code] = n
        room -= size
    if page:
        yield page


@dataclass(frozen=True)
class _Stored:
    recent: Recent
    items: list[Raw]

    @classmethod
    def read(cls, tenant_id: str) -> _Stored:
        """Read RECENT first: what it points to may have gone when the items are read, then the switch fails."""
        recent = Recent.of(aggregate_store.get(tenant_id, stored.RECENT))
        runs, pages = (list(aggregate_store.query(tenant_id, p)) for p in (stored.RUNS, stored.pages()))
        return cls(recent, [*runs, *pages])


def compact(tenant_id: str, *, position: Position, bill: Bill | None = None) -> None:
    """Write new pages out of pages and runs, and choose the leaders anew. Nothing is done where somebody was faster."""
    state = _Stored.read(tenant_id)
    before, generation = state.recent.tail, uuid.uuid4().hex[:12]
    known = {raw["sk"]["S"]: raw for raw in state.items}
    in_pages = [
        raw
        for key, raw in known.items()
        if not key.startswith(stored.RUNS) or stored.run_number(key) <= state.recent.merges
    ]
    counts = Counter({code: n for code, n in total(in_pages, before).items() if n})
    pages = {stored.page(generation, next(iter(page))): coding.typed(page) for page in paged(counts)}
    aggregate_store.put_all(tenant_id, pages, bill)
    runs = [raw for raw in in_pages if raw["sk"]["S"].startswith(stored.RUNS) and _is_current(raw, before)]
    after = Tail(
        generation=generation if pages else "",
        runs_from=state.recent.merges + 1,
        run_bytes=-sum(item_size(_attributes(raw)) for raw in runs),
        page_bytes=sum(map(item_size, pages.values())),
    )
    try:
        _switch(tenant_id, before, after, bill)
    except ConditionFailed:
        aggregate_store.delete_all(tenant_id, pages, bill)
        return
    # Everything else that was there before the switch belongs to the past, or to a compaction that comes too late.
    aggregate_store.delete_all(tenant_id, [raw["sk"]["S"] for raw in in_pages], bill)
    choose_leaders(tenant_id, position=position, bill=bill)


def _attributes(raw: Raw) -> Raw:
    return {name: value for name, value in raw.items() if name not in ("pk", "sk")}


def _switch(tenant_id: str, before: Tail, after: Tail, bill: Bill | None) -> None:
    """Point RECENT to other pages, if it points to those that were read. `after.run_bytes` is added."""
    names = {"generation": after.generation, "runs_from": after.runs_from, "page_bytes": after.page_bytes}
    values = {f":{n}": {"S": v} if isinstance(v, str) else {"N": str(v)} for n, v in names.items()}
    unchanged = (
        "#generation = :was" if before.generation else "(attribute_not_exists(#generation) OR #generation = :was)"
    )
    aggregate_store.update(
        tenant_id,
        stored.RECENT,
        bill,
        UpdateExpression="SET " + ", ".join(f"#{n} = :{n}" for n in names) + " ADD #version :one, #run_bytes :bytes",
        ConditionExpression=f"{unchanged} AND #runs_from = :from",
        ExpressionAttributeNames={f"#{n}": n for n in (*names, VERSION, "run_bytes")},
        ExpressionAttributeValues={
            **values, ":one": {"N": "1"}, ":bytes": {"N": str(after.run_bytes)},
            ":was": {"S": before.generation}, ":from": {"N": str(before.runs_from)},
        },
    )  # fmt: skip


def choose_leaders(tenant_id: str, *, position: Position, bill: Bill | None = None) -> bool:
    """Make leaders of those who have most, by a merge. False where the tenant never stood still for that."""
    for _ in range(_REFRESHES):
        state = _Stored.read(tenant_id)
        led = Leaders.of(aggregate_store.get(tenant_id, stored.LEADERS))
        outside = Counter({code: n for code, n in total(state.items, state.recent.tail).items() if n})
        everybody = Counter(led.counts)
        for some in (outside, *(leaders.of_family(state.recent.counts, family) for family in "PG")):
            everybody.update(some)
        choice = Choice(leaders.chosen(everybody), outside)
        with suppress(ConditionFailed):
            done = merge_some(tenant_id, state.recent, position=position, choice=choice, bill=bill)
            if done is not None:
                return True
    return False
