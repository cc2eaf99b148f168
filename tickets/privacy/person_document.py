"""Hand out what a desk holds of one person, as one JSON document that is written while it is read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from portal import clock
from tenants.membership import invitations, members
from tenants.sign_in.stored import folded
from tenants.tenancy.context import TenantContext
from tickets.privacy import beside_tickets, desk_person, person_finding, personal_places
from tickets.privacy.desk_person import DeskPerson, Raw
from tickets.privacy.personal_places import Advance
from tickets.ticket import stored
from tickets.ticket.fields import CHOICES
from tickets.verification.recount import last_number

Json = dict[str, Any]

_CHOICES: Final = [choice.name for choice in CHOICES]


def pieces(tenant: TenantContext, person: DeskPerson, *, advance: Advance = lambda numbers: None) -> Iterator[str]:
    """Yield the document piece by piece: membership, invitations, tickets asked for or assigned, what the person wrote,
    where others wrote the address, what stands beside the tickets, and the rows of the audit trail.

    Costs a Query for each ticket number, and the trail.
    """
    names = {person.name} - {""}
    head = {
        "desk": {"name": tenant.name, "slug": tenant.slug},
        "made_at": clock.stamp(),
        "address": person.address,
        "user_ids": [*person.user_ids],
        "erased_as": person.erased_as or None,
        "membership": _membership(tenant, person),
        "invitations": [
            {"role": invite.role, "invited_by": invite.invited_by_name, "sent_at": invite.sent_at}
            for invite in invitations.pending(tenant.repository)
            if folded(invite.email) == person.address
        ],
    }
    yield f"{_text(head)[:-2]},\n"
    yield from _list("tickets", _tickets(tenant, person, names, advance))
    yield ",\n"
    yield from _list("places", map(str, beside_tickets.places(tenant, person, names)))
    yield ",\n"
    yield from _list("audit_trail", map(_plain, desk_person.trail_rows(tenant, person)))
    yield "\n}\n"


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)


def _list(name: str, members: Iterable[Json | str]) -> Iterator[str]:
    """Yield one member of the document that is a list."""
    yield f' "{name}": ['
    for number, one in enumerate(members):
        yield f"{',' if number else ''}\n{_text(one)}"
    yield "]"


def _membership(tenant: TenantContext, person: DeskPerson) -> Json | None:
    for user_id in person.user_ids:
        if member := members.member(tenant.repository, user_id):
            return {"name": member.name, "email": member.email, "role": member.role.value}
    return None


def _tickets(tenant: TenantContext, person: DeskPerson, names: set[str], advance: Advance) -> Iterator[Json]:
    """Yield what the tickets tell, and add to the names by which they know the person."""
    for number, items in person_finding.tickets(tenant, range(1, last_number(tenant.repository) + 1)):
        names.update(name for raw in items for name in personal_places.names_in(person, raw))
        told = [one for raw in items if (one := _told(person, names, number, raw))]
        if told:
            yield {"number": number, "items": told}
        advance(1)


def _told(person: DeskPerson, names: set[str], number: int, raw: Raw) -> Json | None:
    """Return what an item says of the person, None where it says nothing. What others wrote is in it only where it
    has the address."""
    if not any(personal_places.places(person, names, number, raw)):
        return None
    plain = _plain(raw)
    roles = [name for name in ("requester", "resolver", "author") if person.is_who(plain.get(name, ""))]
    mentions = {name: text for name, text in personal_places.texts_of(raw).items() if person.mail.is_in(text)}
    wrote = personal_places.texts_of(raw) if roles and roles != ["resolver"] else {}
    kept = ("kind", "at", *_CHOICES, "created_at", "verb", "changes", *(f"{role}_name" for role in roles))
    what = "ticket" if raw["sk"]["S"] in (stored.SUMMARY, stored.DETAIL) else "history"
    told = {"of": what, "as": roles} | {name: plain[name] for name in kept if plain.get(name)} | wrote | mentions
    return told | {"tags": tags} if (tags := personal_places.tags_of(raw)) else told


def _plain(raw: Raw) -> Json:
    """Return the texts of an item, and the changes that an entry tells of."""
    plain: Json = {name: value["S"] for name, value in raw.items() if "S" in value}
    if changes := raw.get("changes", {}).get("L"):
        plain["changes"] = [{name: value["S"] for name, value in one["M"].items()} for one in changes]
    return {name: value for name, value in plain.items() if name not in ("pk", "sk", "tenant_id", "tenant_actor")}
