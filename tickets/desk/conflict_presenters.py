"""Two versions of a ticket as the conflict page shows them."""

from __future__ import annotations

from typing import Any

from tenants.tenancy.context import TenantContext
from tickets.desk import changing, ticket_presenters
from tickets.desk.changing import EditConflict
from tickets.desk.forms import ChangeForm, TicketForm
from tickets.ticket.fields import Priority, Status
from tickets.ticket.items import SummaryItem

Texts = dict[str, str]  # by field, as a person reads them


def conflict_page(tenant: TenantContext, conflict: EditConflict, *, mine: Texts, theirs: Texts) -> dict[str, Any]:
    """Return the fields in question side by side, and who made the other version and when."""
    entries = conflict.since.entries
    authors = {entry.author for entry in entries}
    names = list(dict.fromkeys(entry.author_name for entry in entries if entry.author != tenant.user_id))
    return {
        "ticket": ticket_presenters.listed(tenant, conflict.stored),
        "fields": [
            {
                "label": changing.LABELS[name],
                "mine": mine[name],
                "theirs": theirs[name],
                "differs": mine[name] != theirs[name]
                and (not conflict.since.is_known or name in conflict.since.before),
            }
            for name in changing.LABELS
            if name in mine
        ],
        "by_oneself": authors == {tenant.user_id},
        "by": " and ".join(names),
        "when_changed": ticket_presenters.timeline_entry(entries[0]).at if entries else None,
    }


def left_alone(form: TicketForm, conflict: EditConflict) -> dict[str, str]:
    """Return what others made of the fields that the author of this form left as they were."""
    typed = form.cleaned_data | {"tags": ", ".join(form.cleaned_data["tags"])}
    stored = conflict.stored
    now = {
        "title": stored.title,
        "description": conflict.description,
        "priority": stored.priority,
        "tags": ", ".join(stored.tags),
    }
    before = conflict.since.before
    return {name: value for name, value in now.items() if name in before and typed[name] == before[name]}


def stored_texts(stored: SummaryItem) -> Texts:
    return {
        "title": stored.title,
        "status": Status(stored.status).label,
        "priority": Priority(stored.priority).label,
        "tags": ", ".join(stored.tags),
        "resolver": stored.resolver_name or "Unassigned",
    }


def edited_texts(form: TicketForm) -> Texts:
    data = form.cleaned_data
    return {
        "title": data["title"],
        "description": data["description"],
        "priority": Priority(data["priority"]).label,
        "tags": ", ".join(data["tags"]),
    }


def changed_text(form: ChangeForm, person: str) -> Texts:
    """Return the one field of a quick change; `person` is the name of the new assignee."""
    data = form.cleaned_data
    if data["status"]:
        return {"status": Status(data["status"]).label}
    if data["priority"]:
        return {"priority": Priority(data["priority"]).label}
    return {"resolver": person}
