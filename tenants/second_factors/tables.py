"""Declare the table of second factors."""

from __future__ import annotations

from portal.schema.registry import Grant, declare
from portal.schema.tables import Table

FACTORS = Table(
    "Platform.Factors",
    "platform",
    "user_id",
    "factor",
    shared="a second factor is a person's, and is asked for before a tenant is chosen",
)

declare(FACTORS, grants=(Grant("platform", FACTORS, ("DeleteItem", "PutItem", "Query", "UpdateItem")),))
