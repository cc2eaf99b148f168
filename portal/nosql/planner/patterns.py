"""Declare how the items behind a facade can be read.

A facade lists its patterns; `planning.py` serves a filter by one of them or refuses it. A pattern of a tenant's table
goes through that tenant's repository, its guard and its role, so that even an operator's page asks for one tenant at a
time; the others go through the platform's connection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from portal.dynamo.client import Item
from portal.dynamo.models import ByIndex
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Page, Store
from portal.schema.registry import Index

SEPARATOR: Final = "/"  # between the parts of a synthetic pk such as tenant/user
SORT_KEY_LIMIT: Final = 1024  # bytes; AWS, "Quotas in Amazon DynamoDB"
_TENANTS_STORE: Final = partial(Store, "tenant")


@dataclass(frozen=True)
class Get:
    """Read one object by its pk, or up to 100: a GetItem or BatchGetItem, strongly consistent.

    The pk is the values of `fields`, joined by "/". `build` makes the partition key of them; where the table has a sort
    key, that is `sort`, or the last value itself. `tenant`: through the repository of the tenant that comes first;
    `repository` makes it, and finds where that is, if tenants can have the table to themselves.
    """

    item: type[Item]
    fields: tuple[str, ...]
    build: Callable[..., str]
    sort: str | None = None
    tenant: bool | None = None
    name: str = "by id"
    repository: Callable[[str], Store] = _TENANTS_STORE

    def read(self, keys: Sequence[Sequence[Any]]) -> list[Any]:
        """Return the items that exist among up to 100, each named by the values of `fields`, in the order given."""
        items: list[Any] = []
        if not _is_tenants(self):
            keyed = [(self.item, self.build(*args), sort) for args, sort in map(self._split, keys)]
            items = PLATFORM.get_all(keyed, consistent=True)
        else:
            for tenant_id in dict.fromkeys(parts[0] for parts in keys):
                repository = self.repository(tenant_id)
                split = [self._split(parts) for parts in keys if parts[0] == tenant_id]
                if len(split) == 1:
                    ((args, sort),) = split
                    items.append(repository.get(self.item, self.build, *args[1:], sort=sort, consistent=True))
                else:
                    many = [(self.build, tuple(args[1:]), sort) for args, sort in split]
                    items += repository.get_many(self.item, many)
        return [item for item in items if item is not None]

    def key(self, parts: Sequence[Any]) -> list[str]:
        """Return the partition key and, where the table has one, the sort key. Raises ValueError."""
        args, sort = self._split(parts)
        return [self.build(*args), *([sort] if sort is not None else [])]

    def _split(self, parts: Sequence[Any]) -> tuple[Sequence[Any], str | None]:
        """Return the arguments of `build` and the sort key."""
        if self.item.table.range is None or self.sort is not None:
            return parts, self.sort
        return parts[:-1], _sort_key(str(parts[-1]))


@dataclass(frozen=True)
class Lookup:
    """Read one object by another unique value: `find` returns the pk or None, by a read of its own.

    The result of `find` is final; the stored value of the field is not compared again.
    """

    name: str
    field: str
    find: Callable[[Any], str | None]


@dataclass(frozen=True)
class Query:
    """List the objects of one partition, sorted by `order`: one Query for a page.

    `by` are the fields whose values `build` makes the partition key of, the tenant's id first for a tenant's table; ()
    where the partition is always the same. `prefix` turns what a person types into the beginning of a sort key; without
    it there is no prefix search. `name` is how a sentence calls the pattern: "by tenant".
    """

    name: str
    item: type[Item]
    by: tuple[str, ...]
    build: Callable[..., str]
    order: str
    index: Index | None = None
    prefix: Callable[[str], str] | None = None
    newest_first: bool = False
    tenant: bool | None = None

    def key(self, values: Mapping[str, Any]) -> str:
        """Return the partition key. Raises ValueError for values that no key can have."""
        return self.build(*(values[name] for name in self.by))

    def begins_with(self, texts: Sequence[str]) -> str | None:
        """Return the longest of several beginnings, None without any. Raises ValueError where no sort key has all."""
        prefixes = [self.prefix(text) for text in texts if text] if self.prefix else []
        longest = max(prefixes, key=len, default=None)
        if longest is None:
            return None
        if not all(longest.startswith(prefix) for prefix in prefixes):
            raise ValueError("no sort key begins with all of these")
        return _sort_key(longest)

    def read(
        self,
        values: Mapping[str, Any],
        *,
        begins_with: str | None,
        descending: bool,
        limit: int,
        start: dict[str, Any] | None,
    ) -> Page[Any]:
        """Send one Query, and return its items."""
        how: dict[str, Any] = {"begins_with": begins_with, "descending": descending, "limit": limit, "start": start}
        what: Any = ByIndex(self.item, self.index) if self.index else self.item
        if _is_tenants(self):
            tenant_id, *others = (values[name] for name in self.by)
            return Store("tenant", tenant_id).query(what, self.build, *others, **how)
        return PLATFORM.query(what, self.key(values), **how)

    def key_names(self) -> list[str]:
        """Return the attributes of an exclusive start key."""
        table, index = self.item.table, self.index or self.item.gsi
        names = [table.hash, table.range, *([index.hash, index.range] if index else [])]
        return list(dict.fromkeys(name for name in names if name))


@dataclass(frozen=True)
class ResultPage:
    """Hold a page of facade objects. `read` counts the rows that were looked at; the cursors are None at the ends."""

    objects: list[Any]
    read: int = 0
    next: str | None = None
    previous: str | None = None


@dataclass(frozen=True)
class CustomListing:
    """List objects by a function of the feature's own, such as the merge of several partitions.

    `pages(values, after=cursor, size=n)` reads one page; `by` are the fields that it needs, `may` those that it also
    takes.
    """

    name: str
    by: tuple[str, ...]
    order: str
    pages: Callable[..., ResultPage]
    may: tuple[str, ...] = ()
    newest_first: bool = False
    prefix: None = None


Pattern = Get | Lookup | Query | CustomListing


def _is_tenants(pattern: Get | Query) -> bool:
    """Tell whether a pattern reads through a tenant's repository."""
    return pattern.item.table.scope == "tenant" if pattern.tenant is None else pattern.tenant


def _sort_key(text: str) -> str:
    if not text or len(text.encode("utf-8", "replace")) > SORT_KEY_LIMIT:
        raise ValueError("no sort key can be like this")
    return text
