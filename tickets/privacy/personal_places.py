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
from tenants.tenancy.context import TenantContext
from tickets.ticket import keys
from tickets.ticket.tables import TICKETS

Raw = dict[str, Any]
Advance = Callable[[int], object]

_AROUND: Final = 40  # characters that are shown on both sides of a mention


@dataclass(frozen=True)
class DeskPerson:
    """Somebody as a desk knows them: by address, and by the id and the name of an account, "" where none is known."""

    address: str
    user_id: str
    name: str = ""

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

    def __str__(self) -> str:
        """Return a line that says where it is."""
        where = f"ticket {self.number}: {self.kind}" if self.number else self.kind
        return f"{where}: {self.excerpt}" if self.excerpt else where


def person_of(tenant: TenantContext, address: str) -> DeskPerson:
    """Return who has this address: by the account, or where there is none any more by the desk's audit trail.

    Costs a read of the trail in the second case. Raises Invalid for what is no address.
    """
    try:
        known = folded(address)
    except ValueError as error:
        raise Invalid("That is not an e-mail address.", field="address") from error
    if (account := accounts.find_by_email(known)) is not None:
        return DeskPerson(known, account.id, account.name)
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


def items_of(tenant: TenantContext, number: int) -> list[Raw]:
    """Return the raw items of a ticket as they are now."""
    return [*tenant.repository.query_all(TICKETS, keys.ticket, number, consistent=True)]


def texts_of(raw: Raw) -> dict[str, str]:
    """Return the texts of an item of a ticket that people wrote, by the names of their attributes."""
    own = {keys.SUMMARY: ("title",), keys.DETAIL: ("description",)}
    names = own.get(raw["sk"]["S"], ("body", "former_description"))
    return {name: _text(raw, name) for name in names}


def tags_of(raw: Raw) -> list[str]:
    """Return the tags of a ticket's summary, none of any other item."""
    return [str(tag["S"]) for tag in raw.get("tags", {}).get("L", ())]


def names_in(person: DeskPerson, raw: Raw) -> set[str]:
    """Return by which names an item of a ticket knows the person: entries of its history tell of people by names."""
    found = set()
    if person.user_id:
        for name in ("author", "requester", "resolver"):
            if _text(raw, name) == person.user_id:
                found.add(_text(raw, f"{name}_name"))
        if _text(raw, "former_resolver") == person.user_id:
            found |= {one.get("before", "") for one in changes_of(raw) if one["field"] == "resolver"}
    return found - {""}


def changes_of(raw: Raw) -> list[dict[str, str]]:
    """Return the changes that an entry of a ticket's history tells of: field, before and after of each."""
    told = raw.get("changes", {}).get("L", ())
    return [{name: str(value.get("S", "")) for name, value in one["M"].items()} for one in told]


def places(person: DeskPerson, number: int, raw: Raw) -> Iterator[PersonalPlace]:
    """Yield where the person occurs in one item of a ticket."""
    sort = raw["sk"]["S"]
    if person.user_id:
        for name, kind in (("requester", "requester"), ("resolver", "assignee")):
            if _text(raw, name) == person.user_id:
                yield PersonalPlace(kind, number, sort)
        if _text(raw, "former_resolver") == person.user_id:
            yield PersonalPlace("former assignee", number, sort)
        if _text(raw, "author") == person.user_id:
            yield PersonalPlace(f"author: {_text(raw, 'kind')}", number, sort)
    changed = {f"{c['field']}, {when}": c.get(when, "") for c in changes_of(raw) for when in ("before", "after")}
    shown = {f"{name}_name": _text(raw, f"{name}_name") for name in others_shown(person, raw)}
    tags = {"tags": ", ".join(tags_of(raw))}
    for name, text in (texts_of(raw) | tags | changed | shown).items():
        if found := person.pattern.search(text):
            around = text[max(0, found.start() - _AROUND) : found.end() + _AROUND]
            yield PersonalPlace(f"text: {name}", number, sort, True, " ".join(around.split()))


def others_shown(person: DeskPerson, raw: Raw) -> list[str]:
    """Return in which parts somebody else is named, such as a key whose name may have an address in it."""
    parts = [name for name in ("author", "requester", "resolver") if f"{name}_name" in raw]
    return [name for name in parts if not (person.user_id and _text(raw, name) == person.user_id)]


def _text(raw: Raw, name: str) -> str:
    return str(raw.get(name, {}).get("S", ""))
