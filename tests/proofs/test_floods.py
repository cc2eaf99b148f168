"""Floods at the portal's door: a small one for real, and what is promised of them. No time is asserted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proofs.noise import flood_trial, noise_figures, trials
from proofs.noise.closed_loop import NOISY, QUIET_TENANTS, ClientRequest
from proofs.noise.flood_trial import FLOODS
from proofs.noise.trials import Plan
from tests.support import commands

PHASES = 3  # that are counted: quiet, noisy, and quiet again


@pytest.mark.timeout(1800)
def test_a_small_flood_is_refused_and_nobody_else_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of writes: beside it everybody else reads."""
    monkeypatch.setattr(flood_trial, "FLOODS", {"writes": FLOODS["writes"]})
    path = tmp_path / "found.json"
    ended = commands.run("noisy_neighbour", "--part=floods", "--seconds=1", "--json", path)
    assert ended.status == 0, ended.err
    found = json.loads(path.read_text())
    (flood,) = found["floods"]
    assert flood["name"] == "writes"
    assert flood["flood_refused"] > 0
    assert (flood["quiet_refused"], flood["failed"]) == (0, 0)
    assert flood["quiet_requests"] >= PHASES * len(QUIET_TENANTS), "each was answered in each phase"
    assert len(found["promises"]) == 2, "so short a phase tells of counts alone"


def test_every_flood_is_carried_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(module: str, plans: list[Plan], *, at_a_time: int) -> Iterator[dict[str, Any]]:
        yield from (seen() | {"name": plan.name} for plan in plans)

    monkeypatch.setattr(trials, "carry_out_all", found)
    ended = commands.run("noisy_neighbour", "--part=floods", "--seconds=40")
    assert (ended.status, ended.out.count("A flood of pages"), ended.out.count("A flood of writes")) == (0, 4, 4)
    assert set(FLOODS) == {"pages", "writes"}


def seen(*, quiet: float = 0.1, noisy: float = 0.1, quiet_status: str = "200", through: int = 120) -> dict[str, Any]:
    """The figures of a flood of pages in phases of forty seconds."""
    requests = [
        ClientRequest(phase, tenant, 0, number, float(number), took, quiet_status)
        for phase, took in (("quiet", quiet), ("noisy", noisy))
        for tenant in QUIET_TENANTS
        for number in range(40)
    ]
    requests += [ClientRequest("noisy", NOISY, 1, n, 45.0, 9.0, "200") for n in range(1000)]  # of its burst
    requests += [ClientRequest("noisy", NOISY, 1, n, 60.0, 9.0, "200" if n < through else "429") for n in range(1000)]
    return flood_trial.figures(Plan("pages", "flood", 1, 40.0), requests, noisy_began=40.0)


def kept(found: dict[str, Any]) -> list[bool]:
    return [promise["kept"] for promise in noise_figures.judge({found["name"]: found}, seconds=40.0)]


def test_a_flood_within_its_budget_that_nobody_notices_keeps_every_promise() -> None:
    found = seen()
    assert (found["budget_units"], found["through_units"], found["p99_ratio"]) == (120, 120, 1.0)
    assert kept(found) == [True] * 4


@pytest.mark.parametrize(
    ("change", "missed"),
    [({"quiet_status": "429"}, 0), ({"quiet_status": "503"}, 1), ({"noisy": 0.13}, 2), ({"through": 127}, 3),
     ({"through": 113}, 3)],
)  # fmt: skip
def test_each_promise_can_be_missed(change: dict[str, Any], missed: int) -> None:
    assert [number for number, one in enumerate(kept(seen(**change))) if not one] == [missed]
