"""Look for one person through all tickets of a desk, a stretch of numbers at a time, and add up what is found.

A command takes all stretches in one go. A page takes one for each request, so that no request lasts long however many
tickets there are; what was found so far goes to the browser and back as `dumped`, under the portal's signature.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from portal.dynamo.client import fan_out
from tenants.tenancy.context import TenantContext
from tickets.privacy import beside_tickets, personal_places
from tickets.privacy.personal_places import Advance, DeskPerson, PersonalPlace, Raw
from tickets.verification.recount import AT_ONCE, last_number

MOST_MENTIONS: Final = 30  # texts that are kept to be shown


@dataclass
class PersonFound:
    """Hold what was found in the tickets up to the number `reached`, of `last`.

    `kinds` counts the places by kind, those of texts under "text". `beside` and `beside_texts` have the places outside
    of tickets as they are shown. `names` are those by which the desk knows the person. `mentions` are the first texts
    with the address, as (ticket number, kind, excerpt).
    """

    address: str
    user_id: str
    name: str
    last: int
    reached: int = 0
    tickets: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    beside: list[str] = field(default_factory=list)
    beside_texts: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    mentions: list[tuple[int, str, str]] = field(default_factory=list)

    @classmethod
    def load(cls, told: dict[str, Any]) -> PersonFound:
        """Return what `dumped` made."""
        return cls(**{**told, "kinds": Counter(told["kinds"])})

    def dumped(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {**vars(self), "kinds": dict(self.kinds)}

    @property
    def person(self) -> DeskPerson:
        return DeskPerson(self.address, self.user_id, self.name)

    @property
    def is_whole(self) -> bool:
        return self.reached >= self.last

    @property
    def texts(self) -> int:
        return self.kinds["text"]

    @property
    def places(self) -> int:
        """Return how many places there are that an erasure replaces in any case."""
        return self.kinds.total() - self.texts

    def add(self, number: int, items: list[Raw]) -> list[PersonalPlace]:
        """Add what the items of one ticket say, and return the places."""
        found = [place for raw in items for place in personal_places.places(self.person, number, raw)]
        self.tickets += bool(found)
        for place in found:
            self.kinds["text" if place.is_text else place.kind] += 1
            if place.is_text and len(self.mentions) < MOST_MENTIONS:
                self.mentions.append((number, place.kind, place.excerpt))
        for raw in items:
            self.names = sorted({*self.names, *personal_places.names_in(self.person, raw)})
        return found


def begin(tenant: TenantContext, person: DeskPerson) -> PersonFound:
    """Return what is found beside the tickets: a Query of each of five rooms, and the audit trail."""
    found = PersonFound(person.address, person.user_id, person.name, last_number(tenant.repository))
    found.names = [person.name] if person.name else []
    for place in beside_tickets.places(tenant, person):
        (found.beside_texts if place.is_text else found.beside).append(str(place))
    return found


def go_on(
    tenant: TenantContext, found: PersonFound, *, most: int | None = None, advance: Advance = lambda numbers: None
) -> Iterator[PersonalPlace]:
    """Look through the next `most` numbers, or all that are left: a Query for each. Yields each place as it is met."""
    until = found.last if most is None else min(found.last, found.reached + most)
    for number, items in tickets(tenant, range(found.reached + 1, until + 1)):
        yield from found.add(number, items)
        found.reached = number
        advance(1)


def tickets(tenant: TenantContext, numbers: range) -> Iterator[tuple[int, list[Raw]]]:
    """Yield the raw items of each ticket, AT_ONCE of them read at the same time."""
    for first in range(numbers.start, numbers.stop, AT_ONCE):
        several = range(first, min(first + AT_ONCE, numbers.stop))
        reads = [partial(personal_places.items_of, tenant, number) for number in several]
        yield from zip(several, fan_out(reads), strict=True)
