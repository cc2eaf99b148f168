"""Declare what processes store of tenants' load: shares of rates, usage by minute, what each process has done, costs.

Rows of a minute lie in a partition of their own, so that no partition is written for long. Each role that does
something for tenants may add its own.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Final

from pynamodb.attributes import NumberAttribute, NumberSetAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from portal.schema import keys
from portal.schema.access_patterns import declare_keys
from portal.schema.holdings import (
    Holding,
    Raw,
    Reader,
    Stage,
    StoredItem,
    declare_holding,
    declare_nothing,
    own_partition,
)
from portal.schema.registry import Grant, Table, declare

POSTS: Final = "POSTS"  # the partition of all processes' posts, each written by its process alone


SHARES = Table(
    "Limits.Shares",
    "platform",
    "kind",
    "process",
    ttl="expires_at",
    shared="each process reports its demand for all tenants in one row, and all rows are added up",
)
USAGE = Table("Tenants.Usage", "tenant", "tenant_id", "minute", ttl="expires_at")


class SharePostItem(Item):
    """One process's latest report. `asked` is JSON: by tenant, the part of its rate that this process is asked for."""

    table = SHARES

    kind = UnicodeAttribute(hash_key=True)
    process = UnicodeAttribute(range_key=True)
    counter = NumberAttribute()
    asked = UnicodeAttribute(default="{}")
    expires_at = NumberAttribute()


class UsageItem(Item):
    """Count one tenant's requests in one minute, such as 2026-01-31T12:00 in UTC. Each process adds its own."""

    table = USAGE

    tenant_id = UnicodeAttribute(hash_key=True)
    minute = UnicodeAttribute(range_key=True)
    requests = NumberAttribute(default=0)
    units = NumberAttribute(default=0)
    refused = NumberAttribute(default=0)
    expires_at = NumberAttribute()


class DisturbedDayItem(Item):
    """The minutes of a day in UTC, 0 to 1439, in which requests of a tenant were refused, or throttled by DynamoDB."""

    table = USAGE

    tenant_id = UnicodeAttribute(hash_key=True)
    minute = UnicodeAttribute(range_key=True)
    minutes = NumberSetAttribute(null=True)
    expires_at = NumberAttribute()


_NOTES: Final = "NOTES"
_DISTURBED: Final = "DISTURBED"  # behind the rows of minutes, which begin with a year
_INCIDENTS: Final = "INCIDENTS"
# The patterns, for a policy, of both kinds of rows in one table: notes are only added, incidents are added to.
ANY_NOTES: Final = keys.beginning(_NOTES) + "*"
ANY_INCIDENTS: Final = keys.beginning(_INCIDENTS) + "*"


def disturbed_on(day: str) -> str:
    """Return the sort key of a tenant's disturbed minutes of a day."""
    return keys.joined(_DISTURBED, day)


def day_of_disturbed(key: str) -> str:
    """Return the day in a key that `disturbed_on` formed."""
    return keys.split(key)[1]


def incidents_of(month: str) -> str:
    return keys.joined(_INCIDENTS, month)


def notes_of(minute: int) -> str:
    """Return the partition of a minute, counted from the epoch: `NOTES#2026-01-31T12:00`."""
    return keys.joined(_NOTES, f"{datetime.fromtimestamp(minute * 60, UTC):%Y-%m-%dT%H:%M}")


NOISE = Table(
    "Platform.Noise",
    "platform",
    "minute",
    "process",
    ttl="expires_at",
    shared="operators compare the load of all tenants by minute",
)


class NoiseItem(Item):
    """Hold one process's counts of a minute. `process` begins with its kind. `tallies` is JSON: by tenant, the numbers
    of its tally; "others" and "nobody" are sums."""

    table = NOISE

    minute = UnicodeAttribute(hash_key=True)
    process = UnicodeAttribute(range_key=True)
    tallies = UnicodeAttribute()
    expires_at = NumberAttribute()


class IncidentDayItem(Item):
    """The minutes of a day in UTC, 0 to 1439, in which some tenant was refused for asking too much. Those that are
    `unclear` count for nobody. `minute` is the month's partition, `process` the day."""

    table = NOISE

    minute = UnicodeAttribute(hash_key=True)
    process = UnicodeAttribute(range_key=True)
    minutes = NumberSetAttribute(null=True)
    unclear = NumberSetAttribute(null=True)
    expires_at = NumberAttribute()


COSTS = Table("Tenants.Costs", "tenant", "tenant_id", "day", ttl="expires_at")
PLATFORM_COSTS = Table(
    "Platform.Costs",
    "platform",
    "kind",
    "name",
    ttl="expires_at",
    shared="what belongs to no tenant, and the costs of routes, are sums over all requests",
)
NO_TENANT: Final = "PLATFORM"  # the partition of what was spent for no tenant, by day


class CostItem(Item):
    """Sum what was spent for one tenant on one UTC day, such as 2026-01-31.

    Beside these it has an attribute for each table and kind of unit, such as `r:Support.Tickets`, and for each thing
    that is counted, such as `n:mails`; spending.py adds to them. `batch` is the id of the last write. `stored_bytes`
    is the estimated size of the tenant's items and `file_bytes` that of its files, where they were measured that day.
    """

    table = COSTS

    tenant_id = UnicodeAttribute(hash_key=True)
    day = UnicodeAttribute(range_key=True)
    batch = UnicodeAttribute(default="")
    stored_bytes = NumberAttribute(null=True)
    file_bytes = NumberAttribute(null=True)
    expires_at = NumberAttribute(default=0)


class PlatformCostItem(Item):
    """Sum what was spent for no tenant on one UTC day; `name` is the day. Attributes are those of CostItem."""

    table = PLATFORM_COSTS

    kind = UnicodeAttribute(hash_key=True)
    name = UnicodeAttribute(range_key=True)
    batch = UnicodeAttribute(default="")
    expires_at = NumberAttribute(default=0)


_ROUTES: Final = "ROUTES"


def routes_of(day: str) -> str:
    """Return the partition of what routes cost on a day: `ROUTES#2026-01-31`."""
    return keys.joined(_ROUTES, day)


class RouteCostItem(Item):
    """Count what requests of one route cost on one UTC day in one release; `name` is `GET /tickets/#1.2.0`.

    Beside these it has an attribute for each number that came up, such as `r:3.5` for 3.5 read units, with how many
    requests used that; `w` are write units and `t` round trips.
    """

    table = PLATFORM_COSTS

    kind = UnicodeAttribute(hash_key=True)
    name = UnicodeAttribute(range_key=True)
    batch = UnicodeAttribute(default="")
    expires_at = NumberAttribute(default=0)


declare(
    SHARES,
    USAGE,
    NOISE,
    COSTS,
    PLATFORM_COSTS,
    grants=(
        Grant("platform", SHARES, ("PutItem", "Query")),
        Grant("tenant", USAGE, ("Query", "UpdateItem")),
        Grant("platform", NOISE, ("PutItem", "Query")),
        Grant("platform", NOISE, ("UpdateItem",), "NoteIncidents", leading_keys=ANY_INCIDENTS),
        Grant("worker", NOISE, ("PutItem",), "NoteNoise", leading_keys=ANY_NOTES),
        Grant("delivery", NOISE, ("PutItem",), "NoteNoise", leading_keys=ANY_NOTES),
        Grant("tenant", COSTS, ("Query", "UpdateItem")),
        Grant("platform", PLATFORM_COSTS, ("Query", "UpdateItem")),
        Grant("worker", PLATFORM_COSTS, ("UpdateItem",), "NoteCosts"),
        Grant("delivery", PLATFORM_COSTS, ("UpdateItem",), "NoteCosts"),
    ),
)


KEPT_MINUTES: Final = 7 * 60  # an hour more than rows have; TTL has those of before


_usage = own_partition(USAGE)


def _shares(reader: Reader) -> Iterator[StoredItem]:
    for stored in reader.query(SHARES, POSTS):
        if reader.tenant_id in stored.item["asked"]["S"]:
            yield stored


def _notes(reader: Reader) -> Iterator[StoredItem]:
    now = int(time.time()) // 60
    for minute in range(now - KEPT_MINUTES, now + 2):
        for stored in reader.query(NOISE, notes_of(minute)):
            if reader.tenant_id in stored.item["tallies"]["S"]:
                yield stored


def _without(attribute: str) -> Callable[[str, Raw], Raw]:
    """Return what takes a tenant's part out of a row that holds those of several, as JSON by tenant."""

    def others(tenant_id: str, raw: Raw) -> Raw:
        kept = {tenant: part for tenant, part in json.loads(raw[attribute]["S"]).items() if tenant != tenant_id}
        return {**raw, attribute: {"S": json.dumps(kept)}}

    return others


declare_nothing(PLATFORM_COSTS, "it holds sums over all tenants, and what belongs to none")
declare_holding(
    Holding("usage", (USAGE,), _usage, Stage.BESIDE, left_out="it is the load of this installation"),
    Holding(
        "shares of rates", (SHARES,), _shares, Stage.BESIDE, without=_without("asked"), left_out="of this moment alone"
    ),
    Holding(
        "costs",
        (COSTS,),
        own_partition(COSTS),
        Stage.BESIDE,
        left_out="they are sums of what the desk has cost its operator",
        keep_on_purge="sums by day of what the desk has cost its operator, without content, for the last bill; "
        "each is forgotten after 400 days",
    ),
    Holding("noise", (NOISE,), _notes, Stage.BESIDE, without=_without("tallies"), left_out="of some hours alone"),
)


declare_keys(SHARES, {"share of rates": "POSTS, <process>"})
declare_keys(USAGE, {"usage": ""})
declare_keys(NOISE, {"noise": "NOTES#<minute>, <process>", "incidents": "INCIDENTS#<month>, <day>"})
declare_keys(COSTS, {"costs of a day": ""})
declare_keys(PLATFORM_COSTS, {"costs of routes": "ROUTES#<day>, <route>", "costs of the platform": ""})
