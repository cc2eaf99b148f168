"""A small `torture_reshard`: a kill, and nobody misses a ticket. tests/sharding reshards on each engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from proofs.sharding import reshard_torture
from tests.support import commands


def test_a_small_torture_finds_nothing_wrong_and_leaves_nothing(engine: None, tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    of_all = {"tickets": 20, "writers": 1, "readers": 1, "kills": 1, "rate": 40, "pause": 0.5, "seed": 5}
    options = [f"--{name}={value}" for name, value in of_all.items()]
    ended = commands.finish(commands.start("torture_reshard", *options, "--json", figures), timeout=880)
    assert ended.status == 0, ended.out + ended.err
    assert "0 lost, 0 doubled, 0 failed reads, dashboards exact." in ended.out
    found = json.loads(figures.read_text())
    assert (len(found["killed_at"]), found["rests"], found["dashboards"]) == (1, True, "ok")
    assert found["walks"] > 2
    assert min(found["moved"]) > 0
    assert commands.of_tenants() == set()


def test_each_wrong_figure_is_called_wrong() -> None:
    lists = ("failed_reads", "missing_while_it_ran", "doubled_while_it_ran", "lost", "doubled", "unknown", "misplaced")
    right: dict[str, Any] = {"rests": True, "dashboards": "ok"} | {name: [] for name in lists}
    assert reshard_torture.is_broken(right) == []
    for name, value in right.items():
        wrong = right | {name: [7] if value == [] else False}
        assert reshard_torture.is_broken(wrong) == [name]


def test_it_is_refused_in_production() -> None:
    ended = commands.run("torture_reshard")
    assert (ended.status, "DEBUG=1" in ended.err) == (1, True)
