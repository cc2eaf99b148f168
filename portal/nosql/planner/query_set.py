"""Offer what Django's admin takes for a QuerySet: narrowed step by step, planned and read once, never SQL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NoReturn

from django.db.models import Q

from portal.nosql.planner import execution
from portal.nosql.planner.patterns import ResultPage
from portal.nosql.planner.planning import QuerySpec, ReadLimitReached, Unplannable, plural, served


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
        return execution.read(replace(self.spec, limit=size, cursor=token))

    def _all(self) -> list[Any]:
        """Return all objects, up to the slice, read once."""
        if self._objects is None:
            page = execution.read(self.spec)
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
        """Return the first object or None."""
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
