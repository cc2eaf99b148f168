"""Lay out what a role may do, by table and operation, with the statement that decides, and try it without a sentence.

A sentence is a whole statement of the policy, or one of its conditions. The evaluator is asked as the guard asks it, so
the matrix is what is enforced and no second list.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from django.conf import settings

from portal.isolation import policies
from portal.isolation.policies import LEADING_KEYS, Policy, Request
from portal.schema import registry
from portal.schema.registry import Index, Role, Table

OPERATIONS: Final = (
    "GetItem", "BatchGetItem", "Query", "ConditionCheckItem", "PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem",
    "Scan", "DescribeTable",
)  # fmt: skip
Whose = Literal["own", "other", "none", "bound", "free"]
# Whose key a request names: the acting tenant's, another one's, none at all, one of a form that a statement states, or
# one of any other form.
WHOSE: Final[tuple[Whose, ...]] = ("own", "other", "none", "bound", "free")
_ME, _OTHER = "a" * 32, "b" * 32
_KEYLESS: Final = ("Scan", "DescribeTable")
_ON_INDEXES: Final = ("Query", "Scan")
WHOLE: Final = "statement"  # the part of a sentence that is a statement


class Sentence(NamedTuple):
    """A sentence of a role's policy: a statement by its Sid, and WHOLE or the operator of one of its conditions."""

    sid: str
    part: str = WHOLE


@dataclass(frozen=True)
class RightsPlace:
    """A row of the matrix: a table of all, one of its indexes, or a tenant's own table."""

    table: Table
    index: Index | None = None
    owner: str = ""  # of a table of one tenant's own

    @property
    def name(self) -> str:
        own = {"": "", _ME: ", a tenant's own table", _OTHER: ", another tenant's own table"}[self.owner]
        return f"{self.table.name}{own}" + (f" / {self.index.label}" if self.index else "")

    @property
    def arn(self) -> str:
        name = self.table.full_name
        if self.owner:
            name = registry.physical(settings.DYNAMODB_TABLE_PREFIX, self.owner, self.table)
        return policies.table_arn(name, self.index.name if self.index else None)

    @property
    def has_tenants(self) -> bool:
        """Tell whether keys here are tenants'."""
        return self.table.scope == "tenant" and bool((self.index or self.table).leading_keys)

    def key(self, whose: Whose) -> tuple[str, ...]:
        """Return the leading keys of a request here. Where keys are no tenant's there is but one kind of them."""
        if whose in ("none", "bound"):
            return ()
        if whose == "free":
            return ("X",)
        pattern = self.index.leading_keys if self.index else self.table.leading_keys
        if not self.has_tenants:
            return ("PLATFORM",)
        return (pattern.replace("{tenant}", _ME if whose == "own" else _OTHER).replace("*", "X"),)


Cell = tuple[RightsPlace, str, Whose]


@dataclass(frozen=True)
class RightChange:
    """A cell that a missing sentence changes: allowed or refused, as it would be then."""

    place: RightsPlace
    operation: str
    whose: Whose
    is_allowed: bool


def places() -> Iterator[RightsPlace]:
    for table in registry.tables():
        yield RightsPlace(table)
        yield from (RightsPlace(table, index) for index in table.indexes)
        if table.placed:
            yield RightsPlace(table, owner=_ME)
            yield RightsPlace(table, owner=_OTHER)


def cells() -> Iterator[Cell]:
    """Yield each request that can be made: no key is asked where an operation has none."""
    keyless: tuple[Whose, ...] = ("none",)
    for place in places():
        for operation in OPERATIONS:
            if place.index is None or operation in _ON_INDEXES:
                for whose in keyless if operation in _KEYLESS else WHOSE:
                    yield place, operation, whose


def decided(role: Role, document: Mapping[str, Any] | None = None) -> dict[Cell, tuple[str, ...]]:
    """Return the Sids of the statements that allow each cell, () for one that is refused."""
    policy, tag = Policy(document or policies.document(role)), _ME if role == "tenant" else None
    bound = () if role == "tenant" else _bound_keys(role)
    found: dict[Cell, tuple[str, ...]] = {}
    for place, operation, whose in cells():
        tried = bound if whose == "bound" else [place.key(whose)]
        asked = (Request(f"dynamodb:{operation}", place.arn, key, tag) for key in tried)
        found[place, operation, whose] = tuple(dict.fromkeys(sid for one in asked for sid in policy.deciding(one)))
    return found


def _bound_keys(role: Role) -> list[tuple[str, ...]]:
    """Return a key of each form that a role's statements are bound to."""
    patterns = {form for one in statements(role).values() for form in forms_of(one)}
    return [_key_of(pattern) for pattern in sorted(patterns)]


def _key_of(form: str) -> tuple[str, ...]:
    return (form.replace("*", "X"),)


def statements(role: Role) -> dict[str, dict[str, Any]]:
    """Return the statements of a role's policy by their Sids."""
    return {one["Sid"]: one for one in policies.document(role)["Statement"]}


def forms_of(statement: Mapping[str, Any]) -> list[str]:
    """Return the forms of keys that a statement is bound to, [] for any key."""
    stated = [entries.get(LEADING_KEYS) for entries in statement.get("Condition", {}).values()]
    return [form for listed in stated if isinstance(listed, list) for form in listed]


def sentences(role: Role) -> list[Sentence]:
    """Return the sentences of a role's policy about tables, in its order."""
    found = []
    for statement in policies.document(role)["Statement"]:
        if statement["Action"][0].startswith("dynamodb:"):
            found.append(Sentence(statement["Sid"]))
            found += [Sentence(statement["Sid"], operator) for operator in statement.get("Condition", {})]
    return found


def without(role: Role, sentence: Sentence) -> dict[str, Any]:
    """Return the policy of a role without one sentence. Raises ValueError for one that it does not have."""
    document = copy.deepcopy(policies.document(role))
    if sentence not in sentences(role):
        raise ValueError(f"the policy of {role} has no such sentence")
    if sentence.part == WHOLE:
        document["Statement"] = [one for one in document["Statement"] if one["Sid"] != sentence.sid]
    for statement in document["Statement"]:
        if statement["Sid"] == sentence.sid:
            statement["Condition"].pop(sentence.part)
    return document


def changes(role: Role, sentence: Sentence, before: Mapping[Cell, tuple[str, ...]]) -> list[RightChange]:
    """Return the cells that would be allowed or refused otherwise without a sentence."""
    document = without(role, sentence)
    after = decided(role, document)
    forms = [] if role == "tenant" else [_key_of(form) for form in forms_of(statements(role)[sentence.sid])]
    policies_of = Policy(policies.document(role)), Policy(document)
    found = []
    for cell, sids in before.items():
        place, operation, whose = cell
        was, would_be = bool(sids), bool(after[cell])
        if whose == "bound" and forms:  # other statements may be bound to other forms here
            asked = [Request(f"dynamodb:{operation}", place.arn, key) for key in forms]
            was, would_be = (any(policy.deciding(one) for one in asked) for policy in policies_of)
        if was != would_be:
            found.append(RightChange(place, operation, whose, would_be))
    return found


# The broken layers of `prove_isolation` that a missing condition of the tenant's policy is, by its operator.
MUTANTS: Final = {
    "ForAllValues:StringLike": "policy: a pattern that fits every tenant",
    "ForAllValues:StringEquals": "policy: a pattern that fits every tenant",
    "Null": "policy: no Null condition",
}


def mutant_of(role: Role, sentence: Sentence) -> str:
    """Return the name of the broken layer that a policy without this sentence is, "" where no proof breaks it so.

    A statement that is missing lets nobody do more: what needs it fails.
    """
    if role == "tenant" and sentence.part == WHOLE and sentence.sid.startswith("OwnIndexesOf"):
        return "policy: an index is missing"
    return MUTANTS.get(sentence.part, "") if role == "tenant" else ""
