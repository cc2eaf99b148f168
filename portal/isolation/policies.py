"""Make the policies of the roles from what the packages declare, and evaluate them as IAM does.

A role may do exactly what its code does: a package grants the operations that its code sends. No role has Scan, PartiQL
or a wildcard action. Leading keys are bound with their delimiter, and `Null` closes the hole that `ForAllValues` leaves
for a request without keys. A tenant's own tables carry its id in their names, which the variable of the session's tag
stands for in the tenant role's resources; for the other roles the guard holds whose they are.

The evaluator understands the part of the language that these policies use: Version 2012-10-17; Effect Allow and Deny;
Action and Resource with `*` and `?`; the operators StringEquals (on the principal's tag), StringLike (on the tag and on
the prefix of a list of objects), ForAllValues:StringEquals, ForAllValues:StringLike (on the leading keys) and Null (on
tag and leading keys); policy variables, among them `${*}`, `${?}` and `${$}`. It refuses to load a document with
anything else, so no rule can be overlooked.

Sources: AWS, "Partitioning Pooled Multi-Tenant SaaS Data with Amazon DynamoDB" (there the pattern lacks the delimiter
and the empty set is let through), "IAM JSON policy evaluation logic" and "Policy elements: variables and tags". An
explicit deny wins; without an allow the answer is no; `ForAllValues` is true for an empty set; the value of a variable
is never a wildcard; a variable without a value matches nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from django.conf import settings

from portal.schema import registry
from portal.schema.registry import ROLES, Grant, ObjectGrant, Table

TAG: Final = "aws:PrincipalTag/TenantId"
LEADING_KEYS: Final = "dynamodb:LeadingKeys"
LISTED_PREFIX: Final = "s3:prefix"
_TOKENS = re.compile(r"(\$\{[^{}]*\}|[*?])")
_LITERALS = {"${*}": "*", "${?}": "?", "${$}": "$"}
_VARIABLE = re.compile(r"\$\{\s*aws:principaltag/tenantid\s*\}\Z", re.IGNORECASE)


class PolicyError(ValueError):
    """The document uses something that this evaluator does not know, or is no policy at all."""


@dataclass(frozen=True)
class Request:
    """An operation on a resource. `keys` are the leading keys of all members, or the prefix of a list of objects; `tag`
    is the session's TenantId.

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
    sid: str
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
        for statement in self._that_hold(request):
            if statement.deny:
                return False
            allowed = True
        return allowed

    def is_about(self, request: Request) -> bool:
        """Tell whether a statement names this operation on this resource, whatever keys it asks for."""
        return bool(self._named(request))

    def deciding(self, request: Request) -> tuple[str, ...]:
        """Return the Sids of the statements that allow a request, () where it is not allowed."""
        found = [*self._that_hold(request)]
        return () if any(statement.deny for statement in found) else tuple(statement.sid for statement in found)

    def _that_hold(self, request: Request) -> Iterator[_Statement]:
        return (one for one in self._named(request) if all(_holds(condition, request) for condition in one.conditions))

    def _named(self, request: Request) -> tuple[_Statement, ...]:
        return self._about(request.action, request.resource, request.tag if self._by_tag else None)

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
        sid=str(raw.get("Sid", "")),
        deny=raw["Effect"] == "Deny",
        actions=tuple(_pattern(a.lower(), wild=True) for a in actions),
        resources=tuple(_pattern(r, wild=True) for r in _texts(raw.get("Resource"), "Resource")),
        conditions=tuple(_conditions(raw.get("Condition", {}))),
    )


_OPERATORS: Final[dict[str, tuple[str, ...]]] = {
    "stringequals": (TAG.lower(),),
    "stringlike": (TAG.lower(), LISTED_PREFIX),
    "forallvalues:stringequals": (LEADING_KEYS.lower(),),
    "forallvalues:stringlike": (LEADING_KEYS.lower(),),
    "null": (TAG.lower(), LEADING_KEYS.lower()),
}


def _conditions(raw: Any) -> list[_Condition]:
    if not isinstance(raw, Mapping):
        raise PolicyError("Condition is a JSON object")
    conditions = []
    for operator, entries in raw.items():
        if operator.lower() not in _OPERATORS or not isinstance(entries, Mapping):
            raise PolicyError(f"unknown condition operator {operator}")
        for key, expected in entries.items():
            if key.lower() not in _OPERATORS[operator.lower()]:
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
    return _Pattern(_compiled(r"(?P<tag>[^\x00]*)\x00" + "".join(parts)), has_variable)


def _compiled(expression: str) -> re.Pattern[str]:
    return re.compile(expression, re.DOTALL)


def _holds(condition: _Condition, request: Request) -> bool:
    about_keys = condition.key == LEADING_KEYS.lower()
    if condition.operator == "null":
        absent = not request.keys if about_keys else not request.tag
        return str(absent).lower() in condition.values
    if about_keys:
        return all(_matches(k, condition.patterns, request.tag) for k in request.keys)
    if condition.key == LISTED_PREFIX:
        return bool(request.keys) and all(_matches(k, condition.patterns, request.tag) for k in request.keys)
    return bool(request.tag) and _matches(str(request.tag), condition.patterns, request.tag)


def _matches(value: str, patterns: Sequence[_Pattern], tag: str | None) -> bool:
    return any(pattern.matches(value, tag) for pattern in patterns)


# --- the policies of the roles ---

_TENANT_VARIABLE: Final = f"${{{TAG}}}"
# AWS, "IAM and AWS STS quotas": characters of a managed policy. "Quotas in Amazon DynamoDB": of a table's name. "Amazon
# SQS queue quotas": of a queue's name.
SIZE_LIMIT: Final = 6144
_TABLE_NAME_LIMIT: Final = 255
_QUEUE_NAME_LIMIT: Final = 80
_QUEUE_SUFFIX: Final = 4
_BUCKET_NAME_LIMIT: Final = 63  # AWS, "General purpose bucket naming rules"
_LONGEST_REGION: Final = "arn:aws-us-gov:{service}:us-gov-west-1:000000000000:"
_TABLES_IN_A_STATEMENT: Final = 15  # so that a statement fits into a policy, however long the tables' names
_OF_OWN_TABLES: Final = (
    "CreateTable",
    "DeleteTable",
    "DescribeContinuousBackups",
    "DescribeTable",
    "DescribeTimeToLive",
    "UpdateContinuousBackups",
    "UpdateTable",
    "UpdateTimeToLive",
)


def table_arn(name: str, index: str | None = None) -> str:
    arn = f"arn:aws:dynamodb:{settings.AWS_REGION}:{settings.AWS_ACCOUNT_ID}:table/{name}"
    return f"{arn}/index/{index}" if index else arn


def queue_arn(name: str) -> str:
    """Return the ARN of the queues whose names begin with the prefix and this."""
    return f"arn:aws:sqs:{settings.AWS_REGION}:{settings.AWS_ACCOUNT_ID}:{_queue_prefix()}-{name}*"


def object_arn(key: str = "") -> str:
    """Return the ARN of the object of this key, or of the bucket itself."""
    arn = f"arn:aws:s3:::{settings.MAIL_BUCKET}"
    return f"{arn}/{key}" if key else arn


def _queue_prefix() -> str:
    return settings.DYNAMODB_TABLE_PREFIX.replace(".", "-")


def document(role: str, *, prefix_of_site: str = "") -> dict[str, Any]:
    """Return the whole policy of a role as a JSON-ready document, or what of it counts at a site of silos.

    A site holds only tenants' own tables, whose names begin with its prefix. Raises ValueError for what is no role.
    """
    if role not in ROLES:
        raise ValueError(f"there is no role {role}")
    grants = [grant for grant in registry.grants(role) if grant.table.placed or not prefix_of_site]
    statements = _statements(role, grants, prefix_of_site)
    if role == "lifecycle":
        statements += [*_whole_tenants(prefix_of_site), *_counting()]
    if prefix_of_site:
        return _document(statements)
    if role == "platform":
        statements += [_describing(), *_counting()]
    for queue in registry.queue_grants(role):
        sid = queue.sid or "Queues" + queue.name.title().replace("-", "")
        statements.append(_allow(sid, "sqs", queue.actions, [queue_arn(queue.name)]))
    for objects in registry.object_grants(role):
        statements += _about_objects(objects)
    return _document(statements)


def _statements(role: str, grants: Sequence[Grant], prefix_of_site: str) -> list[dict[str, Any]]:
    if role == "tenant":
        return [statement for grant in grants for statement in _tenant(grant, prefix_of_site)]
    return [_granted(grant, prefix_of_site) for grant in grants]


def managed(role: str) -> list[dict[str, Any]]:
    """Return the policy of a role as the managed policies that IAM takes, in the order of its statements.

    Where one ends and the next begins is the same for every prefix, so that a template can leave the prefix open.
    """
    found: list[list[dict[str, Any]]] = [[]]
    for statement in document(role)["Statement"]:
        if found[-1] and size(_document([*found[-1], statement])) > SIZE_LIMIT:
            found.append([])
        found[-1].append(statement)
    return [_document(statements) for statements in found]


def _document(statements: list[dict[str, Any]]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": statements}


def size(policy: dict[str, Any]) -> int:
    """Count the characters of a policy as IAM does, at most: for the longest prefix in the longest-named region."""
    text = json.dumps(policy, separators=(",", ":"))  # IAM does not count white space
    prefix = "P" * longest_prefix()
    for service, ours, end in (
        ("dynamodb", table_arn(f"{settings.DYNAMODB_TABLE_PREFIX}."), f"table/{prefix}."),
        ("sqs", queue_arn("").rstrip("*"), f"{prefix}-"),
    ):
        text = text.replace(ours, _LONGEST_REGION.format(service=service) + end)
    text = text.replace(object_arn(), "arn:aws-us-gov:s3:::" + "b" * _BUCKET_NAME_LIMIT)
    return len(text)


def longest_prefix() -> int:
    """Return the most characters that a prefix may have, so that each table and queue gets a name that AWS takes."""
    own = {True: f".{registry.ANY_TENANT}", False: ""}
    tables = [_TABLE_NAME_LIMIT - len(f"{own[table.placed]}.{table.name}") for table in registry.tables()]
    queues = [_QUEUE_NAME_LIMIT - len(f"-{name}") - _QUEUE_SUFFIX for name in registry.queues()]
    return min(tables + queues)


def _allow(
    sid: str, service: str, actions: Sequence[str], resources: Sequence[str], leading: str | None = None
) -> dict[str, Any]:
    statement: dict[str, Any] = {
        "Sid": sid,
        "Effect": "Allow",
        "Action": [f"{service}:{a}" for a in actions],
        "Resource": list(resources),
    }
    if leading:
        operator = "ForAllValues:StringLike" if "*" in leading else "ForAllValues:StringEquals"
        statement["Condition"] = {operator: {LEADING_KEYS: [leading]}, "Null": {LEADING_KEYS: "false"}}
    return statement


def _tenant(grant: Grant, prefix_of_site: str) -> Iterator[dict[str, Any]]:
    table, names = grant.table, _names(grant.table, _TENANT_VARIABLE, prefix_of_site)
    arns = [table_arn(name) for name in names]
    yield _allow(_sid("Own", grant), "dynamodb", grant.actions, arns, _bound(table.leading_keys))
    if "Query" not in grant.actions:
        return
    for pattern in dict.fromkeys(index.leading_keys for index in table.indexes if index.leading_keys):
        arns = [table_arn(name, i.any_version) for name in names for i in table.indexes if i.leading_keys == pattern]
        yield _allow(_sid("OwnIndexesOf", grant), "dynamodb", ["Query"], arns, _bound(pattern))


def _granted(grant: Grant, prefix_of_site: str) -> dict[str, Any]:
    names = _names(grant.table, registry.ANY_TENANT, prefix_of_site)
    arns = [table_arn(name, grant.index.any_version if grant.index else None) for name in names]
    where = [f"{arn}/stream/*" for arn in arns] if grant.stream else arns
    return _allow(_sid("All", grant), "dynamodb", grant.actions, where, grant.leading_keys or None)


def _names(table: Table, tenant: str, prefix_of_site: str) -> list[str]:
    """Return what a table is called, as patterns: that of all, at home, and a tenant's own."""
    own = f"{prefix_of_site or settings.DYNAMODB_TABLE_PREFIX}.{tenant}.{table.name}"
    return [*([] if prefix_of_site else [table.full_name]), *([own] if table.placed else [])]


def _about_objects(grant: ObjectGrant) -> Iterator[dict[str, Any]]:
    """Yield the statements about objects. A list is of a bucket, and its prefix is a condition."""
    sid = grant.sid or "Objects" + "".join(filter(str.isalnum, grant.prefix.replace("{tenant}", "").title()))
    tenant = _TENANT_VARIABLE if grant.role == "tenant" else registry.ANY_TENANT
    pattern = grant.prefix.replace("{tenant}", tenant) + "*"
    bound = {"Condition": {"Null": {TAG: "false"}}} if grant.role == "tenant" else {}
    if actions := [action for action in grant.actions if action != "ListBucket"]:
        yield _allow(sid, "s3", actions, [object_arn(pattern)]) | bound
    if "ListBucket" in grant.actions:
        listed = {"Condition": {"StringLike": {LISTED_PREFIX: [pattern]}}}
        yield _allow(f"List{sid}", "s3", ["ListBucket"], [object_arn()]) | listed


def _describing() -> dict[str, Any]:
    """Return the right of `check_health` and the operators' page of tables: how tables are, no items.

    It names all tables by their prefix: named one by one they took a managed policy and a half, and IAM attaches ten to
    a role.
    """
    return _allow(
        "DescribeTables",
        "dynamodb",
        ["DescribeTable", "DescribeTimeToLive"],
        [table_arn(f"{settings.DYNAMODB_TABLE_PREFIX}.*")],
    )


def _counting() -> list[dict[str, Any]]:
    """Return the right to count an account's tables against its quota. ListTables takes no resource but `*`."""
    return [_allow("CountTables", "dynamodb", ["ListTables"], ["*"])]


def _whole_tenants(prefix_of_site: str) -> Iterator[dict[str, Any]]:
    """Yield the rights to whatever a tenant has, in each table that a package declares for tenants: a new one needs no
    word here."""
    tables = [table for table in registry.tables() if table.scope == "tenant" and (table.placed or not prefix_of_site)]
    named = [(table, name) for table in tables for name in _names(table, registry.ANY_TENANT, prefix_of_site)]
    actions, step = ("BatchGetItem", "BatchWriteItem", "DeleteItem", "GetItem", "Query"), _TABLES_IN_A_STATEMENT
    for start in range(0, len(named), step):
        some = [table_arn(name) for _, name in named[start : start + step]]
        yield _allow(f"WholeTenants{start // step or ''}", "dynamodb", actions, some)
    indexes = [table_arn(name, pattern) for table, name in named for pattern in _of_whole_tenants(table)]
    yield _allow("IndexesOfWholeTenants", "dynamodb", ["Query"], indexes)
    own = [table_arn(name) for table, name in named if table.placed and name != table.full_name]
    yield _allow("MakeTablesOfTheirOwn", "dynamodb", _OF_OWN_TABLES, own)
    if not prefix_of_site:
        of_all = [table_arn(table.full_name) for table in tables if table.placed]
        yield _allow("SeeHowTablesOfAllAreKept", "dynamodb", ["DescribeContinuousBackups"], of_all)


def _of_whole_tenants(table: Table) -> list[str]:
    """Return patterns of the indexes whose keys begin with a tenant: one pattern where all of a table's are such, for
    IAM takes few characters."""
    theirs = [index for index in table.indexes if index.leading_keys]
    if theirs and len(theirs) == len(table.indexes):
        return ["*"]
    return [index.any_version for index in theirs]


def _sid(prefix: str, grant: Grant) -> str:
    return grant.sid or prefix + grant.table.name.replace(".", "")


def _bound(pattern: str) -> str:
    return pattern.replace("{tenant}", _TENANT_VARIABLE)
