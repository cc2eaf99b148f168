"""Translate kind, group and custom fields of an exported ticket into those of the desk that takes it in.

Each desk gives its own ids, so both are found by type and name. A field that the desk has not is left out, and the
report says so: under the same id another field may stand here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from tickets.custom_fields.definitions import Definitions
from tickets.desk.history import History, PastEntry
from tickets.ticket import custom_values
from tickets.ticket.fields import CUSTOM, CUSTOM_PREFIX, DEFINED, FieldChange

_ELSEWHERE: Final = "a field of another desk"  # in the history, of a field that is not here


def names_of(defined: Definitions) -> dict[str, str]:
    """Return the names that an export gives beside the ids of kinds, groups and custom fields."""
    named = {one.id: one.name for of in DEFINED for one in defined.of_field(of)}
    return {one.id: one.name for one in defined.fields} | named


class Translation:
    """Translate ids, of which the file says the `names`, into those of a desk."""

    def __init__(self, defined: Definitions, names: Mapping[str, str]) -> None:
        self._defined, self._names = defined, names
        self._here = {(one.type.value, one.name.casefold()): one.id for one in defined.fields}
        self._here |= {(of.name, one.name.casefold()): one.id for of in DEFINED for one in defined.of_field(of)}
        self._missing: dict[str, None] = {}

    def ticket(self, told: History) -> tuple[History, list[str]]:
        """Return the ticket for this desk, and what of it is left out, each as the end of a sentence."""
        values = dict(told.values)
        values |= {of.name: self._id(values.get(of.name) or "") for of in DEFINED}
        custom = values.get(CUSTOM.name) or {}
        values[CUSTOM.name] = {found: text for one, text in custom.items() if (found := self._id(one))}
        left = [f"has a value of “{name}”, which this desk has not defined; it was left out" for name in self._missing]
        entries = tuple(replace(one, changes=tuple(self._changes(one))) for one in told.entries)
        return replace(told, values=values, entries=entries), left

    def _id(self, foreign: str) -> str:
        if not foreign:
            return ""
        name = self._names.get(foreign)
        if name is None:
            found = foreign if foreign in names_of(self._defined) else ""
        else:
            found = self._here.get((foreign.rpartition("_")[0], name.casefold()), "")
        if not found:
            self._missing[name or foreign] = None
        return found

    def _changes(self, entry: PastEntry) -> Iterator[FieldChange]:
        for name, before, after in entry.changes:
            if any(name == of.name for of in DEFINED):
                yield name, self._id(before), self._id(after)
            elif name.startswith(CUSTOM_PREFIX):
                found = self._id(name.removeprefix(CUSTOM_PREFIX))
                yield f"{CUSTOM_PREFIX}{found}" if found else _ELSEWHERE, before, after
            else:
                yield name, before, after


def is_names(value: object) -> bool:
    """Tell whether a file's names of kinds, groups and custom fields are such as an export gives."""
    return isinstance(value, dict) and all(
        isinstance(name, str) and (custom_values.is_field_id(one) or any(of.pattern.match(one) for of in DEFINED))
        for one, name in value.items()
    )
