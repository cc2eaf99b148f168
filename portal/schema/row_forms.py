"""Say what the rows of a holding have to be where they come from a file, and find what is wrong with one.

The types of attributes are those of the row's model, its key is the one that the package's `keys.py` forms, and numbers
that somebody counts up to have bounds. All rows stored by the product fit. Other rows could end a page or a command in
an error, or keep it busy forever, once they are stored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC
from typing import Any, Final

from portal import clock
from portal.schema import keys
from portal.schema.registry import Table

ITEM_LIMIT: Final = 400 * 1024  # bytes of one item, names included; AWS, "Quotas in Amazon DynamoDB"
_KEY_LIMITS: Final = (2048, 1024)  # bytes of a partition key and of a sort key; the same source
_DEEPEST: Final = 32  # maps and lists in each other; the same source
_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]{0,18})(\.[0-9]{1,18})?\Z")
_WHOLE: Final = re.compile(r"(0|[1-9][0-9]{0,14})\Z")  # far more than anything here counts

Raw = dict[str, Any]  # an item as DynamoDB gives it: each value with its type
Check = Callable[[Any], object]  # of an attribute's value: false, or ValueError, where it cannot be this


@dataclass(frozen=True)
class RowForm:
    """Say what rows of one kind are. `model` is the PynamoDB model that they are read by.

    `key` forms the row's key anew, from what the row says and the tenant's id, and raises ValueError for what is none;
    `begins` is what the sort keys of this kind begin with, where a table has several. `checks` are about single
    attributes, where they are there, and `whole` returns what is wrong with the row beside those, "" for nothing.
    `needs` names attributes that are always there though the model has a default for them, `fractions` the numbers that
    need not be whole ones from 0. `most_bytes` is the most that a row may have.
    """

    model: Any
    key: Callable[[str, Raw], tuple[str, ...]]
    begins: str = ""
    checks: Mapping[str, Check] = field(default_factory=dict)
    whole: Callable[[str, Raw], str] = lambda tenant_id, item: ""
    needs: tuple[str, ...] = ()
    fractions: tuple[str, ...] = ()
    most_bytes: int = ITEM_LIMIT

    def is_of(self, table: Table, item: Raw) -> bool:
        """Tell whether a row of this table is of this kind."""
        is_begun = not self.begins or str(item[str(table.range)]["S"]).startswith(self.begins)
        return self.model.table.name == table.name and is_begun


def fault(forms: tuple[RowForm, ...], table: Table, tenant_id: str, item: Raw, *, secret: tuple[str, ...] = ()) -> str:
    """Say what is wrong with a row, "" where it is one of these. `secret` are attributes that may be missing."""
    try:
        size = _size_of_map(item, 0)
        form = next((form for form in forms if form.is_of(table, item)), None)
        if form is None:
            return "has not the form of its kind: nothing here has such a key"
        if wrong := _wrong_attribute(form, item, secret) or _wrong_key(form, table, item):
            return f"has not the form of its kind: {wrong} is missing or wrong"
        if tuple(item[name]["S"] for name in table.key_names) != form.key(tenant_id, item):
            return "has not the form of its kind: its key is another one than it would have here"
        if size > form.most_bytes:
            return f"is longer than the {form.most_bytes:,} bytes that one of its kind can have"
        return form.whole(tenant_id, item)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError):
        return "has not the form of its kind"


def _wrong_attribute(form: RowForm, item: Raw, secret: tuple[str, ...]) -> str:
    if wrong := _mistyped(form.model.get_attributes().values(), item, {*secret}, {*form.needs}, {*form.fractions}):
        return wrong
    for name, check in form.checks.items():
        if name in item and not _passes(check, *item[name].values()):
            return name
    return ""


def _mistyped(
    attributes: Any, item: Raw, may_miss: set[str], needs: set[str], fractions: set[str], within: str = ""
) -> str:
    for attribute in attributes:
        name: str = attribute.attr_name
        if name not in item:
            has_default = attribute.default is not None or attribute.default_for_new is not None
            if name in needs or not (attribute.null or has_default or name in may_miss):
                return within + name
            continue
        ((kind, value),) = item[name].items()
        if kind != attribute.attr_type or (kind == "N" and name not in fractions and not _WHOLE.match(value)):
            return within + name
        element = getattr(attribute, "element_type", None)
        if element is not None and hasattr(element, "get_attributes"):
            inner = element.get_attributes().values()
            for one in value:
                if wrong := _mistyped(inner, one["M"], set(), set(), set(), f"{name}."):
                    return wrong
    return ""


def _wrong_key(form: RowForm, table: Table, item: Raw) -> str:
    """Return the name of the first attribute that cannot stand in a key, of the table or of an index, or that would put
    a row of another kind into an index, or let it expire."""
    known = {attribute.attr_name for attribute in form.model.get_attributes().values()}
    for names in ((table.hash, table.range), *((index.hash, index.range) for index in table.indexes)):
        for name, most in zip(names, _KEY_LIMITS, strict=True):
            if name and name in item and not (name in known and 0 < len(item[name]["S"].encode()) <= most):
                return name
    return table.ttl if table.ttl and table.ttl in item and table.ttl not in known else ""


def _passes(check: Check, value: Any) -> bool:
    try:
        return bool(check(value))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError):
        return False


# --- values that DynamoDB takes, and their sizes as it counts them ---


def _size_of_map(item: Raw, depth: int) -> int:
    """Return the bytes of a map of typed values. Raises ValueError, TypeError for what DynamoDB would refuse."""
    return sum(len(name.encode()) + _size(value, depth) for name, value in item.items())


def _size(typed: Raw, depth: int) -> int:
    ((kind, value),) = typed.items()
    if kind == "S":
        return len(value.encode())
    if kind == "N" and _NUMBER.match(value):
        return 1 + len(value) // 2
    if kind == "B" and isinstance(value, bytes):
        return len(value)
    if kind == "BOOL" and isinstance(value, bool):
        return 1
    if kind == "NULL" and value is True:
        return 1
    if depth < _DEEPEST and kind == "M":
        return 3 + len(value) + _size_of_map(value, depth + 1)
    if depth < _DEEPEST and kind == "L" and isinstance(value, list):
        return 3 + len(value) + sum(_size(one, depth + 1) for one in value)
    if kind in ("SS", "NS", "BS") and isinstance(value, list) and 0 < len(value) == len({*value}):
        return sum(_size({kind[0]: one}, depth) for one in value)
    raise ValueError(f"this is no value of the kind {kind}")


# --- checks of single attributes ---


def between(least: int, most: int) -> Check:
    """Check a number that somebody counts up to."""
    return lambda value: least <= int(value) <= most


def one_of(*texts: str) -> Check:
    return lambda value: value in texts


def like(pattern: str) -> Check:
    """Check a text by a regular expression that holds for all of it."""
    compiled = re.compile(pattern, re.ASCII)
    return lambda value: compiled.fullmatch(value)


def moment(value: str) -> bool:
    return bool(clock.parse(value).astimezone(UTC))


def moments(*names: str) -> dict[str, Check]:
    return dict.fromkeys(names, moment)


def moments_if_any(*names: str) -> dict[str, Check]:
    """Return the check of a moment, or "" for none, for each of these attributes."""
    return dict.fromkeys(names, lambda value: not value or moment(value))


def texts(value: Any) -> bool:
    """Check a list of texts, as stored."""
    return all(isinstance(one["S"], str) for one in value)


def ids(value: Any) -> bool:
    """Check a set of ids of people."""
    return all(keys.USER_ID.match(one) for one in value)


def json_object(is_value: Callable[[Any], bool]) -> Check:
    """Check a JSON object, by its values; "" where there is none."""

    def check(value: str) -> bool:
        told = json.loads(value) if value else {}
        return isinstance(told, dict) and all(map(is_value, told.values()))

    return check


def is_text(value: Any) -> bool:
    """Tell whether a value in JSON is a text."""
    return isinstance(value, str)


def are_texts(value: Any) -> bool:
    """Tell whether a value in JSON is a list of texts."""
    return isinstance(value, list) and all(map(is_text, value))
