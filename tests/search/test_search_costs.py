"""A search costs the same few round trips for a thousand tickets and for ten thousand, and read units within bounds."""

from __future__ import annotations

import random
from collections import defaultdict
from functools import cache
from itertools import accumulate
from string import ascii_lowercase

import pytest

from portal.dynamo import meter
from portal.web import access
from tests.search.desk_in_memory import MemoryDesk
from tickets.search import index_lookup, suggesting, ticket_search, views
from tickets.search.index import merge_follower, merging, postings
from tickets.search.index.segments import SegmentWriter
from tickets.search.stored import SEARCH
from tickets.ticket.stored import TICKETS

SMALL, LARGE = 1_000, 10_000
WORDS = 20  # of a ticket
NEW = merging.NEW_BYTES + merge_follower.LOOK_BYTES  # bytes that no merge has taken: as many as there can be
SHARES = (0.7, 0.1, 0.1, 0.03, 0.03, 0.03, 0.005, 0.005)  # of the tickets in each segment, as merging leaves them


@cache
def vocabulary() -> list[str]:
    chance = random.Random(11)  # noqa: S311  # the same in every run
    return ["".join(chance.choices(ascii_lowercase, k=chance.randint(4, 10))) for _ in range(12_000)]


@cache
def desk(tickets: int) -> MemoryDesk:
    """An index of words as frequent as words are; the tickets themselves are few, so texts cost next to nothing."""
    chance = random.Random(5)  # noqa: S311
    desk, names = MemoryDesk(), vocabulary()
    weights = list(accumulate(1 / (rank + 5) for rank in range(len(names))))
    at = 1
    for share in SHARES:
        index: dict[str, dict[int, int]] = defaultdict(dict)
        for number in range(at, at + int(tickets * share)):
            for word in chance.choices(names, cum_weights=weights, k=WORDS):
                index[word][number] = 0x43
        writer = SegmentWriter(desk.store, desk.store.next_segment())
        for word in sorted(index):
            writer.add(word.encode(), postings.entries(index[word]))
        desk.store.put(writer.finish([1]))
        at += int(tickets * share)
    while sum(len(row.block) for row in desk.store.new()) < NEW:
        some = sorted({*chance.choices(names, cum_weights=weights, k=33)})
        desk.put([(word.encode(), {at: 0x43}) for word in some])
    desk.last = tickets
    desk.ticket("Nothing", number=tickets + 1, index=False)
    return desk


def cost(tickets: int, text: str) -> tuple[int, float, int]:
    """Round trips, read units of the index, and how many tickets it proposes, for who knows no headers."""
    agent = desk(tickets).agent
    index_lookup.forget()
    with meter.measure() as bill:
        about = ticket_search.find(agent, text).about
    units = sum(call.read_units for call in bill.calls if call.table == SEARCH.full_name)
    return bill.trips, units, about or 0


def queries() -> dict[str, str]:
    names = vocabulary()
    return {
        "rare": f'"{names[9_000]}"',
        "frequent": f'"{names[0]}"',
        "and": f'"{names[12]}" "{names[25]}" "{names[40]}"',
        "and of frequent ones": f'"{names[1]}" "{names[2]}" "{names[3]}"',
        "prefix": f"{names[700][:3]}*",
    }


BOUNDS = {"rare": 7, "frequent": 9, "and": 18.5, "and of frequent ones": 18.5, "prefix": 12}


@pytest.mark.parametrize("kind", BOUNDS)
def test_a_search_reads_few_units_in_three_round_trips_however_many_tickets_there_are(kind: str) -> None:
    small, large = cost(SMALL, queries()[kind]), cost(LARGE, queries()[kind])
    assert large[2]
    assert small[0] == large[0] == 3
    assert small[1] <= large[1] <= BOUNDS[kind]


@pytest.mark.parametrize("word", [700, 9_000])
def test_suggestions_cost_the_same_for_a_thousand_tickets_and_for_ten_thousand(word: int) -> None:
    of_index = []
    for tickets in (SMALL, LARGE):
        index_lookup.forget()
        desk(tickets)
        with meter.measure() as bill:
            suggesting.suggest(desk(tickets).agent, vocabulary()[word][:3])
        assert bill.trips == 3
        assert bill.read_units <= 13
        of_index.append(sum(call.read_units for call in bill.calls if call.table == SEARCH.full_name))
    assert of_index[0] == of_index[1]


def test_typing_declares_the_most_blocks_that_a_beginning_may_have() -> None:
    declared = access.own_cost_of(views.suggest, "GET")
    assert declared is not None
    assert declared.reads >= 13 + 2 * suggesting.BLOCKS_LIMIT


def test_a_search_reads_at_most_so_many_blocks() -> None:
    index_lookup.forget()
    with meter.measure() as bill:
        ticket_search.find(
            desk(LARGE).agent, " ".join(f"{letter}{other}a*" for letter in "abcdef" for other in "abcdef")
        )
    assert max(call.items for call in bill.calls if call.operation == "BatchGetItem") <= index_lookup.BLOCKS_LIMIT


@pytest.mark.parametrize(("description", "units"), [("Nothing of it", 15.0), ("It is offline", 30.0)])
def test_a_description_is_read_only_where_the_index_has_a_word_in_it(description: str, units: float) -> None:
    desk = MemoryDesk()
    for n in range(40):
        desk.ticket(f"Printer {n} offline", description, index=False)
    desk.index_as_segment(range(1, 41))
    with meter.measure() as bill:
        assert len(ticket_search.find(desk.agent, "printer offline").hits) == ticket_search.SHOWN
    texts = [call for call in bill.calls if call.operation == "BatchGetItem" and call.table == TICKETS.full_name]
    assert [call.read_units for call in texts] == [units]
