"""Declare the table of second factors."""

from __future__ import annotations

from portal.schema.registry import Grant, declare
from portal.schema.tables import Table

FACTORS = Table("Platform.Factors", "platform", "user_id", "factor")

declare(FACTORS, grants=(Grant("platform", FACTORS, ("DeleteItem", "PutItem", "Query", "UpdateItem")),))
