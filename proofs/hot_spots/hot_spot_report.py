"""Measure all three, judge, and report: everything as JSON, and one page with plots for people."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from django.template import Context, Engine

from proofs.hot_spots import heat_plots, heat_promises, page_prices, suffix_skew
from proofs.hot_spots.key_designs import KEY_DESIGNS, OURS
from proofs.hot_spots.page_prices import PagePrice
from proofs.hot_spots.partition_buckets import BURST_SECONDS
from proofs.hot_spots.suffix_skew import MOST_SHARDS_TRIED, Skew
from proofs.hot_spots.throttle_trial import ThrottleCount, ThrottlePlan, ThrottleTrial

_TEMPLATE: Final = Path(__file__).with_name("hot_spot_report.html")
_TOLD_SHARDS: Final = (8, 16, 100, 200)


@dataclass(frozen=True)
class HotSpotPlan:
    """Say how much is measured. `hot` is the product's setting, in write units a second."""

    hot: float
    every: tuple[int, ...] = tuple(range(1, MOST_SHARDS_TRIED + 1))
    uuid_sets: int = 25
    row_kb: int = 1
    tickets: int = page_prices.TICKETS


QUICK: Final[Mapping[str, Any]] = {"every": (1, *_TOLD_SHARDS), "uuid_sets": 5, "row_kb": 40, "tickets": 120}


@dataclass(frozen=True)
class HotSpotsSeen:
    """All that was measured. `of_uuids` is the skew of ours for some sets of UUIDs, least first."""

    plan: HotSpotPlan
    skews: list[Skew]
    of_uuids: list[float]
    trials: list[ThrottleTrial]
    prices: list[PagePrice]


def throttle_plans(plan: HotSpotPlan) -> list[ThrottlePlan]:
    """Return the trials: each design with nothing saved, and ours with what DynamoDB saves, too."""
    bursts = [(name, 0.0) for name in KEY_DESIGNS] + [(OURS, BURST_SECONDS)]
    return [ThrottlePlan(name, burst, plan.hot, plan.row_kb) for name, burst in bursts]


def steps(plan: HotSpotPlan) -> int:
    """Return how often `measure` will say that something is done."""
    return len(throttle_plans(plan)) + len(page_prices.SHARDS) + 1


def measure(plan: HotSpotPlan, done: Callable[[], object]) -> HotSpotsSeen:
    """Measure all. Raises Forbidden without DEBUG or with a real DynamoDB, and Unavailable."""
    prices = page_prices.measured(tickets=plan.tickets, done=done)
    skews, of_uuids = suffix_skew.measured(plan.every), suffix_skew.of_uuids(plan.uuid_sets)
    done()
    trials = []
    for one in throttle_plans(plan):
        trials.append(ThrottleTrial(one).run())
        done()
    return HotSpotsSeen(plan, skews, of_uuids, trials, prices)


def document(seen: HotSpotsSeen) -> dict[str, Any]:
    """Return everything, as JSON has it."""
    judged = heat_promises.judge(seen.skews, seen.of_uuids, seen.trials, seen.prices)
    missed = sum(not promise.kept for promise in judged)
    verdict = f"{missed} of {len(judged)} promises are not kept." if missed else f"All {len(judged)} promises are kept."
    return {
        "verdict": verdict,
        "holds": not missed,
        "plan": asdict(seen.plan),
        "promises": [asdict(one) | {"kept": one.kept, "sentence": one.sentence} for one in judged],
        "skews": [asdict(skew) for skew in seen.skews],
        "uuid_skews": seen.of_uuids,
        "trials": [_trial(trial) for trial in seen.trials],
        "prices": [asdict(price) | {"ratio": page_prices.ratio(seen.prices, price.shards)} for price in seen.prices],
    }


def _trial(trial: ThrottleTrial) -> dict[str, Any]:
    begun = trial.begun[0][0] if trial.begun else trial.seconds
    ended = trial.ended[0][0] if trial.ended else trial.seconds
    writes = trial.writes
    return asdict(trial.plan) | {
        "title": KEY_DESIGNS[trial.plan.design].title,
        "seconds": round(trial.seconds),
        "begun": trial.begun,
        "ended": trial.ended,
        "noisy_before": round(writes.share(noisy=True, until=begun), 4),
        "noisy_during": round(writes.share(noisy=True, since=begun, until=ended), 4) if trial.begun else None,
        "noisy_after": round(heat_promises.after(trial), 4) if trial.ended else None,
        "quiet": round(writes.share(noisy=False), 4),
        "reads": round(max(trial.reads.share(noisy=True), trial.reads.share(noisy=False)), 4),
        "by_second": _by_second(writes, round(trial.seconds)),
    }


def _by_second(count: ThrottleCount, seconds: int) -> list[float]:
    return [round(count.share(noisy=True, since=second, until=second + 1), 3) for second in range(seconds)]


def to_json(found: Mapping[str, Any]) -> str:
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def to_html(found: Mapping[str, Any]) -> str:
    """Return one page without outside resources. Django's template engine escapes all that it shows."""
    page = Engine(autoescape=True).from_string(_TEMPLATE.read_text(encoding="utf-8"))
    kinds = list(dict.fromkeys(skew["ids"] for skew in found["skews"]))
    sections = [{"ids": ids, "rows": _rows(found, ids), "svg": _skew_plot(found, ids)} for ids in kinds]
    throttled = {
        f"{trial['title']}, {trial['burst_seconds']:g} s saved": list(enumerate(trial["by_second"]))
        for trial in found["trials"]
        if trial["design"] == OURS
    }
    plot = heat_plots.lines(throttled, label="Throttled share of writes by second", ticks=(0, 0.25, 0.5, 0.75, 1))
    return page.render(Context({**found, "sections": sections, "throttled": plot, "told": _TOLD_SHARDS}))


def _rows(found: Mapping[str, Any], ids: str) -> list[dict[str, Any]]:
    of_ids = [skew for skew in found["skews"] if skew["ids"] == ids]
    names = dict.fromkeys(skew["function"] for skew in of_ids)
    by_shards = {(skew["function"], skew["shards"]): skew["fullest_to_mean"] for skew in of_ids}
    return [{"name": name, "values": [by_shards[name, shards] for shards in _TOLD_SHARDS]} for name in names]


def _skew_plot(found: Mapping[str, Any], ids: str) -> str:
    series: dict[str, list[tuple[float, float]]] = {}
    for skew in found["skews"]:
        if skew["ids"] == ids:
            series.setdefault(skew["function"], []).append((skew["shards"], skew["fullest_to_mean"]))
    return heat_plots.lines(series, label=f"Fullest shard to mean by shards, {ids}", ticks=(1, 2, 5, 20, 200), log=True)
