"""Store exports of whole desks and their files: PynamoDB models and nothing else."""

from __future__ import annotations

from pynamodb.attributes import BinaryAttribute, NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from tickets.desk_export.tables import EXPORT_PARTS
from tickets.jobs.items import JobItem


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
