"""Say whether the promises hold: they were made before the run, for our own design alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from delivery.consuming.slots import SUSPECT_SECONDS
from proofs.noise.deeds import HANG
from proofs.noise.designs import DESIGNS, ONE, OURS
from proofs.noise.trial_figures import HIT_MEAN
from proofs.noise.workload import NOISES, NOISY, RESTART_SECONDS, TENANTS, VISIBILITY_SECONDS

P99_RATIO: Final = 1.05
DELAYED: Final = 30  # requests of the quiet tenants, by the first hanging deliveries
DELAYED_SHARE: Final = 0.01  # of those begun when these are over
THROUGHPUT_SHARE: Final = 0.8  # of the single queue's
# Another takes the dead worker's place, what it had is seen again, and of what it had one runs at a time.
RECOVERY_SECONDS: Final = RESTART_SECONDS + VISIBILITY_SECONDS + SUSPECT_SECONDS

Summaries = Mapping[tuple[str, str], Mapping[str, Any]]  # by noise and design


@dataclass(frozen=True)
class NoisePromise:
    """One promise and what became of it. `at_most` says on which side of the bound it is kept."""

    noise: str
    what: str
    found: float
    bound: float
    at_most: bool = True

    @property
    def kept(self) -> bool:
        return self.found <= self.bound if self.at_most else self.found >= self.bound

    @property
    def sentence(self) -> str:
        side = "at most" if self.at_most else "at least"
        return f"{NOISES[self.noise].title}: {self.what} {self.found:g}, promised {side} {self.bound:g}."


def judge(summaries: Summaries, *, with_times: bool) -> list[NoisePromise]:
    """Return every promise that the summaries can tell of. Phases that were too short tell of counts only."""
    found: list[NoisePromise] = []
    for noise, described in NOISES.items():
        ours = summaries.get((noise, OURS))
        if ours is None:
            continue
        if described.kills:
            found += _of_kills(noise, ours)
        elif with_times:
            found += _of_times(noise, ours)
        if with_times:
            found += _of_recovery(noise, ours) if described.kills else _of_throughput(noise, ours, summaries)
    return found


def _of_times(noise: str, ours: Mapping[str, Any]) -> list[NoisePromise]:
    worst = ours["worst_mean_ratio"]
    mean = NoisePromise(noise, "the worst quiet tenant's mean, noisy to quiet,", worst, HIT_MEAN)
    if noise != HANG:
        return [NoisePromise(noise, "p99 of the quiet tenants, noisy to quiet,", ours["p99_ratio"], P99_RATIO), mean]
    at_first, later = ours["delayed_at_first"], ours["delayed_later"]
    return [
        NoisePromise(noise, "requests that the first hanging deliveries delay:", at_first, DELAYED),
        NoisePromise(noise, "the share of requests delayed behind them:", later, DELAYED_SHARE),
        mean,
    ]


def _of_kills(noise: str, ours: Mapping[str, Any]) -> list[NoisePromise]:
    design = DESIGNS[OURS]
    outside = {tenant for tenant in TENANTS if tenant != NOISY} - design.sharing()
    blasts = [run["blast"] for run in ours["runs"]]
    killed = {worker for blast in blasts for worker in blast["workers_killed"]} - design.reach(NOISY)
    hit = outside & {tenant for blast in blasts for tenant in blast["tenants_beside_a_death"]}
    return [
        NoisePromise(noise, "workers killed that the noisy tenant does not reach:", len(killed), 0),
        NoisePromise(noise, "tenants hit that share no worker with it:", len(hit), 0),
        NoisePromise(noise, "requests of quiet tenants without an answer:", ours["unanswered"], 0),
    ]


def _of_recovery(noise: str, ours: Mapping[str, Any]) -> list[NoisePromise]:
    late = max(run["blast"]["recovery_seconds"] for run in ours["runs"])
    return [NoisePromise(noise, "seconds from the last death to the last late answer:", late, RECOVERY_SECONDS)]


def _of_throughput(noise: str, ours: Mapping[str, Any], summaries: Summaries) -> list[NoisePromise]:
    one = summaries.get((noise, ONE))
    if one is None or not one["per_second"]:
        return []
    share = round(ours["per_second"] / one["per_second"], 3)
    what = "throughput as a share of the single queue's"
    return [NoisePromise(noise, what, share, THROUGHPUT_SHARE, at_most=False)]
