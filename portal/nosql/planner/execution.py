"""Reads what was planned: objects by their ids, or a page by one Query, with signed cursors both ways. It never scans.

Where a filter is left over for the rows, a page reads at most READ_LIMIT of them, says how many it read and how many
matched, and goes on by its cursor.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from django.core.exceptions import ValidationError

from portal.dynamo import cursor
from portal.dynamo.repository import BATCH_GET_LIMIT
from portal.errors import Invalid, NotFound
from portal.nosql.planner.patterns import SEPARATOR, Get, Listing, Lookup, Query
from portal.nosql.planner.planning import Asked, Plan, Unplannable, get_of, joined, plan

READ_LIMIT: Final = 500  # rows of one page where a filter is left over
UNSLICED_LIMIT: Final = 1000  # objects that an iteration without a slice may have


@dataclass(frozen=True)
class Rows:
    """A page of objects. `read` counts the rows that were looked at; the cursors are None at the ends."""

    objects: list[Any]
    read: int = 0
    next: str | None = None
    previous: str | None = None


def read(asked: Asked) -> Rows:
    """The page. Raises Unplannable, and Invalid for a cursor that is damaged or of another list."""
    if asked.nothing:
        return Rows([])
    if asked.ids is not None:
        return _points(asked, asked.ids)
    planned = plan(asked)
    pattern, values = planned.pattern, planned.values
    if isinstance(pattern, Get):
        pk = asked.model._meta.pk.name
        return _points(asked, (str(values[pk]) if pk in values else joined(pattern, values),))
    if isinstance(pattern, Lookup):
        found = pattern.find(values[pattern.field])
        return _points(asked, (found,)) if found else Rows([])
    if isinstance(pattern, Listing):
        return _listing(asked, pattern, values)
    try:
        pattern.key(values, asked.prefix[1] if asked.prefix else None)
    except ValueError:  # values that no key can have: there are no such objects
        return Rows([])
    return _page(asked, pattern, planned)


def _listing(asked: Asked, pattern: Listing, values: dict[str, Any]) -> Rows:
    try:
        page = pattern.pages(values, after=asked.cursor or None, size=asked.limit or UNSLICED_LIMIT)
    except NotFound:  # a list of what is not there
        return Rows([])
    return Rows(page.objects, page.read, page.next, page.previous)


# --- objects by their ids ---


def _points(asked: Asked, ids: tuple[str, ...]) -> Rows:
    """Those that exist and are as asked."""
    pattern = get_of(asked.model)
    wanted = [parts for pk in ids if (parts := _parts(asked.model, pattern, pk)) is not None]
    if len(wanted) > BATCH_GET_LIMIT:
        raise Unplannable(f"At most {BATCH_GET_LIMIT} objects are read by their ids at once.")
    found = [asked.model.from_item(item) for item in pattern.read(wanted)] if wanted else []
    return Rows([o for o in found if _is_as(o, asked.exact)], len(found))


def _parts(model: Any, pattern: Get, pk: str) -> list[Any] | None:
    """What a pk is made of, or None where no key can be made of it: there is no such object."""
    parts = str(pk).split(SEPARATOR, len(pattern.fields) - 1)
    if len(parts) != len(pattern.fields) or not all(parts):
        return None
    fields = [model._meta.get_field(name) for name in pattern.fields]
    try:
        made = [field.to_python(part) for field, part in zip(fields, parts, strict=True)]
        pattern.key(made)
    except (ValueError, ValidationError):
        return None
    return made


def _is_as(obj: Any, values: dict[str, Any]) -> bool:
    return all(getattr(obj, name) == value for name, value in values.items())


# --- a page by one Query ---


def _page(asked: Asked, pattern: Query, planned: Plan) -> Rows:
    size = asked.limit if asked.limit is not None else UNSLICED_LIMIT
    descending = asked.order.startswith("-") if asked.order else pattern.newest_first
    bound = (asked.model._meta.label, pattern.name, sorted(map(str, asked.exact.items())), asked.prefix, descending)
    backwards, start = _start(asked.cursor, pattern, bound)
    page = pattern.read(
        planned.values,
        begins_with=asked.prefix[1] if asked.prefix else None,
        descending=descending != backwards,
        limit=READ_LIMIT if planned.leftover else size + 1,
        start=start,
    )
    if not page.items:
        return read(replace(asked, cursor="")) if backwards else Rows([])
    made = [(asked.model.from_item(pattern.item.from_raw_data(raw)), raw) for raw in page.items]
    found = [(obj, raw) for obj, raw in made if _is_as(obj, planned.leftover)]
    shown, more = found[:size], len(found) > size or page.last_key is not None
    if asked.limit is None and more:
        raise Unplannable(f"There are more than {UNSLICED_LIMIT} of them; take a slice.")
    seen = len(page.items) if planned.leftover else len(shown)
    # Where the page ends: at the last row shown if more match, else where reading has stopped.
    end = shown[-1][1] if len(found) > size else (page.last_key or page.items[-1])

    def link(raw: dict[str, Any], to: str) -> str:
        position = [to, *(raw[name]["S"] for name in pattern.key_names())]
        return cursor.dump(position, tenant_id="", query=bound)

    objects = [obj for obj, _ in shown]
    if backwards:
        return Rows(objects[::-1], seen, link(page.items[0], "next"), link(end, "previous") if more else None)
    behind = link(page.items[0], "previous") if start else None
    return Rows(objects, seen, link(end, "next") if more else None, behind)


def _start(token: str, pattern: Query, bound: tuple[object, ...]) -> tuple[bool, dict[str, Any] | None]:
    """Whether a cursor leads backwards, and its exclusive start key."""
    if not token:
        return False, None
    where, *key = cursor.load(token, tenant_id="", query=bound)
    names = pattern.key_names()
    if where not in ("next", "previous") or len(key) != len(names):
        raise Invalid("This page link is damaged.")
    return where == "previous", {name: {"S": value} for name, value in zip(names, key, strict=True)}
