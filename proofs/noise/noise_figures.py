"""Turn what was seen in trials into figures, and say whether the promises hold: both were declared before any run.

A request without an answer counts with the time for which it was waited for. The first requests of each phase settle
the queues and are not compared. Beside poison that hangs, nor are those begun while the first deliveries hang, as many
as the cap: these are felt, and how many they delay is a figure of its own. Promises are made of our own design alone.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from delivery.queues.limits import SUSPECT_SECONDS
from proofs.noise import flood_trial
from proofs.noise.closed_loop import NOISY, QUIET_TENANTS, TENANTS, ClientRequest, Plan, percentile, ratio
from proofs.noise.designs import DESIGNS, ONE, OURS
from proofs.noise.queue_trial import ANSWERED, HANG_SHARE, NOISES, PHASES, RESTART_SECONDS, VISIBILITY_SECONDS

ENOUGH_SECONDS: Final = 10.0  # the shortest phase of which times are judged
RUNS: Final = 3  # of our own design, of which the median counts
OTHERS_SHARE: Final = 0.42  # of the seconds of our phases: nothing is promised of the other designs' percentiles
SETTLING_REQUESTS: Final = 5  # of each client at the beginning of a phase, which are not compared
HIT_MEAN: Final = 1.10  # a tenant whose mean grows by more is hit
DELAYED_SECONDS: Final = 0.2
LATE_SECONDS: Final = 1.0  # that a request takes longer than the same one in the quiet phase, to count as late
P99_RATIO: Final = 1.05
DELAYED: Final = 30  # requests of the quiet tenants, by the first hanging deliveries
DELAYED_SHARE: Final = 0.01  # of those begun when these are over
THROUGHPUT_SHARE: Final = 0.8  # of the single queue's
# Another takes the dead worker's place, what it had is seen again, and of what it had one runs at a time.
RECOVERY_SECONDS: Final = RESTART_SECONDS + VISIBILITY_SECONDS + SUSPECT_SECONDS
FLOOD_P99_RATIO: Final = 1.25
BUDGET_SHARE: Final = 0.05

Found = Mapping[str, Any]


def plans(design: str, seconds: float) -> list[Plan]:
    """Return the trials of one design and of the single queue, to which it is compared; of all designs without a name.

    Our own design is tried three times for each noise whose times are judged, the rest once. Phases of the other
    designs are shorter, where that is long enough.
    """
    others = max(round(seconds * OTHERS_SHARE, 1), min(seconds, ENOUGH_SECONDS))
    return [
        Plan(name, noise, run, seconds if name == OURS else others)
        for run in range(1, RUNS + 1)
        for noise in NOISES
        for name in (DESIGNS if noise != "letters" else [OURS])  # the designs differ in what is behind that queue
        if not design or name in (design, ONE)
        if run == 1 or (name == OURS and noise != "kill" and seconds >= ENOUGH_SECONDS)
    ]


def requests(seen: Found) -> list[ClientRequest]:
    least = SETTLING_REQUESTS if seen["plan"]["seconds"] >= ENOUGH_SECONDS else 0
    return [one for one in (ClientRequest(*values) for values in seen["requests"]) if one.number >= least]


def _pairs(
    counted: Iterable[ClientRequest], phase: str, tenants: Iterable[int] = QUIET_TENANTS
) -> list[tuple[float, float]]:
    """Return the seconds that the same request took in the quiet phase and in another."""
    wanted = set(tenants)
    by_phase: dict[str, dict[tuple[int, int], float]] = {"quiet": {}, phase: {}}
    for one in counted:
        if one.tenant in wanted and one.client == 0 and one.phase in by_phase:
            by_phase[one.phase][one.tenant, one.number] = one.seconds
    both = by_phase["quiet"].keys() & by_phase[phase].keys()
    return [(by_phase["quiet"][key], by_phase[phase][key]) for key in sorted(both)]


def _compared(pairs: Sequence[tuple[float, float]], share: float) -> float:
    quiet, other = zip(*pairs, strict=True) if pairs else ((), ())
    return ratio(percentile(other, share), percentile(quiet, share))


def _delayed(counted: Iterable[ClientRequest]) -> int:
    return sum(other > quiet + DELAYED_SECONDS for quiet, other in _pairs(counted, "noisy"))


def figures(seen: Found) -> dict[str, Any]:
    plan, every = seen["plan"], requests(seen)
    seconds = float(plan["seconds"])
    felt = float(seen["began"]["noisy"]) + seconds * HANG_SHARE + 1 if plan["noise"] == "hang" else 0.0
    counted = [one for one in every if one.phase != "noisy" or one.at >= felt]
    noisy, cooled = _pairs(counted, "noisy"), _pairs(counted, "cooldown")
    by_tenant = {tenant: _pairs(counted, "noisy", [tenant]) for tenant in QUIET_TENANTS}
    began = float(seen["began"]["noisy"])
    answered = [ClientRequest(*values) for values in seen["requests"]]
    return {
        "compared": len(noisy),
        "p50_ratio": _compared(noisy, 0.5),
        "p99_ratio": _compared(noisy, 0.99),
        "cooldown_p99_ratio": _compared(cooled, 0.99),
        "mean_ratios": {
            tenant: ratio(sum(after for _, after in pairs), sum(before for before, _ in pairs))
            for tenant, pairs in by_tenant.items()
            if pairs
        },
        "delayed_at_first": _delayed(one for one in every if one.at < felt),
        "delayed_later": ratio(_delayed(counted), len(noisy)),
        "unanswered": sum(one.tenant != NOISY and one.how != ANSWERED for one in every),
        "per_second": round(
            sum(one.how == ANSWERED and began <= one.at + one.seconds < began + seconds for one in answered) / seconds,
            2,
        ),
        "tenants": [
            {"tenant": tenant, "phase": phase, **_sampler_row(every, wanted, phase, seconds)}
            for phase in PHASES
            for tenant, wanted in (*((number, [number]) for number in TENANTS), ("all", TENANTS))
        ],
        "lag_p99_ms": seen["lag_p99_ms"],
        "load_average": seen["load_average"],
        **_blast(seen, every),
    }


def _sampler_row(
    counted: Iterable[ClientRequest], tenants: Iterable[int], phase: str, seconds: float
) -> dict[str, float]:
    """Return the columns of the slides' test: times in milliseconds, the share of requests without an answer in
    percent, and requests in a second of the phase."""
    those = [one for one in counted if one.tenant in tenants and one.phase == phase]
    took = [one.seconds * 1000 for one in those] or [0.0]
    return {
        "requests": len(those),
        "mean": round(statistics.fmean(took), 1),
        **{f"p{share}": round(percentile(took, share / 100), 1) for share in (50, 90, 95, 99)},
        "min": round(min(took), 1),
        "max": round(max(took), 1),
        "errors_percent": round(100 * sum(one.how != ANSWERED for one in those) / (len(those) or 1), 2),
        "per_second": round(len(those) / seconds, 2),
    }


def _blast(seen: Found, counted: Sequence[ClientRequest]) -> dict[str, Any]:
    """Say which workers and tenants were reached, and how long after the last death of a worker the last late request
    of a quiet tenant was answered."""
    notes, reach = seen["notes"], DESIGNS[seen["plan"]["name"]].reach(NOISY)
    last = max((at for _, at, _ in notes["deaths"]), default=float("inf"))
    own = {(one.tenant, one.number): one.seconds for one in counted if one.phase == "quiet"}
    late = [
        one.at + one.seconds - last
        for one in counted
        if one.tenant != NOISY and one.seconds > own.get((one.tenant, one.number), LATE_SECONDS) + LATE_SECONDS
    ]
    return {
        "workers_of_noisy": notes["reached"],
        "reach": sorted(reach),
        "deaths": len(notes["deaths"]),
        "workers_killed": sorted({worker for worker, _, _ in notes["deaths"]}),
        "tenants_beside_a_death": sorted({tenant for _, _, had in notes["deaths"] for tenant in had} - {NOISY}),
        "recovery_seconds": round(max([0.0, *late]), 2),
        "most_at_a_worker": notes["most_at_a_worker"],
        "most_in_all": notes["most_in_all"],
    }


def summary(runs: Sequence[Found]) -> dict[str, Any]:
    """Return the median of the runs of one design and noise, or the worst of what must not be at all."""
    means = {
        tenant: statistics.median(run["mean_ratios"][tenant] for run in runs if tenant in run["mean_ratios"])
        for tenant in {tenant for run in runs for tenant in run["mean_ratios"]}
    }
    medians = ("p50_ratio", "p99_ratio", "cooldown_p99_ratio", "per_second", "delayed_later")
    worst = ("delayed_at_first", "unanswered", "lag_p99_ms", "recovery_seconds", "deaths", "most_in_all")
    return {
        **{name: round(statistics.median(run[name] for run in runs), 3) for name in medians},
        **{name: max(run[name] for run in runs) for name in worst},
        "p99_ratios": sorted(run["p99_ratio"] for run in runs),
        "worst_mean_ratio": round(max(means.values(), default=0.0), 3),
        "hit": [tenant for tenant, mean in sorted(means.items()) if mean > HIT_MEAN],
        "workers_killed": sorted({worker for run in runs for worker in run["workers_killed"]}),
        "tenants_beside_a_death": sorted({tenant for run in runs for tenant in run["tenants_beside_a_death"]}),
    }


# --- promises ---


@dataclass(frozen=True)
class NoisePromise:
    what: str
    found: float
    most: float
    least: float = 0.0

    def document(self) -> dict[str, Any]:
        bounds = f"{self.least:g} to {self.most:g}" if self.most != float("inf") else f"at least {self.least:g}"
        bound = bounds if self.least else f"at most {self.most:g}"
        kept = self.least <= self.found <= self.most
        return {"kept": kept, "sentence": f"{self.what} {self.found:g}, promised {bound}."}


def judge(summaries: Mapping[tuple[str, str], Found], *, with_times: bool) -> list[NoisePromise]:
    """Return every promise that the summaries, by noise and design, can tell of. Short phases tell of counts only."""
    found = []
    for noise in NOISES:
        ours, one = summaries.get((noise, OURS)), summaries.get((noise, ONE), {})
        if ours is not None and noise == "kill":
            found += _of_kills(ours, with_times=with_times)
        elif ours is not None and with_times:
            found += _of_times(noise, ours, one)
    return found


def _of_times(noise: str, ours: Found, one: Found) -> list[NoisePromise]:
    worst = NoisePromise(f"{noise}: the worst quiet tenant's mean, noisy to quiet,", ours["worst_mean_ratio"], HIT_MEAN)
    promises = [NoisePromise(f"{noise}: p99 of the quiet tenants, noisy to quiet,", ours["p99_ratio"], P99_RATIO)]
    if noise == "hang":
        at_first, later = ours["delayed_at_first"], ours["delayed_later"]
        promises = [
            NoisePromise(f"{noise}: requests that the first hanging deliveries delay:", at_first, DELAYED),
            NoisePromise(f"{noise}: the share of requests delayed behind them:", later, DELAYED_SHARE),
        ]
    if one.get("per_second"):
        share = round(ours["per_second"] / one["per_second"], 3)
        what = f"{noise}: throughput as a share of the single queue's"
        return [*promises, worst, NoisePromise(what, share, float("inf"), THROUGHPUT_SHARE)]
    return [*promises, worst]


def _of_kills(ours: Found, *, with_times: bool) -> list[NoisePromise]:
    design = DESIGNS[OURS]
    killed = set(ours["workers_killed"]) - design.reach(NOISY)
    hit = set(ours["tenants_beside_a_death"]) - design.sharing()
    late = NoisePromise(
        "kill: seconds from the last death to the last late answer:", ours["recovery_seconds"], RECOVERY_SECONDS
    )
    return [
        NoisePromise("kill: workers killed that the noisy tenant does not reach:", len(killed), 0),
        NoisePromise("kill: tenants hit that share no worker with it:", len(hit), 0),
        NoisePromise("kill: requests of quiet tenants without an answer:", ours["unanswered"], 0),
        *([late] if with_times else []),
    ]


def judge_flood(found: Found, *, seconds: float) -> list[NoisePromise]:
    """Return every promise that the figures of a flood can tell of. Short phases tell of counts only."""
    flood = f"A flood of {found['name']}"
    promises = [
        NoisePromise(f"{flood}: requests of quiet tenants refused:", found["quiet_refused"], 0),
        NoisePromise(f"{flood}: requests that failed:", found["failed"], 0),
    ]
    if seconds >= flood_trial.ENOUGH_SECONDS:
        share, (least, most) = found["through_share"], (1 - BUDGET_SHARE, 1 + BUDGET_SHARE)
        promises += [
            NoisePromise(f"{flood}: p99 of the quiet tenants, noisy to quiet,", found["p99_ratio"], FLOOD_P99_RATIO),
            NoisePromise(f"{flood}: let through, as a share of its budget,", share, most, least),
        ]
    return promises


def plot(rows: Sequence[Found], label: str) -> SafeString:
    """Draw the 99th percentile of each tenant in each phase, as a bar for each."""
    shown = [row for row in rows if row["tenant"] != "all"]
    top = max((row["p99"] for row in shown), default=0.0) or 1.0
    shades = dict(zip(PHASES, ("#7a9", "#b33", "#bbb"), strict=True))
    bars = (
        (
            int(row["tenant"]) * 16 + 4 * PHASES.index(row["phase"]), round(120 - 115 * row["p99"] / top, 1),
            round(115 * row["p99"] / top, 1), shades[row["phase"]], row["tenant"], row["phase"], row["p99"],
        )
        for row in shown
    )  # fmt: skip
    drawn = format_html_join(
        "",
        '<rect x="{}" y="{}" width="4" height="{}" fill="{}"><title>tenant {}, {}: {} ms</title></rect>',
        bars,
    )
    return format_html('<svg viewBox="0 0 350 122" role="img" aria-label="{}">{}</svg>', label, drawn)
