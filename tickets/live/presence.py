"""Note who looks at a ticket and who writes on it. Nobody is kept from anything by it.

Answers to open pages are shared in a process for two seconds, by desk and ticket. The place of the desk is part of the
key, so that a move begins anew.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from portal import clock
from portal.dynamo.store import Action, Condition
from portal.errors import ConditionFailed
from portal.quotas import BoundedCache
from portal.schema import keys
from tenants.tenancy.context import TenantContext
from tickets.live import stored
from tickets.live.stored import PresenceItem

SECONDS: float = 2  # that an answer is shared
_MOST: Final = 2_000  # answers of a process, of some hundred bytes each

_answers: Final = BoundedCache[tuple[str, str, str, int], tuple[float, Any]](_MOST)


def latest(desk: TenantContext, what: str, number: int, read: Callable[[], Any]) -> Any:
    """Return what `read` returned at most SECONDS ago, for whichever page of the desk, else call it."""
    now, key = time.monotonic(), _key(desk, what, number)
    known = _answers.get(key)
    if known is not None and now - known[0] < SECONDS:
        return known[1]
    answer = read()
    _answers.put(key, (now, answer))
    return answer


def learned(desk: TenantContext, what: str, number: int, answer: Any) -> None:
    """Take over an answer that a write has brought."""
    _answers.put(_key(desk, what, number), (time.monotonic(), answer))


def _key(desk: TenantContext, what: str, number: int) -> tuple[str, str, str, int]:
    return desk.tenant_id, str(desk.where.placement), what, number


STAYS: Final = 75  # seconds after a page has said so; it does every 30
WRITES: Final = 45  # seconds after a page has said that somebody writes; it says too when they stop
KEPT: Final = 3600  # seconds that an item is kept after the last one
_PEOPLE: Final = "people"  # of the shared reads
MOST: Final = 30  # people of one item, about 4 KB, until those who have left are taken out


@dataclass(frozen=True)
class Other:
    """Somebody else on the same ticket. `shown` is the stamp of the latest change that their page shows."""

    name: str
    writes: bool
    shown: str


def announce(
    desk: TenantContext, number: int, *, shown: str, writes: bool = False, leaves: bool = False
) -> list[Other]:
    """Note that the person at work looks at a ticket, or leaves it, and return who else is there, writers first.

    One write and no read, since the write's answer has the whole item; the first one of a ticket takes two.
    """
    now = _now()
    mine = {"name": desk.user_name, "until": 0 if leaves else now + STAYS, "writes": now + WRITES if writes else 0}
    told = _written(desk, number, json.dumps(mine | {"shown": shown}), now)
    learned(desk, _PEOPLE, number, told)
    gone = [who for who, text in told.items() if json.loads(text)["until"] <= now and who != desk.user_id]
    if gone and len(told) > MOST:
        parts: Any = PresenceItem.people
        desk.repository.update(_item(desk, number), [parts[who].remove() for who in gone])
    return _others(desk, told)


def others(desk: TenantContext, number: int) -> list[Other]:
    """Return who else is on a ticket, writers first. One read, for all who ask within seconds."""

    def read() -> dict[str, str]:
        item = desk.repository.get(PresenceItem, keys.tenant, sort=stored.ticket(number))
        return _told(item) if item else {}

    return _others(desk, latest(desk, _PEOPLE, number, read))


def _others(desk: TenantContext, told: Mapping[str, str]) -> list[Other]:
    now, here = _now(), list[Other]()
    for who, text in told.items():
        one = json.loads(text)
        if who != desk.user_id and one["until"] > now:
            here.append(Other(one["name"], one["writes"] > now, one["shown"]))
    return sorted(here, key=lambda one: (not one.writes, one.name.casefold()))


def _now() -> int:
    return int(clock.now().timestamp())


def _told(item: PresenceItem) -> dict[str, str]:
    return dict(item.people.as_dict()) if item.people else {}  # type: ignore[no-untyped-call]  # unannotated in PynamoDB


def _written(desk: TenantContext, number: int, mine: str, now: int) -> dict[str, str]:
    """Write the person's own part, and return those of all."""
    people: Any = PresenceItem.people
    ways: list[tuple[Action, Condition]] = [
        (people[desk.user_id].set(mine), people.exists()),
        (people.set({desk.user_id: mine}), people.does_not_exist()),
    ]
    for action, condition in (*ways, ways[0]):  # two pages may be the first at the same time
        try:
            item = desk.repository.update(
                _item(desk, number), [action, PresenceItem.expires_at.set(now + KEPT)], condition=condition
            )
        except ConditionFailed:
            continue
        return _told(item)
    return {}


def _item(desk: TenantContext, number: int) -> PresenceItem:
    return PresenceItem(keys.tenant(desk.tenant_id), stored.ticket(number))
