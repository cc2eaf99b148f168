"""Make an isolated table, write as one tenant and be refused as another: `python -m examples.first_table`."""

from __future__ import annotations

from pynamodb.attributes import UnicodeAttribute

from portal import standalone
from portal.dynamo import client, library_errors, provisioning
from portal.dynamo.models import Item
from portal.dynamo.store import Store
from portal.isolation import guard
from portal.schema import keys
from portal.schema.registry import Grant, Table, declare

standalone.configure("First")

NOTES = Table("Notes.Entries", "tenant", "pk", "sk", leading_keys=keys.OWN_COLLECTIONS)
declare(NOTES, grants=(Grant("tenant", NOTES, ("GetItem", "PutItem", "Query")),))


def notes(tenant_id: str) -> str:
    """Form the partition key of a tenant's notes."""
    return keys.collection(tenant_id, "NOTES")


class NoteItem(Item):
    table = NOTES
    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    text = UnicodeAttribute()


def main() -> None:
    provisioning.create_all(wait=True)
    acme, globex = Store("tenant", "a" * 32), Store("tenant", "b" * 32)  # ids have 32 hex digits, as uuid4().hex has
    acme.put(NoteItem(acme.key(notes), "1", text="Only for Acme."))
    print("Acme reads", [note.text for note in acme.query_all(NoteItem, notes)])
    print("Globex reads", [note.text for note in globex.query_all(NoteItem, notes)])
    stolen = {"pk": {"S": notes("a" * 32)}, "sk": {"S": "1"}}
    try:  # past the store, as code with a bug would: the guard sees each request before it is sent
        with guard.acting_for("b" * 32):
            client.connection("tenant").dispatch("GetItem", {"TableName": NOTES.full_name, "Key": stolen})
    except guard.IsolationError as refused:
        print("Globex is refused:", refused.why)


if __name__ == "__main__":
    library_errors.run(main)
