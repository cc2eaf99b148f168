"""Collect the rooms' parts of the CloudFormation template. A room declares its part in its own `deployment.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class StackPart:
    """Sections of a template, in its own terms.

    `resources` is called with `logical_id`, which gives a table's name inside of the template, and with the logical
    ids of the roles by role name ("worker").
    """

    name: str
    resources: Callable[[Callable[[Any], str], dict[str, str]], Json]
    parameters: Json = field(default_factory=dict)
    rules: Json = field(default_factory=dict)
    conditions: Json = field(default_factory=dict)
    outputs: Json = field(default_factory=dict)


_parts: dict[str, StackPart] = {}


def declare(part: StackPart) -> None:
    """Add a room's part to the template."""
    _parts[part.name] = part


def parts() -> list[StackPart]:
    """Return all parts, by name."""
    return [_parts[name] for name in sorted(_parts)]
