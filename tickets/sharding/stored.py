"""Declare reshardings of tenants, and what each stream worker has seen of partitions that are written much."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from portal.schema import keys
from portal.schema.access_patterns import declare_keys
from portal.schema.holdings import Holding, Raw, Reader, Stage, StoredItem, declare_holding
from portal.schema.registry import Grant, declare
from tenants.tenancy.stored import DIRECTORY, TENANTS
from tickets.jobs.stored import JobItem, jobs

RESHARDINGS: Final = keys.part("RESHARDING")
HEAT: Final = keys.part("HEAT")  # what each stream worker has seen of partitions that are written much
PAST_RESHARDINGS: Final = "RESHARDED"
ALL_HISTORIES: Final = f"{keys.beginning(PAST_RESHARDINGS)}*"


class ReshardItem(JobItem):
    """A change of a tenant's number of shards: the last one by the tenant's id, former ones by when they began.

    `state` is running, stopping, stopped or done; `phase` is the step of `reshard_job.py` it is at, and `place` how far
    that has come, as JSON. `by` is a person's address, "" where the stream worker began it.
    """

    from_shards = NumberAttribute()
    to_shards = NumberAttribute()
    by = UnicodeAttribute(default="")
    place = UnicodeAttribute(default="")
    moved = NumberAttribute(default=0)
    ended_at = UnicodeAttribute(default="")


class HeatItem(Item):
    """Hold one stream worker's counts of writes to busy partitions.

    `windows` is JSON: by the beginning of a window, write units a second by partition.
    """

    table = DIRECTORY

    kind = UnicodeAttribute(hash_key=True)
    name = UnicodeAttribute(range_key=True)
    windows = UnicodeAttribute(default="{}")
    told_at = UnicodeAttribute()


declare(
    grants=(
        Grant("platform", DIRECTORY, ("GetItem",), "ReadReshardings", leading_keys=RESHARDINGS),
        Grant(
            "worker", DIRECTORY, ("DeleteItem", "GetItem", "Query", "UpdateItem"), "CarryOutReshardings",
            leading_keys=RESHARDINGS,
        ),
        Grant("worker", DIRECTORY, ("PutItem",), "KeepReshardings", leading_keys=ALL_HISTORIES),
        Grant("worker", DIRECTORY, ("DeleteItem", "Query", "UpdateItem"), "TellHeat", leading_keys=HEAT),
        Grant("worker", TENANTS, ("GetItem", "UpdateItem"), "ChangeLayouts"),
    ),
)  # fmt: skip


_OF_THIS_PLACE = "it is about the partitions of this installation"


def _heat(reader: Reader) -> Iterator[StoredItem]:
    for one in reader.query(DIRECTORY, HEAT):
        if reader.tenant_id in one.item["windows"]["S"]:
            yield one


def _cooled(tenant_id: str, raw: Raw) -> Raw:
    windows: dict[str, dict[str, Any]] = json.loads(raw["windows"]["S"])
    left = {
        window: {name: units for name, units in warm.items() if json.loads(name)[0] != tenant_id}
        for window, warm in windows.items()
    }
    return {**raw, "windows": {"S": json.dumps(left)}}


declare_holding(
    jobs("reshardings", RESHARDINGS, Stage.BESIDE, history=PAST_RESHARDINGS, left_out=_OF_THIS_PLACE),
    Holding("heat", (DIRECTORY,), _heat, Stage.BESIDE, without=_cooled, left_out=_OF_THIS_PLACE),
)


declare_keys(
    DIRECTORY,
    {"resharding": "RESHARDING, <tenant>", "past resharding": "RESHARDED#<tenant>, <time>", "heat": "HEAT, <worker>"},
)
