"""Read who is in the groups of a desk, and who of them is here today: one consistent Query.

Somebody who is away until a day is back on it, by the days of the desk. Until then their stand-in has their turns, and
where that one is away too, the stand-in's stand-in. The chain ends where it comes back to somebody, so it cannot run in
circles.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from portal.schema import keys
from tenants.tenancy.context import TenantContext
from tickets.groups.stored import ROWS, AgentItem, TurnsItem


def today(tenant: TenantContext) -> str:
    """Return the day that it is at the desk, as 2026-11-30."""
    return tenant.today.isoformat()


@dataclass(frozen=True)
class Agent:
    """A member as groups know them. `capacity` is 0 where any number of open tickets may be assigned to them."""

    id: str
    groups: frozenset[str] = frozenset()
    capacity: int = 0
    away_until: str = ""
    stand_in: str = ""
    version: int = 0

    @classmethod
    def of(cls, item: AgentItem) -> Agent:
        return cls(
            item.agent,
            frozenset(item.groups or ()),
            int(item.capacity or 0),
            item.away_until or "",
            item.stand_in or "",
            int(item.version),
        )

    def is_away(self, day: str) -> bool:
        return day < self.away_until


@dataclass(frozen=True)
class Turns:
    """The latest assignments: for each group the member whose turn it was last, and the latest tickets as number, agent
    and seconds."""

    version: int = 0
    last: Mapping[str, str] = field(default_factory=dict, hash=False)
    given: tuple[tuple[int, str, int], ...] = ()

    @classmethod
    def of(cls, item: TurnsItem) -> Turns:
        given = tuple((number, agent, at) for number, agent, at in json.loads(item.given))
        return cls(int(item.version), json.loads(item.last), given)


@dataclass(frozen=True)
class Roster:
    agents: Mapping[str, Agent] = field(default_factory=dict, hash=False)
    turns: Turns = Turns()

    def agent(self, user_id: str) -> Agent:
        """Return a member as groups know them, also one of whom nothing is stored."""
        return self.agents.get(user_id) or Agent(user_id)

    def members(self, group_id: str) -> list[str]:
        """Return the ids of a group's members, in the order of their turns."""
        return sorted(one.id for one in self.agents.values() if group_id in one.groups)

    def acting_for(self, user_id: str, day: str) -> str:
        """Return who has the turns of a member on a day: they themselves, or the first of their chain of stand-ins who
        is not away; "" where there is none."""
        met = set[str]()
        while user_id and user_id not in met:
            one = self.agent(user_id)
            if not one.is_away(day):
                return user_id
            met.add(user_id)
            user_id = one.stand_in
        return ""


def read(tenant: TenantContext) -> Roster:
    """Return the roster as of now: one consistent Query, some 150 bytes for each member who is in it."""
    rows = list(tenant.repository.query_all(ROWS, keys.tenant, consistent=True))
    turns = next((Turns.of(row) for row in rows if isinstance(row, TurnsItem)), Turns())
    return Roster({row.agent: Agent.of(row) for row in rows if isinstance(row, AgentItem)}, turns)
