"""How the items behind a facade can be read: the declared access patterns, and nothing else.

A facade lists its patterns; the planner (`planner.py`) serves a filter by one of them or refuses it. A pattern of a
tenant's table goes through that tenant's repository, its guard and its role, so that even an operator's page asks for
one tenant at a time; the others go through the platform's connection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from portal.dynamo import platform
from portal.dynamo.client import Item
from portal.dynamo.repository import Page, TenantRepository
from portal.schema.tables import Index

SEPARATOR: Final = "/"  # between the parts of a synthetic pk such as tenant/user
SORT_KEY_LIMIT: Final = 1024  # bytes; AWS, "Quotas in Amazon DynamoDB"


@dataclass(frozen=True)
class Get:
    """One object by its pk, or up to 100: a GetItem or BatchGetItem, read consistently.

    The pk is the values of `fields`, joined by "/". `build` makes the partition key of them; where the table has a sort
    key, that is `sort`, or the last value itself. `tenant`: through the repository of the tenant that comes first.
    """

    item: type[Item]
    fields: tuple[str, ...]
    build: Callable[..., str]
    sort: str | None = None
    tenant: bool | None = None
    name: str = "by id"

    def read(self, wanted: Sequence[Sequence[Any]]) -> list[Any]:
        """The items that exist among up to 100, each by its parts, in the order asked for."""
        found: list[Any] = []
        if not self._is_tenants:
            keyed = [(self.item, self.build(*args), sort) for args, sort in map(self._split, wanted)]
            found = platform.get_all(keyed, consistent=True)
        else:
            for tenant_id in dict.fromkeys(parts[0] for parts in wanted):
                repository = TenantRepository(tenant_id)
                split = [self._split(parts) for parts in wanted if parts[0] == tenant_id]
                if len(split) == 1:
                    ((args, sort),) = split
                    found.append(repository.get(self.item, self.build, *args[1:], sort=sort, consistent=True))
                else:
                    many = [(self.build, tuple(args[1:]), sort) for args, sort in split]
                    found += repository.get_many(self.item, many)
        return [item for item in found if item is not None]

    def key(self, parts: Sequence[Any]) -> list[str]:
        """Partition key and, where the table has one, sort key. Raises ValueError."""
        args, sort = self._split(parts)
        return [self.build(*args), *([sort] if sort is not None else [])]

    @property
    def _is_tenants(self) -> bool:
        return self.item.table.scope == "tenant" if self.tenant is None else self.tenant

    def _split(self, parts: Sequence[Any]) -> tuple[Sequence[Any], str | None]:
        """The arguments of `build`, and the sort key."""
        if self.item.table.range is None or self.sort is not None:
            return parts, self.sort
        return parts[:-1], _sort_key(str(parts[-1]))


@dataclass(frozen=True)
class Lookup:
    """One object by another unique value: `find` gives the pk, or None, by a read of its own."""

    name: str
    field: str
    find: Callable[[Any], str | None]


@dataclass(frozen=True)
class Query:
    """The objects of one partition, sorted by `order`: one Query for a page.

    `by` are the fields whose values `build` makes the partition key of, the tenant's id first for a tenant's table; ()
    where the partition is always the same. `prefix` makes what a sort key begins with from what a person types; without
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

    def key(self, values: Mapping[str, Any], begins_with: str | None) -> tuple[str, str | None]:
        """The partition, and what sort keys begin with. Raises ValueError for values that no key can have."""
        narrowed = _sort_key(self.prefix(begins_with)) if self.prefix and begins_with else None
        return self.build(*(values[name] for name in self.by)), narrowed

    def read(
        self,
        values: Mapping[str, Any],
        *,
        begins_with: str | None,
        descending: bool,
        limit: int,
        start: dict[str, Any] | None,
    ) -> Page:
        """One Query."""
        partition, narrowed = self.key(values, begins_with)
        how: dict[str, Any] = {"begins_with": narrowed, "descending": descending, "limit": limit, "start": start}
        if self.item.table.scope == "tenant" if self.tenant is None else self.tenant:
            tenant_id, *others = (values[name] for name in self.by)
            return TenantRepository(tenant_id).query(self.item.table, self.build, *others, index=self.index, **how)
        return platform.query(self.item.table, partition, index=self.index, **how)

    def key_names(self) -> list[str]:
        """The attributes of an exclusive start key."""
        table = self.item.table
        names = [table.hash, table.range, *([self.index.hash, self.index.range] if self.index else [])]
        return list(dict.fromkeys(name for name in names if name))


@dataclass(frozen=True)
class Listed:
    """A page that somebody else read: objects of the facade, how many rows were looked at, and its own cursors."""

    objects: list[Any]
    read: int
    next: str | None
    previous: str | None


@dataclass(frozen=True)
class Listing:
    """A list that a feature makes with rules of its own, such as a merge of several partitions.

    `pages(values, after=cursor, size=n)` reads it; `by` are the fields that it needs, `may` those that it also takes.
    """

    name: str
    by: tuple[str, ...]
    order: str
    pages: Callable[..., Listed]
    may: tuple[str, ...] = ()
    newest_first: bool = False
    prefix: None = None


Pattern = Get | Lookup | Query | Listing


def _sort_key(text: str) -> str:
    if not text or len(text.encode("utf-8", "replace")) > SORT_KEY_LIMIT:
        raise ValueError("no sort key can be like this")
    return text
