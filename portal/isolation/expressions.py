"""Read the two kinds of expression that decide whose items a request touches: key conditions and updates.

Both readers know less than DynamoDB does. They refuse expressions that they do not understand: an expression that two
parsers read differently is a way around a guard.
"""

from __future__ import annotations

import re
import string
from functools import lru_cache


class NotUnderstood(ValueError):
    """More than the reader knows. The message holds nothing of the expression."""


# --- key conditions: the whole grammar that a Query may use ---

_NAME = r"(?:#\w+|[A-Za-z_]\w*)"
_VALUE = r":\w+"
_CLAUSE = (
    rf"(?:(?P<name_@>{_NAME})\s*(?P<op_@>=|<=|>=|<|>)\s*(?P<value_@>{_VALUE})"
    rf"|(?P<between_@>{_NAME})\s+BETWEEN\s+{_VALUE}\s+AND\s+{_VALUE}"
    rf"|begins_with\s*\(\s*(?P<begins_@>{_NAME})\s*,\s*{_VALUE}\s*\))"
)
_CONDITION = re.compile(rf"\s*{_CLAUSE.replace('@', '1')}(?:\s+AND\s+{_CLAUSE.replace('@', '2')})?\s*", re.ASCII)
_RESERVED = {"and", "or", "not", "between", "in", "begins_with"}


@lru_cache(maxsize=512)
def key_conditions(expression: str) -> tuple[tuple[str, str, str], ...]:
    """Return the clauses of a key condition as (name, operator, value placeholder).

    Raises NotUnderstood unless the whole expression is one or two clauses joined by AND, optionally in one pair of
    parentheses.
    """
    text = expression.strip(string.whitespace)  # not what Unicode takes for blanks: DynamoDB does not
    # boto3 puts a pair around the two clauses that its own conditions are joined from.
    match = _CONDITION.fullmatch(text[1:-1] if text.startswith("(") and text.endswith(")") else text)
    if match is None:
        raise NotUnderstood("a key condition that is not understood")
    clauses = []
    for i in (1, 2):
        name = match[f"name_{i}"] or match[f"between_{i}"] or match[f"begins_{i}"]
        if name is None:
            continue
        if name.lower() in _RESERVED:
            raise NotUnderstood("a reserved word as a name")
        operator = match[f"op_{i}"] or ("between" if match[f"between_{i}"] else "begins_with")
        clauses.append((name, operator, match[f"value_{i}"] or ""))
    return tuple(clauses)


# --- conditions of writes ---

_ABSENCE = re.compile(rf"\s*attribute_not_exists\s*\(\s*({_NAME})\s*\)\s*", re.ASCII)


@lru_cache(maxsize=512)
def demanded_absent(expression: str) -> str:
    """Return the attribute, as written, that a condition wants to be absent, or "" for any other condition."""
    match = _ABSENCE.fullmatch(expression)
    return match[1] if match else ""


# --- updates ---

_TOKEN = re.compile(r"[#:]?\w+|\S", re.ASCII)
_WORD = re.compile(r"#?\w+", re.ASCII)
_PLACEHOLDER = re.compile(_VALUE, re.ASCII)
_ENDS = {",", "SET", "REMOVE", "ADD", "DELETE", ""}


@lru_cache(maxsize=512)
def mentions(expression: str) -> tuple[tuple[str, str], ...]:
    """Return every attribute that an update expression mentions, as written, with the placeholder of its new value.

    The placeholder is "" unless the mention is the plain assignment `name = :value`: an attribute that is copied,
    computed or nested may end up as anything. Words of the language are mentioned as well; no key is called so.
    """
    tokens = [*_TOKEN.findall(expression), "", "", ""]
    found = []
    for before, (token, equals, value, end) in zip(
        ["", *tokens], zip(tokens, tokens[1:], tokens[2:], tokens[3:], strict=False), strict=False
    ):
        if _WORD.fullmatch(token):
            plain = before.upper() in _ENDS and equals == "=" and end.upper() in _ENDS
            found.append((token, value if plain and _PLACEHOLDER.fullmatch(value) else ""))
    return tuple(found)
