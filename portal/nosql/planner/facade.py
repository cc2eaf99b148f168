"""Offer Django models that are stored as items.

Django's auth and its admin insist on a `Model` class. A facade is unmanaged, is built from an item with `from_item`,
and its manager answers what its declared access patterns serve (`patterns.py`) and refuses all else. A facade without
patterns, such as the account that signs in, answers nothing at all.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar, Final, NoReturn

from django.db import models

from portal.nosql.backend.base import refuse_sql
from portal.nosql.planner.patterns import SEPARATOR, Get, Pattern
from portal.nosql.planner.query_set import PlannedQuery

HIDDEN: Final = "(hidden)"


class FacadeManager(models.Manager[Any]):
    """Hand out query sets that are planned, never compiled to SQL."""

    use_in_migrations = False

    def get_queryset(self) -> Any:
        if not self.model.patterns:
            refuse_sql()
        return PlannedQuery(self.model)

    def bulk_create(self, *args: Any, **kwargs: Any) -> NoReturn:
        refuse_sql()

    create = update = get_or_create = update_or_create = raw = bulk_update = bulk_create


class Facade(models.Model):
    """Stand for an item as a Django model.

    `patterns` declare how it can be read. Of the rows that a pattern reads, `filters` may also be compared for equality
    and `searched` for a part of their text. `content` is what people have written: an admin may hide it.
    """

    patterns: ClassVar[tuple[Pattern, ...]] = ()
    content: ClassVar[tuple[str, ...]] = ()
    filters: ClassVar[tuple[str, ...]] = ()
    searched: ClassVar[tuple[str, ...]] = ()

    objects = FacadeManager()

    class Meta:
        abstract = True
        managed = False
        base_manager_name = "objects"

    is_hidden = False

    def hide(self, *, but: Collection[str] = ()) -> None:
        """Hide the content, but for these fields."""
        self.is_hidden = True
        for name in {*self.content} - {*but}:
            if getattr(self, name, ""):
                setattr(self, name, HIDDEN)

    @classmethod
    def from_item(cls, item: Any) -> Any:
        """Return the object for an item: each field from the attribute of the same name, the pk from its parts."""
        values = {}
        for field in cls._meta.concrete_fields:
            stored = getattr(item, field.attname, None)
            if stored is not None:
                values[field.attname] = field.to_python(stored)
        obj = cls(**values)
        obj.pk = SEPARATOR.join(str(getattr(obj, name)) for name in cls.parts())
        obj._state.adding = False
        return obj

    @classmethod
    def parts(cls) -> tuple[str, ...]:
        """Return the fields that the pk is made of."""
        return next(pattern.fields for pattern in cls.patterns if isinstance(pattern, Get))

    def to_item(self) -> Any:
        """Return the item for this object, the inverse of `from_item`."""
        get = next(pattern for pattern in self.patterns if isinstance(pattern, Get))
        fields = {field.attname for field in self._meta.concrete_fields}
        table = get.item.table
        names = [n for n in get.item.get_attributes() if n in fields and n not in (table.hash, table.range)]
        values: dict[str, Any] = {name: getattr(self, name) for name in names}
        hash_key, *range_key = get.key([getattr(self, name) for name in get.fields])
        return get.item(hash_key, range_key[0] if range_key else None, **values)

    def save(self, *args: Any, **kwargs: Any) -> None:
        refuse_sql()

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        refuse_sql()

    def validate_unique(self, exclude: Any = None) -> None:
        """Do nothing: uniqueness is a condition of the write, and a read before it would prove nothing."""

    def validate_constraints(self, exclude: Any = None) -> None:
        """Do nothing, for the same reason."""
