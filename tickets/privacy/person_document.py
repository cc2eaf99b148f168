"""Hand out what a desk holds of one person, as one JSON document that is written while it is read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from portal import clock
from tenants.identity.keys import folded
from tenants.membership import invite_storage, members
from tenants.tenancy.context import TenantContext
from tickets.privacy import beside_tickets, person_finding, personal_places
from tickets.privacy.personal_places import Advance, DeskPerson, Raw
from tickets.ticket import keys
from tickets.verification.recount import last_number

Json = dict[str, Any]


def pieces(tenant: TenantContext, person: DeskPerson, *, advance: Advance = lambda numbers: None) -> Iterator[str]:
    """Yield the document piece by piece: membership, invitations, what stands beside the tickets, tickets asked for or
    assigned, what the person wrote, where others wrote the address, and the rows of the audit trail.

    Costs a Query for each ticket number, and the trail twice.
    """
    head = {
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
        "places": [str(place) for place in beside_tickets.places(tenant, person)],
    }
    yield f"{_text(head)[:-2]},\n"
    yield from _list("tickets", _tickets(tenant, person, advance))
    yield ",\n"
    yield from _list("audit_trail", map(_plain, personal_places.trail_rows(tenant, person)))
    yield "\n}\n"


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)


def _list(name: str, members: Iterable[Json]) -> Iterator[str]:
    """Yield one member of the document that is a list."""
    yield f' "{name}": ['
    for number, one in enumerate(members):
        yield f"{',' if number else ''}\n{_text(one)}"
    yield "]"


def _membership(tenant: TenantContext, person: DeskPerson) -> Json | None:
    member = members.member(tenant.repository, person.user_id) if person.user_id else None
    return {"name": member.name, "email": member.email, "role": member.role.value} if member else None


def _tickets(tenant: TenantContext, person: DeskPerson, advance: Advance) -> Iterator[Json]:
    for number, items in person_finding.tickets(tenant, range(1, last_number(tenant.repository) + 1)):
        told = [one for raw in items if (one := _told(person, number, raw))]
        if told:
            yield {"number": number, "items": told}
        advance(1)


def _told(person: DeskPerson, number: int, raw: Raw) -> Json | None:
    """Return what an item says of the person, None where it says nothing. What others wrote is in it only where it
    has the address."""
    if not any(personal_places.places(person, number, raw)):
        return None
    plain = _plain(raw)
    roles = [
        name for name in ("requester", "resolver", "author") if person.user_id and plain.get(name) == person.user_id
    ]
    mentions = {name: text for name, text in personal_places.texts_of(raw).items() if person.is_mentioned_in(text)}
    wrote = personal_places.texts_of(raw) if roles and roles != ["resolver"] else {}
    kept = ("kind", "at", "status", "priority", "created_at", "verb", "changes", *(f"{role}_name" for role in roles))
    what = "ticket" if raw["sk"]["S"] in (keys.SUMMARY, keys.DETAIL) else "history"
    told = {"of": what, "as": roles} | {name: plain[name] for name in kept if plain.get(name)} | wrote | mentions
    return told | {"tags": tags} if (tags := personal_places.tags_of(raw)) else told


def _plain(raw: Raw) -> Json:
    """Return the texts of an item, and the changes that an entry tells of."""
    plain: Json = {name: value["S"] for name, value in raw.items() if "S" in value}
    if changes := raw.get("changes", {}).get("L"):
        plain["changes"] = [{name: value["S"] for name, value in one["M"].items()} for one in changes]
    return {name: value for name, value in plain.items() if name not in ("pk", "sk", "tenant_id", "tenant_actor")}
