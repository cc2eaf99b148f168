"""A desk's policy in one version: targets, the calendar in which they are counted, and the warning before them.

A version never changes. Tickets name the versions that held at each step of their history.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from tickets.sla.calendar import Calendar
from tickets.ticket.due_marks import TARGETS

Facts = tuple[str, str, str]  # priority, group and kind of a ticket, "" for none
ANY: Final = ""


@dataclass(frozen=True)
class TargetRule:
    """Seconds of business time for tickets of a priority, a group and a kind, each ANY or one; 0 for no target."""

    priority: str = ANY
    group: str = ANY
    kind: str = ANY
    first: int = 0
    next: int = 0
    solution: int = 0

    def fits(self, facts: Facts) -> bool:
        """Tell whether it is for such a ticket."""
        return all(mine in (ANY, its) for mine, its in zip((self.priority, self.group, self.kind), facts, strict=True))


@dataclass(frozen=True)
class SlaPolicy:
    """The first rule that fits a ticket counts. `warning` is the percentage of a target that is left when people are
    warned, 0 for no warning. `country` and `region` say whose holidays the days off were taken from."""

    version: int
    calendar: Calendar
    rules: tuple[TargetRule, ...]
    warning: int = 0
    country: str = ""
    region: str = ""

    def targets(self, facts: Facts) -> Mapping[str, int]:
        """Return the targets of a ticket in seconds by their names, without those that it does not have."""
        rule = next((rule for rule in self.rules if rule.fits(facts)), None)
        return {name: seconds for name in TARGETS if rule and (seconds := getattr(rule, name))}

    def dump(self) -> str:
        found = asdict(self) | {"calendar": asdict(self.calendar) | {"days_off": sorted(self.calendar.days_off)}}
        return json.dumps(found, separators=(",", ":"), sort_keys=True)

    @classmethod
    def load(cls, text: str) -> SlaPolicy:
        """Return what `dump` wrote, without what a newer version may have added. Raises ValueError, LookupError,
        TypeError."""
        found = json.loads(text)
        calendar = Calendar(
            found["calendar"]["zone"],
            tuple(tuple((int(a), int(b)) for a, b in day) for day in found["calendar"]["hours"]),
            frozenset(found["calendar"]["days_off"]),
        )
        rules = tuple(TargetRule(**_known(TargetRule, rule)) for rule in found["rules"])
        return cls(**_known(cls, found) | {"calendar": calendar, "rules": rules})


def _known(model: Any, found: Mapping[str, Any]) -> dict[str, Any]:
    return {name: found[name] for name in model.__dataclass_fields__ if name in found}


def duration_text(seconds: int) -> str:
    """Return a target as people type it, "" for none."""
    hours, minutes = divmod(seconds // 60, 60)
    return " ".join([*([f"{hours} h"] if hours else []), *([f"{minutes} min"] if minutes else [])])
