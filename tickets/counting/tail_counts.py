"""Keep the counts of people and tags that are no leaders: any number of them, in items of at most 4 KB.

A merge writes what it has of them as a *run*, an item of its own. When the runs have become large beside the pages, a
compaction sums runs and pages up and writes new *pages*, sorted by code, under a generation of their own; one
conditional update of RECENT then points to them, and past the runs that they contain. Until that moment
nobody reads the new pages, from then on nobody the old ones. So any number of compactions may run side by side or die:
one of them is first, and what the others have written is removed by the next.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from portal.dynamo.meter import item_size
from portal.errors import ConditionFailed
from tickets.counting import aggregate_store, coding, keys, leader_counts, merge
from tickets.counting.aggregate_store import Bill, Raw
from tickets.counting.exactly_once import VERSION, Recent, Tail
from tickets.counting.leader_counts import Choice, Leaders
from tickets.counting.merge import Position

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
    if sort_key.startswith(keys.RUNS):
        return keys.run_number(sort_key) >= tail.runs_from
    return bool(tail.generation) and sort_key.startswith(keys.pages(tail.generation))


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
        recent = Recent.of(aggregate_store.get(tenant_id, keys.RECENT))
        runs, pages = (list(aggregate_store.query(tenant_id, p)) for p in (keys.RUNS, keys.pages()))
        return cls(recent, [*runs, *pages])


def compact(tenant_id: str, *, position: Position, bill: Bill | None = None) -> None:
    """Write new pages out of pages and runs, and choose the leaders anew. Nothing is done where somebody was faster."""
    stored = _Stored.read(tenant_id)
    before, generation = stored.recent.tail, uuid.uuid4().hex[:12]
    known = {raw["sk"]["S"]: raw for raw in stored.items}
    in_pages = [
        raw
        for key, raw in known.items()
        if not key.startswith(keys.RUNS) or keys.run_number(key) <= stored.recent.merges
    ]
    counts = Counter({code: n for code, n in total(in_pages, before).items() if n})
    pages = {keys.page(generation, next(iter(page))): coding.typed(page) for page in paged(counts)}
    aggregate_store.put_all(tenant_id, pages, bill)
    runs = [raw for raw in in_pages if raw["sk"]["S"].startswith(keys.RUNS) and _is_current(raw, before)]
    after = Tail(
        generation=generation if pages else "",
        runs_from=stored.recent.merges + 1,
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
        keys.RECENT,
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
        stored = _Stored.read(tenant_id)
        led = Leaders.of(aggregate_store.get(tenant_id, keys.LEADERS))
        outside = Counter({code: n for code, n in total(stored.items, stored.recent.tail).items() if n})
        everybody = Counter(led.counts)
        for some in (outside, *(leader_counts.of_family(stored.recent.counts, family) for family in "PG")):
            everybody.update(some)
        choice = Choice(leader_counts.chosen(everybody), outside)
        with suppress(ConditionFailed):
            done = merge.merge_some(tenant_id, stored.recent, position=position, choice=choice, bill=bill)
            if done is not None:
                return True
    return False
