"""Find the requesters of imported tickets in this desk by their addresses, and add those who are not here yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from portal.bounded_cache import BoundedCache
from tenants.tenancy.context import TenantContext
from tickets.desk.history import History
from tickets.requesters import requester_addresses, requesters
from tickets.requesters.requesters import Requester
from tickets.requesters.stored import is_requester

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
