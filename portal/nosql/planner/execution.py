"""Read what was planned: objects by their ids, or a page by one Query, with signed cursors both ways.

Where a condition is left over for the rows, a page reads at most READ_LIMIT of them, says how many it read, and goes
on by its cursor.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from django.core.exceptions import ValidationError

from portal.dynamo.client import Item
from portal.dynamo.paging import Pager
from portal.dynamo.repository import BATCH_GET_LIMIT
from portal.errors import NotFound
from portal.nosql.planner import planning
from portal.nosql.planner.patterns import SEPARATOR, CustomListing, Get, Lookup, Query, ResultPage
from portal.nosql.planner.planning import QueryPlan, QuerySpec, Unplannable

READ_LIMIT: Final = 500  # rows of one page where conditions are left over
UNSLICED_LIMIT: Final = 1000  # objects that an iteration without a slice may have


def read(spec: QuerySpec) -> ResultPage:
    """Plan a query and read its page. Raises Unplannable, and Invalid for a cursor that is not this list's."""
    if spec.nothing:
        return ResultPage([])
    plan = planning.plan(spec)
    if isinstance(plan.pattern, Get):
        return _read_objects(spec, plan, plan.ids)
    if isinstance(plan.pattern, Lookup):
        pk = plan.pattern.find(plan.values[plan.pattern.field])
        return _read_objects(spec, plan, (pk,) if pk else ())
    if isinstance(plan.pattern, CustomListing):
        return _read_listing(spec, plan, plan.pattern)
    return _read_query(spec, plan, plan.pattern)


def _read_listing(spec: QuerySpec, plan: QueryPlan, pattern: CustomListing) -> ResultPage:
    size = UNSLICED_LIMIT if spec.limit is None else spec.limit
    try:
        return pattern.pages(plan.values, after=spec.cursor or None, size=size)
    except NotFound:  # a list of what is not there
        return ResultPage([])


# --- objects by their ids ---


def _read_objects(spec: QuerySpec, plan: QueryPlan, ids: tuple[str, ...]) -> ResultPage:
    """Read those that exist and meet the leftover conditions."""
    get = planning.get_of(spec.model)
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
