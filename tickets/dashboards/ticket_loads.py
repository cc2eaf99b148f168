"""Say who and what has how many tickets: people, nobody, and tags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tickets.counting import contributions
from tickets.counting.contributions import UNRESOLVED, Counts
from tickets.ticket.fields import Status

UNASSIGNED: Final = "Unassigned"
FORMER_MEMBER: Final = "Former member"

_Statuses = dict[str, dict[Status, int]]  # by key


@dataclass(frozen=True)
class Load:
    """Tickets by status: of a resolver ("" for nobody), or with a tag."""

    key: str
    name: str
    statuses: Mapping[Status, int]

    @property
    def unresolved(self) -> int:
        return sum(self.statuses[s] for s in UNRESOLVED)

    @property
    def total(self) -> int:
        return sum(self.statuses.values())


def of_people(totals: Counts, people: Counts, names: Mapping[str, str]) -> list[Load]:
    """Return the loads of all who have tickets; the key "" stands for nobody."""
    statuses: _Statuses = {"": {s: totals[f"{contributions.UNASSIGNED}.{s}"] for s in Status}}
    for name, n in people.items():
        who, _, status = name.rpartition(".")
        statuses.setdefault(who, {})[Status(status)] = n
    names = {"": UNASSIGNED, **names}
    return _ranked(statuses, {who: names.get(who, FORMER_MEMBER) for who in statuses})


def of_tags(counts: Counts) -> list[Load]:
    """Return the loads of all tags that tickets have."""
    statuses: _Statuses = {}
    for name, n in counts.items():
        status, _, tag = name.partition(".")
        statuses.setdefault(tag, {})[Status(status)] = n
    return _ranked(statuses, {tag: tag for tag in statuses})


def _ranked(statuses: _Statuses, names: Mapping[str, str]) -> list[Load]:
    """Return the loads, most unresolved first; what has no ticket is left out."""
    loads = [Load(key, names[key], {s: max(0, counts.get(s, 0)) for s in Status}) for key, counts in statuses.items()]
    return sorted((x for x in loads if x.total), key=lambda x: (-x.unresolved, -x.total, x.name.casefold(), x.key))
