"""Declare what a store reads and writes: models of items, of the rows of an index, and of mixed collections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar

from pynamodb.attributes import Attribute

from portal.dynamo.client import Item, KeepsUnknown
from portal.schema import keys
from portal.schema.registry import Index, Table

__all__ = ["ByIndex", "IndexModel", "Item", "KeepsUnknown", "Kinds", "RawItems", "Readable"]

_T = TypeVar("_T")
_I = TypeVar("_I", bound=Item)
_T_co = TypeVar("_T_co", covariant=True)

Raw = dict[str, Any]


class Readable(Protocol[_T_co]):
    """Name what a Query reads: a model, an index, a mixed collection, or raw items."""

    @property
    def table(self) -> Table: ...

    @property
    def gsi(self) -> Index | None: ...

    def from_raw_data(self, data: Raw) -> _T_co:
        """Make of one raw item what the Query returns."""
        ...


class IndexModel(Item):
    """Base of the models of an index's rows. Its attributes are the index's declaration: keys and projection.

    A subclass that names `label` declares an index of its `table`, from which table creation, policies and template
    follow: its hash key and its range key are the index's, and every other attribute that is no key of the table is
    projected. `leading_keys` and `shared` are those of `schema.tables.Index`.
    """

    table: ClassVar[Table]
    label: ClassVar[str]
    leading_keys: ClassVar[str] = keys.OWN_COLLECTIONS
    shared: ClassVar[str] = ""
    gsi: ClassVar[Index]  # follows from the attributes

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "label" in vars(cls):
            cls.gsi = _index(cls)
            cls.table.add_index(cls.gsi)


def _index(row: type[IndexModel]) -> Index:
    attributes = {
        attribute.attr_name: attribute
        for base in reversed(row.__mro__)
        for attribute in vars(base).values()
        if isinstance(attribute, Attribute)
    }
    hashes = [name for name, attribute in attributes.items() if attribute.is_hash_key]
    ranges = [name for name, attribute in attributes.items() if attribute.is_range_key]
    if len(hashes) != 1 or len(ranges) != 1:
        raise ValueError(f"{row.__name__} needs one attribute with hash_key=True and one with range_key=True")
    (hash_name,), (range_name,) = hashes, ranges
    include = tuple(name for name in attributes if name not in {hash_name, range_name, *row.table.key_names})
    return Index(row.label, hash_name, range_name, include, row.leading_keys, row.shared)


class Kinds(Generic[_T]):
    """Read items of several models from one table, told apart by what their sort keys begin with.

    The longest beginning counts. Raises ValueError for an item that is of none of the models.
    """

    gsi: Final = None

    def __init__(self, by_beginning: Mapping[str, type[_T]]) -> None:
        self._kinds = sorted(by_beginning.items(), key=lambda kind: -len(kind[0]))
        (self.table,) = {model.table for model in by_beginning.values()}  # type: ignore[attr-defined]  # of an Item

    def from_raw_data(self, data: Raw) -> _T:
        """Make an instance of the model that the item's sort key belongs to."""
        sort: str = data[str(self.table.range)]["S"]
        for beginning, model in self._kinds:
            if sort.startswith(beginning):
                return model.from_raw_data(data)  # type: ignore[attr-defined,no-any-return]  # of an Item
        raise ValueError(f"no model of {self.table.name} has the sort key {sort[:20]}")


@dataclass(frozen=True)
class ByIndex(Generic[_I]):
    """Read the rows of an index as instances of the table's model: what is not projected is missing in them."""

    model: type[_I]
    gsi: Index

    @property
    def table(self) -> Table:
        return self.model.table

    def from_raw_data(self, data: Raw) -> _I:
        """Make an instance of a row."""
        return self.model.from_raw_data(data)


@dataclass(frozen=True)
class RawItems:
    """Read items as DynamoDB sends them: for what copies or counts items of any kind. ADR 38 lists who does."""

    table: Table
    gsi: Index | None = None

    def from_raw_data(self, data: Raw) -> Raw:
        return data
