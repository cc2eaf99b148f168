"""Django models that look like models and are stored as items.

Django's auth and its admin insist on a `Model` class. A facade is unmanaged, is built from an item with `from_item`,
and its manager answers what its declared access patterns serve (`patterns.py`), refusing all else. A facade without
patterns, such as the account that signs in, answers nothing at all.
"""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from django.db import models

from portal.nosql.backend.base import refuse_sql
from portal.nosql.planner.patterns import SEPARATOR, Get, Pattern
from portal.nosql.planner.query_set import PlannedQuery


class FacadeManager(models.Manager[Any]):
    """A manager whose query set is planned, never compiled to SQL."""

    use_in_migrations = False

    def get_queryset(self) -> Any:
        if not self.model.patterns:
            refuse_sql()
        return PlannedQuery(self.model)

    def bulk_create(self, *args: Any, **kwargs: Any) -> NoReturn:
        refuse_sql()

    create = update = get_or_create = update_or_create = raw = bulk_update = bulk_create


class Facade(models.Model):
    """`patterns` say how it can be read; `filters` are the fields that may also be asked of rows that were read."""

    patterns: ClassVar[tuple[Pattern, ...]] = ()
    filters: ClassVar[tuple[str, ...]] = ()

    objects = FacadeManager()

    class Meta:
        abstract = True
        managed = False
        base_manager_name = "objects"

    @classmethod
    def from_item(cls, item: Any) -> Any:
        """The object that an item stands for: each field from the attribute of the same name, the pk from its parts."""
        values = {}
        for field in cls._meta.concrete_fields:
            stored = getattr(item, field.attname, None)
            if stored is not None:
                values[field.attname] = field.to_python(stored)
        made = cls(**values)
        made.pk = SEPARATOR.join(str(getattr(made, name)) for name in cls.parts())
        made._state.adding = False
        return made

    @classmethod
    def parts(cls) -> tuple[str, ...]:
        """The fields that the pk is made of."""
        return next(pattern.fields for pattern in cls.patterns if isinstance(pattern, Get))

    def to_item(self) -> Any:
        """The item that stands for this object: what `from_item` reads, the other way round."""
        get = next(pattern for pattern in self.patterns if isinstance(pattern, Get))
        own = {field.attname for field in self._meta.concrete_fields}
        table = get.item.table
        names = [n for n in get.item.get_attributes() if n in own and n not in (table.hash, table.range)]
        values: dict[str, Any] = {name: getattr(self, name) for name in names}
        hash_key, *range_key = get.key([getattr(self, name) for name in get.fields])
        return get.item(hash_key, range_key[0] if range_key else None, **values)

    def save(self, *args: Any, **kwargs: Any) -> None:
        refuse_sql()

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        refuse_sql()

    def validate_unique(self, exclude: Any = None) -> None:
        """What must be unique is a condition of the write: a read before it would prove nothing."""

    def validate_constraints(self, exclude: Any = None) -> None:
        """The same."""
