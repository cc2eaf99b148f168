"""Whatever a ticket says, it is indexed and searched in a time that grows no faster than its length."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import pytest

from tests.search.desk_in_memory import MemoryDesk
from tickets.search import text_match, ticket_search, tokenizer
from tickets.search.results import Where
from tickets.search.search_query import Phrase, SearchQuery
from tickets.search.text_match import PLACES_LIMIT, TextMatcher
from tickets.search.ticket_texts import TicketText
from tickets.search.tokenizer import TERMS_LIMIT
from tickets.ticket.stored import SummaryItem

LENGTH = 50_000  # characters of the longest description
SUMMARY = SummaryItem("", "", title="")
MARKS = "\u0301\u0316"  # of two classes: to be put in order one by one


@contextmanager
def soon() -> Iterator[None]:
    """What is done in this block takes a fraction of a second of the processor, and took many where it is quadratic."""
    began = time.process_time()
    yield
    took = time.process_time() - began
    assert took < 1.5


def match(description: str, *phrases: Phrase) -> text_match.TicketMatch | None:
    return TextMatcher(SearchQuery(phrases)).match(TicketText(1, SUMMARY, description))


@pytest.mark.parametrize("last", ["x", "y"])
def test_a_phrase_that_repeats_a_word_is_sought_in_one_pass(last: str) -> None:
    phrase = Phrase("x " * 900 + last, is_exact=True)
    with soon():
        for _ in range(5):
            found = match("x " * (LENGTH // 2) + "y", phrase)
    assert found
    assert {place.end - place.start for place in found.fields[0].places} == {1801}


@pytest.mark.parametrize("text", ["x " * (LENGTH // 2), "ы " * (LENGTH // 2)])
def test_a_word_that_stands_everywhere_is_found_often_enough(text: str) -> None:
    with soon():
        found = match(text, Phrase(text[0], is_exact=True), Phrase(text[:3], is_exact=True))
    assert found
    assert len(found.fields[0].places) == 2 * PLACES_LIMIT


@pytest.mark.parametrize(
    "text", ["abcdefghijklmnopqrstuvwx " * (LENGTH // 25), "x'" * (LENGTH // 2), "aä" * (LENGTH // 2), "x" * LENGTH]
)
def test_words_that_have_what_is_sought_inside_them_cost_no_more(text: str) -> None:
    with soon():
        for _ in range(10):
            found = match(text, *(Phrase(letter, is_exact=True) for letter in "bcdefghijklmnopqrstuvw"), Phrase("x"))
    assert not found or found.fields[0].places[0].start == 0


@pytest.mark.parametrize(
    "text",
    [
        f"a{MARKS * (LENGTH // 2)}",
        f"б{MARKS * (LENGTH // 2)}",
        f"가{MARKS * (LENGTH // 2)}",
        "б" + "\u0301\u200d\u0316\u200d" * (LENGTH // 4),
        "ｶ" + "\uff9e\u0e38" * (LENGTH // 2),
    ],
    ids=["left out", "kept", "unspaced", "with joiners", "half-width"],
)
def test_marks_without_end_are_put_in_order_soon(text: str) -> None:
    with soon():
        assert len(tokenizer.terms(text)) < 40
        assert match(f"{text} printer", Phrase("printer"))


def test_words_without_end_that_begin_alike_are_not_all_stemmed() -> None:
    made = ["".join(letters) for letters in product("abcdefghijklmnopqrst", repeat=4)][::6]
    matcher = TextMatcher(SearchQuery((Phrase("run"),)))
    with soon():
        for n in range(0, len(made), 6_000):
            text = TicketText(1, SUMMARY, "running " + " ".join(f"run{letters}" for letters in made[n : n + 6_000]))
            assert matcher.match(text)


def test_the_last_words_of_a_long_log_are_found_up_to_the_limit_that_is_told() -> None:
    desk = MemoryDesk()
    number = desk.ticket("Log", " ".join(f"w{n}x" for n in range(TERMS_LIMIT + 100))[:LENGTH])
    assert [int(hit.summary.number) for hit in ticket_search.find(desk.agent, "w7000x ").hits] == [number]
    assert f"| different terms of one text | {TERMS_LIMIT:,} |" in Path("docs/search.md").read_text()
    assert len(tokenizer.terms(" ".join(f"w{n}x" for n in range(TERMS_LIMIT + 100)))) == TERMS_LIMIT


def test_of_many_marks_the_first_ones_count_on_both_sides() -> None:
    desk = MemoryDesk()
    number = desk.ticket(f"A б{MARKS * 40} here")
    (hit,) = ticket_search.find(desk.agent, f'"б{MARKS * 40} here"').hits
    assert (hit.summary.number, hit.where) == (number, Where.TITLE)


def test_long_words_are_not_remembered() -> None:
    texts = ["a " + f"{n}{letter}" * (LENGTH // 4) for n in range(100, 130) for letter in "xб"]
    tokenizer.terms(texts[0])
    tracemalloc.start()
    try:
        for text in texts:
            tokenizer.terms(text)
            tokenizer.words(text)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 500_000
