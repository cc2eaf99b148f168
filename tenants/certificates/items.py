"""Store certificates: PynamoDB models and nothing else."""

from __future__ import annotations

from pynamodb.attributes import UnicodeAttribute

from portal.dynamo.client import Item
from tenants.tenancy.stored import DIRECTORY


class CertificateItem(Item):
    """A certificate by its number. `content` is its file, `digest` the hash by which the next one names it."""

    table = DIRECTORY

    kind = UnicodeAttribute(hash_key=True)
    name = UnicodeAttribute(range_key=True)
    tenant_id = UnicodeAttribute()
    title = UnicodeAttribute()
    created_at = UnicodeAttribute()
    content = UnicodeAttribute()
    digest = UnicodeAttribute()
