"""Collect what packages store for a tenant, so that all of it can be listed, exported, brought in again and deleted.

A package declares its holdings in its `stored.py`, `holdings.py` or `tables.py`, imported when its app starts. Each
says how every item of its kind that belongs to one tenant is found, by Query and GetItem. A table that has nothing of a
tenant is declared to have nothing, with the reason. Undeclared items are left over when a whole tenant is processed;
tests/holdings compares the declarations with the stored items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, Protocol

from portal.schema.registry import Index, Table
from portal.schema.row_forms import Raw as Raw
from portal.schema.row_forms import RowForm


class Stage(IntEnum):
    """The order in which holdings can be deleted, lowest first.

    Items by which others are found come later than those: a ticket names the requests that made it, the members name
    their memberships. So each stage can be deleted, and looked through once more, before the next one.
    """

    NAMED = 1  # what is found by the content that names it
    CONTENT = 2  # the tickets, whose stream is followed: wait for its barrier before the next stage
    DERIVED = 3  # what is found by what the followers of the stream keep
    BESIDE = 4  # what the followers keep, and all else that is found by what comes later
    OWN = 5  # the tenant's people, keys, endpoints and names
    TRAIL = 6  # the audit trail, which names who was here, and the tenant's own item


class StoredItem(NamedTuple):
    """One item of a table, raw, with all of its attributes. `placement` is where it lies, as `str` of a Placement."""

    table: Table
    item: Raw
    placement: str = "pool"

    @property
    def key(self) -> Raw:
        return {name: self.item[name] for name in self.table.key_names}


class Reader(Protocol):
    """Reads what is stored for one tenant, and consistently but for indexes. Raises Unavailable, Throttled."""

    @property
    def tenant_id(self) -> str: ...

    @property
    def places(self) -> tuple[Reader, ...]:
        """This reader, and beside it one of the pool where the tenant's content lies elsewhere: a few things of every
        tenant are written there."""
        ...

    def get(self, table: Table, *wanted: tuple[str, str | None]) -> Iterator[StoredItem]:
        """Read those that exist of any number of items, each by its partition key and its sort key, None without."""
        ...

    def query(
        self, table: Table, hash_key: str, *, index: Index | None = None, begins_with: str | None = None
    ) -> Iterator[StoredItem]:
        """Read the items of one partition of a table or an index, page by page as they are taken."""
        ...


Find = Callable[[Reader], Iterator[StoredItem]]


def no_items(reader: Reader) -> Iterator[StoredItem]:
    """Find nothing: the holding is of objects."""
    return iter(())


def own_partition(table: Table) -> Find:
    """Return the function that finds the items of a table whose partition key is the tenant's id."""
    return lambda reader: reader.query(table, reader.tenant_id)


@dataclass(frozen=True)
class TenantArrival:
    """Hold what an item that is brought in has to fit: the tenant's own item as it will be, whether the file has the
    secrets, and whether the tenant keeps its id."""

    tenant: Raw
    with_secrets: bool
    same_id: bool


Fit = Callable[[Raw, TenantArrival], Raw | None]


class FilePlace(NamedTuple):
    """Where a row stands in a file."""

    line: int
    entry: str


class RowsTogether(Protocol):
    """Looks at what rows of several holdings of one file have to be together: `of` names those. Memory stays small."""

    @property
    def of(self) -> tuple[str, ...]: ...

    def look(self, holding: str, item: Raw, place: FilePlace) -> str:
        """Take the next row, which has the form of its kind. Returns what is wrong with it, "" for nothing."""
        ...

    def fault(self) -> tuple[FilePlace, str] | None:
        """Return a row that is wrong beside the others, and why, once all were looked at."""
        ...


@dataclass(frozen=True)
class Holding:
    """One kind of what is stored for a tenant: in which tables, and how all of it is found.

    `find` yields each item once. Yielded items may be gone or changed when they are used.

    `without` is there where a row is shared by several tenants, such as the sums of a minute: it returns the row
    without this tenant's part; such a row is written over and not deleted. None is for a row that is this tenant's
    alone.
    `keep_on_purge` says why an item outlives its tenant, "" for one that does not.

    `left_out` says why an export does not hold it, "" where it does. `export` finds it for an export, which is made
    while people work, where `find` would find what is of several moments. `secret` names the attributes that an export
    holds only where that is wished. `fit` returns an item as it has to be where it is brought in, ids replaced already,
    or None where it cannot be. `forms` returns what its rows are, by which a file is looked through before anything of
    it is stored; `together` makes what looks at them beside those of other holdings.

    A kind of objects has no tables: `objects` returns the beginning of their keys, for a tenant's id. They stay in
    their bucket wherever the tenant's content is moved. `exported` finds what stands behind that in the keys of those
    that an export holds, and `exported_to_owners` those that have room in the file which owners make themselves.
    """

    name: str
    tables: tuple[Table, ...]
    find: Find
    stage: Stage
    without: Callable[[str, Raw], Raw | None] | None = None
    keep_on_purge: str = ""
    left_out: str = ""
    export: Find | None = None
    fit: Fit | None = None
    secret: tuple[str, ...] = ()
    forms: Callable[[], tuple[RowForm, ...]] | None = None
    together: Callable[[], RowsTogether] | None = None
    objects: Callable[[str], str] | None = None
    exported: Callable[[Reader], Iterator[str]] | None = None
    exported_to_owners: Callable[[Reader], Iterator[str]] | None = None


_holdings: dict[str, Holding] = {}
_nothing: dict[str, str] = {}
_people: dict[str, str] = {}
_texts: dict[str, str] = {}


def declare_holding(*holdings: Holding) -> None:
    """Add a package's items of tenants. Raises ValueError for a name that another declaration has taken, and for one
    that is exported and does not say what its rows are: an import could not look at them."""
    for holding in holdings:
        if not holding.left_out and holding.forms is None and holding.exported is None:
            raise ValueError(f"the holding {holding.name} is exported and declares no forms")
        if _holdings.setdefault(holding.name, holding) is not holding:
            raise ValueError(f"the holding {holding.name} is declared twice")


def declare_nothing(table: Table, why: str) -> None:
    """Say that a table has nothing that belongs to one tenant, and why."""
    _nothing[table.name] = why


def holdings() -> tuple[Holding, ...]:
    """Return what is declared, in the order in which it can be deleted, then by name."""
    return tuple(sorted(_holdings.values(), key=lambda holding: (holding.stage, holding.name)))


def declare_people(holding: str, module: str) -> None:
    """Say which module finds and replaces a person in the items of a holding, by its `PEOPLE`. It is imported when
    somebody is looked for."""
    _people[holding] = module


def people() -> dict[str, str]:
    """Return the modules that find people, by the name of the holding."""
    return dict(sorted(_people.items()))


def declare_texts(holding: str, module: str) -> None:
    """Say which module takes words out of the items of a holding, by its `redact`. It is imported when
    somebody redacts."""
    _texts[holding] = module


def texts() -> dict[str, str]:
    """Return the modules that take words out, by the name of the holding."""
    return dict(sorted(_texts.items()))
