"""Declare the due index: a row for each thing of a tenant that waits for a moment.

The tenants write it, in the transaction of the change that waits. The worker finds due rows of all tenants by a sparse
index whose sort key is `<minute>#<tenant>#<moment>`: within a minute it can skip the rest of one tenant's rows.

Source: Airbnb, "Dynein: Building an open-source distributed delayed job queueing system".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from portal.dynamo.models import IndexModel
from portal.schema import keys, row_forms
from portal.schema.access_patterns import declare_keys
from portal.schema.holdings import Holding, Raw, Reader, Stage, StoredItem, declare_holding
from portal.schema.registry import Grant, Table, declare
from portal.schema.row_forms import RowForm
from tenants.tenancy.stored import TENANTS

SHARDS: Final = 4  # partitions of the index of due rows; a fifth read in vain costs more than it brings
# Of one tenant's rows, each a partition, so that a move copies them in parts.
BUCKETS: Final = tuple(f"{number:02}" for number in range(16))
_DUE: Final = "DUE"
ANY_SHARD: Final = keys.beginning(_DUE) + "*"  # the pattern, for a policy, of all partitions of the index
FIRST: Final = "0"  # sorts before every minute
_MINUTE: Final = 16  # characters of a stamp up to its minute

DUE = Table(
    "Events.Due",
    "tenant",
    "pk",
    "sk",
    leading_keys=keys.OWN_COLLECTIONS,
    placed=True,
    copied=(_DUE,),
)


class DueRow(IndexModel):
    """The key of a row that waits, by when somebody has to look at it. No tenant reads it."""

    table = DUE
    label = "gsi-due"
    leading_keys = ""
    shared = "the worker finds due rows of all tenants"

    shard = UnicodeAttribute(hash_key=True)
    wakes = UnicodeAttribute(range_key=True)
    pk = UnicodeAttribute()
    sk = UnicodeAttribute()
    at = UnicodeAttribute()
    tries = NumberAttribute(default=0)


declare(
    DUE,
    grants=(
        Grant("tenant", DUE, ("PutItem",)),
        Grant("worker", DUE, ("DeleteItem", "UpdateItem"), "ClaimDue"),
        Grant("worker", DUE, ("Query",), "FindDue", index=DueRow.gsi, leading_keys=ANY_SHARD),
        # It acts for the tenants whose rows are due.
        Grant("worker", TENANTS, ("BatchGetItem",), "ReadTenantsOfDue"),
        Grant("platform", DUE, ("Query",), "TellLagOfDue", index=DueRow.gsi, leading_keys=ANY_SHARD),
        Grant("lifecycle", DUE, ("PutItem",), "CopyDue"),
    ),
)


class DueItem(Item):
    """Hold that `kind` of work on `entity` waits for the moment `at`. There are ids in it and nothing else.

    `shard` and `wakes` are the keys of the index: `wakes` is `at` at first, and later where somebody has claimed the
    row, or it failed. `tries` counts the claims.
    """

    table = DUE

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    at = UnicodeAttribute()
    shard = UnicodeAttribute()
    wakes = UnicodeAttribute()
    tries = NumberAttribute(default=0)


class Waiting(NamedTuple):
    """Name what waits: a kind of work, what it is about ("ticket/7"), and the version for which it was written."""

    kind: str
    entity: str
    version: str


# --- keys ---


def due(tenant_id: str, due_bucket: str) -> str:
    """Return the partition key of one of the buckets of a tenant's rows. Raises ValueError for another bucket."""
    if due_bucket not in BUCKETS:
        raise ValueError("rows of the due index lie in buckets with two digits")
    return keys.collection(tenant_id, _DUE, due_bucket)


def bucket_of(entity: str) -> str:
    return BUCKETS[int(keys.digest(entity, size=4), 16) % len(BUCKETS)]


def name(waiting: Waiting) -> str:
    return keys.joined(*waiting)


def waiting_of(sk: str) -> Waiting:
    return Waiting(*keys.split(sk))


def shard(number: int) -> str:
    return keys.joined(_DUE, keys.whole_number(number, "a shard"))


def shard_of(sk: str) -> str:
    """Return the partition of the index in which a row is: by a digest, so that many rows of a tenant spread."""
    return shard(int(keys.digest(sk, size=4), 16) % SHARDS)


def minute(stamp: str) -> str:
    """Return the beginning of the sort keys, in the index, of all rows of a minute."""
    return stamp[:_MINUTE]


def wakes(stamp: str, tenant_id: str) -> str:
    """Return the sort key, in the index, of a row of a tenant that is to be looked at from this moment."""
    return keys.joined(minute(stamp), keys.tenant(tenant_id), stamp)


def wakes_parts(text: str) -> tuple[str, str, str]:
    """Take apart what `wakes` formed: the minute, the tenant's id and the stamp."""
    of_minute, tenant_id, stamp = keys.split(text)
    return of_minute, tenant_id, stamp


def behind(*parts: str) -> str:
    """Return what sorts behind all rows of a minute, or of a minute and a tenant."""
    return f"{keys.joined(*parts)}$"  # the character after "#"


def due_item(waiting: Waiting, stamp: str, *, of: str) -> DueItem:
    """Return the row of what waits for a moment, of the tenant with the id `of`."""
    sk = name(waiting)
    pk = due(of, bucket_of(waiting.entity))
    return DueItem(pk, sk, at=stamp, shard=shard_of(sk), wakes=wakes(stamp, of))


# --- holdings ---


def _rows(reader: Reader) -> Iterator[StoredItem]:
    for place in reader.places:  # what lies in the pool for every tenant may wait too
        for number in BUCKETS:
            yield from place.query(DUE, due(reader.tenant_id, number))


def _due_key(tenant_id: str, item: Raw) -> tuple[str, ...]:
    waiting = waiting_of(item["sk"]["S"])
    return due(tenant_id, bucket_of(waiting.entity)), name(waiting)


def _in_index(tenant_id: str, item: Raw) -> str:
    """Say what is wrong with the keys of the index: they would put the row among another tenant's."""
    stamp = wakes_parts(item["wakes"]["S"])[2]
    wanted = (shard_of(item["sk"]["S"]), wakes(stamp, tenant_id))
    is_right = (item["shard"]["S"], item["wakes"]["S"]) == wanted and row_forms.moment(stamp)
    return "" if is_right else "is not where the due index has it"


def _forms() -> tuple[RowForm, ...]:
    return (RowForm(DueItem, _due_key, checks=row_forms.moments("at"), whole=_in_index, most_bytes=4096),)


declare_holding(Holding("due", (DUE,), _rows, Stage.BESIDE, forms=_forms))


declare_keys(DUE, {"due row": "TENANT#<tenant>|DUE#<bucket>, <work>"}, indexes={"due rows by time": "gsi-due"})
