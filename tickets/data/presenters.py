"""Show what the pages about a person's data tell: what was found, by kind, and who was erased before."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal import clock
from tenants.audit_trail import browsing
from tenants.audit_trail.browsing import TrailFilter
from tenants.audit_trail.erased_people import ErasedPeople
from tenants.audit_trail.recording import AuditAction
from tenants.tenancy.context import TenantContext
from tickets.data import desk_person, person_finding
from tickets.data.desk_person import LETTER_TO_THEM
from tickets.data.person_erasing import ENTITY, Erasure
from tickets.data.person_finding import PersonFound

_SEARCHES: Final = 8  # that are offered for names
_LABELS: Final = {
    "requester": gettext_noop("Tickets they asked for"),
    "assignee": gettext_noop("Tickets assigned to them"),
    "former assignee": gettext_noop("Times that a ticket was taken from them"),
    "new assignee": gettext_noop("Times that a ticket was given to them"),
    "author: comment": gettext_noop("Comments"),
    "author: note": gettext_noop("Internal notes"),
    "author: event": gettext_noop("Changes of tickets"),
    LETTER_TO_THEM: gettext_noop("Letters that went to them"),
    "text": gettext_noop("Texts with the address"),
}


def found(person: PersonFound) -> dict[str, Any]:
    """Return what the page of a search shows, whole or not."""
    erased_at = person.person.erased_at
    return {
        "found": person,
        "address": person.person.address,
        "counts": [(_(label), person.kinds[kind]) for kind, label in _LABELS.items() if person.kinds[kind]],
        "beside": [*person.beside, *person.beside_texts],
        "not_seen": _(person_finding.NOT_SEEN),
        "nothing": not person.is_known,
        "name_searches": _name_searches(person.names),
        "erased_as": person.person.erased_as,
        "erased_at": clock.parse(erased_at) if erased_at else None,
        "more": person.kinds["text"] - len(person.mentions),
        "percent": _percent(person.reached, person.last),
    }


def erasing(erasure: Erasure) -> dict[str, Any]:
    """Return what the page of an erasure shows that goes on."""
    return {"erasure": erasure, "percent": _percent(erasure.reached, erasure.last)}


def erasures(tenant: TenantContext) -> list[dict[str, Any]]:
    """Return the latest erasures of the desk, newest first: one Query of the audit trail."""
    erased = ErasedPeople.parse(tenant.erased)
    rows = browsing.page(tenant.repository, only=TrailFilter(entity=ENTITY), erased=erased).rows
    return [
        {"name": row.entity, "at": row.at, "by": row.actor or row.origin, "counted": _counted(row.after)}
        for row in rows
        if row.action == AuditAction.PERSON_ERASED
    ]


def _name_searches(names: list[str]) -> list[tuple[str, str]]:
    """Return the names, and the words of each, with the address of a search for it."""
    texts = dict.fromkeys(text for name in names for text in (name, *name.split()))
    page = reverse("tickets:search")
    return [(text, f"{page}?{urlencode({'q': text})}") for text in [*texts][:_SEARCHES]]


def _percent(reached: int, last: int) -> int:
    return 100 * reached // last if last else 100


def _counted(after: dict[str, str]) -> str:
    """Return what the row of an erasure tells. In older rows "places" stands for "named"."""
    known = {"named": after.get("places", 0)} | after
    return desk_person.counted(
        **{name: int(known.get(name, 0)) for name in ("named", "texts", "tickets", "beside", "files")}
    )
