"""Declare how the files of tickets are stored: items among the tickets, and objects of two kinds.

A file has an item of its own from the moment at which its upload begins. Its object is `uploads/<id>` then, where TTL
removes the item after a day, and a rule of the bucket the object, by a tag. A file that belongs to a ticket is a copy
of that, `files/<random name>`, for which nobody ever had a form. A page reads none of these items: what it shows of a
file is in the item of the description or comment. They lie in a few collections of the tenant, each with the count of
what its files need.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any, Final

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from portal.dynamo.models import Item
from portal.objects import object_store
from portal.schema import keys, row_forms
from portal.schema.access_patterns import declare_keys
from portal.schema.holdings import Holding, Raw, Reader, Stage, StoredItem, declare_holding, no_items
from portal.schema.registry import TENANT_OBJECTS, ObjectGrant, declare
from portal.schema.row_forms import RowForm
from tickets.ticket.stored import FILE_STATES, FILES, TICKETS, FileMap
from tickets.ticket.stored import is_file_id as is_file_id

KIND, UPLOADS, PREVIEWS = "files", "uploads", "previews"  # of objects
USAGE: Final = "USAGE"
BUCKETS: Final = "abcdefghijklmnop"  # the collections, one for each digit that an id can begin with
_FILE: Final = "FILE"
FILE_PREFIX: Final = keys.beginning(_FILE)

declare(
    grants=(
        ObjectGrant(
            "tenant",
            f"{TENANT_OBJECTS}{KIND}/",
            ("DeleteObject", "GetObject", "GetObjectTagging", "PutObject", "PutObjectTagging"),
        ),
        ObjectGrant(
            "tenant",
            f"{TENANT_OBJECTS}{UPLOADS}/",
            ("GetObject", "PutObject", "PutObjectTagging"),
        ),
        ObjectGrant(
            "tenant",
            f"{TENANT_OBJECTS}{PREVIEWS}/",
            ("DeleteObject", "GetObject", "PutObject"),
        ),
        ObjectGrant(
            "lifecycle",
            f"{TENANT_OBJECTS}{KIND}/",
            ("DeleteObject", "GetObject", "ListBucket", "PutObject"),
            "FilesOfWholeTenants",
        ),
        ObjectGrant(
            "lifecycle",
            f"{TENANT_OBJECTS}{UPLOADS}/",
            ("DeleteObject", "ListBucket"),
            "UploadsOfWholeTenants",
        ),
        ObjectGrant(
            "lifecycle",
            f"{TENANT_OBJECTS}{PREVIEWS}/",
            ("DeleteObject", "ListBucket"),
            "PreviewsOfWholeTenants",
        ),
    )
)

# --- keys ---


def new_id() -> str:
    """Return a fresh id of a file."""
    return uuid.uuid4().hex


def id_of(identity: str) -> str:
    """Return the id of a file that is the same however often it is stored."""
    return keys.digest(identity)


def files(tenant_id: str, bucket: str) -> str:
    """Return the partition key of one of the collections of files. Raises ValueError for another bucket."""
    if bucket not in BUCKETS or len(bucket) != 1:
        raise ValueError("files lie in collections named by one letter")
    return keys.collection(tenant_id, FILES, bucket)


def bucket_of(file_id: str) -> str:
    """Return the name of the collection that a file lies in. Raises ValueError for what is no id."""
    if not is_file_id(file_id):
        raise ValueError("the id of a file has 32 hexadecimal digits")
    return BUCKETS[int(file_id[0], 16)]


def file(file_id: str) -> str:
    """Return the sort key of a file. Raises ValueError for what is no id."""
    bucket_of(file_id)
    return keys.joined(_FILE, file_id)


def upload_key(tenant_id: str, file_id: str) -> str:
    """Return the key of the object of a file that belongs to no ticket yet. Raises ValueError for what is no id."""
    bucket_of(file_id)
    return object_store.tenant_key(tenant_id, UPLOADS, file_id)


def object_key(tenant_id: str, name: str) -> str:
    """Return the key of the object of a ticket's file, by `object_of` it. Raises ValueError for what is no such
    name."""
    bucket_of(name)
    return object_store.tenant_key(tenant_id, KIND, name)


def preview_key(tenant_id: str, name: str) -> str:
    """Return the key of the preview of a ticket's file, by `object_of` it. Raises ValueError for what is no such
    name."""
    bucket_of(name)
    return object_store.tenant_key(tenant_id, PREVIEWS, name)


def object_of(file: FileItem | FileMap) -> str:
    return file.object or file.id


# --- items ---


def listed(file: FileMap, **changed: Any) -> FileMap:
    """Return a file as an entry lists it, with these values in place of others."""
    make: Any = FileMap
    made: FileMap = make(**{**file.attribute_values, **changed})
    return made.with_unknown_of(file)


class FileItem(Item):
    """A file, of a ticket or on its way to one: then, and of spam, TTL removes the item at `expires_at`. `object` is
    the name of the object of a ticket's file, null for one that has the name of its id.

    `size` is in bytes. `type` is what the content looks like, and `state` what a scanner says of it. `author` is the
    id of the person who sent it, as long as it is of no ticket. `number` and `entry` are the ticket's number and the
    sort key of the description or comment that lists the file.
    """

    table = TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    name = UnicodeAttribute()
    size = NumberAttribute()
    type = UnicodeAttribute()
    state = UnicodeAttribute()
    author = UnicodeAttribute(default="")
    at = UnicodeAttribute()
    number = NumberAttribute(null=True)
    entry = UnicodeAttribute(null=True)
    object = UnicodeAttribute(null=True)
    expires_at = NumberAttribute(null=True)

    @property
    def id(self) -> str:
        return keys.split(self.sk)[-1]


class FileUsageItem(Item):
    """The count of the files of one collection that belong to tickets, and of their bytes."""

    table = TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    file_count = NumberAttribute(default=0)
    file_bytes = NumberAttribute(default=0)


# --- holdings ---


def _stored(reader: Reader) -> Iterator[StoredItem]:
    for bucket in BUCKETS:
        yield from reader.query(TICKETS, files(reader.tenant_id, bucket))


def _of_tickets(reader: Reader) -> Iterator[StoredItem]:
    """Yield what an export holds: not what is on its way to a ticket, and expires. Files of spam expire too."""
    return (stored for stored in _stored(reader) if "expires_at" not in stored.item or "entry" in stored.item)


def _bucket_in(tenant_id: str, item: Raw) -> str:
    parts = keys.collection_parts(item["pk"]["S"])
    if parts is None or parts[1] != FILES or len(parts[2]) != 1:
        raise ValueError("this is no collection of files")
    return parts[2][0]


def _file_key(tenant_id: str, item: Raw) -> tuple[str, str]:
    _, file_id = keys.split(item["sk"]["S"])
    return files(tenant_id, bucket_of(file_id)), file(file_id)


def _usage_key(tenant_id: str, item: Raw) -> tuple[str, str]:
    return files(tenant_id, _bucket_in(tenant_id, item)), USAGE


def _forms() -> tuple[RowForm, ...]:
    checks: dict[str, Any] = {"state": row_forms.one_of(*FILE_STATES), **row_forms.moments("at")}
    return (
        RowForm(FileItem, _file_key, begins=FILE_PREFIX, checks=checks),
        RowForm(FileUsageItem, _usage_key, begins=USAGE),
    )


def _names(reader: Reader) -> Iterator[str]:
    """Yield the names of the objects of files that belong to tickets."""
    for found in _of_tickets(reader):
        if found.item["sk"]["S"] != USAGE:
            name = found.item.get("object", {}).get("S")
            yield name or keys.split(found.item["sk"]["S"])[-1]


def _prefix(kind: str) -> Callable[[str], str]:
    return lambda tenant_id: object_store.tenant_prefix(tenant_id, kind)


declare_holding(
    Holding("contents of files", (), no_items, Stage.NAMED, objects=_prefix(KIND), exported=_names),
    Holding("uploads", (), no_items, Stage.NAMED, left_out="they belong to no ticket yet", objects=_prefix(UPLOADS)),
    Holding("previews", (), no_items, Stage.NAMED, left_out="they are made of files", objects=_prefix(PREVIEWS)),
    Holding("files", (TICKETS,), _stored, Stage.BESIDE, export=_of_tickets, forms=_forms),
)


declare_keys(TICKETS, {"file": "TENANT#<tenant>|FILES#<bucket>, <part>"})
