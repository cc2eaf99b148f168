"""Evaluates IAM policies: the part of the language that Pooldesk's own policies use, and nothing more.

Understood: Version 2012-10-17; Effect Allow and Deny; Action and Resource with `*` and `?`; the operators
StringEquals, StringLike (on the principal's tag), ForAllValues:StringEquals, ForAllValues:StringLike (on the
leading keys) and Null (on both); policy variables, among them `${*}`, `${?}` and `${$}`. A document with
anything else is refused when it is loaded, so no rule of it can be overlooked.

Source: AWS, "IAM JSON policy evaluation logic" and "Policy elements: variables and tags". An explicit deny
wins; without an allow the answer is no; `ForAllValues` is true for an empty set; the value of a variable is never
a wildcard; a variable without a value matches nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

TAG: Final = "aws:PrincipalTag/TenantId"
LEADING_KEYS: Final = "dynamodb:LeadingKeys"
_TOKENS = re.compile(r"(\$\{[^{}]*\}|[*?])")
_LITERALS = {"${*}": "*", "${?}": "?", "${$}": "$"}
_VARIABLE = re.compile(r"\$\{\s*aws:principaltag/tenantid\s*\}\Z", re.IGNORECASE)


class PolicyError(ValueError):
    """The document uses something that this evaluator does not know, or is no policy at all."""


@dataclass(frozen=True)
class Request:
    """What is asked for. `keys` are the leading keys of all members; `tag` is the session's TenantId, None without."""

    action: str
    resource: str
    keys: tuple[str, ...] = ()
    tag: str | None = None


Matcher = Callable[[str], bool]


@dataclass(frozen=True)
class _Statement:
    deny: bool
    actions: tuple[re.Pattern[str], ...]
    resources: tuple[str, ...]
    # (operator, context key in lower case, expected values)
    conditions: tuple[tuple[str, str, tuple[str, ...]], ...]


class Policy:
    """A loaded document. `allows` costs some microseconds: patterns are compiled once per tenant."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        if not isinstance(document, Mapping):
            raise PolicyError("a policy is a JSON object")
        unknown = set(document) - {"Version", "Id", "Statement"}
        if unknown:
            raise PolicyError(f"unknown element {sorted(unknown)[0]}")
        if document.get("Version") != "2012-10-17":
            raise PolicyError("Version must be 2012-10-17: without it, variables are plain text")
        self._statements = tuple(_statement(s) for s in _listed(document.get("Statement"), "Statement"))
        if not self._statements:
            raise PolicyError("a policy has statements")

    def allows(self, request: Request) -> bool:
        allowed = False
        for statement in self._statements:
            if not _applies(statement, request):
                continue
            if statement.deny:
                return False
            allowed = True
        return allowed


def _statement(raw: Any) -> _Statement:
    if not isinstance(raw, Mapping):
        raise PolicyError("a statement is a JSON object")
    unknown = set(raw) - {"Sid", "Effect", "Action", "Resource", "Condition"}
    if unknown:
        raise PolicyError(f"unknown element {sorted(unknown)[0]}")
    if raw.get("Effect") not in ("Allow", "Deny"):
        raise PolicyError("Effect is Allow or Deny")
    actions = _texts(raw.get("Action"), "Action")
    if any("${" in a for a in actions):
        raise PolicyError("an Action has no variables")
    resources = _texts(raw.get("Resource"), "Resource")
    for resource in resources:
        _check_variables(resource)
    return _Statement(
        deny=raw["Effect"] == "Deny",
        actions=tuple(_wildcards(a.lower()) for a in actions),
        resources=resources,
        conditions=tuple(_conditions(raw.get("Condition", {}))),
    )


_OPERATORS: Final = {
    "stringequals": TAG.lower(),
    "stringlike": TAG.lower(),
    "forallvalues:stringequals": LEADING_KEYS.lower(),
    "forallvalues:stringlike": LEADING_KEYS.lower(),
    "null": "",
}


def _conditions(raw: Any) -> list[tuple[str, str, tuple[str, ...]]]:
    if not isinstance(raw, Mapping):
        raise PolicyError("Condition is a JSON object")
    found = []
    for operator, entries in raw.items():
        if operator.lower() not in _OPERATORS or not isinstance(entries, Mapping):
            raise PolicyError(f"unknown condition operator {operator}")
        for key, expected in entries.items():
            wanted = _OPERATORS[operator.lower()] or key.lower()
            if key.lower() not in (TAG.lower(), LEADING_KEYS.lower()) or key.lower() != wanted:
                raise PolicyError(f"{operator} on {key} is not understood")
            if operator.lower() == "null":
                values = tuple(str(v).lower() for v in _listed(expected, key))
                if not values or set(values) - {"true", "false"}:
                    raise PolicyError("Null takes true or false")
            else:
                values = _texts(expected, key)
                for value in values:
                    _check_variables(value)
            found.append((operator.lower(), key.lower(), values))
    return found


def _listed(value: Any, what: str) -> list[Any]:
    if value is None or value == []:
        raise PolicyError(f"{what} is missing")
    return list(value) if isinstance(value, list) else [value]


def _texts(value: Any, what: str) -> tuple[str, ...]:
    texts = tuple(_listed(value, what))
    if not all(isinstance(t, str) for t in texts):
        raise PolicyError(f"{what} is text or a list of texts")
    return texts


def _check_variables(text: str) -> None:
    if "${" in _TOKENS.sub("", text):
        raise PolicyError("a policy variable is not closed")
    for token in _TOKENS.findall(text):
        if token.startswith("$") and token not in _LITERALS and not _VARIABLE.match(token):
            raise PolicyError(f"unknown policy variable {token}")


def _wildcards(text: str) -> re.Pattern[str]:
    parts = (".*" if p == "*" else "." if p == "?" else re.escape(p) for p in re.split(r"([*?])", text))
    return re.compile("".join(parts), re.DOTALL)


@lru_cache(maxsize=4096)
def _pattern(text: str, tag: str | None, wild: bool) -> re.Pattern[str] | None:
    """A pattern with its variables filled in, or None where one has no value: it then matches nothing."""
    parts = []
    for part in _TOKENS.split(text):
        if part in _LITERALS:
            parts.append(re.escape(_LITERALS[part]))
        elif part.startswith("${"):
            if tag is None:
                return None
            parts.append(re.escape(tag))
        elif wild and part == "*":
            parts.append(".*")
        elif wild and part == "?":
            parts.append(".")
        else:
            parts.append(re.escape(part))
    return re.compile("".join(parts), re.DOTALL)


def _applies(statement: _Statement, request: Request) -> bool:
    action = request.action.lower()
    if not any(p.fullmatch(action) for p in statement.actions):
        return False
    if not _matches(request.resource, statement.resources, request.tag, wild=True):
        return False
    return all(_holds(condition, request) for condition in statement.conditions)


def _holds(condition: tuple[str, str, tuple[str, ...]], request: Request) -> bool:
    operator, key, expected = condition
    about_keys = key == LEADING_KEYS.lower()
    if operator == "null":
        absent = not request.keys if about_keys else request.tag is None
        return str(absent).lower() in expected
    wild = operator.endswith("like")
    if about_keys:
        return all(_matches(k, expected, request.tag, wild=wild) for k in request.keys)
    return request.tag is not None and _matches(request.tag, expected, request.tag, wild=wild)


def _matches(value: str, patterns: Sequence[str], tag: str | None, *, wild: bool) -> bool:
    for text in patterns:
        pattern = _pattern(text, tag, wild)
        if pattern is not None and pattern.fullmatch(value):
            return True
    return False
