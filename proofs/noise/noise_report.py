"""The report of the experiment: everything as JSON, and one page with plots for people."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from django.template import Context, Engine

from delivery.queues import limits
from proofs.noise import floods, plots, promises, seed_figures, trial_figures, trials, workload
from proofs.noise.designs import DESIGNS, Design
from proofs.noise.floods import FloodPromise
from proofs.noise.workload import NOISES, NOISY, PHASES, TENANTS

_TEMPLATE: Final = Path(__file__).with_name("noise_report.html")
_QUIET_LAG_MS: Final = 10.0  # of a machine that has nothing else to do


@dataclass
class Experiment:
    """All that was seen so far."""

    seconds: float
    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    _started: float = field(default_factory=time.monotonic)
    _found: dict[tuple[str, str], list[dict[str, Any]]] = field(default_factory=dict)
    floods: list[dict[str, Any]] = field(default_factory=list)

    def add(self, seen: Mapping[str, Any]) -> str:
        """Take in one trial. Returns a line about it."""
        plan, found = seen["plan"], trial_figures.figures(seen)
        self._found.setdefault((plan["noise"], plan["design"]), []).append(found)
        return (
            f"{plan['noise']:5} {plan['design']:8} run {plan['run']}: p99 ratio {found['p99_ratio']:.3f}, worst mean "
            f"{max(found['mean_ratios'].values(), default=0):.3f}, {found['per_second']['noisy']:.1f}/s, "
            f"{found['blast']['deaths']} deaths, lag {max(found['lag_p99_ms'].values()):.0f} ms"
        )

    def add_flood(self, found: dict[str, Any]) -> str:
        """Take in the figures of a flood. Returns a line about it."""
        self.floods.append(found)
        return (
            f"{found['name']:6} p99 ratio {found['p99_ratio']:.3f}, {found['quiet_refused']} of "
            f"{found['quiet_requests']} quiet requests refused, {found['through_share']:.3f} of the budget let through"
        )

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._started

    def summaries(self) -> dict[tuple[str, str], dict[str, Any]]:
        return {key: trial_figures.summary(runs) for key, runs in self._found.items()}


def document(experiment: Experiment) -> dict[str, Any]:
    """Return everything, as JSON has it."""
    summaries = experiment.summaries()
    with_times = experiment.seconds >= workload.ENOUGH_SECONDS
    judged: list[promises.NoisePromise | FloodPromise] = [*promises.judge(summaries, with_times=with_times)]
    for flood in experiment.floods:
        judged += floods.judge(flood, seconds=experiment.seconds)
    ours = limits.of_all("")
    return {
        "verdict": _verdict(judged, with_times),
        "holds": all(promise.kept for promise in judged),
        "began": experiment.began.isoformat(timespec="seconds"),
        "minutes": round(experiment.elapsed / 60, 1),
        "phase_seconds": experiment.seconds,
        "other_phase_seconds": trials.of_others(experiment.seconds),
        "promises": [asdict(one) | {"kept": one.kept, "sentence": one.sentence} for one in judged],
        "floods": experiment.floods,
        "limits": asdict(ours),
        "workers": {"count": workload.WORKERS, "slots": workload.SLOTS},
        "designs": [_design(design) for design in DESIGNS.values()],
        "noises": [
            asdict(noise)
            | {"designs": {name: summaries[noise.name, name] for name in DESIGNS if (noise.name, name) in summaries}}
            for noise in NOISES.values()
        ],
        "machine": {
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "engine": f"ministack {version('ministack')}",
            "worst_lag_p99_ms": max((one["lag_p99_ms"] for one in summaries.values()), default=0.0),
            "load_averages": sorted(run["load_average"] for one in summaries.values() for run in one["runs"]),
            "was_calm": all(one["lag_p99_ms"] <= _QUIET_LAG_MS for one in summaries.values()),
        },
        "seed": {
            "quiet_p99_ms": seed_figures.ALL_QUIET_P99,
            "noisy_p99_ms": seed_figures.ALL_NOISY_P99,
            "p99_ratio": round(seed_figures.ALL_NOISY_P99 / seed_figures.ALL_QUIET_P99, 2),
            "quiet_per_second": seed_figures.QUIET_PER_SECOND,
            "noisy_per_second": seed_figures.NOISY_PER_SECOND,
            "blast": seed_figures.BLAST,
        },
    }


def _verdict(judged: Sequence[promises.NoisePromise | FloodPromise], with_times: bool) -> str:
    missed = sum(not promise.kept for promise in judged)
    short = "" if with_times else f" Phases under {workload.ENOUGH_SECONDS:g} s say nothing about times."
    if not judged:
        return f"Measured; nothing was promised of what was tried.{short}"
    if missed:
        return f"{missed} of {len(judged)} promises are not kept.{short}"
    return f"All {len(judged)} promises are kept.{short}"


def _design(design: Design) -> dict[str, Any]:
    theirs = set(design.queues_of[NOISY])
    shared = {tenant: len(theirs & set(design.queues_of[tenant])) for tenant in TENANTS if tenant != NOISY}
    return {
        "name": design.name,
        "title": design.title,
        "what": design.what,
        "queues": design.queues,
        "bounded": design.bounded,
        "share_a_worker": len(design.sharing()),
        "share_a_queue": sum(number > 0 for number in shared.values()),
        "share_all_queues": sum(number == len(theirs) for number in shared.values()),
        "workers_reached": len(design.reach(NOISY)),
    }


def to_json(found: Mapping[str, Any]) -> str:
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def to_html(found: Mapping[str, Any]) -> str:
    """Return one page without outside resources. Django's template engine escapes all that it shows."""
    titles = {design["name"]: design["title"] for design in found["designs"]}
    page = Engine(autoescape=True).from_string(_TEMPLATE.read_text(encoding="utf-8"))
    sections = [
        noise | {"rows": _rows(noise, titles), "plots": _plots(noise, titles)}
        for noise in found["noises"]
        if noise["designs"]
    ]
    slides = {"quiet": seed_figures.QUIET_P99, "noisy": seed_figures.NOISY_P99}
    shown = plots.p99_by_tenant(slides, top=2000, label="The slides: 99th percentile by tenant, quiet and noisy")
    return page.render(Context({**found, "sections": sections, "slides": shown, "phases": PHASES}))


def _rows(noise: Mapping[str, Any], titles: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return a row for each design: its summary, and what the runs say together of who was reached."""
    rows = []
    for name, one in noise["designs"].items():
        blasts = [run["blast"] for run in one["runs"]]
        beside = {tenant for blast in blasts for tenant in blast["tenants_beside_a_death"]}
        rows.append(
            one
            | {
                "title": titles[name],
                "spread": f"{one['p99_ratios'][0]:.2f} to {one['p99_ratios'][-1]:.2f}" if one["runs"][1:] else "",
                "reached": max(len(blast["workers_of_noisy"]) for blast in blasts),
                "deaths": max(blast["deaths"] for blast in blasts),
                "killed": len({worker for blast in blasts for worker in blast["workers_killed"]}),
                "beside": len(beside),
                "recovery": max(blast["recovery_seconds"] for blast in blasts),
                "most": max(blast["most_in_all"] for blast in blasts),
                "samples": _samples(one["runs"][0]),
            }
        )
    return rows


def _samples(run: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, list[float]]]]]:
    """Return the table of the slides' test for each phase of a run: a row for each tenant, and one for all."""
    rows = [(f"Tenant {tenant}", of) for tenant, of in run["tenants"].items()] + [("All", run["all_tenants"])]
    return [(phase, [(name, [*of[phase].values()]) for name, of in rows]) for phase in PHASES]


def _plots(noise: Mapping[str, Any], titles: Mapping[str, str]) -> list[dict[str, Any]]:
    points = {name: _points(one["runs"][0]["tenants"]) for name, one in noise["designs"].items()}
    top = plots.top_of(list(points.values()))
    return [
        {
            "title": titles[name],
            "svg": plots.p99_by_tenant(
                of, top=top, label=f"{noise['title']}, {titles[name]}: 99th percentile by tenant and phase"
            ),
        }
        for name, of in points.items()
    ]


def _points(tenants: Mapping[int, Mapping[str, Mapping[str, float]]]) -> dict[str, dict[int, float]]:
    return {
        phase: {int(tenant): of[phase]["p99"] for tenant, of in tenants.items() if of[phase]["requests"]}
        for phase in PHASES
    }
