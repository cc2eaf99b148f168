"""Choose the declared pattern that serves a query, or refuse with a sentence that says what is served, and read.

Objects are read by their ids, a page by one Query, with signed cursors both ways. Conditions that no key serves are
left over for the rows, and only for fields that the facade allows: then a page reads at most READ_LIMIT rows, says how
many it read, and goes on by its cursor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from django.core.exceptions import FieldError, ValidationError

from portal.dynamo.client import Item
from portal.dynamo.paging import Pager
from portal.dynamo.store import BATCH_GET_LIMIT
from portal.errors import NotFound
from portal.nosql.planner.patterns import SEPARATOR, CustomListing, Get, Lookup, Pattern, Query, ResultPage


class Unplannable(FieldError):
    """No declared pattern serves this query. The text is a sentence for a person and says what is served.

    `incomplete`: nothing is wrong with the query, but it does not name a partition yet.
    """

    def __init__(self, sentence: str, *, incomplete: bool = False) -> None:
        super().__init__(sentence)
        self.incomplete = incomplete


class ReadLimitReached(Unplannable):
    """Reading stopped at its limit before the answer was certain."""


@dataclass(frozen=True)
class QuerySpec:
    """Describe what a query set has been narrowed to.

    `prefixes` and `contains` are pairs of a field and a text, all of which must hold. `ids` come from `pk__in`; None
    means that none were named. `order` is a field, with a minus for the other way round. `limit` is None for all
    objects, up to a bound. `nothing` marks a query that can match no object.
    """

    model: Any
    exact: dict[str, Any] = field(default_factory=dict)
    prefixes: tuple[tuple[str, str], ...] = ()
    contains: tuple[tuple[str, str], ...] = ()
    ids: tuple[str, ...] | None = None
    order: str = ""
    limit: int | None = None
    cursor: str = ""
    nothing: bool = False


@dataclass(frozen=True)
class QueryPlan:
    """Join one pattern with the values of its key; `leftover` and `contains` are checked on the rows.

    `ids` are the objects to read where the pattern is a Get.
    """

    pattern: Pattern
    values: dict[str, Any]
    leftover: dict[str, Any]
    contains: tuple[tuple[str, str], ...] = ()
    ids: tuple[str, ...] = ()

    @property
    def checks_rows(self) -> bool:
        return bool(self.leftover or self.contains)


def plan(spec: QuerySpec) -> QueryPlan:
    """Return the most specific plan for a query. Raises Unplannable."""
    if spec.ids is not None:
        return _plan_ids(spec, spec.ids)
    return _plan_object(spec) or _plan_list(spec)


def get_of(model: Any) -> Get:
    """Return the pattern by which one object is read."""
    return next(pattern for pattern in model.patterns if isinstance(pattern, Get))


def _plan_ids(spec: QuerySpec, ids: tuple[str, ...]) -> QueryPlan:
    if spec.prefixes:
        raise Unplannable(f"{plural(spec.model)} cannot be found by id and by what they begin with at once.")
    return QueryPlan(get_of(spec.model), {}, spec.exact, spec.contains, ids)


def _plan_object(spec: QuerySpec) -> QueryPlan | None:
    """Plan a read by another unique value, by the pk, or by all fields that the pk is made of."""
    if spec.prefixes:
        return None
    model, exact = spec.model, spec.exact
    for pattern in model.patterns:
        if isinstance(pattern, Lookup) and pattern.field in exact:
            return _bind(spec, pattern, (pattern.field,))
        if isinstance(pattern, Get):
            pk = model._meta.pk.name
            if pk in exact:
                return _bind(spec, pattern, (pk,), ids=(str(exact[pk]),))
            if set(pattern.fields) <= set(exact):
                joined = SEPARATOR.join(str(exact[name]) for name in pattern.fields)
                return _bind(spec, pattern, pattern.fields, ids=(joined,))
    return None


def _plan_list(spec: QuerySpec) -> QueryPlan:
    """Plan by the pattern that takes the most fields, sorts as demanded, and searches where a prefix is given."""
    model, order = spec.model, spec.order.lstrip("-")
    prefixed = {name for name, _ in spec.prefixes}
    lists = [p for p in model.patterns if isinstance(p, Query | CustomListing) and set(p.by) <= set(spec.exact)]
    sorting = [p for p in lists if order in ("", p.order)]
    fitting = [p for p in sorting if not prefixed or (p.prefix and {p.order} == prefixed)]
    if not fitting:
        raise Unplannable(_refusal(spec, lists, sorting), incomplete=not lists)
    best = max(fitting, key=lambda p: len(p.by))
    bound = _bind(spec, best, (*best.by, *(best.may if isinstance(best, CustomListing) else ())))
    names = [*bound.leftover, *(name for name, _ in bound.contains)]
    allowed = () if isinstance(best, CustomListing) else (*model.filters, *model.searched)
    refused = [name for name in names if name not in allowed]
    if refused:
        label = str(model._meta.get_field(refused[0]).verbose_name)
        raise Unplannable(f"{plural(model)} listed {best.name} cannot be filtered by {label}. {served(model)}")
    return bound


def _bind(spec: QuerySpec, pattern: Pattern, taken: Sequence[str], *, ids: tuple[str, ...] = ()) -> QueryPlan:
    values = {name: value for name, value in spec.exact.items() if name in taken}
    leftover = {name: value for name, value in spec.exact.items() if name not in taken}
    return QueryPlan(pattern, values, leftover, spec.contains, ids)


# --- sentences ---


def served(model: Any) -> str:
    """Say in one sentence what the patterns of a facade serve."""
    lists = [p.name for p in model.patterns if isinstance(p, Query | CustomListing)]
    points = [p.name for p in model.patterns if isinstance(p, Lookup | Get)]
    if not lists:
        return f"{plural(model)} can be found {_either(points)}."
    named = [name for name in points if name != Get.name]  # that one id finds one object goes without saying
    by_value = f", or found {_either(named)}" if named else ""
    choose = " Choose one." if len(lists) > 1 else ""
    return f"{plural(model)} can be listed {_either(lists)}{by_value}.{choose}"


def plural(model: Any) -> str:
    """Return the plural name of a model for the beginning of a sentence."""
    name = str(model._meta.verbose_name_plural)
    return name[:1].upper() + name[1:]


def _refusal(spec: QuerySpec, lists: list[Any], sorting: list[Any]) -> str:
    model = spec.model
    if not lists:
        return served(model) + _missing(spec)
    if not spec.order:
        return served(model)
    if not sorting:
        names = sorted({str(model._meta.get_field(p.order).verbose_name) for p in lists})
        return f"{plural(model)} are sorted by {_either(names)}, and by nothing else."
    return f"{plural(model)} cannot be searched by what they begin with here. {served(model)}"


def _missing(spec: QuerySpec) -> str:
    """Name the fields that a half-finished choice still lacks, for the pattern that needs the fewest of them."""
    lists = [p.by for p in spec.model.patterns if isinstance(p, Query | CustomListing)]
    needed = [by for by in (*lists, get_of(spec.model).fields) if set(by) & set(spec.exact)]
    if not needed:
        return ""
    lacking = min(([name for name in by if name not in spec.exact] for by in needed), key=len)
    labels = [str(spec.model._meta.get_field(name).verbose_name) for name in lacking]
    return f" Now choose the {' and the '.join(labels)}."


def _either(names: list[str]) -> str:
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


READ_LIMIT: Final = 500  # rows of one page where conditions are left over
UNSLICED_LIMIT: Final = 1000  # objects that an iteration without a slice may have


def read(spec: QuerySpec) -> ResultPage:
    """Plan a query and read its page. Raises Unplannable, and Invalid for a cursor that is not this list's."""
    if spec.nothing:
        return ResultPage([])
    chosen = plan(spec)
    if isinstance(chosen.pattern, Get):
        return _read_objects(spec, chosen, chosen.ids)
    if isinstance(chosen.pattern, Lookup):
        pk = chosen.pattern.find(chosen.values[chosen.pattern.field])
        return _read_objects(spec, chosen, (pk,) if pk else ())
    if isinstance(chosen.pattern, CustomListing):
        return _read_listing(spec, chosen, chosen.pattern)
    return _read_query(spec, chosen, chosen.pattern)


def _read_listing(spec: QuerySpec, plan: QueryPlan, pattern: CustomListing) -> ResultPage:
    size = UNSLICED_LIMIT if spec.limit is None else spec.limit
    try:
        return pattern.pages(plan.values, after=spec.cursor or None, size=size)
    except NotFound:  # a list of what is not there
        return ResultPage([])


# --- objects by their ids ---


def _read_objects(spec: QuerySpec, plan: QueryPlan, ids: tuple[str, ...]) -> ResultPage:
    """Read those that exist and meet the leftover conditions."""
    get = get_of(spec.model)
    keys = [parts for pk in dict.fromkeys(ids) if (parts := _key_parts(spec.model, get, pk)) is not None]
    if len(keys) > BATCH_GET_LIMIT:
        raise Unplannable(f"At most {BATCH_GET_LIMIT} objects are read by their ids at once.")
    objects = [spec.model.from_item(item) for item in get.read(keys)] if keys else []
    matches = [obj for obj in objects if _matches(obj, plan)]
    if spec.order:
        name = spec.order.lstrip("-")
        matches.sort(key=lambda obj: (getattr(obj, name) is not None, getattr(obj, name)), reverse=spec.order[0] == "-")
    return ResultPage(matches[: spec.limit], len(objects))


def _key_parts(model: Any, get: Get, pk: str) -> list[Any] | None:
    """Split a pk into the values of its fields; None where no key can be made of it, so no such object exists."""
    texts = str(pk).split(SEPARATOR, len(get.fields) - 1)
    if len(texts) != len(get.fields) or not all(texts):
        return None
    fields = [model._meta.get_field(name) for name in get.fields]
    try:
        parts = [field.to_python(text) for field, text in zip(fields, texts, strict=True)]
        get.key(parts)
    except (ValueError, ValidationError):
        return None
    return parts


def _matches(obj: Any, plan: QueryPlan) -> bool:
    """Check the conditions that no key served."""
    return all(getattr(obj, name) == value for name, value in plan.leftover.items()) and all(
        text in str(getattr(obj, name)).casefold() for name, text in plan.contains
    )


# --- a page by one Query ---


def _read_query(spec: QuerySpec, plan: QueryPlan, pattern: Query) -> ResultPage:
    size = UNSLICED_LIMIT if spec.limit is None else spec.limit
    descending = spec.order.startswith("-") if spec.order else pattern.newest_first
    conditions = (sorted(map(str, spec.exact.items())), spec.prefixes, spec.contains)
    bound = (spec.model._meta.label, pattern.name, conditions, descending)
    pager = Pager("", bound)
    place = pager.place(spec.cursor, size=len(pattern.key_names())) if spec.cursor else None
    backwards = place is not None and place.backwards
    try:
        begins_with = pattern.begins_with([text for _, text in spec.prefixes])
        pattern.key(plan.values)
    except ValueError:  # values that no key can have: there are no such objects
        return ResultPage([])
    page = pattern.read(
        plan.values,
        begins_with=begins_with,
        descending=descending != backwards,
        limit=READ_LIMIT if plan.checks_rows else size + 1,
        start=_start_key(pattern, place.position) if place else None,
    )
    if not page.items:
        return read(replace(spec, cursor="")) if backwards else ResultPage([])
    rows = [(spec.model.from_item(item), item) for item in page.items]
    matches = [(obj, item) for obj, item in rows if _matches(obj, plan)]
    on_page, more = matches[:size], len(matches) > size or page.last_key is not None
    rows_read = len(page.items) if plan.checks_rows else len(on_page)
    # The page ends at its last row if more match, else where reading has stopped.
    end = on_page[-1][1] if len(matches) > size else page.items[-1]
    links = pager.links(place, begin=_position(pattern, page.items[0]), end=_position(pattern, end), more=more)
    objects = [obj for obj, _ in (on_page[::-1] if backwards else on_page)]
    return ResultPage(objects, rows_read, links.next, links.previous)


def _position(pattern: Query, item: Item) -> list[str]:
    return [getattr(item, name) for name in pattern.key_names()]


def _start_key(pattern: Query, position: list[str]) -> dict[str, Any]:
    return {name: {"S": value} for name, value in zip(pattern.key_names(), position, strict=True)}
