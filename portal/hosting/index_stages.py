"""Divide an upgrade into updates of the stack: CloudFormation adds or removes one index of a table in each.

New indexes are built while the former version runs, and former ones are removed when it does not run any more. So no
version misses an index that it reads. The tables themselves say which indexes they have, so an upgrade that stopped
half-way continues.

Source: AWS, "AWS::DynamoDB::Table", update behaviours of GlobalSecondaryIndexes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from portal.deployment.parts import Json

_INDEXES: Final = "GlobalSecondaryIndexes"
_OF_AN_INDEX: Final = ("IndexName", "KeySchema", "Projection")


@dataclass
class TableIndexes:
    """The indexes of one table, by name: those that the template wants, and those that the table has."""

    logical_id: str
    wanted: dict[str, Json]
    had: dict[str, Json]
    attributes: dict[str, Json] = field(default_factory=dict)

    @property
    def missing(self) -> list[str]:
        return [name for name in self.wanted if name not in self.had]

    @property
    def former(self) -> list[str]:
        return [name for name in self.had if name not in self.wanted]


@dataclass(frozen=True)
class StackUpdate:
    """One update of the stack."""

    title: str
    template: Json
    new_version: bool


def indexes_of(template: Json, described: Callable[[str], Json | None], prefix: str) -> list[TableIndexes]:
    """Compare the template's tables with those that are there. `described` gives DynamoDB's description of a table by
    its full name, None for a new one."""
    found = []
    for name, one in template["Resources"].items():
        if one["Type"] != "AWS::DynamoDB::Table":
            continue
        full_name = one["Properties"]["TableName"]["Fn::Sub"].replace("${TablePrefix}", prefix)
        table = described(full_name)
        if table is None:
            continue
        wanted = {index["IndexName"]: index for index in one["Properties"].get(_INDEXES, [])}
        had = {index["IndexName"]: {key: index[key] for key in _OF_AN_INDEX} for index in table.get(_INDEXES, [])}
        attributes = {one["AttributeName"]: one for one in table["AttributeDefinitions"]}
        found.append(TableIndexes(name, wanted, had, attributes))
    return found


def stages(template: Json, tables: list[TableIndexes]) -> list[StackUpdate]:
    """Return the updates by which a stack comes to this template: one, if no index has changed."""
    adding, removing = (max((len(of) for of in kind), default=0) for kind in _differences(tables))
    found = [
        StackUpdate(f"Build new indexes ({number} of {adding})", _with(template, tables, number, 0), new_version=False)
        for number in range(1, adding + 1)
    ]
    found.append(StackUpdate("Start this version", _with(template, tables, adding, 0), new_version=True))
    found += [
        StackUpdate(
            f"Remove former indexes ({number} of {removing})",
            _with(template, tables, adding, number),
            new_version=True,
        )
        for number in range(1, removing + 1)
    ]
    return found


def _differences(tables: list[TableIndexes]) -> tuple[list[list[str]], list[list[str]]]:
    return [table.missing for table in tables], [table.former for table in tables]


def _with(template: Json, tables: list[TableIndexes], added: int, removed: int) -> Json:
    """Return the template with this many of the missing indexes of each table, and without this many former ones."""
    made = copy.deepcopy(template)
    for table in tables:
        if not (table.missing or table.former):
            continue
        properties = made["Resources"][table.logical_id]["Properties"]
        absent = set(table.missing[added:])
        former = [table.had[name] for name in table.former[removed:]]
        indexes = [index for name, index in table.wanted.items() if name not in absent] + former
        defined = table.attributes | {one["AttributeName"]: one for one in properties["AttributeDefinitions"]}
        used = _keys(properties["KeySchema"]) | {key for index in indexes for key in _keys(index["KeySchema"])}
        properties[_INDEXES] = indexes
        properties["AttributeDefinitions"] = [one for name, one in sorted(defined.items()) if name in used]
        if not indexes:
            del properties[_INDEXES]
    return made


def _keys(schema: list[dict[str, Any]]) -> set[str]:
    return {one["AttributeName"] for one in schema}
