"""Declare the table of the search index, which tenants read and only the stream worker writes."""

from __future__ import annotations

from portal.schema import keys
from portal.schema.registry import Grant, declare
from portal.schema.tables import Table

# It has no stream: what indexing writes is nothing that has to be indexed.
SEARCH = Table("Support.Search", "tenant", "pk", "sk", leading_keys=keys.OWN_COLLECTIONS, placed=True)

declare(
    SEARCH,
    grants=(
        Grant("tenant", SEARCH, ("BatchGetItem", "Query")),
        Grant(
            "worker",
            SEARCH,
            ("BatchGetItem", "ConditionCheckItem", "DeleteItem", "PutItem", "Query", "UpdateItem"),
            "MaintainSearch",
            leading_keys=keys.ALL_COLLECTIONS,
        ),
    ),
)
