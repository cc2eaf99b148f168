"""Declare where the answers to requests with an idempotency key are kept."""

from __future__ import annotations

from portal.schema import keys
from portal.schema.registry import Grant, declare
from portal.schema.tables import Table

ANSWERS = Table("Api.Answers", "tenant", "pk", ttl="expires_at", leading_keys=keys.OWN_COLLECTIONS, placed=True)

declare(
    ANSWERS,
    grants=(
        Grant("tenant", ANSWERS, ("UpdateItem",)),
        # Changes of webhooks are written by the platform role, and their answers with them.
        Grant("platform", ANSWERS, ("UpdateItem",)),
    ),
)
