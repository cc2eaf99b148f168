"""Declare where the answers to requests with an idempotency key are kept."""

from __future__ import annotations

from portal.schema import keys
from portal.schema.registry import Grant, declare
from portal.schema.tables import Index, Table

ANSWERS_BY_TENANT = Index("gsi-tenant", "tenant_id", "pk", (), keys.OWN_ID)
ANSWERS = Table(
    "Api.Answers",
    "tenant",
    "pk",
    indexes=(ANSWERS_BY_TENANT,),
    ttl="expires_at",
    leading_keys=keys.OWN_COLLECTIONS,
    placed=True,
    copied=("ANSWER",),
)

declare(
    ANSWERS,
    grants=(
        Grant("tenant", ANSWERS, ("GetItem", "UpdateItem")),
        # Changes of webhooks are written by the platform role, and their answers with them.
        Grant("platform", ANSWERS, ("UpdateItem",)),
        Grant("lifecycle", ANSWERS, ("PutItem",), "CopyAnswers"),
    ),
)
