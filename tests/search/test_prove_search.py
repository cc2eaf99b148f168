"""A small `prove_search`: over made-up tickets always, and over a real archive where SEARCH_ARCHIVE names one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support import archives, commands
from tests.support.world import World
from tickets.desk import commenting, creating
from tickets.search import ticket_search
from tickets.search.care import index_rebuild
from tickets.search.results import Found

ROWS = 120  # of the real archive: the whole of it takes a quarter of an hour
MANY = ("--words=25", "--prefixes=8", "--phrases=8", "--mixed=12", "--seed=7")


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
    assert all(found["asked"][kind] for kind in ("words", "prefixes", "phrases", "mixed"))
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
    assert "missing (2,), ghosts ()" in ended.out


@pytest.mark.usefixtures("tickets")
def test_the_order_is_held_against_the_judgments_of_an_archive(world: World, tmp_path: Path) -> None:
    path = archives.write(
        tmp_path / "archive.json",
        archives.issue(1, title="Zeppelin landing"),
        archives.issue(2, title="About balloons", body="No zeppelin here"),
    )
    assert archives.imported(path).status == 0
    index_rebuild.rebuild(world.context("alice", "acme").repository)
    judged = tmp_path / "judged.json"
    judged.write_text(json.dumps({"queries": [{"query": "zeppelin", "3": [1], "2": [], "1": [2]}]}))
    ended = prove("--archive", path, "--judgments", judged)
    assert ended.status == 0, ended.out + ended.err
    assert "NDCG@10 over 1 judged queries: 1.000; FTS5's bm25 1.000" in ended.out


@pytest.mark.timeout(1800)
@pytest.mark.skipif(not os.environ.get("SEARCH_ARCHIVE"), reason="SEARCH_ARCHIVE names no archive to search")
def test_a_real_archive_is_found_by_its_words(world: World, tmp_path: Path) -> None:
    whole = json.loads(Path(os.environ["SEARCH_ARCHIVE"]).read_text())
    rows = {kind: whole[kind][:ROWS] for kind in ("issues", "pulls")}
    path = tmp_path / "archive.json"
    path.write_text(json.dumps(whole | rows))
    assert archives.imported(path).status == 0
    index_rebuild.rebuild(world.context("alice", "acme").repository)
    ended = prove()
    assert ended.status == 0, ended.out + ended.err
