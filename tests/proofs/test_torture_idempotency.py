"""A small `torture_idempotency`: servers die in each of the three ways, and each ticket is made once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from proofs.replays import replay_torture
from tests.support import commands


def test_a_small_torture_finds_nothing_wrong_and_leaves_nothing(engine: None, tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    torture = commands.start("torture_idempotency", "--posts=30", "--kills=3", "--seed=5", "--json", figures)
    ended = commands.finish(torture, timeout=880)
    assert ended.status == 0, ended.out + ended.err
    assert "Each was done once, and answered alike each time." in ended.out
    found = json.loads(figures.read_text())
    assert found["tickets"] == 30
    assert found["heard"] > found["replayed"] > 0
    assert found["kills"] == {"before": 1, "behind": 1, "anywhere": 1}
    assert found["unheard"] > 0
    assert commands.of_tenants() == set()


def test_each_wrong_figure_is_called_wrong() -> None:
    names = ("missing", "doubled", "unknown", "answered_differently", "unanswered")
    right: dict[str, Any] = {"faults": 0} | {name: [] for name in names}
    assert replay_torture.is_broken(right) == []
    for name, value in right.items():
        assert replay_torture.is_broken(right | {name: [7] if value == [] else 1}) == [name]


def test_it_is_refused_in_production() -> None:
    ended = commands.run("torture_idempotency")
    assert (ended.status, "DEBUG=1" in ended.err) == (1, True)
