"""Read the tickets of one person outside the desk, the newest first."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from portal.dynamo.client import fan_out
from portal.dynamo.models import ByIndex
from tenants.tenancy.context import TenantContext
from tickets.requesters import requesters
from tickets.requesters.requesters import Requester
from tickets.ticket import stored
from tickets.ticket.stored import OF_REQUESTER, SummaryItem

SHOWN: Final = 50  # tickets on a person's page
BESIDE: Final = 8  # tickets beside another one of the same person
_ROWS: Final = ByIndex(SummaryItem, OF_REQUESTER)


def newest(tenant: TenantContext, ids: Sequence[str], *, limit: int) -> list[SummaryItem]:
    """Return rows of the newest tickets that name one of these ids: one Query for each, at the same time.

    They know number, title, status, priority and when the ticket was opened.
    """
    found = fan_out([partial(_newest, tenant, one, limit) for one in ids])
    rows = [row for of_one in found for row in of_one]
    return sorted(rows, key=lambda row: (row.created_at, int(row.number)), reverse=True)[:limit]


def _newest(tenant: TenantContext, requester_id: str, limit: int) -> list[SummaryItem]:
    rows = tenant.repository.query(_ROWS, stored.tenant_requester, requester_id, descending=True, limit=limit).items
    # The row's key says whose ticket it is, whatever else is in it.
    return [row for row in rows if stored.ticket_number(tenant.tenant_id, row.pk) == int(row.number)]


def with_person(tenant: TenantContext, requester_id: str, *, limit: int) -> tuple[Requester | None, list[SummaryItem]]:
    """Return a person, for one who was merged the one who stands for both, with their newest tickets.

    A GetItem and a Query at the same time; for people who were merged one more round trip.
    """
    if not stored.is_requester(requester_id):
        return None, []
    reads: list[Any] = [
        partial(requesters.find, tenant, requester_id),
        partial(newest, tenant, [requester_id], limit=limit),
    ]
    person, rows = fan_out(reads)
    if person is None or person.ids == (requester_id,):
        return person, rows
    return person, newest(tenant, person.ids, limit=limit)
