"""Read the catalogue of published articles: lists, the search and suggestions are made from it.

A process remembers the catalogue of a desk by its edition. So a reader sends one request: for the centre's item, which
says whether the edition is still the same, or for all of the catalogue. Guests have a catalogue of their own, for which
no card of an article for the desk is read.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple

from portal.dynamo.store import Wanted
from portal.quotas import BoundedCache
from tenants.tenancy.context import TenantContext
from tickets.articles import stored
from tickets.articles.stored import CATALOGUE_ROWS, CENTRE, FOR_GUESTS, FOR_MEMBERS, CardItem, CentreItem
from tickets.search.index import postings
from tickets.search.stored import UNREADABLE

_REMEMBERED: Final = 32  # catalogues, some MB each at most


class Section(NamedTuple):
    """A section of the help centre. `more` is what a newer version has stored of it, and is written back as it is."""

    id: str
    name: str
    about: str = ""
    more: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Card:
    """A published article in a list."""

    number: int
    title: str
    lead: str
    section: str
    is_public: bool
    published_at: str


@dataclass(frozen=True)
class CatalogueTerms:
    """Terms in order, each with its encoded postings."""

    terms: list[bytes]
    entries: list[bytes]

    @classmethod
    def of(cls, terms: Mapping[bytes, Mapping[int, int]]) -> CatalogueTerms:
        ordered = sorted(terms)
        return cls(ordered, [postings.encode(terms[term]) for term in ordered])

    def between(self, low: bytes, high: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the terms within these bounds, both included, with their postings."""
        at = slice(bisect_left(self.terms, low), bisect_right(self.terms, high))
        return zip(self.terms[at], self.entries[at], strict=True)


@dataclass(frozen=True)
class Catalogue:
    """The published articles that somebody may read, as of an edition of the help centre."""

    edition: str = ""
    sections: tuple[Section, ...] = ()
    cards: Mapping[int, Card] = field(default_factory=dict)
    _blocks: Sequence[tuple[int, bytes]] = ()  # number, words

    @property
    def groups(self) -> list[tuple[Section | None, list[Card]]]:
        """Return the sections that have articles, in order, each with its articles by title. None comes last: articles
        without a section, or of one that was deleted."""
        by_section: dict[str, list[Card]] = defaultdict(list)
        known = {section.id for section in self.sections}
        for one in sorted(self.cards.values(), key=lambda card: (card.title.casefold(), card.number)):
            by_section[one.section if one.section in known else ""].append(one)
        places: list[Section | None] = [*self.sections, None]
        return [(place, found) for place in places if (found := by_section[place.id if place else ""])]

    @cached_property
    def words(self) -> CatalogueTerms:
        found: dict[bytes, dict[int, int]] = defaultdict(dict)
        for number, block in self._blocks:
            try:
                for term, posting in postings.block_entries(block):
                    found[term][number] = posting[0]
            except UNREADABLE:
                continue  # of an article that was tampered with, no words are found
        return CatalogueTerms.of(found)


def sections_of(item: CentreItem) -> tuple[Section, ...]:
    return tuple(Section(*one[:3])._replace(more=tuple(one[3:])) for one in json.loads(item.sections))


def read_centre(tenant: TenantContext, *, consistent: bool = True) -> CentreItem:
    """Return the help centre's own item, an empty one where nothing was written yet: one GetItem."""
    key = tenant.repository.key(stored.centre)
    item = tenant.repository.get(CentreItem, stored.centre, sort=CENTRE, consistent=consistent)
    return item or CentreItem(key, CENTRE)


def wanted(desk: TenantContext) -> Wanted:
    """Name the help centre's own item, for a page that reads it with other items."""
    return desk.repository.wanted(CentreItem, stored.centre, sort=CENTRE)


def read(desk: TenantContext, *, public: bool, at_once: bool = True) -> Catalogue:
    """Return the catalogue: one GetItem where this process remembers it, else one Query for each MB. Without `at_once`
    what was published within the last second may be missing, for half the price."""
    key = (desk.tenant_id, public)
    known = _known.get(key)
    if known is not None and read_centre(desk, consistent=at_once).edition == known.edition:
        return known
    bounds = FOR_GUESTS if public else FOR_MEMBERS
    rows = [*desk.repository.query_all(CATALOGUE_ROWS, stored.centre, between=bounds, consistent=True)]
    centre = next((one for one in rows if isinstance(one, CentreItem)), None)
    cards = [one for one in rows if isinstance(one, CardItem)]
    made = Catalogue(
        centre.edition if centre else "",
        sections_of(centre) if centre else (),
        {int(one.number): _card(one) for one in cards},
        [(int(one.number), one.words) for one in cards],
    )
    _known.put(key, made)
    return made


def _card(item: CardItem) -> Card:
    return Card(int(item.number), item.title, item.lead, item.section, bool(item.is_public), item.published_at)


_known: Final[BoundedCache[tuple[str, bool], Catalogue]] = BoundedCache(_REMEMBERED)
forget: Final = _known.clear  # as a process that was just started
