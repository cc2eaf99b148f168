"""The judges of the search's proof: what they call wrong, and how they value an order."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from proofs.search import full_text_oracle, query_proof, ranking_quality
from proofs.search.full_text_oracle import STEMMING, FullTextOracle
from proofs.search.plain_recount import PlainRecount
from proofs.search.query_proof import Proved
from proofs.search.questions import KINDS, Question, Questions
from proofs.search.stored_tickets import StoredTicket

JUDGMENTS = Path(__file__).with_name("judgments.json")


def ticket(number: int, title: str, *comments: str, **more: object) -> StoredTicket:
    values = {"description": "", "notes": (), "tags": (), "requester_name": "", **more}
    return StoredTicket(number=number, title=title, comments=comments, **values)  # type: ignore[arg-type]


TICKETS = {
    1: ticket(1, "Printer offline", "The printers answer again", tags=("hardware",)),
    2: ticket(2, "Cannot print invoices", "Try another printer", "offline since Monday. That's late."),
    3: ticket(3, "HelloRetryRequest is Größe", notes=("printer of the boss",)),
}


def judged(numbers: list[int], *, must: set[int], may: set[int]) -> Proved:
    proved = Proved()
    query_proof.judge(Question("words", "printer", frozenset(must), frozenset(may)), numbers, proved)
    return proved


def test_an_answer_between_what_must_be_found_and_what_may_be_is_right() -> None:
    proved = judged([1, 2], must={1}, may={1, 2})
    assert not proved.wrong
    assert proved.recall("words") == 1.0


@pytest.mark.parametrize(
    ("numbers", "wrong"), [([2], ((1,), (), ())), ([1, 3], ((), (3,), ())), ([1, 2, 1], ((), (), (1,)))]
)
def test_a_miss_a_ghost_and_a_repetition_are_wrong(numbers: list[int], wrong: tuple[tuple[int, ...], ...]) -> None:
    (one,) = judged(numbers, must={1}, may={1, 2}).wrong
    assert (one.missing, one.ghosts, one.twice) == wrong


def test_recall_is_the_share_of_what_had_to_be_found() -> None:
    assert judged([1, 2], must={1, 2, 3, 4}, may={1, 2, 3, 4}).recall("words") == 0.5


def test_the_other_engine_finds_words_and_phrases_within_one_text() -> None:
    oracle = FullTextOracle(TICKETS.values())
    assert oracle.having(full_text_oracle.word("printer")) == {1, 2, 3}
    assert oracle.having(full_text_oracle.phrase(["another", "printer"])) == {2}
    assert not oracle.having(full_text_oracle.phrase(["printer", "offline", "since"])), "two comments are two texts"
    assert ("offline", 2) in oracle.vocabulary()
    assert not any("between" in term for term, _ in oracle.vocabulary())


def test_the_other_engine_ranks_those_with_all_words_before_those_with_some() -> None:
    oracle = FullTextOracle(TICKETS.values(), tokenizer=STEMMING)
    assert oracle.best(["printer", "offline"], count=2, weights=(10, 2, 1, 1)) == [1, 2]
    assert oracle.best(["printer", "invoices"], count=5)[0] == 2
    assert set(oracle.best(["printer", "invoices"], count=5)) == {1, 2, 3}


def test_the_recount_knows_words_forms_humps_and_other_spellings_of_letters() -> None:
    recount = PlainRecount(TICKETS.values())
    assert recount.having("printers") == {1}
    assert recount.inflected("printer") == {1, 2, 3}
    assert recount.beginning("prin") == {1, 2, 3}
    assert recount.in_a_row(["another", "printer"]) == {2}
    assert recount.in_a_row(["retry", "is"]) == {3}
    assert recount.in_a_row(["that", "late"]) == {2}
    assert not recount.in_a_row(["printer", "offline", "since"]), "two comments are two texts"
    assert recount.having("retry") == recount.having("helloretryrequest") == recount.having("grosse") == {3}
    assert PlainRecount(TICKETS.values(), with_notes=False).having("printer") == {1, 2}


@pytest.mark.parametrize("kind", KINDS)
def test_random_questions_demand_no_more_than_they_allow_and_repeat_with_the_seed(kind: str) -> None:
    asked = list(Questions(TICKETS, seed=3).some(kind, 8))
    assert asked
    assert all(question.must <= question.may for question in asked)
    assert len({question.query for question in asked}) == len(asked)
    assert asked == list(Questions(TICKETS, seed=3).some(kind, 8))


def test_an_order_is_worth_most_with_the_best_first() -> None:
    grades = {7: 3, 8: 1}
    assert ranking_quality.ndcg([7, 8], grades) == 1
    assert ranking_quality.ndcg([9], grades) == 0
    swapped = (1 + 7 / math.log2(3)) / (7 + 1 / math.log2(3))
    assert ranking_quality.ndcg([8, 7], grades) == pytest.approx(swapped)
    assert ranking_quality.ndcg([*range(10, 20), 7], grades) == 0, "nobody looks further than ten"


def test_the_judgments_are_fifty_queries_with_something_that_is_exactly_about_each() -> None:
    read = ranking_quality.read_judgments(JUDGMENTS)
    assert len({one.query for one in read}) == 50
    assert all(3 in one.grades.values() for one in read)
    rows = sum(len(row[grade]) for row in json.loads(JUDGMENTS.read_text())["queries"] for grade in "123")
    assert rows == sum(len(one.grades) for one in read), "no row has two grades in one query"
