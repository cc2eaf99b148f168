"""Declare what is stored of unexpected errors and unexpected costs, without a text, a tenant or a person.

A fingerprint comes from places in the code, so there are as many items as there are ways to fail. An excess is a
route's, so there are at most as many as routes.
"""

from __future__ import annotations

from typing import Final

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from portal.schema.access_patterns import declare_keys
from portal.schema.holdings import declare_nothing
from portal.schema.registry import Grant, Table, declare

FAULTS: Final = "FAULTS"  # the partition of all errors
EXCESSES: Final = "EXCESSES"  # that of routes that took more than they declare

TABLE = Table(
    "Platform.Faults",
    "platform",
    "kind",
    "fingerprint",
    ttl="expires_at",
    shared="operators see the errors of all processes, which name no tenant",
)

declare(
    TABLE,
    grants=(
        Grant("platform", TABLE, ("Query", "UpdateItem")),
        Grant("worker", TABLE, ("UpdateItem",), "NoteFaults", leading_keys=FAULTS),
        Grant("delivery", TABLE, ("UpdateItem",), "NoteFaults", leading_keys=FAULTS),
    ),
)

declare_nothing(TABLE, "it counts errors by places in the code")


class FaultItem(Item):
    """Count one error of all processes. `places` are lines, the innermost last; `request` is the id of the last request
    that had it, and `process` the kind of the process."""

    table = TABLE

    kind = UnicodeAttribute(hash_key=True)
    fingerprint = UnicodeAttribute(range_key=True)
    type = UnicodeAttribute()
    places = UnicodeAttribute()
    route = UnicodeAttribute(default="")
    request = UnicodeAttribute(default="")
    process = UnicodeAttribute(default="")
    times = NumberAttribute(default=0)
    first_at = UnicodeAttribute()
    last_at = UnicodeAttribute()
    expires_at = NumberAttribute()


class ExcessItem(Item):
    """Count the requests of one method and route that took more than their declared `bound`. `worst` is what the worst
    of them took, and `factor` how often that is its bound, in its worst figure."""

    table = TABLE

    kind = UnicodeAttribute(hash_key=True)
    fingerprint = UnicodeAttribute(range_key=True)
    bound = UnicodeAttribute()
    worst = UnicodeAttribute()
    factor = NumberAttribute()
    times = NumberAttribute(default=0)
    first_at = UnicodeAttribute()
    last_at = UnicodeAttribute()
    expires_at = NumberAttribute()


declare_keys(TABLE, {"error": "FAULTS, <fingerprint>", "excess cost": "EXCESSES, <route>"})
