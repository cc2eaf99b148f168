"""Say a ticket and its history as one JSON object, with nothing left out that the desk shows or counts.

The names are those of the events and of the API: a person has `id` and `name`, a moment is text in UTC. What a ticket
remembers for the numbers of the dashboard is in it too, because not all of it follows from the history: a bulk change
that was taken back leaves no trace in them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from tickets.counting import contributions
from tickets.desk.timelines import Activity
from tickets.ticket import stored
from tickets.ticket.fields import ASSIGNEE, FIELDS
from tickets.ticket.stored import SummaryItem

Json = dict[str, Any]

# Moments that a ticket remembers of its history; null where there was none.
MOMENTS = ("responded_at", "resolved_at", "reopened_at", "commented_at", "noted_at")


def line(desk: str, summary: SummaryItem, description: str, activity: Iterable[Activity]) -> str:
    """Return the ticket as text of one line, without its end. `activity` is all of it, oldest first."""
    told = ticket(summary, description) | {"desk": desk, "activity": [entry(one) for one in activity]}
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"))


def ticket(summary: SummaryItem, description: str) -> Json:
    """Return what a ticket is now."""
    return {
        "number": int(summary.number),
        **{field.name: getattr(summary, field.name, description) for field in FIELDS if field is not ASSIGNEE},
        "requester_id": summary.requester or None,
        "requester_name": summary.requester_name,
        "resolver": person(summary.resolver, summary.resolver_name) if summary.resolver else None,
        "created_at": summary.created_at,
        "updated_at": summary.updated_at,
        "comment_count": int(summary.comment_count),
        "version": summary.version_told,
        **{name: getattr(summary, name) for name in MOMENTS},
        "days": _days(summary),
    }


def entry(one: Activity) -> Json:
    """Return an entry of the history: a comment, a note, or an event with what it changed."""
    told: Json = {
        "id": stored.entry_id(one.sk),
        "kind": one.kind,
        "at": one.at,
        "by": person(one.author, one.author_name),
    }
    if one.kind == "event":
        changes = [{"field": c.field, "before": c.before, "after": c.after} for c in one.changes]
        return told | {"verb": one.verb, "changes": changes}
    return told | {"body": one.body}


def _days(summary: SummaryItem) -> Json:
    """Return how often something happened on each day: {"2026-11-20": {"commented": 2}}."""
    told: Json = {}
    for name, count in sorted(summary.days.attribute_values.items()):
        told.setdefault(name[:-1], {})[contributions.EVENT_NAMES[name[-1]]] = int(count)
    return told


def person(user_id: str, name: str) -> Json:
    """Return a person; the id is null for somebody without an account."""
    return {"id": user_id or None, "name": name}
