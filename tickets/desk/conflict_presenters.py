"""Two versions of a ticket as the conflict page shows them."""

from __future__ import annotations

from typing import Any

from tenants.tenancy.context import TenantContext
from tickets.desk import ticket_presenters
from tickets.desk.changing import EditConflict
from tickets.desk.forms import ChangeForm, TicketForm
from tickets.ticket.fields import BY_NAME, EDITED, LABELS
from tickets.ticket.stored import SummaryItem

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
                "label": LABELS[name],
                "mine": mine[name],
                "theirs": theirs[name],
                "differs": mine[name] != theirs[name]
                and (not conflict.since.is_known or name in conflict.since.before),
            }
            for name in LABELS
            if name in mine
        ],
        "by_oneself": authors == {tenant.user_id},
        "by": " and ".join(names),
        "when_changed": ticket_presenters.timeline_entry(entries[0]).at if entries else None,
    }


def left_alone(form: TicketForm, conflict: EditConflict) -> dict[str, str]:
    """Return what others made of the fields that the author of this form left as they were."""
    before, now = conflict.since.before, ticket_presenters.values_of(conflict.stored, conflict.description)
    return {
        field.name: field.typed(now[field.name])
        for field in EDITED
        if field.name in before and field.typed(form.cleaned_data[field.name]) == before[field.name]
    }


def stored_texts(stored: SummaryItem, description: str = "") -> Texts:
    """Return all fields of the stored ticket."""
    return {
        name: BY_NAME[name].shown(value) for name, value in ticket_presenters.values_of(stored, description).items()
    }


def sent_texts(form: TicketForm | ChangeForm) -> Texts:
    """Return the fields that a form changes, of an assignee the id."""
    return {name: BY_NAME[name].shown(value) for name, value in form.values.items()}
