"""Evaluate IAM policies: the part of the language that Pooldesk's own policies use, and nothing more.

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
from collections.abc import Mapping, Sequence
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
    """An operation on a resource. `keys` are the leading keys of all members; `tag` is the session's TenantId.

    None and "" both stand for a session without the tag.
    """

    action: str
    resource: str
    keys: tuple[str, ...] = ()
    tag: str | None = None


@dataclass(frozen=True)
class _Pattern:
    """A text with wildcards and variables, compiled once for all tenants.

    The expression matches the tag, a NUL and the value, so that a variable is a reference back to the tag.
    """

    expression: re.Pattern[str]
    has_variable: bool

    def matches(self, value: str, tag: str | None) -> bool:
        """Tell whether the value matches; a variable without a value matches nothing."""
        if self.has_variable and (not tag or "\0" in tag):
            return False
        return self.expression.fullmatch(f"{tag if self.has_variable else ''}\0{value}") is not None


@dataclass(frozen=True)
class _Condition:
    operator: str
    key: str  # in lower case
    patterns: tuple[_Pattern, ...] = ()
    values: tuple[str, ...] = ()  # of Null


@dataclass(frozen=True)
class _Statement:
    deny: bool
    actions: tuple[_Pattern, ...]
    resources: tuple[_Pattern, ...]
    conditions: tuple[_Condition, ...]


class Policy:
    """A loaded document. `allows` costs some microseconds: every pattern is compiled when the document is loaded, and
    the statements about an action on a resource are looked for once."""

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
        self._by_tag = any(pattern.has_variable for one in self._statements for pattern in one.resources)
        self._about = lru_cache(maxsize=4096)(self._look_for)

    def allows(self, request: Request) -> bool:
        allowed = False
        for statement in self._about(request.action, request.resource, request.tag if self._by_tag else None):
            if not all(_holds(condition, request) for condition in statement.conditions):
                continue
            if statement.deny:
                return False
            allowed = True
        return allowed

    def _look_for(self, action: str, resource: str, tag: str | None) -> tuple[_Statement, ...]:
        """Return the statements about an action on a resource, for a session with this tag: the conditions apart."""
        return tuple(
            statement
            for statement in self._statements
            if _matches(action.lower(), statement.actions, tag) and _matches(resource, statement.resources, tag)
        )


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
    return _Statement(
        deny=raw["Effect"] == "Deny",
        actions=tuple(_pattern(a.lower(), wild=True) for a in actions),
        resources=tuple(_pattern(r, wild=True) for r in _texts(raw.get("Resource"), "Resource")),
        conditions=tuple(_conditions(raw.get("Condition", {}))),
    )


_OPERATORS: Final = {
    "stringequals": TAG.lower(),
    "stringlike": TAG.lower(),
    "forallvalues:stringequals": LEADING_KEYS.lower(),
    "forallvalues:stringlike": LEADING_KEYS.lower(),
    "null": "",
}


def _conditions(raw: Any) -> list[_Condition]:
    if not isinstance(raw, Mapping):
        raise PolicyError("Condition is a JSON object")
    conditions = []
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
                conditions.append(_Condition("null", key.lower(), values=values))
            else:
                wild = operator.lower().endswith("like")
                patterns = tuple(_pattern(text, wild=wild) for text in _texts(expected, key))
                conditions.append(_Condition(operator.lower(), key.lower(), patterns))
    return conditions


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


def _pattern(text: str, *, wild: bool) -> _Pattern:
    """Compile a text of a policy; `wild` says that `*` and `?` are wildcards. Raises PolicyError."""
    _check_variables(text)
    parts, has_variable = [], False
    for part in _TOKENS.split(text):
        if part in _LITERALS:
            parts.append(re.escape(_LITERALS[part]))
        elif part.startswith("${"):
            has_variable = True
            parts.append("(?P=tag)")
        elif wild and part == "*":
            parts.append(".*")
        elif wild and part == "?":
            parts.append(".")
        else:
            parts.append(re.escape(part))
    return _Pattern(_compiled(r"(?P<tag>[^\0]*)\0" + "".join(parts)), has_variable)


def _compiled(expression: str) -> re.Pattern[str]:
    return re.compile(expression, re.DOTALL)


def _holds(condition: _Condition, request: Request) -> bool:
    about_keys = condition.key == LEADING_KEYS.lower()
    if condition.operator == "null":
        absent = not request.keys if about_keys else not request.tag
        return str(absent).lower() in condition.values
    if about_keys:
        return all(_matches(k, condition.patterns, request.tag) for k in request.keys)
    return bool(request.tag) and _matches(str(request.tag), condition.patterns, request.tag)


def _matches(value: str, patterns: Sequence[_Pattern], tag: str | None) -> bool:
    return any(pattern.matches(value, tag) for pattern in patterns)
