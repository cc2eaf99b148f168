"""Offer Django models that are stored as items, and what Django's admin takes for their QuerySet.

Django's auth and its admin insist on a `Model` class. A facade is unmanaged, is built from an item with `from_item`,
and its manager answers what its declared access patterns serve (`patterns.py`) and refuses all else: a query is
narrowed step by step, planned and read once (`planning.py`), never SQL. A facade without patterns, such as the account
that signs in, answers nothing at all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any, ClassVar, Final, NoReturn

from django.db import models
from django.db.models import Q

from portal.nosql.backend.base import refuse_sql
from portal.nosql.planner import planning
from portal.nosql.planner.patterns import SEPARATOR, Pattern, ResultPage
from portal.nosql.planner.planning import QuerySpec, ReadLimitReached, Unplannable, get_of, plural, served


class _SqlShape:
    """Hold the two attributes of a SQL query that Django's change list looks at."""

    select_related = False
    order_by = ()


class PlannedQuery:
    """Narrow, plan and read facade objects; immutable like a QuerySet, so each method returns a new one.

    Iterating, slicing, `first`, `get` and `exists` answer completely or raise: ReadLimitReached where reading stopped
    before the answer was certain, Unplannable where no pattern serves it. `page` reads one page and its cursors.
    """

    db = "default"
    ordered = True
    query = _SqlShape()

    def __init__(self, model: Any, spec: QuerySpec | None = None) -> None:
        self.model = model
        self.spec = spec or QuerySpec(model)
        self._objects: list[Any] | None = None

    # Django's admin takes an object that is no QuerySet for a model's options when it words a message.
    verbose_name = property(lambda self: self.model._meta.verbose_name)
    verbose_name_plural = property(lambda self: self.model._meta.verbose_name_plural)

    # --- narrowing ---

    def _with(self, **changes: Any) -> PlannedQuery:
        return type(self)(self.model, replace(self.spec, **changes))

    def all(self) -> PlannedQuery:
        return self._with()

    def none(self) -> PlannedQuery:
        return self._with(nothing=True)

    def using(self, alias: str | None) -> PlannedQuery:
        return self

    select_related = prefetch_related = distinct = lambda self, *fields: self

    def filter(self, *args: Q, **kwargs: Any) -> PlannedQuery:
        """Narrow by exact values, `slug__startswith`, `name__icontains` or `pk__in`; all conditions hold together.

        Raises Unplannable for every other lookup, and TypeError after a slice, as Django does.
        """
        if self.spec.limit is not None:
            raise TypeError("Cannot filter a query once a slice has been taken.")
        narrowed = self
        for key, value in [*_terms(args), *kwargs.items()]:
            narrowed = narrowed._narrow(key, value)
        return narrowed._with()

    complex_filter = filter

    def _narrow(self, key: str, value: Any) -> PlannedQuery:
        name, _, lookup = key.partition("__")
        field = self.model._meta.pk if name == "pk" else self.model._meta.get_field(name)
        spec = self.spec
        if lookup in ("", "exact"):
            value = field.to_python(value)
            if spec.exact.get(field.name, value) != value:
                return self.none()
            return self._with(exact={**spec.exact, field.name: value})
        if lookup == "startswith":
            return self._with(prefixes=(*spec.prefixes, (field.name, str(value))))
        if lookup == "icontains" and field.name in self.model.searched:
            return self._with(contains=(*spec.contains, (field.name, str(value).casefold())))
        if lookup == "in" and field.primary_key:
            ids = dict.fromkeys(map(str, value))
            return self._with(ids=tuple(ids) if spec.ids is None else tuple(pk for pk in spec.ids if pk in ids))
        sentence = f"{plural(self.model)} cannot be filtered by “{key[:60]}”. {served(self.model)}"
        raise Unplannable(sentence)

    def order_by(self, *fields: str) -> PlannedQuery:
        if len(fields) > 1:
            raise Unplannable(f"{plural(self.model)} are sorted by one thing at a time. {served(self.model)}")
        return self._with(order=fields[0] if fields else "")

    # --- reading ---

    def page(self, size: int, token: str = "") -> ResultPage:
        """Read at most `size` objects from a cursor on; what a search has read already is not read again."""
        if self._objects is not None and len(self._objects) <= size:
            return ResultPage(self._objects, len(self._objects))
        return planning.read(replace(self.spec, limit=size, cursor=token))

    def _all(self) -> list[Any]:
        """Return all objects, up to the slice, read once."""
        if self._objects is None:
            page = planning.read(self.spec)
            if page.next is not None and (self.spec.limit is None or len(page.objects) < self.spec.limit):
                raise ReadLimitReached(f"There are more than {page.read} to read. Narrow it down or take a slice.")
            self._objects = page.objects
        return self._objects

    # --- as a QuerySet is used ---

    def __iter__(self) -> Iterator[Any]:
        return iter(self._all())

    iterator = __iter__

    def __len__(self) -> int:
        return len(self._all())

    def __bool__(self) -> bool:
        return bool(self._all())

    def __getitem__(self, key: int | slice) -> Any:
        if self._objects is not None or isinstance(key, int):
            return self._all()[key]
        if key.start or key.step or (key.stop or 0) < 0:
            raise Unplannable("There are no offsets; a page begins at a cursor.")
        limits = [limit for limit in (key.stop, self.spec.limit) if limit is not None]
        if 0 in limits:
            return self.none()
        return self._with(limit=min(limits, default=None))

    def first(self) -> Any:
        return next(iter(self[:1]), None)

    def exists(self) -> bool:
        return self.first() is not None

    def get(self, *args: Q, **kwargs: Any) -> Any:
        """Return the only object. Raises DoesNotExist, MultipleObjectsReturned, Unplannable."""
        objects = list(self.filter(*args, **kwargs)[:2])
        if not objects:
            raise self.model.DoesNotExist(f"There is no such {self.model._meta.verbose_name}.")
        if len(objects) > 1:
            raise self.model.MultipleObjectsReturned("There are several.")
        return objects[0]

    def count(self) -> NoReturn:
        raise Unplannable("Nothing is counted: that would read all of it.")

    def _refused(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise Unplannable("A list of objects is never changed by one statement; its rules change one at a time.")

    delete = update = create = exclude = annotate = aggregate = values = values_list = union = _refused


def _terms(args: tuple[Q, ...]) -> Iterator[tuple[str, Any]]:
    for q in args:
        if q.negated or (q.connector != Q.AND and len(q.children) > 1):
            raise Unplannable("Filters are joined by AND, and never negated.")
        for child in q.children:
            if isinstance(child, Q):
                yield from _terms((child,))
            else:
                yield child  # type: ignore[misc]  # a pair, where it is no Q


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
        obj.pk = SEPARATOR.join(str(getattr(obj, name)) for name in get_of(cls).fields)
        obj._state.adding = False
        return obj

    def to_item(self) -> Any:
        """Return the item for this object, the inverse of `from_item`."""
        get = get_of(self)
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
