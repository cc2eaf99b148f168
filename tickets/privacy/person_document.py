"""Hand out what a desk holds of one person, as one JSON document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from portal import clock
from tenants.identity.keys import folded
from tenants.membership import invite_storage, members
from tenants.tenancy.context import TenantContext
from tickets.privacy import personal_places
from tickets.privacy.personal_places import Advance, DeskPerson, Raw
from tickets.ticket import keys
from tickets.verification.recount import last_number

Json = dict[str, Any]


def document(tenant: TenantContext, person: DeskPerson, *, advance: Advance = lambda numbers: None) -> Json:
    """Return everything: membership, invitations, tickets asked for or assigned, what the person wrote, where others
    wrote the address, and the rows of the audit trail. Costs a Query for each ticket number, and the trail twice."""
    return {
        "desk": {"name": tenant.name, "slug": tenant.slug},
        "made_at": clock.stamp(),
        "address": person.address,
        "user_id": person.user_id or None,
        "membership": _membership(tenant, person),
        "invitations": [
            {"role": invite.role, "invited_by": invite.invited_by_name, "sent_at": invite.sent_at}
            for invite in invite_storage.pending(tenant.repository)
            if folded(invite.email) == person.address
        ],
        "tickets": [*_tickets(tenant, person, advance)],
        "audit_trail": [_plain(raw) for raw in personal_places.trail_rows(tenant, person)],
    }


def _membership(tenant: TenantContext, person: DeskPerson) -> Json | None:
    member = members.member(tenant.repository, person.user_id) if person.user_id else None
    return {"name": member.name, "email": member.email, "role": member.role.value} if member else None


def _tickets(tenant: TenantContext, person: DeskPerson, advance: Advance) -> Iterator[Json]:
    for number in range(1, last_number(tenant.repository) + 1):
        told = [one for raw in personal_places.items_of(tenant, number) if (one := _told(person, raw))]
        if told:
            yield {"number": number, "items": told}
        advance(1)


def _told(person: DeskPerson, raw: Raw) -> Json | None:
    """Return what an item says of the person, None where it says nothing. What others wrote is in it only where it
    has the address."""
    plain = _plain(raw)
    roles = [
        name for name in ("requester", "resolver", "author") if person.user_id and plain.get(name) == person.user_id
    ]
    mentions = {name: text for name, text in personal_places.texts_of(raw).items() if person.is_mentioned_in(text)}
    if not roles and not mentions:
        return None
    wrote = personal_places.texts_of(raw) if roles and roles != ["resolver"] else {}
    kept = ("kind", "at", "status", "priority", "created_at", "verb", "changes", *(f"{role}_name" for role in roles))
    what = "ticket" if raw["sk"]["S"] in (keys.SUMMARY, keys.DETAIL) else "history"
    return {"of": what, "as": roles} | {name: plain[name] for name in kept if plain.get(name)} | wrote | mentions


def _plain(raw: Raw) -> Json:
    """Return the texts of an item, and the changes that an entry tells of."""
    plain: Json = {name: value["S"] for name, value in raw.items() if "S" in value}
    if changes := raw.get("changes", {}).get("L"):
        plain["changes"] = [{name: value["S"] for name, value in one["M"].items()} for one in changes]
    return {name: value for name, value in plain.items() if name not in ("pk", "sk", "tenant_id", "tenant_actor")}
