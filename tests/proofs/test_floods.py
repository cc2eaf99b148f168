"""Floods at the portal's door: a small one for real, and what is promised of them. No time is asserted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proofs.noise import floods
from proofs.noise.floods import FLOODS, DoorRequest
from proofs.noise.workload import NOISY, QUIET_TENANTS
from tests.support import commands

PHASES = 3  # that are counted: quiet, noisy, and quiet again


@pytest.mark.timeout(1800)
def test_a_small_flood_is_refused_and_nobody_else_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of writes: beside it everybody else reads."""
    monkeypatch.setattr(floods, "FLOODS", {"writes": FLOODS["writes"]})
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
    monkeypatch.setattr(floods, "_carry_out", lambda flood, seconds, path: {"flood": flood, "seconds": seconds})
    assert [*floods.carry_out_all(7.0)] == [{"flood": flood, "seconds": 7.0} for flood in FLOODS.values()]
    assert {flood.writes for flood in FLOODS.values()} == {True, False}


def seen(*, quiet: float = 0.1, noisy: float = 0.1, quiet_status: int = 200, through: int = 120) -> dict[str, Any]:
    """The figures of a flood of pages in phases of forty seconds."""
    requests = [
        DoorRequest(phase, tenant, number, float(number), took, quiet_status)
        for phase, took in (("quiet", quiet), ("noisy", noisy))
        for tenant in range(1, NOISY)
        for number in range(40)
    ]
    requests += [DoorRequest("noisy", NOISY, n, 5.0, 9.0, 200) for n in range(1000)]  # of its burst
    requests += [DoorRequest("noisy", NOISY, n, 20.0, 9.0, 200 if n < through else 429) for n in range(1000)]
    return floods.figures(FLOODS["pages"], requests, seconds=40.0)


def kept(found: dict[str, Any]) -> list[bool]:
    return [promise.kept for promise in floods.judge(found, seconds=40.0)]


def test_a_flood_within_its_budget_that_nobody_notices_keeps_every_promise() -> None:
    found = seen()
    assert (found["budget_units"], found["through_units"], found["p99_ratio"]) == (120, 120, 1.0)
    assert kept(found) == [True] * 4


@pytest.mark.parametrize(
    ("change", "missed"),
    [({"quiet_status": 429}, 0), ({"quiet_status": 503}, 1), ({"noisy": 0.13}, 2), ({"through": 127}, 3),
     ({"through": 113}, 3)],
)  # fmt: skip
def test_each_promise_can_be_missed(change: dict[str, Any], missed: int) -> None:
    assert [number for number, one in enumerate(kept(seen(**change))) if not one] == [missed]
