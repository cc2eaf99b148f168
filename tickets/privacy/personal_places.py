"""Find all places in the tickets of a desk in which one person occurs.

What is found here is what an erasure replaces and counts: both go by `places`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from portal.plain_text import amount
from tenants.tenancy.context import TenantContext
from tickets.privacy.desk_person import DeskPerson, Raw
from tickets.ticket import stored
from tickets.ticket.fields import DESCRIPTION, SUMMARISED, TextField
from tickets.ticket.stored import TICKETS

_WRITTEN: Final = {
    stored.SUMMARY: [field.name for field in SUMMARISED if isinstance(field, TextField)],
    stored.DETAIL: [DESCRIPTION.name],
}
Advance = Callable[[int], object]

_PARTS: Final = ("author", "requester", "resolver")  # of an item: each an id, with a name beside it
_AROUND: Final = 40  # characters that are shown on both sides of a mention


@dataclass(frozen=True)
class PersonalPlace:
    """One place. `number` is a ticket's, 0 outside of tickets; `sort` the sort key of the item. `is_text` says that it
    is a text that people wrote, of which `excerpt` shows what is around the address. What `stays` is shown, and neither
    replaced by an erasure nor counted."""

    kind: str
    number: int = 0
    sort: str = ""
    is_text: bool = False
    excerpt: str = ""
    stays: bool = False

    def __str__(self) -> str:
        """Return a line that says where it is."""
        where = f"ticket {self.number}: {self.kind}" if self.number else self.kind
        return f"{where}: {self.excerpt}" if self.excerpt else where


def counted(*, named: int, texts: int, tickets: int, beside: int) -> str:
    """Return in words how often a person was found or replaced: "the name 9 times and the address in 1 text, in 4
    tickets and beside them"."""
    parts = [f"the name {amount(named, 'time')}"] if named else []
    parts += [f"the address in {amount(texts, 'text')}"] if texts else []
    if not parts:
        return "nothing"
    where = [f"in {amount(tickets, 'ticket')}"] if tickets else []
    where += [("beside them" if tickets else "beside the tickets")] if beside else []
    return f"{' and '.join(parts)}, {' and '.join(where)}"


def items_of(tenant: TenantContext, number: int) -> list[Raw]:
    """Return the raw items of a ticket as they are now."""
    return [*tenant.repository.query_all(TICKETS, stored.ticket, number, consistent=True)]


def texts_of(raw: Raw) -> dict[str, str]:
    """Return the texts of an item of a ticket that people wrote, by the names of their attributes."""
    names = _WRITTEN.get(raw["sk"]["S"], ("body", DESCRIPTION.kept_as))
    return {name: _text(raw, name) for name in names}


def tags_of(raw: Raw) -> list[str]:
    """Return the tags of a ticket's summary, none of any other item."""
    return [str(tag["S"]) for tag in raw.get("tags", {}).get("L", ())]


def names_in(person: DeskPerson, raw: Raw) -> set[str]:
    """Return by which names an item of a ticket knows the person: entries of its history tell of people by names."""
    found = {_text(raw, f"{name}_name") for name in _PARTS if person.is_who(_text(raw, name))}
    if person.is_who(_text(raw, "former_resolver")):
        found |= {one.get("before", "") for one in changes_of(raw) if one["field"] == "resolver"}
    return found - {""}


def assignees_told(raw: Raw, *when: str) -> set[str]:
    """Return the names of assignees, "before" a change or "after" it, that an entry of a ticket's history tells of."""
    return {one.get(name, "") for one in changes_of(raw) if one["field"] == "resolver" for name in when} - {""}


def changes_of(raw: Raw) -> list[dict[str, str]]:
    """Return the changes that an entry of a ticket's history tells of: field, before and after of each."""
    told = raw.get("changes", {}).get("L", ())
    return [{name: str(value.get("S", "")) for name, value in one["M"].items()} for one in told]


def places(person: DeskPerson, names: Collection[str], number: int, raw: Raw) -> Iterator[PersonalPlace]:
    """Yield where the person, who goes by these names, occurs in one item of a ticket."""
    sort = raw["sk"]["S"]
    for name, kind in (("requester", "requester"), ("resolver", "assignee")):
        if person.is_who(_text(raw, name)):
            yield PersonalPlace(kind, number, sort)
    if person.is_who(_text(raw, "author")):
        yield PersonalPlace(f"author: {_text(raw, 'kind')}", number, sort)
    if person.is_who(_text(raw, "former_resolver")) or not assignees_told(raw, "before").isdisjoint(names):
        yield PersonalPlace("former assignee", number, sort)
    if not assignees_told(raw, "after").isdisjoint(names):
        yield PersonalPlace("new assignee", number, sort)
    changed = {
        f"{one['field']}, {when}": one.get(when, "")
        for one in changes_of(raw)
        for when in ("before", "after")
        if not (one["field"] == "resolver" and one.get(when) in names)
    }
    shown = {f"{name}_name": _text(raw, f"{name}_name") for name in others_shown(person, raw)}
    tags = {"tags": ", ".join(tags_of(raw))}
    for name, text in (texts_of(raw) | tags | changed | shown).items():
        for begin, end in islice(person.mail.mentions(text), 1):
            around = text[max(0, begin - _AROUND) : end + _AROUND]
            yield PersonalPlace(f"text: {name}", number, sort, True, " ".join(around.split()))


def others_shown(person: DeskPerson, raw: Raw) -> list[str]:
    """Return in which parts somebody else is named, such as a key whose name may have an address in it."""
    return [name for name in _PARTS if f"{name}_name" in raw and not person.is_who(_text(raw, name))]


def _text(raw: Raw, name: str) -> str:
    return str(raw.get(name, {}).get("S", ""))
