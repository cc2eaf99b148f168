"""Decide which people and tags have their counts in LEADERS, the one item of them that a dashboard reads. Pure
functions.

A tenant may have thousands of former members and tags, and a page shows a few. What belongs to a leader lies in LEADERS
(and in RECENT, for a moment), and nowhere else; all others lie in runs and pages, see tail_counts.py. As long as
everybody has room, everybody is a leader, and there is no tail.

LEADERS has a budget of bytes for people and one for tags, in which each counts as if it had tickets of every status. So
the item stays within 4 KB.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tickets.counting import coding
from tickets.counting.contributions import UNRESOLVED
from tickets.counting.exactly_once import Tail
from tickets.ticket.fields import Status

BUDGET: Final = {"P": 1200, "G": 1200}  # bytes, by the first letter of a code
_NUMBER: Final = 4  # bytes of a count
_UNRESOLVED: Final = tuple(status.value[0] for status in UNRESOLVED)


@dataclass(frozen=True)
class Leaders:
    """The counts in LEADERS by code. A leader without any ticket keeps one count of zero while there is room."""

    counts: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> Leaders:
        return cls({name: n for name, n in coding.numbers(raw).items() if coding.decode(name)})

    def item(self) -> dict[str, Any]:
        return coding.typed(self.counts)

    @property
    def entities(self) -> set[str]:
        return {coding.entity(code) for code in self.counts}


def split(
    before: Leaders,
    added: Mapping[str, int],
    *,
    tail: Tail,
    promoted: Mapping[str, int],
    demoted: Iterable[str],
) -> tuple[Leaders, dict[str, int]]:
    """Add counts to the leaders' and return the new leaders, and what is left for a run.

    `promoted` are all counts that the tail holds of people and tags that become leaders; `demoted` are leaders, as
    `coding.entity` calls them, that are leaders no more.
    """
    led, run = by_entity(before.counts), Counter[str]()
    for one in demoted:
        run.update(led.pop(one, {}))
    for one, counts in by_entity(promoted).items():
        led.setdefault(one, Counter()).update(counts)
        run.subtract(counts)
    for one, counts in sorted(by_entity(added).items()):
        if one in led or (tail.is_empty and _admitted(one, led)):
            led.setdefault(one, Counter()).update(counts)
        else:
            run.update(counts)
    kept = {code: n for one, counts in led.items() for code, n in _tidy(counts).items()}
    return Leaders(kept), {code: n for code, n in run.items() if n}


def by_entity(counts: Mapping[str, int]) -> dict[str, Counter[str]]:
    """Return counts by code, sorted by the person or tag that they are of."""
    grouped: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for code, n in counts.items():
        grouped[coding.entity(code)][code] += n
    return dict(grouped)


def _tidy(counts: Counter[str]) -> dict[str, int]:
    return {code: n for code, n in counts.items() if n} or dict.fromkeys(sorted(counts)[:1], 0)


def _admitted(one: str, led: dict[str, Counter[str]]) -> bool:
    """Make room for another leader, by dropping some who have nothing, if that is enough."""
    family = one[0]
    free = BUDGET[family] - sum(_size(other) for other in led if other[0] == family) - _size(one)
    idle = [other for other, counts in led.items() if other[0] == family and not any(counts.values())]
    while free < 0 and idle:
        other = idle.pop()
        del led[other]
        free += _size(other)
    return free >= 0


def _size(one: str) -> int:
    return len(Status) * (len(one.encode()) + 1 + _NUMBER)


def chosen(counts: Mapping[str, int]) -> set[str]:
    """Choose the leaders among all people and tags with these counts: most unresolved first, then most tickets."""
    ranked = sorted(by_entity(counts).items(), key=lambda pair: (*_rank(pair[1]), pair[0]))
    left = dict(BUDGET)
    leaders = set()
    for one, some in ranked:
        if any(some.values()) and left[one[0]] >= _size(one):
            left[one[0]] -= _size(one)
            leaders.add(one)
    return leaders


def _rank(counts: Counter[str]) -> tuple[int, int]:
    unresolved = sum(n for code, n in counts.items() if code[-1] in _UNRESOLVED)
    return -unresolved, -sum(counts.values())
