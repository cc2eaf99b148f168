"""Choose who of a group gets a ticket: in turn (round robin), or who has the fewest open tickets (least busy).

A turn is one conditional write of the desk's turns, so no two tickets are given on the same state; whoever loses it
goes on from what the winner has stored, without reading again. Like a ticket's number, a turn is lost where the ticket
is not written in the end.

How many open tickets somebody has is counted in the index of assignees, together with those that were given in the last
LATEST seconds and may not stand there yet: by their numbers, so that none counts twice. No ticket fails by any of this:
one that nobody can have, or that found no turn in time, waits in the group for somebody to take it.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, NamedTuple

from portal.dynamo import retry
from portal.dynamo.client import fan_out
from portal.dynamo.models import ByIndex
from portal.dynamo.store import Action
from portal.errors import ConditionFailed, PortalError
from portal.schema import keys
from tenants.membership import members
from tenants.tenancy.context import Role, TenantContext
from tickets.custom_fields import definitions
from tickets.desk_setup.setup import Assigning
from tickets.groups import roster
from tickets.groups.roster import Roster, Turns
from tickets.groups.stored import TURNS, TurnsItem
from tickets.ticket import stored
from tickets.ticket.fields import GROUP, Status
from tickets.ticket.stored import STATUS_RESOLVER, SummaryItem

log = logging.getLogger("pooldesk.groups")

LATEST: Final = 30  # seconds for which what was given is remembered: an index follows within one or two
_REMEMBERED: Final = 400  # latest tickets, some 50 bytes each
_COUNTED: Final = (
    100  # open tickets of an agent without a limit that are counted in a partition: who has more is as busy
)
_ATTEMPTS: Final = 24  # of a turn that others take first
_AUTOMATIC: Final = (Assigning.TURN, Assigning.LOAD)


class Assignee(NamedTuple):
    id: str
    name: str


NOBODY: Final = Assignee("", "")


def for_group(tenant: TenantContext, group_id: str, holders: Mapping[int, str]) -> dict[int, Assignee]:
    """Return who gets tickets that come into a group, by their numbers. `holders` are those who have them, "" for
    nobody. A ticket that is left out keeps its assignee: a member of the group, or anybody where it has no members.
    The others get whoever is next, or NOBODY, so that they wait in the group."""
    if not any(holders.values()):
        return assign(tenant, group_id, list(holders))
    people = roster.read(tenant).members(group_id)
    moved = [number for number, holder in holders.items() if people and holder not in people]
    return dict.fromkeys(moved, NOBODY) | assign(tenant, group_id, moved)


def assign(tenant: TenantContext, group_id: str, numbers: Sequence[int]) -> dict[int, Assignee]:
    """Return who gets these tickets of a group, by their numbers; those that nobody gets are left out.

    A number that was given within LATEST is given to the same person. Where the group assigns by itself, two round
    trips: a Query and, at once, reads of its people; then one write. A count of open tickets takes one trip more.
    """
    group = next((one for one in definitions.of(tenant).in_use_of(GROUP) if one.id == group_id), None)
    way = getattr(group, "assigns", "")
    if way not in _AUTOMATIC or not numbers:
        return {}
    try:
        return _Choice.of(tenant, group_id, way).take(numbers)
    except PortalError as error:
        log.warning("Tickets of a group of tenant %s have no assignee: %s", tenant.tenant_id, error.message)
        return {}


@dataclass(frozen=True)
class _Choice:
    """The members of a group with whoever acts for them today, and what each of these has."""

    tenant: TenantContext
    group_id: str
    is_by_load: bool
    found: Roster
    acting: Mapping[str, str]  # by the member whose turn it is
    names: Mapping[str, str]  # of those who act
    open: Mapping[str, frozenset[int]]  # their open tickets, where they are counted

    @classmethod
    def of(cls, tenant: TenantContext, group_id: str, way: str) -> _Choice:
        found, day = roster.read(tenant), roster.today(tenant)
        acting = {one: found.acting_for(one, day) for one in found.members(group_id)}
        people = members.members_with(tenant.repository, filter(None, acting.values()))
        names = {one.id: one.name for one in people if one.role.at_least(Role.AGENT)}
        acting = {one: agent for one, agent in acting.items() if agent in names}
        is_by_load = way == Assigning.LOAD
        counted = [one for one in names if is_by_load or found.agent(one).capacity]
        most = {one: max(_COUNTED, found.agent(one).capacity) for one in counted}
        return cls(tenant, group_id, is_by_load, found, acting, names, open_tickets(tenant, most))

    def take(self, numbers: Sequence[int]) -> dict[int, Assignee]:
        """Take a turn for each number. Raises ConditionFailed where others were always first."""
        turns = self.found.turns
        for attempt in range(_ATTEMPTS):
            chosen, after = self._chosen(turns, numbers)
            if after is turns:
                break
            try:
                _store(self.tenant, turns, after)
                break
            except ConditionFailed as failed:
                if attempt == _ATTEMPTS - 1 or failed.item is None:
                    raise
                turns = Turns.of(TurnsItem.from_raw_data(failed.item))
                retry.sleep(retry.pause(attempt, first=0.01, longest=0.2))
        return {number: Assignee(agent, self.names[agent]) for number, agent in chosen.items()}

    def _chosen(self, turns: Turns, numbers: Sequence[int]) -> tuple[dict[int, str], Turns]:
        """Return who gets these tickets by these turns, and the turns after that: the same where nobody gets any."""
        now = int(time.time())
        latest = [one for one in turns.given if one[2] > now - LATEST]
        chosen = {number: agent for number, agent, _ in latest if number in numbers and agent in self.names}
        last = turns.last.get(self.group_id, "")
        for number in numbers:
            if number in chosen:
                continue
            if (turn := self._next(last, latest)) is None:
                break
            last, chosen[number] = turn, self.acting[turn]
            latest.append((number, chosen[number], now))
        if len(latest) == len([one for one in turns.given if one[2] > now - LATEST]):
            return chosen, turns
        given = tuple(latest[-_REMEMBERED:])
        return chosen, replace(turns, version=turns.version + 1, last={**turns.last, self.group_id: last}, given=given)

    def _next(self, last: str, latest: Collection[tuple[int, str, int]]) -> str | None:
        """Return the member whose turn is next: the first one behind the last, or of the least busy ones the first."""
        ring = sorted(self.acting, key=lambda one: (one <= last, one))
        load = {
            agent: len(numbers | {number for number, given_to, _ in latest if given_to == agent})
            for agent, numbers in self.open.items()
        }
        free = [one for one in ring if not self._is_full(self.acting[one], load)]
        if self.is_by_load:
            return min(free, key=lambda one: load[self.acting[one]], default=None)
        return next(iter(free), None)

    def _is_full(self, agent: str, load: Mapping[str, int]) -> bool:
        capacity = self.found.agent(agent).capacity
        return bool(capacity) and load[agent] >= capacity


def _store(tenant: TenantContext, before: Turns, after: Turns) -> None:
    """Store turns, where they are still as before. Raises ConditionFailed with what is stored."""
    is_seen = TurnsItem.version == before.version if before.version else TurnsItem.agent.does_not_exist()
    actions: list[Action] = [
        TurnsItem.last.set(json.dumps(after.last, separators=(",", ":"), sort_keys=True)),
        TurnsItem.given.set(json.dumps(after.given, separators=(",", ":"))),
        TurnsItem.version.set(after.version),
    ]
    tenant.repository.update(TurnsItem(keys.tenant(tenant.tenant_id), TURNS), actions, condition=is_seen)


def open_tickets(tenant: TenantContext, most: Mapping[str, int]) -> dict[str, frozenset[int]]:
    """Return the numbers of the open tickets of some people, up to so many of each of them in each partition of the
    index: one Query for each of them and each partition, at the same time."""
    shards = range(max(tenant.layout.readers, tenant.layout.moving_to or 0))
    asked = [(one, shard) for one in most for shard in shards]
    rows = fan_out([partial(_numbers, tenant, one, shard, most[one]) for one, shard in asked]) if asked else []
    found: dict[str, set[int]] = {one: set() for one, _ in asked}
    for (one, _), numbers in zip(asked, rows, strict=True):
        found[one] |= numbers
    return {one: frozenset(numbers) for one, numbers in found.items()}


def _numbers(tenant: TenantContext, user_id: str, shard: int, most: int) -> set[int]:
    page = tenant.repository.query(
        ByIndex(SummaryItem, STATUS_RESOLVER),
        stored.tenant_status,
        Status.OPEN.value.upper(),
        shard,
        begins_with=stored.resolver_prefix(user_id),
        limit=most,
    )
    numbers = (stored.ticket_number(tenant.tenant_id, row.attribute_values["pk"]) for row in page.items)
    return {number for number in numbers if number is not None}
