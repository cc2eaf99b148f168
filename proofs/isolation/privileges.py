"""The promises about what no role may do, whoever's data it is, and the layer that each of them rests on.

Written from docs/isolation.md without a look at the declarations: a right that is granted by mistake breaks one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from portal.isolation import guard, iam, policies, request_parser
from portal.schema.registry import ROLES, Role
from tenants.audit_trail.tables import AUDIT
from tickets.ticket import keys
from tickets.ticket.tables import TICKETS

_TENANT: Final = "a" * 32
_TICKET: Final = {"pk": {"S": keys.ticket(_TENANT, 7)}, "sk": {"S": keys.SUMMARY}}
_ROW: Final = {"tenant_id": {"S": _TENANT}, "timestamp_event_id": {"S": "2026"}}
_UPDATE: Final = {"UpdateExpression": "SET title = :t", "ExpressionAttributeValues": {":t": {"S": "x"}}}
IAM, GUARD = "IAM", "guard"


@dataclass(frozen=True)
class Promise:
    """A request that a layer refuses to a role."""

    words: str
    layer: str
    role: Role
    operation: str
    params: dict[str, Any]

    @property
    def is_kept(self) -> bool:
        """Tell whether the layer alone refuses the request."""
        if self.layer == IAM:
            tag = _TENANT if self.role == "tenant" else None
            policy = iam.Policy(policies.document(self.role))
            return not all(policy.allows(r) for r in request_parser.requests_of(self.operation, self.params, tag))
        try:
            guard.refuse_destruction(self.operation, self.params)
        except guard.IsolationError:
            return True
        return False


def promises() -> Iterator[Promise]:
    """Each promise of the document, for each role that it is about."""
    ticket, row = {"TableName": TICKETS.full_name}, {"TableName": AUDIT.full_name}
    batch = {"RequestItems": {TICKETS.full_name: [{"PutRequest": {"Item": _TICKET}}]}}
    for role in ROLES:
        yield Promise("no ticket is deleted", IAM, role, "DeleteItem", ticket | {"Key": _TICKET})
        if role != "seed":
            yield Promise("only the seed writes in batches", IAM, role, "BatchWriteItem", batch)
        if role != "tenant":
            yield Promise(
                "tickets change for a tenant alone", IAM, role, "UpdateItem", ticket | {"Key": _TICKET} | _UPDATE
            )
            yield Promise("tickets are read for a tenant alone", IAM, role, "GetItem", ticket | {"Key": _TICKET})
        yield Promise("no row of the audit trail is deleted", IAM, role, "DeleteItem", row | {"Key": _ROW})
        yield Promise("no row of the audit trail is changed", IAM, role, "UpdateItem", row | {"Key": _ROW} | _UPDATE)
        if role != "platform":
            yield Promise("rows are added by the platform alone", IAM, role, "PutItem", row | {"Item": _ROW})
    # What IAM cannot say holds for every role: the guard does not ask for one.
    for operation, params in _destroying(ticket, row):
        yield Promise("nothing is lost that IAM cannot keep", GUARD, "platform", operation, params)


def _destroying(ticket: dict[str, Any], row: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    new = {"ConditionExpression": "attribute_not_exists (#k)", "ExpressionAttributeNames": {"#k": str(AUDIT.range)}}
    put = row | {"Item": _ROW}
    yield "BatchWriteItem", {"RequestItems": {TICKETS.full_name: [{"DeleteRequest": {"Key": _TICKET}}]}}
    yield "BatchWriteItem", {"RequestItems": {AUDIT.full_name: [{"PutRequest": {"Item": _ROW}}]}}
    yield "PutItem", put
    yield "PutItem", put | new | {"ConditionExpression": "attribute_exists (#k)"}
    yield "PutItem", put | new | {"ExpressionAttributeNames": {"#k": "colour"}}
    yield "UpdateItem", row | {"Key": _ROW} | _UPDATE | new
    yield "TransactWriteItems", {"TransactItems": [{"Put": put | new}, {"Put": put}]}
    yield (
        "TransactWriteItems",
        {"TransactItems": [{"Put": ticket | {"Item": _TICKET}}, {"Delete": row | {"Key": _ROW}}]},
    )


def first_broken() -> tuple[str, int]:
    """Return the first promise that is not kept, "" where all are, and how many were looked at."""
    looked_at = 0
    for looked_at, promise in enumerate(promises(), start=1):
        if not promise.is_kept:
            return f"{promise.words} ({promise.layer}, {promise.role})", looked_at
    return "", looked_at
