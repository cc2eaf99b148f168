"""Keep by minute that some tenant was refused for asking too much, and which tenants were disturbed themselves.

A tenant's month then tells in how many minutes another one was refused while it was neither refused nor throttled. Of
the others nothing else is kept: an item for a day has minutes and no names. Each web process adds what it knows once a
minute, and adding a minute again changes nothing. Work in the background is not in it: it waits instead.

A process that dies loses a minute. Where it is not known who was disturbed, the minute is unclear and counts for
nobody: a process knows at most COUNTERS tenants of a minute by name, and what cannot be written is not known later.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

from portal.dynamo.client import fan_out
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Action, Store
from portal.errors import PortalError
from portal.load import stored
from portal.load.measurement import MINUTE, MinuteNotes
from portal.load.stored import DisturbedDayItem, IncidentDayItem
from portal.schema import keys

log = logging.getLogger("pooldesk.limits")

KEPT: Final = timedelta(days=400)


@dataclass(frozen=True)
class Disturbances:
    """Hold of some days, in minutes: how many had an incident of others that this tenant did not feel, and how many had
    one of its own, such as a request refused or throttled, by day in UTC."""

    unfelt: int
    own: dict[str, int]

    @property
    def own_minutes(self) -> int:
        return sum(self.own.values())


def write(notes: MinuteNotes) -> None:
    """Add what this process noted of a minute: an UpdateItem for each tenant that was disturbed, and one for all of
    them where somebody was refused."""
    day, minute = _place(notes.minute)
    until = notes.minute * MINUTE + int(KEPT.total_seconds())
    unclear = bool(notes.others_asked.refused or notes.others_asked.throttles)
    refused = bool(notes.others_asked.refused)
    for tenant_id, tally in notes.asked.items():
        if tally.refused or tally.throttles:
            refused = refused or bool(tally.refused)
            try:
                _disturbed(tenant_id, day, minute, until)
            except PortalError as error:
                log.warning("That tenant %s was disturbed is not written down: %s", tenant_id, error.message)
                unclear = True
    if refused or unclear:
        add = IncidentDayItem.unclear.add if unclear else IncidentDayItem.minutes.add
        try:
            PLATFORM.update(
                IncidentDayItem(stored.incidents_of(day[:7]), day),
                [add({minute}), IncidentDayItem.expires_at.set(until)],
            )
        except PortalError as error:
            log.warning("That somebody was refused is not written down: %s", error.message)


def _disturbed(tenant_id: str, day: str, minute: int, until: int) -> None:
    item = DisturbedDayItem(tenant_id, stored.disturbed_on(day))
    actions: list[Action] = [DisturbedDayItem.minutes.add({minute}), DisturbedDayItem.expires_at.set(until)]
    Store("tenant", tenant_id).update(item, actions)


def read(
    repository: Store, *, first: datetime, end: datetime, others: tuple[datetime, datetime] | None = None
) -> Disturbances:
    """Return what happened from a moment up to another one, in UTC: a Query for each month in it, and one of the
    tenant's own, all at the same time. `others` are the moments for what others did, where these are not the same."""
    others = others or (first, end)
    days = f"{others[0]:%Y-%m-%d}", f"{others[1]:%Y-%m-%d}"
    between = (
        stored.disturbed_on(f"{min(first, others[0]):%Y-%m-%d}"),
        stored.disturbed_on(f"{max(end, others[1]):%Y-%m-%d}"),
    )
    months = sorted({days[0][:7], days[1][:7]})
    reads: list[Callable[[], list[Any]]] = [
        lambda: [*repository.query_all(DisturbedDayItem, keys.tenant, between=between)],
        *(partial(_incidents, month, days) for month in months),
    ]
    own, *incidents = fan_out(reads)
    mine, within = [(stored.day_of_disturbed(one.minute), one.minutes) for one in own], range(*map(_number, others))
    disturbed = {*_minutes(mine, within)}
    named = [one for some in incidents for one in some]
    refused = {*_minutes(((one.process, one.minutes) for one in named), within)}
    unclear = {*_minutes(((one.process, one.unclear) for one in named), within)}
    by_day: dict[str, int] = {}
    for number in sorted({*_minutes(mine, range(_number(first), _number(end)))}):
        by_day[_place(number)[0]] = by_day.get(_place(number)[0], 0) + 1
    return Disturbances(len(refused - unclear - disturbed), by_day)


def _incidents(month: str, days: tuple[str, str]) -> list[IncidentDayItem]:
    return [*PLATFORM.query_all(IncidentDayItem, stored.incidents_of(month), between=days)]


def _minutes(days: Iterable[tuple[str, Iterable[float] | None]], within: range) -> Iterable[int]:
    """Yield minutes, counted from the epoch, of days with numbers of minutes."""
    for day, minutes in days:
        begins = _number(datetime.fromisoformat(day).replace(tzinfo=UTC))
        yield from (number for one in minutes or () if (number := begins + int(one)) in within)


def _number(at: datetime) -> int:
    return int(at.timestamp() // MINUTE)


def _place(number: int) -> tuple[str, int]:
    """Return the day of a minute that is counted from the epoch, and its number in that day."""
    at = datetime.fromtimestamp(number * MINUTE, UTC)
    return f"{at:%Y-%m-%d}", at.hour * 60 + at.minute
