"""Declare how requesters are stored: their table with its index, keys, items and holdings.

A requester's profile is one item, and each address another one that names its requester, so that an address belongs to
one person of a desk. Both are written in one transaction. Every item is in the index, whose rows name people completely
enough for a list and for completion while typing.

The table is not placed: its changes are written with rows of the audit trail, and no transaction spans two placements.
"""

from __future__ import annotations

import unicodedata
import uuid
from collections.abc import Iterator
from typing import Any, Final

from pynamodb.attributes import ListAttribute, MapAttribute, NumberAttribute, UnicodeAttribute

from portal.dynamo.models import IndexModel, Item
from portal.schema import keys, row_forms
from portal.schema.access_patterns import declare_keys
from portal.schema.holdings import Holding, Raw, Reader, Stage, StoredItem, declare_holding, declare_people
from portal.schema.registry import Grant, Table, declare
from portal.schema.row_forms import RowForm
from tickets.ticket.stored import is_requester as is_requester  # the word that packages above import

REQUESTERS = Table("Support.Requesters", "tenant", "pk", "sk", leading_keys=keys.OWN_COLLECTIONS)

# --- keys ---

PROFILE: Final = "PROFILE"
ADDRESS: Final = "ADDRESS"
_REQUESTER: Final = "REQUESTER"
_LONGEST: Final = 200  # characters of what people are found by


def new_id() -> str:
    return f"rq_{uuid.uuid4().hex}"


def id_of_request(request_id: str) -> str:
    """Return the id of the requester that a form makes, the same however often the form is sent."""
    return f"rq_{keys.digest(request_id)}"


def requester(tenant_id: str, requester_id: str) -> str:
    """Return the partition key of a requester. Raises ValueError for what is no id of one."""
    if not is_requester(requester_id):
        raise ValueError("this is no id of a requester")
    return keys.collection(tenant_id, _REQUESTER, requester_id)


def address(tenant_id: str, text: str) -> str:
    """Return the partition key of an address, which may hold the delimiters of keys before its @."""
    return keys.collection(tenant_id, ADDRESS, keys.escaped(text))


def people(tenant_id: str) -> str:
    """Return the partition key, in the index, of the profiles by name."""
    return keys.collection(tenant_id, "REQUESTERS")


def addresses(tenant_id: str) -> str:
    """Return the partition key, in the index, of the addresses."""
    return keys.collection(tenant_id, "ADDRESSES")


def merged_people(tenant_id: str) -> str:
    """Return the partition key, in the index, of the profiles that were merged into others."""
    return keys.collection(tenant_id, "MERGED")


def folded(text: str) -> str:
    """Return a text as people are found by it: without accents, case and delimiters of keys, cut at a length."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    spaced = "".join(" " if c in "#|" or unicodedata.category(c).startswith("C") else c for c in plain)
    return " ".join(spaced.split())[:_LONGEST].strip()


def found_by(text: str, requester_id: str) -> str:
    """Return the sort key, in the index, of somebody who is found by this text."""
    return keys.joined(folded(text) or "?", requester_id)


def found_by_last_word(name: str, requester_id: str) -> str | None:
    """Return the sort key, in the index of last words, of somebody with this name, None for one of a single word."""
    words = folded(name).split()
    return found_by(words[-1], requester_id) if len(words) > 1 else None


def id_in_place(place: str) -> str:
    """Return the requester's id in what `found_by` formed."""
    return keys.split(place)[-1]


declare(
    REQUESTERS,
    grants=(
        # A letter from somebody new makes its requester as the tenant; people's changes are written with audit rows.
        Grant("tenant", REQUESTERS, ("BatchGetItem", "GetItem", "PutItem", "Query")),
        Grant("platform", REQUESTERS, ("DeleteItem", "PutItem", "UpdateItem")),
        Grant("seed", REQUESTERS, ("BatchWriteItem",), "WriteRequesters", leading_keys=keys.ALL_COLLECTIONS),
    ),
)


# --- items ---


class ProfileItem(Item):
    """A person outside the desk. `addresses` are theirs, the one that mail goes to first.

    `merged` are the ids of those who were merged into this person, and of those who had been merged into them before.
    `merged_into` is the person into whom this one was merged: then `addresses` are the ones that an undo gives back.
    `bounced` says of addresses that mail does not reach why it does not. `link_generation` grows when the links to this
    person's tickets are revoked: see tickets/replies/ticket_links.py. `version` grows with each change.
    """

    table = REQUESTERS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    tenant_group = UnicodeAttribute()
    found_by = UnicodeAttribute()
    found_by_last = UnicodeAttribute(null=True)
    requester_id = UnicodeAttribute()
    name = UnicodeAttribute(default="")
    organisation = UnicodeAttribute(default="")
    notes = UnicodeAttribute(default="")
    language = UnicodeAttribute(default="")
    addresses: ListAttribute[Any] = ListAttribute(default=list)
    created_at = UnicodeAttribute()
    version = NumberAttribute(default=1)
    merged: ListAttribute[Any] = ListAttribute(default=list)
    merged_into = UnicodeAttribute(null=True)
    link_generation = NumberAttribute(null=True)
    bounced: MapAttribute[str, str] = MapAttribute(default=dict)  # type: ignore[no-untyped-call]  # unannotated in PynamoDB


def bounced_of(item: ProfileItem) -> dict[str, str]:
    """Return why mail does not reach addresses of a person, by address."""
    return {str(address): str(why) for address, why in item.bounced.attribute_values.items()}


class AddressItem(Item):
    """One address, and whose it is. `name` and `organisation` are the requester's, for completion in one read."""

    table = REQUESTERS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    tenant_group = UnicodeAttribute()
    found_by = UnicodeAttribute()
    requester_id = UnicodeAttribute()
    address = UnicodeAttribute()
    name = UnicodeAttribute(default="")
    organisation = UnicodeAttribute(default="")
    bounced_because = UnicodeAttribute(null=True)


class RequesterRow(IndexModel):
    """A row of a list of people, or of what completes a name or an address; `address` is there in the latter alone."""

    table = REQUESTERS
    label = "gsi-found"

    pk = UnicodeAttribute()
    sk = UnicodeAttribute()
    tenant_group = UnicodeAttribute(hash_key=True)
    found_by = UnicodeAttribute(range_key=True)
    requester_id = UnicodeAttribute()
    name = UnicodeAttribute(default="")
    organisation = UnicodeAttribute(default="")
    address = UnicodeAttribute(null=True)
    addresses: ListAttribute[Any] = ListAttribute(default=list)
    merged_into = UnicodeAttribute(null=True)
    bounced_because = UnicodeAttribute(null=True)


class LastWordRow(IndexModel):
    """A row by the last word of a name, a surname for instance; people with names of a single word have none."""

    table = REQUESTERS
    label = "gsi-last-word"

    pk = UnicodeAttribute()
    sk = UnicodeAttribute()
    tenant_group = UnicodeAttribute(hash_key=True)
    found_by_last = UnicodeAttribute(range_key=True)
    requester_id = UnicodeAttribute()
    name = UnicodeAttribute(default="")
    organisation = UnicodeAttribute(default="")
    addresses: ListAttribute[Any] = ListAttribute(default=list)


# --- holdings ---


def _stored(reader: Reader) -> Iterator[StoredItem]:
    named: dict[tuple[str, str], None] = {}
    for group in (people, addresses, merged_people):
        for _, row, _ in reader.query(REQUESTERS, group(reader.tenant_id), index=RequesterRow.gsi):
            named[row["pk"]["S"], row["sk"]["S"]] = None
    yield from reader.get(REQUESTERS, *named)


def _profile_key(tenant_id: str, item: Raw) -> tuple[str, str]:
    return requester(tenant_id, item["requester_id"]["S"]), PROFILE


def _address_key(tenant_id: str, item: Raw) -> tuple[str, str]:
    return address(tenant_id, item["address"]["S"]), ADDRESS


def _place(tenant_id: str, item: Raw) -> str:
    """Say what is wrong with the place of an item in the index, "" for nothing."""
    if "address" in item:
        group, texts = addresses(tenant_id), [item["address"]["S"]]
    else:
        group = (merged_people if "merged_into" in item else people)(tenant_id)
        texts = [item.get("name", {}).get("S") or first_of(item)]
    own = [found_by(text, item["requester_id"]["S"]) for text in texts]
    last = item.get("found_by_last", {}).get("S")
    is_own = last in (None, found_by_last_word(item.get("name", {}).get("S", ""), item["requester_id"]["S"]))
    is_right = item["tenant_group"]["S"] == group and item["found_by"]["S"] in own and is_own
    return "" if is_right else "is found by something else"


def first_of(item: Raw) -> str:
    """Return the first address of a raw profile, "" where it has none."""
    return next((one["S"] for one in item.get("addresses", {}).get("L", ())), "")


def _ids(values: Any) -> bool:
    return all(is_requester(one["S"]) for one in values)


def _forms() -> tuple[RowForm, ...]:
    profile: dict[str, row_forms.Check] = {
        "requester_id": is_requester,
        "addresses": row_forms.texts,
        "merged": _ids,
        "merged_into": is_requester,
        "bounced": lambda told: all(isinstance(why["S"], str) for why in told.values()),
        **row_forms.moments("created_at"),
    }
    return (
        RowForm(ProfileItem, _profile_key, begins=PROFILE, checks=profile, whole=_place),
        RowForm(AddressItem, _address_key, begins=ADDRESS, checks={"requester_id": is_requester}, whole=_place),
    )


declare_holding(Holding("requesters", (REQUESTERS,), _stored, Stage.OWN, forms=_forms))
declare_people("requesters", "tickets.requesters.requester_changes")


declare_keys(
    REQUESTERS,
    {
        "requester": "TENANT#<tenant>|REQUESTER#<requester>, <part>",
        "address of a requester": "TENANT#<tenant>|ADDRESS#<address>, <part>",
    },
    indexes={"requesters by name": "gsi-found", "requesters by last word": "gsi-last-word"},
)
