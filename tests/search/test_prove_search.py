"""A small `prove_search` over made-up tickets, and what its recount and its judge say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proofs.search_proof import KINDS, Proved, Question, Questions, SearchedTicket, WordRecount
from tests.support import commands
from tests.support.world import World
from tickets.desk import commenting, creating
from tickets.search import index_rebuild, ticket_search
from tickets.search.results import Found

MANY = ("--words=25", "--prefixes=8", "--phrases=8", "--mixed=12", "--seed=7")
TICKETS = {
    1: SearchedTicket(["Printer offline", "The printers answer again", "hardware"], ["hardware"]),
    2: SearchedTicket(["Cannot print invoices", "Try another printer", "offline since Monday. That's late."]),
    3: SearchedTicket(["HelloRetryRequest is Größe", "printer of the boss"]),
}


def prove(*more: object) -> commands.Ended:
    return commands.run("prove_search", "--tenant", "acme", *MANY, *more)


@pytest.fixture
def tickets(world: World) -> None:
    alice = world.context("alice", "acme")
    subjects = (
        "Invoice shows the wrong address",
        "Printer on the second floor is offline",
        "Export stops at row 5,000",
    )
    for n, subject in enumerate(subjects * 3):
        number = creating.create(alice, title=f"{subject} {n}", description="Since the May update.", tags=["hardware"])
        commenting.comment(alice, number, body=f"The printer's log of {subject.lower()} says gave-up.")
    index_rebuild.rebuild(alice.repository)


@pytest.mark.usefixtures("tickets")
def test_everything_that_is_asked_for_is_found_and_nothing_else(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    ended = prove("--json", figures)
    assert ended.status == 0, ended.out + ended.err
    found = json.loads(figures.read_text())
    assert all(found["asked"][kind] for kind in KINDS)
    assert found["wanted"] == found["found"]
    assert found["wrong"] == []


@pytest.mark.usefixtures("tickets")
def test_a_search_that_leaves_a_ticket_out_is_called_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    real = ticket_search.find

    def forgetful(*arguments: Any, **how: Any) -> Found:
        found = real(*arguments, **how)
        object.__setattr__(found, "hits", tuple(hit for hit in found.hits if hit.summary.number != 2))
        return found

    monkeypatch.setattr(ticket_search, "find", forgetful)
    ended = prove()
    assert ended.status == 1
    assert "missing [2], ghosts []" in ended.out


@pytest.mark.parametrize(
    ("numbers", "wrong"),
    [([1, 2], None), ([2], ([1], [], [])), ([1, 3], ([], [3], [])), ([1, 2, 1], ([], [], [1]))],
    ids=["right", "a miss", "a ghost", "a repetition"],
)
def test_a_miss_a_ghost_and_a_repetition_are_wrong(numbers: list[int], wrong: tuple[list[int], ...] | None) -> None:
    proved = Proved()
    proved.judge(Question("words", "printer", frozenset({1}), frozenset({1, 2})), numbers)
    assert [(one["missing"], one["ghosts"], one["twice"]) for one in proved.wrong] == ([wrong] if wrong else [])


def test_the_recount_knows_words_forms_humps_and_other_spellings_of_letters() -> None:
    recount = WordRecount(TICKETS)
    assert recount.exact("printers") == {1}
    assert recount.exact("printer") == {1, 2, 3}
    assert recount.inflected("printers") == {1, 2, 3}
    assert recount.loose("prin") == {1, 2, 3}
    assert recount.in_a_row(["another", "printer"], loosely=False) == {2}
    assert recount.in_a_row(["retry", "request", "is"], loosely=False) == set()
    assert recount.in_a_row(["retry", "is"], loosely=True) == {3}
    assert recount.in_a_row(["that", "late"], loosely=True) == {2}
    assert not recount.in_a_row(["printer", "offline", "since"], loosely=True), "two comments are two texts"
    assert recount.inflected("retry") == recount.exact("helloretryrequest") == recount.exact("grosse") == {3}


@pytest.mark.parametrize("kind", KINDS)
def test_random_questions_demand_no_more_than_they_allow_and_repeat_with_the_seed(kind: str) -> None:
    asked = list(Questions(TICKETS, seed=3).some(kind, 8))
    assert asked
    assert all(question.must <= question.may for question in asked)
    assert len({question.query for question in asked}) == len(asked)
    assert asked == list(Questions(TICKETS, seed=3).some(kind, 8))
