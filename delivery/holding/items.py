"""Store whose deliveries are held: the PynamoDB model of a hold and nothing else."""

from __future__ import annotations

from pynamodb.attributes import UnicodeAttribute

from portal.dynamo.client import Item
from tenants.tenancy.stored import DIRECTORY


class HoldItem(Item):
    """Hold back deliveries of one tenant. `name` is the tenant's id, `title` what it was called then.

    Events after the moment `waits_from` wait; `keys.EVERYTHING` is before all of them. Events up to `dropped_until` are
    not delivered at all. Either is missing where it holds nothing back.
    """

    table = DIRECTORY

    kind = UnicodeAttribute(hash_key=True)
    name = UnicodeAttribute(range_key=True)
    title = UnicodeAttribute(default="")
    waits_from = UnicodeAttribute(null=True)
    dropped_until = UnicodeAttribute(null=True)
    changed_at = UnicodeAttribute()
