"""Requesters and their tickets as templates show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.urls import reverse

from portal import clock
from portal.web import desk_prefix
from portal.web.locales import stored_text
from tickets.requesters import requester_tickets
from tickets.requesters.requesters import Requester
from tickets.ticket.fields import PRIORITY, STATUS
from tickets.ticket.stored import SummaryItem


def person(one: Requester) -> dict[str, Any]:
    """Return a person as a list, a page and a ticket show them."""
    return {
        "id": one.id,
        "label": one.label,
        "name": one.name,
        "address": one.address,
        "addresses": [
            {"text": address, "bounced": stored_text(one.bounced.get(address, ""))} for address in one.addresses
        ],
        "organisation": one.organisation,
        "notes": one.notes,
        "language": one.language,
        "typed": one.typed,
        "url": reverse("tickets:requester", args=[one.id]),
        "created_at": clock.parse(one.created_at) if one.created_at else None,
        "bounced": stored_text(one.bounced.get(one.address, "")),
        "is_unreached": bool(one.addresses) and all(address in one.bounced for address in one.addresses),
    }


def tickets(rows: Sequence[SummaryItem], *, but: int = 0) -> list[dict[str, Any]]:
    """Return the rows of a person's tickets, all but the one with this number."""
    queue = desk_prefix.address("tickets:queue")
    return [
        {
            "number": int(row.number),
            "title": row.title,
            "status": row.status,
            "status_label": STATUS.shown(row.status),
            "priority": row.priority,
            "priority_label": PRIORITY.shown(row.priority),
            "created_at": clock.parse(row.created_at),
            "url": f"{queue}{int(row.number)}/",
        }
        for row in rows
        if int(row.number) != but
    ]


def beside(one: Requester | None, rows: Sequence[SummaryItem], *, number: int) -> dict[str, Any]:
    """Return what stands beside a ticket: its requester, and a few of their other tickets."""
    others = tickets(rows, but=number)
    return {
        "person": person(one) if one else None,
        "others": others[: requester_tickets.BESIDE],
        "has_more": len(others) > requester_tickets.BESIDE,
    }
