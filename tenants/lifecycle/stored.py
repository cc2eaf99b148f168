"""Store imports of tenants that are under way, and certificates: both are in partitions of the directory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pynamodb.attributes import BooleanAttribute, NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from portal.schema import keys
from portal.schema.access_patterns import declare_keys
from portal.schema.holdings import Holding, Reader, Stage, StoredItem, declare_holding
from tenants.tenancy.stored import DIRECTORY

ARRIVING: Final = keys.part("ARRIVING")  # the partition of tenants that are being brought in, by their slugs
CERTIFICATES: Final = keys.part("CERTIFICATE")  # that of certificates, one after the other
_DIGITS: Final = 8  # so that they sort by their numbers


def numbered(number: int) -> str:
    """Return the sort key of a certificate by its number, from 1 on."""
    return keys.whole_number(number, "a certificate's number", least=1).zfill(_DIGITS)


class ArrivingItem(Item):
    """A tenant that is being imported, until it is complete. `name` is its slug here, `tenant_id` its id here.

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


def _arriving(reader: Reader) -> Iterator[StoredItem]:
    return (one for one in reader.query(DIRECTORY, ARRIVING) if one.item["tenant_id"]["S"] == reader.tenant_id)


declare_holding(Holding("arrival", (DIRECTORY,), _arriving, Stage.OWN, left_out="it ends with the import"))


declare_keys(DIRECTORY, {"arriving tenant": "ARRIVING, <slug>", "certificate": "CERTIFICATE, <number>"})
