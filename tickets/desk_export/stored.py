"""Declare the exports of a desk, and the table that holds their files in parts."""

from __future__ import annotations

from typing import Final

from pynamodb.attributes import BinaryAttribute, NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from portal.schema import keys
from portal.schema.access_patterns import declare_keys
from portal.schema.holdings import Holding, Stage, declare_holding, declare_texts, own_partition
from portal.schema.registry import Grant, Table, declare
from tenants.tenancy.stored import DIRECTORY
from tickets.jobs.stored import JobItem, jobs

EXPORTS: Final = keys.part("EXPORT")


def part(file: str, number: int) -> str:
    """Return the sort key of a part of an exported file; parts count from 1 and sort by their numbers."""
    return keys.joined(file, f"{int(keys.whole_number(number, 'a part', least=1)):06}")


EXPORT_PARTS = Table("Support.ExportParts", "tenant", "tenant_id", "part", ttl="expires_at", placed=True)

declare(
    EXPORT_PARTS,
    grants=(
        Grant("tenant", EXPORT_PARTS, ("GetItem", "Query", "UpdateItem")),
        Grant("lifecycle", EXPORT_PARTS, ("PutItem",), "WriteExports"),
        Grant("platform", DIRECTORY, ("GetItem",), "ReadExports", leading_keys=EXPORTS),
    ),
)


class ExportItem(JobItem):
    """The last export of a desk that an owner asked for.

    `state` is running, cancelling, cancelled or ready; `phase` names the holding that is being written, `step` is its
    number of `steps`, and `written` counts the items so far. `by_id`, `by_email` and `by_origin` are the owner's. A
    file that is ready is named `file`; it has `parts` with `size` bytes together at the `placement`, and may be fetched
    until `expires_at`.
    """

    export_id = UnicodeAttribute()
    by_id = UnicodeAttribute()
    by_email = UnicodeAttribute()
    by_origin = UnicodeAttribute(default="")
    step = NumberAttribute(default=0)
    steps = NumberAttribute(default=0)
    written = NumberAttribute(default=0)
    file = UnicodeAttribute(default="")
    parts = NumberAttribute(default=0)
    size = NumberAttribute(default=0)
    placement = UnicodeAttribute(default="")
    expires_at = UnicodeAttribute(default="")


class ExportPartItem(Item):
    """A part of an exported file. TTL removes it some time after the file has expired."""

    table = EXPORT_PARTS

    tenant_id = UnicodeAttribute(hash_key=True)
    part = UnicodeAttribute(range_key=True)
    content = BinaryAttribute(legacy_encoding=False, null=True)
    expires_at = NumberAttribute()


_A_COPY = "it is a copy of what is exported, and expires"


_parts = own_partition(EXPORT_PARTS)


declare_holding(
    jobs("desk exports", EXPORTS, Stage.CONTENT, left_out=_A_COPY),
    Holding("files of desk exports", (EXPORT_PARTS,), _parts, Stage.BESIDE, left_out=_A_COPY),
)
declare_texts("files of desk exports", "tickets.desk_export.export_requests")


declare_keys(EXPORT_PARTS, {"export part": ""})
declare_keys(DIRECTORY, {"export": "EXPORT, <tenant>"})
