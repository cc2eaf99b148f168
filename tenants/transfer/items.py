"""Store how far a tenant is that is being brought in: a PynamoDB model and nothing else."""

from __future__ import annotations

from pynamodb.attributes import BooleanAttribute, NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from tenants.tenancy.stored import DIRECTORY


class ArrivingItem(Item):
    """A tenant that is being brought in, until it is whole. `name` is its slug here, `tenant_id` its id here.

    `file` is the hash of the manifest; `entry` and `line` are how far its entries are written. `import_id` stands in
    the tenant's item as well, as `arriving`, and `run` is the token of the run that goes on with it: any other one has
    to end. `abandoned` is true once it is being taken back: from then on nothing more is brought in.
    """

    table = DIRECTORY

    kind = UnicodeAttribute(hash_key=True)
    name = UnicodeAttribute(range_key=True)
    tenant_id = UnicodeAttribute()
    file = UnicodeAttribute()
    import_id = UnicodeAttribute(null=True)
    run = UnicodeAttribute(default="")
    entry = UnicodeAttribute(default="")
    line = NumberAttribute(default=0)
    abandoned = BooleanAttribute(null=True)
