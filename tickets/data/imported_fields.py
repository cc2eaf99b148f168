"""Translate kind, group and custom fields of an exported ticket into those of the desk that takes it in.

Each desk gives its own ids, so both are found by type and name. A field that the desk has not is left out, and the
report says so: under the same id another field may stand here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from portal.quotas import BoundedCache
from tenants.tenancy.context import TenantContext
from tickets.custom_fields.definitions import Definitions
from tickets.desk.history import History, PastEntry
from tickets.requesters import requester_addresses, requesters
from tickets.requesters.requesters import Requester
from tickets.requesters.stored import is_requester
from tickets.ticket import custom_values
from tickets.ticket.fields import CUSTOM, CUSTOM_PREFIX, DEFINED, FieldChange

_ELSEWHERE: Final = "a field of another desk"  # in the history, of a field that is not here


def names_of(defined: Definitions) -> dict[str, str]:
    """Return the names that an export gives beside the ids of kinds, groups and custom fields."""
    named = {one.id: one.name for of in DEFINED for one in defined.of_field(of)}
    return {one.id: one.name for one in defined.fields} | named


class Translation:
    """Translate ids, of which the file says the `names`, into those of a desk."""

    def __init__(self, defined: Definitions, names: Mapping[str, str]) -> None:
        self._defined, self._names = defined, names
        self._here = {(one.type.value, one.name.casefold()): one.id for one in defined.fields}
        self._here |= {(of.name, one.name.casefold()): one.id for of in DEFINED for one in defined.of_field(of)}
        self._missing: dict[str, None] = {}

    def ticket(self, told: History) -> tuple[History, list[str]]:
        """Return the ticket for this desk, and what of it is left out, each as the end of a sentence."""
        values = dict(told.values)
        values |= {of.name: self._id(values.get(of.name) or "") for of in DEFINED}
        custom = values.get(CUSTOM.name) or {}
        values[CUSTOM.name] = {found: text for one, text in custom.items() if (found := self._id(one))}
        left = [f"has a value of “{name}”, which this desk has not defined; it was left out" for name in self._missing]
        entries = tuple(replace(one, changes=tuple(self._changes(one))) for one in told.entries)
        return replace(told, values=values, entries=entries), left

    def _id(self, foreign: str) -> str:
        if not foreign:
            return ""
        name = self._names.get(foreign)
        if name is None:
            found = foreign if foreign in names_of(self._defined) else ""
        else:
            found = self._here.get((foreign.rpartition("_")[0], name.casefold()), "")
        if not found:
            self._missing[name or foreign] = None
        return found

    def _changes(self, entry: PastEntry) -> Iterator[FieldChange]:
        for name, before, after in entry.changes:
            if any(name == of.name for of in DEFINED):
                yield name, self._id(before), self._id(after)
            elif name.startswith(CUSTOM_PREFIX):
                found = self._id(name.removeprefix(CUSTOM_PREFIX))
                yield f"{CUSTOM_PREFIX}{found}" if found else _ELSEWHERE, before, after
            else:
                yield name, before, after


def is_names(value: object) -> bool:
    """Tell whether a file's names of kinds, groups and custom fields are such as an export gives."""
    return isinstance(value, dict) and all(
        isinstance(name, str) and (custom_values.is_field_id(one) or any(of.pattern.match(one) for of in DEFINED))
        for one, name in value.items()
    )


_KEPT: Final = 1000  # people who are remembered while a file is read

Person = tuple[str, str]  # the id, "" for nobody who is known, and the name


class OutsidePeople:
    """The people outside one desk, as a file names them. With `dry_run` nobody is added."""

    def __init__(self, tenant: TenantContext, *, dry_run: bool = False) -> None:
        self._tenant, self._dry_run = tenant, dry_run
        self._found = BoundedCache[str, Person](_KEPT)

    def written(self, text: str) -> Person:
        """Return who is meant by what an archive calls an author: a person where it is an address, alone or behind a
        name, else nobody, with the text as the name."""
        if "@" not in text or not requester_addresses.is_address(text.rpartition("<")[2].rstrip("> ")):
            return "", text
        name, address = requester_addresses.typed(text)
        return self._remembered(text, "", name, [address])

    def of_export(self, made: History, addresses: Sequence[str]) -> History:
        """Return the history of an exported ticket with the people of this desk in place of those of the other one.

        Somebody without an address stays who they are where this desk knows them, and has no id where it does not.
        """
        named = {one.author: one.author_name for one in made.entries if is_requester(one.author)}
        if is_requester(made.requester):
            named[made.requester] = made.requester_name
        if not named:
            return made
        here = {
            one: self._remembered(one, one, name, addresses if one == made.requester else ())[0]
            for one, name in named.items()
        }
        entries = [replace(one, author=here.get(one.author, one.author)) for one in made.entries]
        return replace(made, requester=here.get(made.requester, made.requester), entries=tuple(entries))

    def _remembered(self, key: str, told_id: str, name: str, addresses: Sequence[str]) -> Person:
        if known := self._found.get(key):
            return known
        person = self._person(told_id, name, addresses)
        found = (person.id, person.label) if person else ("", name or next(iter(addresses), ""))
        if addresses:  # those who were named without one may be named with one later
            self._found.put(key, found)
        return found

    def _person(self, told_id: str, name: str, addresses: Sequence[str]) -> Requester | None:
        for address in addresses:
            if known := requesters.by_address(self._tenant, address):
                return known
        if not addresses:
            return requesters.find(self._tenant, told_id)
        if self._dry_run:
            return None
        return requesters.ensure(self._tenant, addresses[0], name=name, also=addresses[1:])
