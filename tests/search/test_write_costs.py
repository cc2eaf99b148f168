"""The index costs few write units for each change, one by one and in batches, merges and clearing included."""

from __future__ import annotations

import random
from datetime import timedelta
from functools import cache
from itertools import islice
from string import ascii_lowercase

import pytest

from portal.dynamo.meter import item_size
from tests.search.memory_store import MemoryStore
from tickets.search.index import indexing, merge_follower, merging, publishing
from tickets.search.index.fragments import Fragment
from tickets.search.index.merge_follower import MergeFollower
from tickets.search.index.postings import Places

CHANGES, SOME = 1_000, 400
FULL_TAIL = 16 * 1024  # bytes of what is new, keys included: 2 read units
TERMS = 33  # of a comment of 60 words, without function words, as the archive of a project has it


@cache
def changes() -> list[Fragment]:
    """Comments whose words are as frequent as words are: the n-th most frequent one n times rarer than the first."""
    chance = random.Random(7)  # noqa: S311  # the same in every run
    words = ["".join(chance.choices(ascii_lowercase, k=chance.randint(3, 10))) for _ in range(20_000)]
    weights = [1 / (rank + 10) for rank in range(len(words))]
    drawn = chance.choices(words, weights, k=CHANGES * TERMS)
    texts = [drawn[at : at + TERMS] for at in range(0, len(drawn), TERMS)]
    return [Fragment(1 + n // 3, Places.COMMENT, False, dict.fromkeys(text, 1)) for n, text in enumerate(texts)]


def units_per_change(monkeypatch: pytest.MonkeyPatch, *, at_once: int) -> float:
    monkeypatch.setattr(publishing, "GRACE", timedelta())  # what is merged is also deleted here
    store, left, number = MemoryStore(), iter(changes()), 0
    while some := list(islice(left, at_once)):
        indexing.add(store, f"{number:024x}", some)
        number += 1
        if number % 16 == 0 or at_once > 16:
            merging.merge_due(store)
    assert len(store.new()) < 80
    return store.write_units / CHANGES


def test_a_change_costs_at_most_3_2_write_units_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 2 < units_per_change(monkeypatch, at_once=1) <= 3.2


def test_a_change_costs_at_most_half_a_write_unit_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0.05 < units_per_change(monkeypatch, at_once=500) <= 0.5


@pytest.mark.parametrize("at_once", [1, 3, 12])
def test_what_is_new_stays_little_because_every_search_reads_it(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    store, left, number, largest = MemoryStore(), iter(changes()[:SOME]), 0, 0
    monkeypatch.setattr(merge_follower, "IndexStore", lambda tenant_id: store)
    follower = MergeFollower()
    while some := list(islice(left, at_once)):
        number += 1
        follower.note({store.tenant_id: indexing.add(store, f"{number:024x}", some)})
        largest = max(largest, sum(item_size(row.serialize()) for row in store.new()))
        follower.turn()
    assert 5_000 < largest <= FULL_TAIL
