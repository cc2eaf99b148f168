"""A second reader of DynamoDB's conditions, written without a look at the guard's.

It takes the whole grammar (OR, NOT, brackets, functions, either order of operands, keywords in any case) where the
guard takes as little as it can, so that the two only agree where the meaning is beyond doubt.

Source: AWS, "Comparison operator and function reference".
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class Unreadable(ValueError):
    """No condition of DynamoDB looks like this."""


@dataclass(frozen=True)
class Test:
    """One comparison or function; the operands as they are written."""

    operator: str
    operands: tuple[str, ...]


@dataclass(frozen=True)
class Group:
    """Conditions joined by and, or, not."""

    word: str
    parts: tuple[Node, ...]


Node = Test | Group

_TOKEN = re.compile(r"\s*(<>|<=|>=|[=<>(),]|[:#]?[A-Za-z0-9_]+(?:\.#?[A-Za-z0-9_]+|\[\d+\])*)", re.ASCII)
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


def read(text: str) -> Node:
    """Return the expression as a tree. Raises Unreadable."""
    tokens, position = [], 0
    text = text.rstrip(string.whitespace)
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise Unreadable(f"at character {position}")
        tokens.append(match[1])
        position = match.end()
    reader = _ConditionReader(tokens)
    node = reader.either()
    if reader.left:
        raise Unreadable("something follows the condition")
    return node


class _ConditionReader:
    """Recursive descent: OR binds weakest, then AND, then NOT."""

    def __init__(self, tokens: list[str]) -> None:
        self.left = tokens[::-1]

    def _peek(self) -> str:
        return self.left[-1].lower() if self.left else ""

    def _take(self, wanted: str = "") -> str:
        if not self.left or (wanted and self._peek() != wanted):
            raise Unreadable(f"{wanted or 'more'} is missing")
        return self.left.pop()

    def either(self) -> Node:
        parts = [self._all()]
        while self._peek() == "or":
            self._take()
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else Group("or", tuple(parts))

    def _all(self) -> Node:
        parts = [self._one()]
        while self._peek() == "and":
            self._take()
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else Group("and", tuple(parts))

    def _one(self) -> Node:
        if self._peek() == "not":
            self._take()
            return Group("not", (self._one(),))
        if self._peek() == "(":
            self._take()
            inner = self.either()
            self._take(")")
            return inner
        first = self._take()
        if self._peek() == "(":
            return Test(first.lower(), self._list())
        operator = self._take().lower()
        if operator in _COMPARISONS:
            return Test(operator, (first, self._take()))
        if operator == "in":
            return Test("in", (first, *self._list()))
        if operator == "between":
            low = self._take()
            self._take("and")
            return Test("between", (first, low, self._take()))
        raise Unreadable(f"{operator} compares nothing")

    def _list(self) -> tuple[str, ...]:
        self._take("(")
        operands = [self._take()]
        while self._peek() == ",":
            self._take()
            operands.append(self._take())
        self._take(")")
        return tuple(operands)


def pinned(node: Node, names: Mapping[str, str], values: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return what every item that fulfils the condition must hold: the equalities joined by nothing but AND."""
    if isinstance(node, Group):
        return [pin for part in node.parts for pin in pinned(part, names, values)] if node.word == "and" else []
    if node.operator != "=":
        return []
    for name, value in (node.operands, node.operands[::-1]):
        if value in values and name not in values:
            return [(names.get(name, name), values[value])]
    return []


def holds(node: Node, item: Mapping[str, str], names: Mapping[str, str], values: Mapping[str, Any]) -> bool:
    """Tell whether an item, all its attributes text, fulfils the condition. Absent values compare with nothing."""
    if isinstance(node, Group):
        parts = (holds(part, item, names, values) for part in node.parts)
        return not next(parts) if node.word == "not" else all(parts) if node.word == "and" else any(parts)
    found = [values[o]["S"] if o in values else item.get(names.get(o, o)) for o in node.operands]
    texts = [text for text in found if text is not None]
    if len(texts) < len(found):
        return False
    left, *right = texts
    match node.operator:
        case "=" | "in":
            return left in right
        case "<>":
            return bool(left != right[0])
        case "<":
            return bool(left < right[0])
        case "<=":
            return bool(left <= right[0])
        case ">":
            return bool(left > right[0])
        case ">=":
            return bool(left >= right[0])
        case "between":
            return bool(right[0] <= left <= right[1])
        case "begins_with":
            return bool(left.startswith(right[0]))
        case "contains":
            return right[0] in left
    raise Unreadable(f"{node.operator} cannot be decided")
