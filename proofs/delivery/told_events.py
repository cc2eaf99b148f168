"""Say which events there must be, from the timelines of the tickets alone: the outbox has no part in it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from portal.dynamo.client import fan_out
from portal.dynamo.repository import TenantRepository
from proofs.delivery.event_receiver import EventKey
from tickets.ticket import keys
from tickets.ticket.tables import TICKETS
from tickets.verification import recount

_OF_ONE_FIELD: Final = {"status": "ticket.status_changed", "resolver": "ticket.assigned"}
_OF_TEXTS: Final = {"comment": "ticket.commented", "note": "ticket.note_added"}
_AT_ONCE: Final = 16  # tickets that are read at the same time


def expected(tenant_id: str) -> set[EventKey]:
    """Return what must have been told of a tenant's tickets."""
    repository = TenantRepository(tenant_id)
    last = recount.last_number(repository)
    found: set[EventKey] = set()
    for first in range(1, last + 1, _AT_ONCE):
        numbers = range(first, min(first + _AT_ONCE, last + 1))
        for events in fan_out([partial(_of_ticket, repository, number) for number in numbers]):
            found |= events
    return found


def _of_ticket(repository: TenantRepository, number: int) -> set[EventKey]:
    entries = repository.query_all(TICKETS, keys.ticket, number, begins_with=keys.ACTIVITY_PREFIX, consistent=True)
    version, found = 1, set()
    for raw in entries:  # oldest first
        changed = {change["M"]["field"]["S"] for change in raw["changes"]["L"]}
        version += bool(changed)
        for kind, what in _told(raw, changed, version):
            found.add((repository.tenant_id, number, kind, what))
    return found


def _told(raw: dict[str, Any], changed: set[str], version: int) -> Iterator[tuple[str, str]]:
    kind = raw["kind"]["S"]
    if kind in _OF_TEXTS:
        yield _OF_TEXTS[kind], raw["at"]["S"]
    elif not changed:
        yield "ticket.created", str(version)
    else:
        for name in {_OF_ONE_FIELD.get(field, "ticket.changed") for field in changed}:
            yield name, str(version)
