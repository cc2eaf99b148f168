"""Recount a tenant's tickets and hold the aggregates against the result.

The worker is always a moment behind and people go on writing, so a difference alone says nothing. A group of counts,
such as a day's, has drifted if it differs from the recount, nothing touched it from before the recount until now, and
all that was written until the recount's end is applied by now (barrier.py). Then whatever had changed while we read
would have touched it, so the recount was exact, as far as this group goes, and the group is wrong.

Runs under the tenant's own role: it reads tickets by their numbers, which need no index, and one partition.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from portal.dynamo.repository import TenantRepository
from tickets.counting import aggregates, barrier, coding, stored
from tickets.counting.aggregates import Contribution, Counts
from tickets.counting.barrier import WorkerAway
from tickets.counting.stored import Group
from tickets.verification import recount as recounting
from tickets.verification.recount import Advance

ROUNDS: Final = 5
PAUSE: Final = 1.0  # seconds before the second round, doubled each time
SETTLE: Final = 10.0  # seconds that the worker may make no progress

OK: Final = "ok"
DRIFT: Final = "drift"
UNKNOWN: Final = "unknown"
_AWAY: Final = "the stream worker makes no progress; is it running (manage.py run_stream)"

Grouped = Mapping[Group, Counts]


@dataclass(frozen=True)
class Difference:
    """One count that is wrong. `item` is TOTALS, PEOPLE, TAGS or a date; `count` is its name in aggregates.py."""

    item: str
    count: str
    stored: int
    recounted: int


@dataclass(frozen=True)
class Verdict:
    """The result of a verification. `why` says for "unknown" what was in the way; `uncountable` lists tickets whose
    summaries hold what no rule of ours writes."""

    state: Literal["ok", "drift", "unknown"]
    tickets: int
    differences: list[Difference] = field(default_factory=list)
    why: str = ""
    uncountable: list[int] = field(default_factory=list)


def price(repository: TenantRepository) -> float:
    """Return the read units that one recount takes, at most; most verifications need one recount."""
    return recounting.last_number(repository) * recounting.UNITS_PER_NUMBER


def verify(
    repository: TenantRepository,
    *,
    settle: float = SETTLE,
    give_up_after: float = 3600.0,
    advance: Advance = lambda numbers: None,
) -> Verdict:
    """Recount the tenant and say whether its aggregates are right.

    The worker may take its time as long as it makes progress within `settle` seconds. No further attempt is begun
    `give_up_after` seconds from now.
    """
    right: set[Group] = set()  # was so once, which drift never is
    why, started = "", time.monotonic()
    for attempt in range(ROUNDS):
        if attempt:
            pause = PAUSE * 2 ** (attempt - 1)
            if time.monotonic() + pause - started > give_up_after:
                break
            time.sleep(pause)
        before = stored.read(repository)
        truth = recounting.recount(repository, advance=advance)
        after = stored.read(repository)
        wanted = _grouped(truth.counts, after.weeks_from)
        have = [_grouped(one.counts, after.weeks_from) for one in (before, after)]
        groups = wanted.keys() | have[1].keys()
        right |= {group for group in groups if any(_same(one, wanted, group) for one in have)}
        suspects = groups - right
        if not suspects:
            return Verdict(OK, truth.tickets, uncountable=truth.uncountable)
        try:
            barrier.wait_until_applied(repository, timeout=settle)
        except WorkerAway:
            return Verdict(UNKNOWN, truth.tickets, why=_AWAY, uncountable=truth.uncountable)
        now = stored.read(repository)
        still = before.recent.correction == now.recent.correction  # no rebuild has corrected anything meanwhile
        unmoved = {group for group in suspects if still and before.touches.get(group) == now.touches.get(group)}
        if unmoved:
            wrong = _differences(unmoved, _grouped(now.counts, now.weeks_from), _with_weeks(wanted, now.weeks_from))
            return Verdict(DRIFT, truth.tickets, wrong, uncountable=truth.uncountable)
        why = f"the numbers kept changing in {attempt + 1} attempts"
    return Verdict(UNKNOWN, truth.tickets, why=why)


def label(group: Group) -> str:
    """Return the name of a group: its date, or else its kind."""
    return group[1] or group[0]


def _grouped(counts: Contribution, weeks_from: str) -> dict[Group, Counts]:
    return _with_weeks(aggregates.merged(counts), weeks_from)


def _with_weeks(grouped: Mapping[Group, Counts], weeks_from: str) -> dict[Group, Counts]:
    """Return the same with the old weeks of all sides in one count."""
    return {
        group: coding.without_old_weeks(counts, weeks_from) if group[0] == aggregates.TOTALS else counts
        for group, counts in grouped.items()
    }


def _same(have: Grouped, wanted: Grouped, group: Group) -> bool:
    # Counter's equality takes a missing count for a zero one.
    return have.get(group, Counter()) == wanted.get(group, Counter())


def _differences(groups: Iterable[Group], have: Grouped, wanted: Grouped) -> list[Difference]:
    wrong = []
    for group in sorted(groups):
        mine, right = have.get(group, Counter()), wanted.get(group, Counter())
        for name in sorted(mine.keys() | right.keys()):
            if mine[name] != right[name]:
                wrong.append(Difference(label(group), name, mine[name], right[name]))
    return wrong
