"""`torture_demo`, a small one for real where a kill loses nothing, and what its judge and its people notice."""

from __future__ import annotations

import html
import json
import signal
import sys
import threading
from argparse import Namespace
from pathlib import Path
from typing import cast

import pytest

from proofs.scenarios import outage, persistent_people
from proofs.scenarios.outage import CHILD, ENGINE, WEB, WORKER, Outage, OwnDemo, misplaced
from proofs.scenarios.persistent_people import (
    PageAnswer,
    PageForm,
    PeopleTally,
    PersistentPerson,
    PromiseBroken,
    Written,
    form_with,
    typed,
)
from tests.support import commands

# Neither killed nor asked: what sends and delivers, and what looks through all at the start. test_demo_portal.py does.
FEW_PROCESSES = """
from portal.management import demo_processes
from portal.management.commands import demo
workers = demo_processes._lines
demo_processes._lines = lambda: [line for line in workers() if line[1][0] == "run_stream"]
demo._REPAIRS = demo._CONVERSATIONS = ()
Command = demo.Command
"""

linux = pytest.mark.skipif(sys.platform != "linux", reason="finds the processes in /proc")


@linux
@pytest.mark.timeout(1800)
def test_nothing_acknowledged_is_lost_when_processes_are_killed_under_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child of the web server, with which requests die, and the stream worker.

    The engine beside which an engine may be killed as well loses nothing in test_demo.py.
    """
    monkeypatch.setitem(outage.FILES, "few_data/management/commands/demo.py", FEW_PROCESSES)  # type: ignore[misc]
    figures = tmp_path / "figures.json"
    options = ["--engine=ministack", "--kills=2", "--seconds=3", "--people=2", "--seed=1", "--json", figures]
    ended = commands.run("torture_demo", *options)
    assert ended.status == 0, ended.out + ended.err
    assert "Nothing that was acknowledged is lost or doubled." in ended.out
    found = json.loads(figures.read_text())
    assert found["kills"] == {CHILD: 1, WORKER: 1}
    assert found["restarts"] >= 1  # the web server itself starts a child of its own again
    assert found["tickets"] >= 2
    assert found["comments"] >= 2


# --- who is killed ---


class StandingDemo:
    """One whose processes nothing ends."""

    runs, port = True, 0

    def pids(self, kind: str) -> list[int]:
        return {WEB: [10, 11, 12], WORKER: [20], ENGINE: [30]}[kind]


@pytest.mark.parametrize(("engine", "kinds"), [("dynamodb-local", 4), ("ministack", 3)])
def test_each_kind_of_process_is_killed_in_turn_but_an_engine_that_does_not_save(
    engine: str, kinds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[tuple[int, int]] = []
    monkeypatch.setattr(outage.os, "kill", lambda *what: killed.append(what))
    plan = Namespace(engine=engine, seconds=0, kills=2 * kinds, people=1, seed=1)
    run = Outage(plan, Path(), lambda *_: pytest.fail("no stage"))
    run.kill_in_turn(cast("OwnDemo", StandingDemo()))
    assert run.kills == dict.fromkeys([WEB, WORKER, CHILD, ENGINE][:kinds], 2)
    assert {number for _, number in killed} == {signal.SIGKILL}
    of_kinds = {"child" if pid in (11, 12) else pid for pid, _ in killed}
    assert of_kinds == {10, 20, "child"} | ({30} if kinds == 4 else set())


# --- the judge ---

PAGES = {1: "<h1>P0-00001. the lift</h1> P0-00002. again", 2: "<h1>P1-00001. the lift</h1>"}
TITLE, COMMENT = Written("P0-00001.", 1, is_ticket=True), Written("P0-00002.", 1, is_ticket=False)


def test_what_is_there_once_in_its_place_is_not_lost() -> None:
    assert misplaced([TITLE, COMMENT], PAGES) == []


@pytest.mark.parametrize(
    ("pages", "sentence"),
    [
        ({1: PAGES[1].replace("P0-00002.", "")}, "the comment P0-00002. of #1 is in no ticket"),
        ({1: PAGES[1] + "P0-00002."}, "the comment P0-00002. of #1 is in [1, 1]"),
        (PAGES | {2: "P0-00002."} | {1: "<h1>P0-00001.</h1>"}, "the comment P0-00002. of #1 is in [2]"),
        (PAGES | {3: "<h1>P0-00001. the lift</h1>"}, "the ticket P0-00001. of #1 is in [1, 3]"),
    ],
    ids=["lost", "twice", "elsewhere", "a second ticket"],
)
def test_what_is_lost_doubled_or_elsewhere_is_named(pages: dict[int, str], sentence: str) -> None:
    assert misplaced([TITLE, COMMENT], pages) == [sentence]


@pytest.mark.parametrize(("before_the_kill", "judged"), [(0.5, False), (5.0, True), (-0.5, True)])
def test_what_an_engine_answered_right_before_it_was_killed_is_not_judged(
    before_the_kill: float, judged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outage, "signed_in", lambda *_: None)
    monkeypatch.setattr(outage, "read_back", lambda _: PAGES)
    tally = PeopleTally([TITLE, Written("P0-00009.", 1, is_ticket=False, at=100.0 - before_the_kill)])
    demo = cast("OwnDemo", StandingDemo())
    found = outage.lost_or_doubled(demo, tally, [100.0])
    assert found == ["the comment P0-00009. of #1 is in no ticket"] * judged


# --- the people ---


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> PersistentPerson:
    monkeypatch.setattr(persistent_people, "signed_in", lambda *_: None)
    return PersistentPerson(0, "P0", PeopleTally(), threading.Event())


def page(value: str, shown: str) -> PageAnswer:
    text = f'<dl><dd>{html.escape(shown)}</dd></dl><form action="/again/"><input type="hidden" name="body" '
    return PageAnswer(503, "", text + f'value="{html.escape(value)}"></form>')


def test_who_sees_the_page_of_an_outage_sends_its_text_again(person: PersistentPerson) -> None:
    form = person._kept(page(typed("x."), typed("x.")), PageForm("/first/"), "body", "x.")
    assert (form.action, form.hidden) == ("/again/", {"body": typed("x.")})


@pytest.mark.parametrize(
    "answer",
    [
        page("", typed("x.")),
        page(typed("x."), ""),
        PageAnswer(503, "", "<h1>Away</h1>"),
        PageAnswer(500, "", "<h1>No</h1>"),
    ],
    ids=["the form is empty", "the text is not shown", "there is no form", "another error"],
)
def test_a_page_that_lost_the_text_is_a_broken_promise(person: PersistentPerson, answer: PageAnswer) -> None:
    with pytest.raises(PromiseBroken):
        person._kept(answer, PageForm("/first/"), "body", "x.")


def test_the_form_that_is_filled_in_is_the_one_with_the_field() -> None:
    mine = '<form><input type="hidden" name="k" value="&lt;1&gt;"><textarea name="body"></textarea></form>'
    text = '<form action="/a/"><input name="q"></form>' + mine
    form = form_with(PageAnswer(200, "", text), "/here/", "body")
    assert form == PageForm("/here/", {"k": "<1>"}, {"k", "body"})
