"""Say whether the promises about hot spots hold: they were made before anything was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from proofs.hot_spots import page_prices
from proofs.hot_spots.key_designs import OURS
from proofs.hot_spots.page_prices import PagePrice
from proofs.hot_spots.suffix_skew import MOST_SHARDS_TRIED, Skew
from proofs.hot_spots.suffix_skew import OURS as OUR_FUNCTION
from proofs.hot_spots.throttle_trial import ThrottleTrial

SKEW: Final = 1.35
THROTTLED_SHARE: Final = 0.01
PRICE_RATIO: Final = 2.5
PRICED_SHARDS: Final = 8
_NUMBERS: Final = "ticket numbers"  # what our function is given; UUIDs stand for any other ids


@dataclass(frozen=True)
class HeatPromise:
    """One promise and what became of it: kept at the bound, or only `below` it."""

    what: str
    found: float
    bound: float
    below: bool = False

    @property
    def kept(self) -> bool:
        return self.found < self.bound if self.below else self.found <= self.bound

    @property
    def sentence(self) -> str:
        return f"{self.what}: {self.found:g}, promised {'less than' if self.below else 'at most'} {self.bound:g}."


def judge(
    skews: Sequence[Skew], of_uuids: Sequence[float], trials: Sequence[ThrottleTrial], prices: Sequence[PagePrice]
) -> list[HeatPromise]:
    """Return every promise."""
    return [*_of_skew(skews, of_uuids), *_of_throttles(trials), *judge_prices(prices)]


def _of_skew(skews: Sequence[Skew], of_uuids: Sequence[float]) -> list[HeatPromise]:
    (ours,) = (
        skew.fullest_to_mean
        for skew in skews
        if (skew.ids, skew.function, skew.shards) == (_NUMBERS, OUR_FUNCTION, MOST_SHARDS_TRIED)
    )
    what = f"The fullest of {MOST_SHARDS_TRIED} shards to the mean"
    return [
        HeatPromise(f"{what}, ticket numbers", ours, SKEW),
        HeatPromise(f"{what}, UUIDs, median of {len(of_uuids)} sets", median(of_uuids), SKEW),
    ]


def _of_throttles(trials: Sequence[ThrottleTrial]) -> list[HeatPromise]:
    found = []
    for trial in trials:
        if trial.plan.design == OURS:
            what = f"Throttled, {trial.plan.burst_seconds:g} s saved"
            others = max(trial.writes.share(noisy=False), trial.reads.share(noisy=False))
            found += [
                HeatPromise(f"{what}, the hot tenant once resharded by itself", after(trial), THROTTLED_SHARE, True),
                HeatPromise(f"{what}, the others at any time", others, 0),
            ]
    return found


def after(trial: ThrottleTrial) -> float:
    """Return the share of the hot tenant's requests that were throttled once its first resharding had ended, of writes
    or of reads, whichever is larger; of the whole time where none has ended."""
    since = trial.ended[0][0] if trial.ended else 0.0
    return max(count.share(noisy=True, since=since) for count in (trial.writes, trial.reads))


def judge_prices(prices: Sequence[PagePrice]) -> list[HeatPromise]:
    """Return the promises about what pages cost."""
    return [
        HeatPromise(
            f"A row's read units with {PRICED_SHARDS} shards to those with one",
            page_prices.ratio(prices, PRICED_SHARDS),
            PRICE_RATIO,
        ),
        HeatPromise("Round trips of any page, at most", max(price.most_trips for price in prices), 1),
    ]
