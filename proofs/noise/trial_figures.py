"""Turn what was seen in trials into figures. The measure was declared before any run: `workload.py`, and here.

A quiet tenant's request is compared with the one of the same number in the quiet phase, which asked for the same work.
A request without an answer counts with the time for which it was waited for. The first requests of each phase settle
the queues and are not compared. Beside poison that hangs, nor are those begun while the first deliveries hang, as many
as the cap: these are felt, and how many they delay is a figure of its own.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from proofs.noise.deeds import HANG
from proofs.noise.designs import DESIGNS
from proofs.noise.trial import TrialRequest
from proofs.noise.worker_notes import ANSWERED
from proofs.noise.workload import ENOUGH_SECONDS, NOISY, PHASES, QUIET_TENANTS, SETTLING_REQUESTS, TENANTS, Length

HIT_MEAN: Final = 1.10  # a tenant whose mean grows by more is hit
DELAYED_SECONDS: Final = 0.2
LATE_SECONDS: Final = 1.0  # that a request takes longer than the same one in the quiet phase, to count as late

Key = tuple[int, int]  # tenant and number of a request


def requests(seen: Mapping[str, Any]) -> list[TrialRequest]:
    """Return the requests of a trial that count."""
    least = SETTLING_REQUESTS if seen["plan"]["seconds"] >= ENOUGH_SECONDS else 0
    every = (TrialRequest(*values) for values in seen["requests"])
    return [request for request in every if request.number >= least]


def percentile(values: Iterable[float], share: float) -> float:
    """Return the value below which this share of the values lies; 0.0 of none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


def same_requests(
    counted: Sequence[TrialRequest], phase: str, tenants: Iterable[int]
) -> tuple[list[float], list[float]]:
    """Return the seconds that the requests of both phases took, quiet and other, in the same order."""
    wanted = set(tenants)
    by_phase: dict[str, dict[Key, float]] = defaultdict(dict)
    for request in counted:
        if request.tenant in wanted and request.client == 0:
            by_phase[request.phase][request.tenant, request.number] = request.seconds
    both = sorted(by_phase["quiet"].keys() & by_phase[phase].keys())
    return [by_phase["quiet"][key] for key in both], [by_phase[phase][key] for key in both]


def ratio(other: float, quiet: float) -> float:
    """Return how much larger `other` is; 0.0 where there is nothing to compare with."""
    return round(other / quiet, 3) if quiet else 0.0


def figures(seen: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of one trial."""
    every, seconds = requests(seen), float(seen["plan"]["seconds"])
    felt = _felt_until(seen)
    counted = [request for request in every if request.phase != "noisy" or request.at >= felt]
    quiet, noisy = same_requests(counted, "noisy", QUIET_TENANTS)
    again, cooled = same_requests(counted, "cooldown", QUIET_TENANTS)
    means = {}
    for tenant in QUIET_TENANTS:
        before, after = same_requests(counted, "noisy", [tenant])
        if before:
            means[tenant] = ratio(statistics.fmean(after), statistics.fmean(before))
    return {
        "run": seen["plan"]["run"],
        "compared": len(quiet),
        "p50_ratio": ratio(percentile(noisy, 0.5), percentile(quiet, 0.5)),
        "p99_ratio": ratio(percentile(noisy, 0.99), percentile(quiet, 0.99)),
        "cooldown_p99_ratio": ratio(percentile(cooled, 0.99), percentile(again, 0.99)),
        "mean_ratios": means,
        "delayed_at_first": _delayed([request for request in every if request.at < felt]),
        "delayed_later": ratio(_delayed(counted), len(quiet)),
        "unanswered": sum(r.tenant != NOISY and r.how != ANSWERED for r in every),
        "per_second": {phase: _per_second(seen, phase) for phase in ("quiet", "noisy")},
        "tenants": {
            tenant: {phase: sampler_row(every, [tenant], phase, seconds) for phase in PHASES} for tenant in TENANTS
        },
        "all_tenants": {phase: sampler_row(every, TENANTS, phase, seconds) for phase in PHASES},
        "lag_p99_ms": seen["lag_p99_ms"],
        "load_average": seen["load_average"],
        "blast": blast(seen, every),
    }


def _felt_until(seen: Mapping[str, Any]) -> float:
    """Return when the first hanging deliveries are over, in seconds since the trial began; 0.0 where nothing hangs."""
    plan = seen["plan"]
    return float(seen["began"]["noisy"]) + Length(plan["seconds"]).hang + 1 if plan["noise"] == HANG else 0.0


def _delayed(counted: Sequence[TrialRequest]) -> int:
    """Count the quiet tenants' requests that took DELAYED_SECONDS longer than the same ones in the quiet phase."""
    quiet, noisy = same_requests(counted, "noisy", QUIET_TENANTS)
    return sum(after > before + DELAYED_SECONDS for before, after in zip(quiet, noisy, strict=True))


def _per_second(seen: Mapping[str, Any], phase: str) -> float:
    """Return how many requests of all tenants were answered in a second of a phase."""
    began = float(seen["began"][phase])
    ended = began + float(seen["plan"]["seconds"])
    every = (TrialRequest(*values) for values in seen["requests"])
    answered = sum(r.how == ANSWERED and began <= r.at + r.seconds < ended for r in every)
    return round(answered / (ended - began), 2)


def sampler_row(
    counted: Sequence[TrialRequest], tenants: Iterable[int], phase: str, seconds: float
) -> dict[str, float]:
    """Return the columns of the slides' test for the requests of these tenants in a phase: times in milliseconds, the
    share of requests without an answer in percent, and requests in a second of the phase."""
    wanted = set(tenants)
    those = [request for request in counted if request.tenant in wanted and request.phase == phase]
    took = [request.seconds * 1000 for request in those]
    errors = sum(request.how != ANSWERED for request in those)
    return {
        "requests": len(those),
        "mean": round(statistics.fmean(took), 1) if took else 0.0,
        **{f"p{share}": round(percentile(took, share / 100), 1) for share in (50, 90, 95, 99)},
        "min": round(min(took, default=0.0), 1),
        "max": round(max(took, default=0.0), 1),
        "errors_percent": round(100 * errors / len(those), 2) if those else 0.0,
        "per_second": round(len(those) / seconds, 2),
    }


def blast(seen: Mapping[str, Any], counted: Sequence[TrialRequest]) -> dict[str, Any]:
    """Count who was reached: workers and tenants."""
    ledger, design = seen["ledger"], DESIGNS[seen["plan"]["design"]]
    deaths = ledger["deaths"]
    beside = {tenant for _, _, had in deaths for tenant in had} - {NOISY}
    return {
        "workers_of_noisy": ledger["reached"].get(str(NOISY), ledger["reached"].get(NOISY, [])),
        "reach": sorted(design.reach(NOISY)),
        "deaths": len(deaths),
        "workers_killed": sorted({worker for worker, _, _ in deaths}),
        "tenants_beside_a_death": sorted(beside),
        "recovery_seconds": _recovery_seconds(counted, deaths),
        "most_at_a_worker": _of_noisy(ledger["most_at_a_worker"]),
        "most_in_all": _of_noisy(ledger["most_in_all"]),
    }


def _of_noisy(counts: Mapping[Any, int]) -> int:
    return counts.get(str(NOISY), counts.get(NOISY, 0))


def _recovery_seconds(counted: Sequence[TrialRequest], deaths: Sequence[Any]) -> float:
    """Return how long after the last death of a worker the last late request of a quiet tenant was answered."""
    if not deaths:
        return 0.0
    last = max(at for _, at, _ in deaths)
    own = {(r.tenant, r.number): r.seconds for r in counted if r.phase == "quiet" and r.client == 0}
    late = [
        r.at + r.seconds - last
        for r in counted
        if r.tenant != NOISY
        and r.at + r.seconds > last
        and r.seconds > own.get((r.tenant, r.number), LATE_SECONDS) + LATE_SECONDS
    ]
    return round(max(late, default=0.0), 2)


def summary(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the median of the runs of one design and noise, and the runs."""
    means = {
        tenant: statistics.median(run["mean_ratios"][tenant] for run in runs if tenant in run["mean_ratios"])
        for tenant in QUIET_TENANTS
        if any(tenant in run["mean_ratios"] for run in runs)
    }
    return {
        "p50_ratio": round(statistics.median(run["p50_ratio"] for run in runs), 3),
        "p99_ratio": round(statistics.median(run["p99_ratio"] for run in runs), 3),
        "p99_ratios": sorted(run["p99_ratio"] for run in runs),
        "cooldown_p99_ratio": round(statistics.median(run["cooldown_p99_ratio"] for run in runs), 3),
        "worst_mean_ratio": round(max(means.values(), default=0.0), 3),
        "hit": [tenant for tenant, mean in means.items() if mean > HIT_MEAN],
        "per_second": round(statistics.median(run["per_second"]["noisy"] for run in runs), 1),
        "delayed_at_first": max(run["delayed_at_first"] for run in runs),
        "delayed_later": statistics.median(run["delayed_later"] for run in runs),
        "unanswered": max(run["unanswered"] for run in runs),
        "lag_p99_ms": max(max(run["lag_p99_ms"].values()) for run in runs),
        "runs": list(runs),
    }
