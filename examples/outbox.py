"""Write an invoice and its event in one transaction, send it from the stream: `python -m examples.outbox`."""

import time

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from portal import standalone
from portal.dynamo import library_errors, provisioning
from portal.dynamo.models import Item
from portal.dynamo.store import Store, Transaction
from portal.schema import keys
from portal.schema.registry import Grant, Table, declare
from portal.streams.batch import Batch, BatchResult
from portal.streams.poller import Poller

standalone.configure("Outbox")
FOLLOW = ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams")
INVOICES = Table("Billing.Invoices", "tenant", "pk", "sk", stream=True, leading_keys=keys.OWN_COLLECTIONS)
declare(INVOICES, grants=(Grant("tenant", INVOICES, ("PutItem",)), Grant("worker", INVOICES, FOLLOW, stream=True)))


class Row(Item):
    table = INVOICES
    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    cents = NumberAttribute()


def send(batch: Batch) -> BatchResult:
    """Send the events of a batch. One may come again: its receiver knows it by tenant and number."""
    for record in batch.records:
        tenant_id, kind, _ = keys.collection_parts(record.keys["pk"]) or ("", "", ())
        if kind == "OUTBOX" and record.new:
            print("Sent:", tenant_id[:4], record.keys["sk"], int(record.new["cents"]))  # a Decimal, as all numbers here
    return BatchResult()


def main() -> None:
    provisioning.create_all(wait=True)
    acme, number, both = Store("tenant", "a" * 32), str(time.time_ns()), Transaction()
    both.put(Row(acme.key(keys.collection, "INVOICES"), number, cents=1200), condition=Row.pk.does_not_exist())
    both.put(Row(acme.key(keys.collection, "OUTBOX"), number, cents=1200))
    acme.transact(both)  # raises TransactionRefused, and writes neither, where the number is taken
    poller, since = Poller(INVOICES, send, idle_seconds=0.1), time.monotonic()
    poller.run(lambda: not poller.caught_up(since))


if __name__ == "__main__":
    library_errors.run(main)
