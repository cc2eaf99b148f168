"""Declare what imports remember of the archives that they have read: keys, items and holdings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from portal.schema import keys as all_keys
from portal.schema.access_patterns import declare_keys
from portal.schema.holdings import FilePlace, Holding, Raw, Reader, Stage, StoredItem, declare_holding
from portal.schema.row_forms import RowForm
from tickets.ticket.stored import TICKETS

_LISTED: Final = re.compile(r"[0-9a-f]{32}\Z")


def import_source(tenant_id: str, source: str) -> str:
    """Return the partition key of what was imported from one archive; the sort key is the row's own id in there."""
    return import_source_listed(tenant_id, listed_source(source))


def import_source_listed(tenant_id: str, listed: str) -> str:
    """Return the same partition key, by the sort key under which the archive is listed. Raises ValueError for what is
    none."""
    if not _LISTED.match(listed):
        raise ValueError("an archive is listed by a digest")
    return all_keys.collection(tenant_id, "IMPORT", listed)


def import_sources(tenant_id: str) -> str:
    """Return the partition key of the archives that something was imported from; the sort key is a digest of the
    source."""
    return all_keys.collection(tenant_id, "IMPORTS")


def listed_source(source: str) -> str:
    return all_keys.digest(source)


class ImportItem(Item):
    """A row of an archive that has become a ticket, or is becoming one while `done` is 0."""

    table = TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    number = NumberAttribute()
    digest = UnicodeAttribute()
    comments = NumberAttribute(default=0)
    done = NumberAttribute(default=0)


class ImportSourceItem(Item):
    """An imported archive, by its name, from which the keys of its rows are made."""

    table = TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    source = UnicodeAttribute()


_ROWS, _ARCHIVES = "imported rows", "imported archives"
_MOST_ARCHIVES = 10_000  # in one file: a purge asks for the rows of each


def _sources(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(TICKETS, import_sources(reader.tenant_id))


def _rows(reader: Reader) -> Iterator[StoredItem]:
    for source in _sources(reader):
        yield from reader.query(TICKETS, import_source(reader.tenant_id, source.item["source"]["S"]))


def _row_key(tenant_id: str, item: Raw) -> tuple[str, str]:
    return import_source_listed(tenant_id, _digest_of(item)), all_keys.part(item["sk"]["S"])


def _digest_of(row: Raw) -> str:
    parts = all_keys.collection_parts(row["pk"]["S"])
    if parts is None or len(parts[2]) != 1:
        raise ValueError("this is no key of an archive's rows")
    return parts[2][0]


def _source_key(tenant_id: str, item: Raw) -> tuple[str, str]:
    return import_sources(tenant_id), listed_source(item["source"]["S"])


class ListedArchives:
    """Looks whether the archives of all rows are listed in the file: the rows are found by them."""

    of = (_ROWS, _ARCHIVES)

    def __init__(self) -> None:
        self._listed: set[str] = set()
        self._named: dict[str, FilePlace] = {}

    def look(self, holding: str, item: Raw, place: FilePlace) -> str:
        """Take a row of an archive, or an archive."""
        if holding == _ARCHIVES:
            self._listed.add(item["sk"]["S"])
        else:
            self._named.setdefault(_digest_of(item), place)
        many = max(len(self._listed), len(self._named))
        return f"is of more than {_MOST_ARCHIVES:,} archives" if many > _MOST_ARCHIVES else ""

    def fault(self) -> tuple[FilePlace, str] | None:
        """Return the first row of an archive that is not listed."""
        alone = (place for digest, place in self._named.items() if digest not in self._listed)
        first = next(alone, None)
        return (first, "is of an archive that the file does not list") if first else None


declare_holding(
    Holding(
        _ROWS, (TICKETS,), _rows, Stage.NAMED, forms=lambda: (RowForm(ImportItem, _row_key),), together=ListedArchives
    ),
    Holding(_ARCHIVES, (TICKETS,), _sources, Stage.BESIDE, forms=lambda: (RowForm(ImportSourceItem, _source_key),)),
)


declare_keys(
    TICKETS, {"import source": "TENANT#<tenant>|IMPORT#<source>, <part>", "import": "TENANT#<tenant>|IMPORTS, <part>"}
)
