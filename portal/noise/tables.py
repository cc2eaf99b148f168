"""Declare where processes note who asked for how much; each role that does something for tenants adds its own."""

from __future__ import annotations

from portal.schema.registry import Grant, declare
from portal.schema.tables import Table

NOISE = Table(
    "Platform.Noise",
    "platform",
    "minute",
    "process",
    ttl="expires_at",
    shared="operators compare what all tenants ask for in a minute",
)

declare(
    NOISE,
    grants=(
        Grant("platform", NOISE, ("PutItem", "Query")),
        Grant("worker", NOISE, ("PutItem",), "NoteNoise"),
        Grant("delivery", NOISE, ("PutItem",), "NoteNoise"),
    ),
)
