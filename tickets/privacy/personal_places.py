"""Find all places of a desk in which one person occurs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from portal.errors import Invalid
from portal.schema import keys as all_keys
from tenants.audit_trail.tables import AUDIT
from tenants.identity import accounts
from tenants.identity.keys import folded
from tenants.membership import invite_storage, members
from tenants.tenancy.context import TenantContext
from tickets.ticket import keys
from tickets.ticket.tables import TICKETS
from tickets.verification.recount import last_number

Raw = dict[str, Any]
Advance = Callable[[int], object]

_AROUND: Final = 40  # characters that are shown on both sides of a mention


@dataclass(frozen=True)
class DeskPerson:
    """Somebody as a desk knows them: by address, and by the id of an account, "" where none is known."""

    address: str
    user_id: str

    def is_mentioned_in(self, text: str) -> bool:
        return bool(self.pattern.search(text))

    @property
    def pattern(self) -> re.Pattern[str]:
        """Return what finds the address in a text, as a whole and in whatever case."""
        return re.compile(rf"(?<![\w.+-]){re.escape(self.address)}(?![\w-])", re.IGNORECASE)


@dataclass(frozen=True)
class PersonalPlace:
    """One place. `number` is a ticket's, 0 outside of tickets; `sort` the sort key of the item. `is_text` says that it
    is a text that people wrote, of which `excerpt` shows what is around the address."""

    kind: str
    number: int = 0
    sort: str = ""
    is_text: bool = False
    excerpt: str = ""


def person_of(tenant: TenantContext, address: str) -> DeskPerson:
    """Return who has this address: by the account, or where there is none any more by the desk's audit trail.

    Costs a read of the trail in the second case. Raises Invalid for what is no address.
    """
    try:
        known = folded(address)
    except ValueError as error:
        raise Invalid("That is not an e-mail address.", field="address") from error
    if (account := accounts.find_by_email(known)) is not None:
        return DeskPerson(known, account.id)
    for raw in trail_rows(tenant, DeskPerson(known, "")):
        named = raw["actor_id"]["S"] if _text(raw, "actor_email") == known else raw["entity_id"]["S"]
        if all_keys.USER_ID.match(named):
            return DeskPerson(known, named)
    return DeskPerson(known, "")


def trail_rows(tenant: TenantContext, person: DeskPerson) -> Iterator[Raw]:
    """Yield the rows of the audit trail that name the person, raw: a Query for each megabyte of the trail."""
    for raw in tenant.repository.query_all(AUDIT, all_keys.tenant):
        told = [_text(raw, name) for name in ("actor_email", "entity_name", "before", "after")]
        ids = {raw["actor_id"]["S"], raw["entity_id"]["S"]}
        if (person.user_id and person.user_id in ids) or any(person.is_mentioned_in(text) for text in told):
            yield raw


def outside_of_tickets(tenant: TenantContext, person: DeskPerson) -> Iterator[PersonalPlace]:
    """Yield where the person occurs beside the tickets."""
    if person.user_id and (member := members.member(tenant.repository, person.user_id)):
        yield PersonalPlace(f"member, {member.role.label}")
    for invite in invite_storage.pending(tenant.repository):
        if folded(invite.email) == person.address:
            yield PersonalPlace("invitation", excerpt=invite.sent_at)
    if rows := sum(1 for _ in trail_rows(tenant, person)):
        yield PersonalPlace(f"audit trail, {rows:,} row{'s' * (rows != 1)}")


def in_tickets(
    tenant: TenantContext, person: DeskPerson, *, advance: Advance = lambda numbers: None
) -> Iterator[PersonalPlace]:
    """Yield where the person occurs in tickets, by number: a Query for each number that was given out."""
    for number in range(1, last_number(tenant.repository) + 1):
        for raw in items_of(tenant, number):
            yield from _places(person, number, raw)
        advance(1)


def items_of(tenant: TenantContext, number: int) -> list[Raw]:
    """Return the raw items of a ticket as they are now."""
    return [*tenant.repository.query_all(TICKETS, keys.ticket, number, consistent=True)]


def texts_of(raw: Raw) -> dict[str, str]:
    """Return the texts of an item of a ticket that people wrote, by the names of their attributes."""
    own = {keys.SUMMARY: ("title",), keys.DETAIL: ("description",)}
    names = own.get(raw["sk"]["S"], ("body", "former_description"))
    return {name: _text(raw, name) for name in names}


def changes_of(raw: Raw) -> list[dict[str, str]]:
    """Return the changes that an entry of a ticket's history tells of: field, before and after of each."""
    told = raw.get("changes", {}).get("L", ())
    return [{name: str(value.get("S", "")) for name, value in one["M"].items()} for one in told]


def _places(person: DeskPerson, number: int, raw: Raw) -> Iterator[PersonalPlace]:
    sort = raw["sk"]["S"]
    if person.user_id:
        for name, kind in (("requester", "requester"), ("resolver", "assignee")):
            if _text(raw, name) == person.user_id:
                yield PersonalPlace(kind, number, sort)
        if _text(raw, "former_resolver") == person.user_id:
            yield PersonalPlace("former assignee", number, sort)
        if _text(raw, "author") == person.user_id:
            yield PersonalPlace(f"author: {_text(raw, 'kind')}", number, sort)
    changed = {f"{c['field']}, {when}": c[when] for c in changes_of(raw) for when in ("before", "after")}
    for name, text in (texts_of(raw) | changed).items():
        if found := person.pattern.search(text):
            around = text[max(0, found.start() - _AROUND) : found.end() + _AROUND]
            yield PersonalPlace(f"text: {name}", number, sort, True, " ".join(around.split()))


def _text(raw: Raw, name: str) -> str:
    return str(raw.get(name, {}).get("S", ""))
