"""A second reader of DynamoDB's conditions, written without a look at the guard's.

It takes the whole grammar (OR, NOT, brackets, functions, either order of operands, keywords in any case) where the
guard takes as little as it can, so that the two only agree where the meaning is beyond doubt. Python's own parser does
the work: the grammar of conditions is that of Python's expressions, but for the spelling and BETWEEN.

Source: AWS, "Comparison operator and function reference".
"""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final


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
_AS_PYTHON: Final = {"=": "==", "<>": "!=", "between": "%"}  # nothing else in the grammar is written %
_WORDS: Final = ("and", "or", "not", "in", "between")
_BETWEEN: Final = re.compile(r"(\w+) % (\w+) and (\w+)")
_OPERATORS: Final = {
    ast.Eq: "=", ast.NotEq: "<>", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.In: "in",
}  # fmt: skip


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
    operands: dict[str, str] = {}
    written = " ".join(_as_python(token, operands) for token in tokens)
    try:
        tree = ast.parse(_BETWEEN.sub(r"between(\1, \2, \3)", written) or "(", mode="eval").body
    except SyntaxError as error:
        raise Unreadable(str(error)) from error
    return _node(tree, {**operands, "between": "between"})


def _as_python(token: str, operands: dict[str, str]) -> str:
    word = token.lower()
    if word in _WORDS or not re.search(r"\w", token):
        return _AS_PYTHON.get(word, word)
    name = f"operand_{len(operands)}"
    operands[name] = token
    return name


def _node(tree: ast.AST, operands: Mapping[str, str]) -> Node:
    def names(found: list[ast.expr]) -> tuple[str, ...]:
        if not all(isinstance(one, ast.Name) for one in found):
            raise Unreadable("an operand is none")
        return tuple(operands[one.id] for one in found if isinstance(one, ast.Name))

    match tree:
        case ast.BoolOp(op=op, values=values):
            return Group("and" if isinstance(op, ast.And) else "or", tuple(_node(v, operands) for v in values))
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return Group("not", (_node(inner, operands),))
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _OPERATORS:
            others = right.elts if isinstance(right, ast.Tuple) and isinstance(op, ast.In) else [right]
            return Test(_OPERATORS[type(op)], names([left, *others]))
        case ast.Call(func=ast.Name(id=function), args=arguments, keywords=[]):
            return Test(operands[function].lower(), names(arguments))
    raise Unreadable("it compares nothing")


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


_TESTS: Final[dict[str, Callable[..., bool]]] = {
    "=": lambda left, right: left == right,
    "<>": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
    "in": lambda left, *others: left in others,
    "between": lambda left, low, high: low <= left <= high,
    "begins_with": lambda left, right: left.startswith(right),
    "contains": lambda left, right: right in left,
}


def holds(node: Node, item: Mapping[str, str], names: Mapping[str, str], values: Mapping[str, Any]) -> bool:
    """Tell whether an item, all its attributes text, fulfils the condition. Absent values compare with nothing."""
    if isinstance(node, Group):
        parts = (holds(part, item, names, values) for part in node.parts)
        return not next(parts) if node.word == "not" else all(parts) if node.word == "and" else any(parts)
    if node.operator not in _TESTS:
        raise Unreadable(f"{node.operator} cannot be decided")
    found = [values[o]["S"] if o in values else item.get(names.get(o, o)) for o in node.operands]
    return None not in found and _TESTS[node.operator](*found)
