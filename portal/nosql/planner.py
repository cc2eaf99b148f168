"""A QuerySet-shaped planner: every filter, order and prefix becomes one declared read, or is refused. It never scans.

What is left over after the key conditions is asked of the rows that were read, for fields that the facade allows;
such a page reads at most READ_LIMIT rows by one Query, says how many it read and how many matched, and goes on by its
cursor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from django.core.exceptions import FieldError, ValidationError
from django.db.models import Q

from portal.dynamo import cursor
from portal.dynamo.repository import BATCH_GET_LIMIT
from portal.errors import Invalid, NotFound
from portal.nosql.patterns import SEPARATOR, Get, Listing, Lookup, Pattern, Query

READ_LIMIT: Final = 500  # rows of one page where a filter is left over
UNSLICED_LIMIT: Final = 1000  # objects that an iteration without a slice may have


class Unplannable(FieldError):
    """No declared pattern serves this. The text is a sentence for a person, and says what is served.

    `incomplete`: nothing is wrong with what was asked, but it does not name a partition yet.
    """

    def __init__(self, sentence: str, *, incomplete: bool = False) -> None:
        super().__init__(sentence)
        self.incomplete = incomplete


@dataclass(frozen=True)
class Plan:
    """One pattern, what its partition is made of, and what is left over for the rows."""

    pattern: Pattern
    values: dict[str, Any]
    leftover: dict[str, Any]


@dataclass(frozen=True)
class Rows:
    """A page of objects. `read` counts the rows that were looked at; the cursors are None at the ends."""

    objects: list[Any]
    read: int = 0
    next: str | None = None
    previous: str | None = None


class _Shape:
    """The two attributes of a SQL query that Django's change list looks at."""

    select_related = False
    order_by = ()


class PlannedQuery:
    """Immutable like a QuerySet: each method returns a new one. Reads when it is iterated, once."""

    db = "default"
    ordered = True
    query = _Shape()

    def __init__(self, model: Any, **state: Any) -> None:
        self.model = model
        self.exact: dict[str, Any] = state.get("exact", {})
        self.prefix: tuple[str, str] | None = state.get("prefix")
        self.ids: tuple[str, ...] | None = state.get("ids")
        self.order: str = state.get("order", "")
        self.limit: int | None = state.get("limit")
        self.cursor: str = state.get("cursor", "")
        self.nothing: bool = state.get("nothing", False)
        self._rows: Rows | None = None

    # Django's admin takes what is no QuerySet for a model's options when it words a message.
    verbose_name = property(lambda self: self.model._meta.verbose_name)
    verbose_name_plural = property(lambda self: self.model._meta.verbose_name_plural)

    # --- narrowing ---

    def _clone(self, **changes: Any) -> PlannedQuery:
        names = ("exact", "prefix", "ids", "order", "limit", "cursor", "nothing")
        return type(self)(self.model, **{name: getattr(self, name) for name in names} | changes)

    def all(self) -> PlannedQuery:
        return self._clone()

    def none(self) -> PlannedQuery:
        return self._clone(nothing=True)

    def using(self, alias: str | None) -> PlannedQuery:
        return self

    select_related = prefetch_related = distinct = lambda self, *fields: self

    def filter(self, *args: Q, **kwargs: Any) -> PlannedQuery:
        """Exact values, one prefix (`slug__startswith`), or `pk__in`. Raises Unplannable for every other lookup."""
        exact, prefix, ids = dict(self.exact), self.prefix, self.ids
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
                raise Unplannable(f"{self._plural} cannot be filtered by “{key[:60]}”. {served(self.model)}")
        return self._clone(exact=exact, prefix=prefix, ids=ids)

    complex_filter = filter

    def order_by(self, *fields: str) -> PlannedQuery:
        if len(fields) > 1:
            raise Unplannable(f"{self._plural} are sorted by one thing at a time. {served(self.model)}")
        return self._clone(order=fields[0] if fields else "")

    # --- planning ---

    @property
    def _plural(self) -> str:
        return _capital(str(self.model._meta.verbose_name_plural))

    def plan(self) -> Plan:
        """The declared pattern that serves this, the most specific one. Raises Unplannable."""
        if self.prefix is None:
            for pattern in self.model.patterns:
                if isinstance(pattern, Lookup) and pattern.field in self.exact:
                    return self._of(pattern, (pattern.field,))
                if isinstance(pattern, Get):
                    pk = self.model._meta.pk.name
                    if pk in self.exact:
                        return self._of(pattern, (pk,))
                    if set(pattern.fields) <= set(self.exact):
                        return self._of(pattern, pattern.fields)
        order = self.order.lstrip("-")
        lists = [p for p in self.model.patterns if isinstance(p, Query | Listing) and set(p.by) <= set(self.exact)]
        sorting = [p for p in lists if order in ("", p.order)]
        fitting = [p for p in sorting if not self.prefix or (p.prefix and p.order == self.prefix[0])]
        if not fitting:
            raise Unplannable(self._refusal(lists, sorting), incomplete=not lists)
        best = max(fitting, key=lambda p: len(p.by))
        taken = (*best.by, *(best.may if isinstance(best, Listing) else ()))
        plan = self._of(best, taken)
        strange = [name for name in plan.leftover if name not in self.model.filters or isinstance(best, Listing)]
        if strange:
            label = str(self.model._meta.get_field(strange[0]).verbose_name)
            raise Unplannable(f"{self._plural} cannot be filtered by {label} here. {served(self.model)}")
        return plan

    def _of(self, pattern: Pattern, taken: tuple[str, ...]) -> Plan:
        values = {name: value for name, value in self.exact.items() if name in taken}
        return Plan(pattern, values, {name: v for name, v in self.exact.items() if name not in taken})

    def _refusal(self, lists: list[Any], sorting: list[Any]) -> str:
        if not lists or not self.order:
            return served(self.model)
        names = sorted({str(self.model._meta.get_field(p.order).verbose_name) for p in lists})
        if not sorting:
            return f"{self._plural} are sorted by {_either(names)}, and by nothing else."
        return f"{self._plural} cannot be searched by what they begin with here. {served(self.model)}"

    # --- reading ---

    def rows(self) -> Rows:
        """The page, read once. Raises Unplannable, and Invalid for a cursor that is damaged or of another list."""
        if self._rows is None:
            self._rows = Rows([]) if self.nothing else self._read()
        return self._rows

    def page(self, size: int, token: str = "") -> Rows:
        """At most `size` objects from a cursor on; what was read already is not read again."""
        return self._rows if self._rows is not None else self._clone(limit=size, cursor=token).rows()

    def _read(self) -> Rows:
        if self.ids is not None:
            return self._points(next(p for p in self.model.patterns if isinstance(p, Get)), self.ids, self.exact)
        plan = self.plan()
        pattern = plan.pattern
        if isinstance(pattern, Get):
            pk = plan.values.get(self.model._meta.pk.name)
            return self._points(pattern, (_joined(pattern, plan.values) if pk is None else pk,), self.exact)
        if isinstance(pattern, Lookup):
            pk = pattern.find(plan.values[pattern.field])
            get = next(p for p in self.model.patterns if isinstance(p, Get))
            return self._points(get, (pk,), self.exact) if pk else Rows([])
        if isinstance(pattern, Listing):
            try:
                page = pattern.pages(plan.values, after=self.cursor or None, size=self.limit or UNSLICED_LIMIT)
            except NotFound:  # a list of what is not there
                return Rows([])
            return Rows(page.objects, page.read, page.next, page.previous)
        try:
            pattern.key(plan.values, self.prefix[1] if self.prefix else None)
        except ValueError:  # values that no key can have: there are no such objects
            return Rows([])
        return self._page(pattern, plan)

    def _points(self, pattern: Get, ids: tuple[str, ...], exact: dict[str, Any]) -> Rows:
        wanted = []
        for pk in ids:
            parts = str(pk).split(SEPARATOR, len(pattern.fields) - 1)
            if len(parts) != len(pattern.fields) or not all(parts):
                continue
            fields = [self.model._meta.get_field(name) for name in pattern.fields]
            try:
                made = [field.to_python(part) for field, part in zip(fields, parts, strict=True)]
                pattern.key(made)
            except (ValueError, ValidationError):  # values that no key can have: there is no such object
                continue
            wanted.append(made)
        if len(wanted) > BATCH_GET_LIMIT:
            raise Unplannable(f"At most {BATCH_GET_LIMIT} objects are read by their ids at once.")
        found = [self.model.from_item(item) for item in pattern.read(wanted)] if wanted else []
        return Rows([o for o in found if all(getattr(o, name) == value for name, value in exact.items())], len(found))

    def _page(self, pattern: Query, plan: Plan) -> Rows:
        size = self.limit if self.limit is not None else UNSLICED_LIMIT
        descending = self.order.startswith("-") if self.order else pattern.newest_first
        bound = (self.model._meta.label, pattern.name, sorted(map(str, self.exact.items())), self.prefix, descending)
        backwards, start = self._start(pattern, plan, bound)
        page = pattern.read(
            plan.values,
            begins_with=self.prefix[1] if self.prefix else None,
            descending=descending != backwards,
            limit=READ_LIMIT if plan.leftover else size + 1,
            start=start,
        )
        found = []
        for raw in page.items:
            made = self.model.from_item(pattern.item.from_raw_data(raw))
            if all(getattr(made, name) == value for name, value in plan.leftover.items()):
                found.append((made, raw))
        shown, more = found[:size], len(found) > size or page.last_key is not None
        read = len(page.items) if plan.leftover else len(shown)
        if not page.items:
            return self._clone(cursor="").rows() if backwards else Rows([])
        far = shown[-1][1] if len(found) > size else (page.last_key or page.items[-1])

        def link(raw: dict[str, Any], to: str) -> str:
            position = [to, *(raw[name]["S"] for name in pattern.key_names())]
            return cursor.dump(position, tenant_id="", query=bound)

        if self.limit is None and more:
            raise Unplannable(f"There are more than {UNSLICED_LIMIT} of them; take a slice.")
        objects = [made for made, _ in shown]
        if backwards:
            ahead, behind = link(page.items[0], "next"), link(far, "previous") if more else None
            return Rows(objects[::-1], read, ahead, behind)
        behind = link(page.items[0], "previous") if start else None
        return Rows(objects, read, link(far, "next") if more else None, behind)

    def _start(self, pattern: Query, plan: Plan, bound: tuple[object, ...]) -> tuple[bool, dict[str, Any] | None]:
        if not self.cursor:
            return False, None
        where, *key = cursor.load(self.cursor, tenant_id="", query=bound)
        names = pattern.key_names()
        if where not in ("next", "previous") or len(key) != len(names):
            raise Invalid("This page link is damaged.")
        return where == "previous", {name: {"S": value} for name, value in zip(names, key, strict=True)}

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
        return self._clone(limit=key.stop)

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


def served(model: Any) -> str:
    """One sentence about what the patterns of a facade serve."""
    plural = _capital(str(model._meta.verbose_name_plural))
    lists = [p.name for p in model.patterns if isinstance(p, Query | Listing)]
    points = [p.name for p in model.patterns if isinstance(p, Lookup | Get)]
    if not lists:
        return f"{plural} can be found {_either(points)}."
    named = [name for name in points if name != Get.name]  # that one id finds one object goes without saying
    found = f", or found {_either(named)}" if named else ""
    choose = " Choose one." if len(lists) > 1 else ""
    return f"{plural} can be listed {_either(lists)}{found}.{choose}"


def _terms(args: tuple[Q, ...]) -> Iterator[tuple[str, Any]]:
    for q in args:
        if q.negated or (q.connector != Q.AND and len(q.children) > 1):
            raise Unplannable("Filters are joined by AND, and never negated.")
        for child in q.children:
            if isinstance(child, Q):
                yield from _terms((child,))
            else:
                yield child  # type: ignore[misc]  # a pair, where it is no Q


def _joined(pattern: Get, values: dict[str, Any]) -> str:
    return SEPARATOR.join(str(values[name]) for name in pattern.fields)


def _either(names: list[str]) -> str:
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
