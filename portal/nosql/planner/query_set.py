"""What Django's admin takes for a QuerySet: narrowed step by step, planned by `planner.py`, read by `reading.py`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NoReturn

from django.db.models import Q

from portal.nosql.planner import execution, planning
from portal.nosql.planner.execution import Rows
from portal.nosql.planner.planning import Asked, Unplannable, plural, served


class _Shape:
    """The two attributes of a SQL query that Django's change list looks at."""

    select_related = False
    order_by = ()


class PlannedQuery:
    """Immutable like a QuerySet: each method returns a new one. Reads when it is iterated, once."""

    db = "default"
    ordered = True
    query = _Shape()

    def __init__(self, model: Any, asked: Asked | None = None) -> None:
        self.model = model
        self.asked = asked or Asked(model)
        self._rows: Rows | None = None

    # Django's admin takes what is no QuerySet for a model's options when it words a message.
    verbose_name = property(lambda self: self.model._meta.verbose_name)
    verbose_name_plural = property(lambda self: self.model._meta.verbose_name_plural)

    # --- narrowing ---

    def _but(self, **changes: Any) -> PlannedQuery:
        return type(self)(self.model, replace(self.asked, **changes))

    def all(self) -> PlannedQuery:
        return self._but()

    def none(self) -> PlannedQuery:
        return self._but(nothing=True)

    def using(self, alias: str | None) -> PlannedQuery:
        return self

    select_related = prefetch_related = distinct = lambda self, *fields: self

    def filter(self, *args: Q, **kwargs: Any) -> PlannedQuery:
        """Exact values, one prefix (`slug__startswith`), or `pk__in`. Raises Unplannable for every other lookup."""
        exact, prefix, ids = dict(self.asked.exact), self.asked.prefix, self.asked.ids
        for key, value in [*_terms(args), *kwargs.items()]:
            name, _, lookup = key.partition("__")
            field = self.model._meta.pk if name == "pk" else self.model._meta.get_field(name)
            if lookup in ("", "exact"):
                value = field.to_python(value)
                if exact.setdefault(field.name, value) != value:
                    return self.none()
            elif lookup == "startswith":
                prefix = (field.name, str(value))
            elif lookup == "in" and field.primary_key:
                ids = tuple(str(v) for v in value)
            else:
                sentence = f"{plural(self.model)} cannot be filtered by “{key[:60]}”. {served(self.model)}"
                raise Unplannable(sentence)
        return self._but(exact=exact, prefix=prefix, ids=ids)

    complex_filter = filter

    def order_by(self, *fields: str) -> PlannedQuery:
        if len(fields) > 1:
            raise Unplannable(f"{plural(self.model)} are sorted by one thing at a time. {served(self.model)}")
        return self._but(order=fields[0] if fields else "")

    # --- reading ---

    def check(self) -> None:
        """Raise Unplannable, before anything is read, where no pattern serves this."""
        if not self.asked.nothing and self.asked.ids is None:
            planning.plan(self.asked)

    def rows(self) -> Rows:
        """The page, read once. Raises as `reading.read` does."""
        if self._rows is None:
            self._rows = execution.read(self.asked)
        return self._rows

    def page(self, size: int, token: str = "") -> Rows:
        """At most `size` objects from a cursor on; what was read already is not read again."""
        return self._rows if self._rows is not None else self._but(limit=size, cursor=token).rows()

    # --- as a QuerySet is used ---

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows().objects)

    iterator = __iter__

    def __len__(self) -> int:
        return len(self.rows().objects)

    def __bool__(self) -> bool:
        return bool(self.rows().objects)

    exists = __bool__

    def __getitem__(self, key: int | slice) -> Any:
        if self._rows is not None or isinstance(key, int):
            return self.rows().objects[key]
        if key.start or key.step:
            raise Unplannable("There are no offsets; a page begins at a cursor.")
        return self._but(limit=key.stop)

    def first(self) -> Any:
        return next(iter(self[:1]), None)

    def get(self, *args: Q, **kwargs: Any) -> Any:
        """The only object. Raises DoesNotExist, MultipleObjectsReturned, Unplannable."""
        found = list(self.filter(*args, **kwargs)[:2])
        if not found:
            raise self.model.DoesNotExist(f"There is no such {self.model._meta.verbose_name}.")
        if len(found) > 1:
            raise self.model.MultipleObjectsReturned("There are several.")
        return found[0]

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
