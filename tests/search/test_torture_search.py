"""A small `torture_search`: workers die, batches come twice, segments are merged, and everything stays found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proofs.search import search_torture
from tests.support import commands


def test_a_small_torture_finds_nothing_wrong_and_leaves_nothing(
    engine: None, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = tmp_path / "figures.json"
    settings.DEBUG = True
    monkeypatch.setenv("DEBUG", "1")
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "tests.settings")
    ended = commands.run("torture_search", "--tickets=15", "--kills=1", "--seed=5", "--json", figures)
    assert ended.status == 0, ended.out + ended.err
    assert "Everything is found, and was found at every moment since it first was." in ended.out
    found = json.loads(figures.read_text())
    assert found["kills"] == 1
    assert found["segments"] > 0, "what is new was merged: a worker that was killed over it may not have told of it"
    assert found["indexed"] >= 15 * 3 * search_torture.WORKERS - 15, "the records of tickets, texts and comments"
    assert found["searches"] >= 15
    assert commands.of_tenants() == set()


def test_each_wrong_figure_of_a_search_is_called_wrong() -> None:
    names = ("lost", "ghosts", "unfound", "missing", "foreign", "damage")
    right: dict[str, Any] = {name: [] for name in names}
    assert search_torture.is_broken(right) == []
    for name in names:
        assert search_torture.is_broken(right | {name: ["zq"]}) == [name]


def test_a_torture_of_the_search_is_refused_in_production() -> None:
    ended = commands.run("torture_search")
    assert (ended.status, "DEBUG=1" in ended.err) == (1, True)
