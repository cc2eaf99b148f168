"""Turn what was seen in trials into figures, and say whether the promises hold: both were declared before any run.

A request without an answer counts with the time for which it was waited for. The first requests of each phase settle
the queues and are not compared. Beside poison that hangs, nor are those begun while the first deliveries hang, as many
as the cap: these are felt, and how many they delay is a figure of its own. Promises are made of our own design alone.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from delivery.queues.limits import SUSPECT_SECONDS
from proofs.noise import flood_trial
from proofs.noise.closed_loop import NOISY, QUIET_TENANTS, TENANTS, ClientRequest, percentile, ratio
from proofs.noise.designs import DESIGNS, ONE, OURS
from proofs.noise.queue_trial import ANSWERED, HANG_SHARE, NOISES, PHASES, RESTART_SECONDS, VISIBILITY_SECONDS
from proofs.noise.trials import Plan

ENOUGH_SECONDS: Final = 10.0  # the shortest phase of which times are judged
RUNS: Final = 3  # of our own design, of which the median counts
OTHERS_SHARE: Final = 0.42  # of the seconds of our phases: nothing is promised of the other designs' percentiles
SETTLING_REQUESTS: Final = 5  # of each client at the beginning of a phase, which are not compared
DELAYED_SECONDS: Final = 0.2
LATE_SECONDS: Final = 1.0  # that a request takes longer than the same one in the quiet phase, to count as late
DELAYED: Final = 30
# Another takes the dead worker's place, what it had is seen again, and of what it had one runs at a time.
RECOVERY_SECONDS: Final = RESTART_SECONDS + VISIBILITY_SECONDS + SUSPECT_SECONDS

_BEHIND: Final = ("load", "slow", "hang")
_FLOODS: Final = tuple(flood_trial.FLOODS)
# Of which noises, what is promised, its figure, between which bounds, and the shortest phases that tell of it.
PROMISES: Final = (
    (("load", "slow"), "p99 of the quiet tenants, noisy to quiet,", "p99_ratio", (0, 1.05), ENOUGH_SECONDS),
    (("hang",), "requests that the first hanging deliveries delay:", "delayed_at_first", (0, DELAYED), ENOUGH_SECONDS),
    (("hang",), "the share of requests delayed behind them:", "delayed_later", (0, 0.01), ENOUGH_SECONDS),
    (_BEHIND, "the worst quiet tenant's mean, noisy to quiet,", "worst_mean_ratio", (0, 1.10), ENOUGH_SECONDS),
    (_BEHIND, "throughput as a share of the single queue's", "throughput_share", (0.8, float("inf")), ENOUGH_SECONDS),
    (("kill",), "workers killed that the noisy tenant does not reach:", "killed_elsewhere", (0, 0), 0),
    (("kill",), "tenants hit that share no worker with it:", "hit_elsewhere", (0, 0), 0),
    (("kill",), "requests of quiet tenants without an answer:", "unanswered", (0, 0), 0),
    (
        ("kill",), "seconds from the last death to the last late answer:", "recovery_seconds", (0, RECOVERY_SECONDS),
        ENOUGH_SECONDS,
    ),
    (_FLOODS, "requests of quiet tenants refused:", "quiet_refused", (0, 0), 0),
    (_FLOODS, "requests that failed:", "failed", (0, 0), 0),
    (
        _FLOODS, "p99 of the quiet tenants, noisy to quiet,", "p99_ratio", (0, 1.25), flood_trial.ENOUGH_SECONDS,
    ),
    (
        _FLOODS, "let through, as a share of its budget,", "through_share", (0.95, 1.05), flood_trial.ENOUGH_SECONDS,
    ),
)  # fmt: skip
Found = Mapping[str, Any]


def judge(found: Mapping[str, Found], *, seconds: float) -> list[dict[str, Any]]:
    """Return each promise that the figures, by noise or flood, can tell of, and whether it is kept."""
    promises = []
    for noises, what, figure, (least, most), enough in PROMISES:
        for noise in noises:
            if seconds >= enough and figure in found.get(noise, ()):
                value, flood = found[noise][figure], "A flood of " * (noise in _FLOODS)
                bounds = f"at least {least:g}" if most == float("inf") else f"{least:g} to {most:g}"
                said = f"{flood}{noise}: {what} {value:g}, promised {bounds}."
                promises.append({"kept": least <= value <= most, "sentence": said})
    return promises


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
        for name in DESIGNS
        if not design or name in (design, ONE)
        if run == 1 or (name == OURS and noise != "kill" and seconds >= ENOUGH_SECONDS)
    ]


def requests(seen: Found) -> list[ClientRequest]:
    least = SETTLING_REQUESTS if seen["plan"]["seconds"] >= ENOUGH_SECONDS else 0
    return [one for one in (ClientRequest(*values) for values in seen["requests"]) if one.number >= least]


def _pairs(counted: Iterable[ClientRequest], tenants: Iterable[int] = QUIET_TENANTS) -> list[tuple[float, float]]:
    """Return the seconds that the same request took in the quiet phase and in the noisy one."""
    took: dict[str, dict[tuple[int, int], float]] = {phase: {} for phase in PHASES}
    for one in counted:
        if one.tenant in tenants and one.client == 0:
            took[one.phase][one.tenant, one.number] = one.seconds
    both = took["quiet"].keys() & took["noisy"].keys()
    return [(took["quiet"][key], took["noisy"][key]) for key in sorted(both)]


def _compared(pairs: Sequence[tuple[float, float]]) -> float:
    quiet, noisy = zip(*pairs, strict=True) if pairs else ((), ())
    return ratio(percentile(noisy, 0.99), percentile(quiet, 0.99))


def _delayed(counted: Iterable[ClientRequest]) -> int:
    return sum(noisy > quiet + DELAYED_SECONDS for quiet, noisy in _pairs(counted))


def figures(seen: Found) -> dict[str, Any]:
    plan, every, design = seen["plan"], requests(seen), DESIGNS[seen["plan"]["name"]]
    began, seconds = float(seen["began"]["noisy"]), float(plan["seconds"])
    felt = began + seconds * HANG_SHARE + 1 if plan["noise"] == "hang" else 0.0
    counted = [one for one in every if one.phase != "noisy" or one.at >= felt]
    means = {
        tenant: ratio(sum(noisy for _, noisy in pairs), sum(quiet for quiet, _ in pairs))
        for tenant in QUIET_TENANTS
        if (pairs := _pairs(counted, [tenant]))
    }
    ends = [at + took for _, _, _, _, at, took, how in seen["requests"] if how == ANSWERED]
    deaths = seen["notes"]["deaths"]
    killed, hit = {worker for worker, _, _ in deaths}, {tenant for _, _, had in deaths for tenant in had} - {NOISY}
    last = max((at for _, at, _ in deaths), default=float("inf"))
    own = {(one.tenant, one.number): one.seconds for one in every if one.phase == "quiet"}
    late = [
        one.at + one.seconds - last
        for one in every
        if one.tenant != NOISY and one.seconds > own.get((one.tenant, one.number), LATE_SECONDS) + LATE_SECONDS
    ]
    return {
        "p99_ratio": _compared(_pairs(counted)),
        "mean_ratios": means,
        "delayed_at_first": _delayed(one for one in every if one.at < felt),
        "delayed_later": ratio(_delayed(counted), len(_pairs(counted))),
        "unanswered": sum(one.tenant != NOISY and one.how != ANSWERED for one in every),
        "per_second": round(sum(began <= end < began + seconds for end in ends) / seconds, 2),
        "deaths": len(deaths),
        "killed_elsewhere": len(killed - design.reach(NOISY)),
        "hit_elsewhere": len(hit - design.sharing()),
        "recovery_seconds": round(max([0.0, *late]), 2),
        "tenants": [
            {"tenant": tenant, "phase": phase, **_sampler_row(every, wanted, phase, seconds)}
            for phase in PHASES
            for tenant, wanted in (*((number, [number]) for number in TENANTS), ("all", TENANTS))
        ],
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


def summary(runs: Sequence[Found], single: Sequence[Found] = ()) -> dict[str, Any]:
    """Return the median of the runs of one design and noise, or the worst of what must not be at all; and their
    throughput as a share of that of the single queue, where that was tried."""
    medians = ("p99_ratio", "per_second", "delayed_later")
    worst = ("delayed_at_first", "unanswered", "recovery_seconds", "deaths", "killed_elsewhere", "hit_elsewhere")
    found = {name: round(statistics.median(run[name] for run in runs), 3) for name in medians}
    found |= {name: max(run[name] for run in runs) for name in worst}
    means = [
        statistics.median(run["mean_ratios"].get(tenant, 0.0) for run in runs) for tenant in runs[0]["mean_ratios"]
    ]
    found["worst_mean_ratio"] = round(max(means, default=0.0), 3)
    if single and (theirs := statistics.median(run["per_second"] for run in single)):
        found["throughput_share"] = round(found["per_second"] / theirs, 3)
    return found


def plot(rows: Sequence[Found], label: str) -> SafeString:
    """Draw the 99th percentile of each tenant in each phase, as a bar for each."""
    shown = [row for row in rows if row["tenant"] != "all"]
    top = max((row["p99"] for row in shown), default=0.0) or 1.0
    shades = dict(zip(PHASES, ("#7a9", "#b33", "#bbb"), strict=True))
    bars = format_html_join(
        "",
        '<rect x="{}" y="{}" width="4" height="{}" fill="{}"><title>tenant {}, {}: {} ms</title></rect>',
        (
            (row["tenant"] * 16 + 4 * PHASES.index(row["phase"]), round(120 - height, 1), round(height, 1),
             shades[row["phase"]], row["tenant"], row["phase"], row["p99"])
            for row in shown
            for height in [115 * row["p99"] / top]
        ),
    )  # fmt: skip
    return format_html('<svg viewBox="0 0 350 122" role="img" aria-label="{}">{}</svg>', label, bars)
