"""Show what the pages about a person's data tell: what was found, by kind, and who was erased before."""

from __future__ import annotations

from typing import Any, Final

from tenants.audit_trail import browsing
from tenants.audit_trail.browsing import TrailFilter
from tenants.audit_trail.erased_people import ErasedPeople
from tenants.audit_trail.recording import AuditAction
from tenants.tenancy.context import TenantContext
from tickets.privacy.person_erasing import ENTITY, Erasure
from tickets.privacy.person_finding import PersonFound

_LABELS: Final = {
    "requester": "Tickets they asked for",
    "assignee": "Tickets assigned to them",
    "former assignee": "Times that a ticket was taken from them",
    "author: comment": "Comments",
    "author: note": "Internal notes",
    "author: event": "Changes of tickets",
    "text": "Texts with the address",
}


def found(person: PersonFound) -> dict[str, Any]:
    """Return what the page of a search shows, whole or not."""
    beside = [*person.beside, *person.beside_texts]
    return {
        "found": person,
        "counts": [(label, person.kinds[kind]) for kind, label in _LABELS.items() if person.kinds[kind]],
        "beside": beside,
        "nothing": not (beside or person.tickets),
        "is_member": any(line.startswith("member") for line in person.beside),
        "more": person.texts - len(person.mentions),
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
        {"name": row.entity, "at": row.at, "by": row.actor or row.origin, **_numbers(row.after)}
        for row in rows
        if row.action == AuditAction.PERSON_ERASED
    ]


def _percent(reached: int, last: int) -> int:
    return 100 * reached // last if last else 100


def _numbers(after: dict[str, str]) -> dict[str, int]:
    return {name: int(after.get(name, 0)) for name in ("tickets", "places", "texts")}
