"""Decide which people and tags have their counts in LEADERS, the one item of them that a dashboard reads. Pure
functions.

A tenant may have thousands of former members and tags, and a page shows a few. A leader's counts are in LEADERS (and in
RECENT, for a moment), and nowhere else; all others are in runs and pages. As long as everybody has
room, everybody is a leader, and there is no tail.

LEADERS has a budget of bytes for people and one for tags, in which each counts as if it had tickets of every status. So
the item stays within 4 KB.

Of those outside, RECENT remembers a few numbers (`Outside`), which every merge carries on from what it writes: a bound
that no rank outside exceeds, how many they are between two numbers, and exactly how many tickets they have. So a reader
of the leaders knows at every moment how far their order can be trusted; when somebody outside may have come to outrank
a leader, the leaders are chosen anew.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tickets.counting import coding
from tickets.counting.contributions import Counts
from tickets.ticket.fields import UNRESOLVED, Status

BUDGET: Final = {"P": 1200, "G": 1200}  # bytes, by the first letter of a code
_NUMBER: Final = 4  # bytes of a count
_RANK: Final = 10**9  # of one unresolved ticket, in tickets
_UNRESOLVED: Final = tuple(status.value[0] for status in UNRESOLVED)
_STATUSES: Final = frozenset(status.value[0] for status in Status)  # ratings are counts of people too, and no tickets


@dataclass(frozen=True)
class Outside:
    """People, or tags, that are no leaders. `bound` is a rank that none of them exceeds. They are at least `least` and
    at most `most`. `tickets` are theirs by the letter of the status. `floor` is the rank of the last leader when this
    was last merged, 0 where there was room for another one."""

    bound: int = 0
    least: int = 0
    most: int = 0
    floor: int = 0
    tickets: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> Outside:
        """Say it of all counts outside by code, exactly."""
        known = [some for some in by_entity(counts).values() if any(some.values())]
        return cls(max((0, *map(rank, known))), len(known), len(known), 0, _by_status(counts))

    def after(self, run: Mapping[str, int]) -> Outside:
        """Add counts by code. Somebody who gets tickets may be new, and somebody who loses some may have no more."""
        added = by_entity(run).values()
        moved = [sum(_by_status(some).values()) for some in added]
        grown, shrunk = (sum(sign * n > 0 for n in moved) for sign in (1, -1))
        tickets = Counter(self.tickets)
        tickets.update(_by_status(run))
        if not any(tickets.values()):
            return Outside(floor=self.floor)
        return Outside(
            self.bound + max((0, *map(rank, added))),
            max(self.least - shrunk, grown, 1),
            min(self.most + grown, max(1, sum(tickets.values()))),
            self.floor,
            tickets,
        )

    @property
    def unresolved_at_most(self) -> int:
        """Return a number of unresolved tickets that none of them exceeds."""
        return max(0, min(self.bound // _RANK, sum(self.tickets.get(status, 0) for status in _UNRESOLVED)))

    @property
    def is_unknown(self) -> bool:
        return self.bound >= UNKNOWN.bound

    @property
    def may_outrank(self) -> bool:
        return self.bound > self.floor


@dataclass(frozen=True)
class Choice:
    """The leaders to be, as `coding.entity` calls them, and all counts by code that the tail held when they were
    chosen."""

    leaders: set[str]
    outside: Mapping[str, int]


# Of those who were written before anybody kept these numbers: the next change of the tenant has the leaders chosen.
UNKNOWN: Final = Outside(bound=_RANK**2, most=_RANK, tickets=dict.fromkeys(_UNRESOLVED, _RANK))


def _by_status(counts: Mapping[str, int]) -> Counter[str]:
    by_status = Counter[str]()
    for code, n in counts.items():
        if code[-1] in _STATUSES:
            by_status[code[-1]] += n
    return by_status


def split(
    before: Counts, added: Mapping[str, int], *, has_tail: bool, choice: Choice | None = None
) -> tuple[Counts, Counts]:
    """Add counts to the leaders' and return theirs, those of the choice where there is one, and what is left for a run.

    A leader without any ticket keeps one count of zero while there is room.
    """
    led, run = by_entity(before), Counter[str]()
    if choice:
        for one in led.keys() - choice.leaders:
            run.update(led.pop(one))
        for one, counts in by_entity(choice.outside).items():
            if one in choice.leaders:
                led.setdefault(one, Counter()).update(counts)
                run.subtract(counts)
    for one, counts in sorted(by_entity(added).items()):
        if one in led or (one in choice.leaders if choice else not has_tail and _admitted(one, led)):
            led.setdefault(one, Counter()).update(counts)
        else:
            run.update(counts)
    kept = Counter({code: n for one, counts in led.items() for code, n in _tidy(counts).items()})
    return kept, coding.nonzero(run)


def by_entity(counts: Mapping[str, int]) -> dict[str, Counter[str]]:
    """Return counts by code, sorted by the person or tag that they are of."""
    grouped: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for code, n in counts.items():
        grouped[coding.entity(code)][code] += n
    return dict(grouped)


def of_family(counts: Mapping[str, int], family: str) -> dict[str, int]:
    """Return the counts of people ("P") or tags ("G") by code, without touches."""
    return {c: n for c, n in counts.items() if c[0] == family and not c.endswith(":")}


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
    return len(Status) * (len(one.encode()) + 3 + _NUMBER)


def chosen(counts: Mapping[str, int]) -> set[str]:
    """Choose the leaders among all people and tags with these counts, by rank, up to the first one without room."""
    ranked = sorted(by_entity(counts).items(), key=lambda pair: (-rank(pair[1]), pair[0]))
    left = dict(BUDGET)
    leaders = set()
    for one, some in ranked:
        if any(some.values()):
            left[one[0]] -= _size(one)
            if left[one[0]] >= 0:
                leaders.add(one)
    return leaders


def rank(counts: Mapping[str, int]) -> int:
    """Return a number that is the larger the more unresolved tickets, and among equals the more tickets, somebody has.

    It is a sum over tickets itself: the rank of what is added can be added to a rank.
    """
    return sum(n * (_RANK * (letter in _UNRESOLVED) + 1) for letter, n in _by_status(counts).items())


def floor(leaders: Counts, family: str, run: Mapping[str, int]) -> int:
    """Return the rank of the last leader of a family, 0 where there is room for somebody who is in the run."""
    led = {one: counts for one, counts in by_entity(leaders).items() if one[0] == family and any(counts.values())}
    free = BUDGET[family] - sum(map(_size, led))
    if not led or any(_size(one) <= free for one, counts in by_entity(run).items() if rank(counts) > 0):
        return 0
    return min(map(rank, led.values()))
