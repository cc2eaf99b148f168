"""A small `torture_move`: a kill, and nothing is lost; and each wrong figure is called wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proofs.moving import move_figures
from proofs.moving.move_torture import MovePlan, MoveTorture
from tests.support import commands


@pytest.mark.timeout(600)
def test_a_small_torture_finds_nothing_wrong_and_leaves_nothing(engine: None, tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    of_all = {"tickets": 10, "writers": 1, "readers": 1, "kills": 1, "writes": 3, "reads": 4, "rate": 40, "seed": 5}
    options = [f"--{name}={value}" for name, value in of_all.items()]
    ended = commands.finish(commands.start("torture_move", *options, "--json", figures), timeout=580)
    assert ended.status == 0, ended.out + ended.err
    assert "0 lost, 0 doubled, 0 failed reads, both copies equal, dashboards exact." in ended.out
    found = json.loads(figures.read_text())
    assert (found["killed_at"], found["moved"], found["dashboards"]) == (["copying"], True, "ok")
    assert (found["writes"] > 5, found["reads"] > 5) == (True, True)
    (leg,) = found["legs"]
    assert (leg["left"], leg["to"], leg["hold_trips"] < 20) == ("pool", "bridge", True)
    assert commands.of_tenants() == set()


def test_each_wrong_figure_is_called_wrong() -> None:
    lists = ("refused", "failed_reads", "lost", "doubled", "missing_changes", "different")
    right: dict[str, Any] = {"moved": True, "digest": "a", "digest_then": "a", "dashboards": "ok"}
    right |= {name: [] for name in lists}
    assert move_figures.is_broken(right) == []
    for name, value in right.items():
        wrong = right | {name: [7] if value == [] else False}
        assert move_figures.is_broken(wrong) == ["digest" if name == "digest_then" else name]


def test_it_is_refused_in_production() -> None:
    ended = commands.run("torture_move")
    assert (ended.status, "DEBUG=1" in ended.err) == (1, True)


def test_what_the_tenth_process_noted_comes_after_what_the_ninth_did(tmp_path: Path) -> None:
    plan = MovePlan(seed=1, tickets=1, writers=1, readers=1, writes=1, reads=1, kills=5)
    for number in (9, 10):
        (tmp_path / f"mover-{number}.jsonl").write_text(json.dumps({"phase": f"of {number}"}) + "\n")
    run = MoveTorture(plan, tmp_path)
    for _ in range(10):  # as each process that is started takes a seed
        run.rng()
    assert [line["phase"] for line in run.told("mover")] == ["of 9", "of 10"]
