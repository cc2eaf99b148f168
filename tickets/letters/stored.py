"""Declare how letters are stored: the ledger's table with its indexes, and the objects that hold them as they came."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pynamodb.attributes import ListAttribute, NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from portal.dynamo.models import IndexModel
from portal.objects.object_store import tenant_key, tenant_prefix
from portal.schema import keys, row_forms
from portal.schema.access_patterns import declare_keys
from portal.schema.holdings import Holding, Raw, Reader, Stage, StoredItem, declare_holding, declare_people, no_items
from portal.schema.registry import Grant, ObjectGrant, QueueGrant, Table, declare
from portal.schema.row_forms import RowForm
from tenants.sign_in.stored import USERS

LETTERS_QUEUE: Final = "letters"  # in which Amazon SES tells of each letter that it has put into the bucket
WORK: Final = "letter"  # the kind of work in a desk's queues
HELD_WORK: Final = "held-letter"  # the same for a letter that was held back, by its digest
INCOMING: Final = "incoming/"  # letters that nobody has looked at yet
UNCLAIMED: Final = "unclaimed/"  # letters to addresses that no desk has
STATES: Final = ("filed", "automatic", "refused", "waiting", "held", "discarded")
_RAW: Final = "letters"
_LETTER: Final = "LETTER"
_LEDGER: Final = "LEDGER"
_WAITING: Final = "WAITING"

LETTERS = Table(
    "Support.Letters",
    "tenant",
    "pk",
    leading_keys=keys.OWN_COLLECTIONS,
    placed=True,
    copied=(_LETTER,),
)


class _ListedLetter(IndexModel):
    """A letter as both lists show it."""

    received_at = UnicodeAttribute(range_key=True)
    pk = UnicodeAttribute()
    state = UnicodeAttribute()
    reason = UnicodeAttribute(default="")
    sender = UnicodeAttribute(default="")
    subject = UnicodeAttribute(default="")
    size = NumberAttribute(default=0)
    number = NumberAttribute(default=0)


class LedgerRow(_ListedLetter):
    """A letter in the list of all that came to a desk, by when it arrived."""

    table = LETTERS
    label = "gsi-ledger"
    leading_keys = keys.OWN_COLLECTIONS

    ledger = UnicodeAttribute(hash_key=True)
    object = UnicodeAttribute(default="")


class WaitingRow(_ListedLetter):
    """A letter that waits for somebody of the desk: all others are missing here."""

    table = LETTERS
    label = "gsi-waiting"
    leading_keys = keys.OWN_COLLECTIONS

    waiting = UnicodeAttribute(hash_key=True)


_RAW_OF_TENANT: Final = tenant_prefix("0" * 32, _RAW).replace("0" * 32, "{tenant}")
ANY_SLUG: Final = keys.beginning("SLUG") + "*"
_PASS_ON: Final = ("DeleteObject", "GetObject", "ListBucket", "PutObject")

declare(
    LETTERS,
    grants=(
        # A worker files as the desk whose letter it has.
        Grant("tenant", LETTERS, ("GetItem", "PutItem", "Query")),
        Grant("lifecycle", LETTERS, ("PutItem",), "CopyLetters"),
        ObjectGrant("tenant", _RAW_OF_TENANT, _PASS_ON, "OwnLetters"),
        ObjectGrant("lifecycle", _RAW_OF_TENANT, _PASS_ON, "LettersOfWholeTenants"),
        ObjectGrant("delivery", INCOMING, _PASS_ON, "PassLettersOn"),
        ObjectGrant("delivery", UNCLAIMED, _PASS_ON, "KeepLettersToNobody"),
        QueueGrant(
            "delivery",
            LETTERS_QUEUE,
            # Lambda asks for the attributes of a queue that it reads; the development server sends as SES does.
            ("DeleteMessage", "GetQueueAttributes", "GetQueueUrl", "ReceiveMessage", "SendMessage"),
            "ReadOfLetters",
        ),
        # The desk that an address names is looked up before any tenant is known.
        Grant("delivery", USERS, ("BatchGetItem",), "FindDesksByAddress", leading_keys=ANY_SLUG),
    ),
)

# --- keys ---


def letter(tenant_id: str, digest: str) -> str:
    """Return the partition key of a letter, by the digest of what makes it the same letter when it comes again."""
    return keys.collection(tenant_id, _LETTER, keys.part(digest, "a digest"))


def digest_of(pk: str) -> str:
    """Return the digest in what `letter` formed. Raises ValueError for any other key."""
    parts = keys.collection_parts(pk)
    if parts is None or parts[1] != _LETTER or len(parts[2]) != 1:
        raise ValueError("this is no letter")
    return parts[2][0]


def ledger(tenant_id: str) -> str:
    """Return the partition key of the index of all letters of a desk."""
    return keys.collection(tenant_id, _LEDGER)


def waiting(tenant_id: str) -> str:
    """Return the partition key of the index of those that wait for somebody."""
    return keys.collection(tenant_id, _WAITING)


def raw_key(tenant_id: str, name: str) -> str:
    """Return the key of the object that holds a letter of a desk as it came."""
    return tenant_key(tenant_id, _RAW, name)


def raw_prefix(tenant_id: str) -> str:
    """Return the beginning of the keys of all letters of a desk."""
    return tenant_prefix(tenant_id, _RAW)


class LetterItem(Item):
    """A letter that came to a desk, and what became of it.

    `object` names the object that holds it as it came, of `size` bytes; "" where that was deleted. `state` is one of
    STATES, and `reason` a sentence on any but the first. A filed one is the `entry` of ticket `number`, its sort
    key, or "" for the ticket's description. `sent_to` are the envelope's recipients that the desk has, `sent_by`
    its sender; `verdicts` is the JSON of what the receiving server found out.
    """

    table = LETTERS

    pk = UnicodeAttribute(hash_key=True)
    ledger = UnicodeAttribute()
    received_at = UnicodeAttribute()
    waiting = UnicodeAttribute(null=True)
    state = UnicodeAttribute()
    reason = UnicodeAttribute(default="")
    sender = UnicodeAttribute(default="")
    subject = UnicodeAttribute(default="")
    size = NumberAttribute(default=0)
    object = UnicodeAttribute()
    sent_by = UnicodeAttribute(default="")
    sent_to: ListAttribute[Any] = ListAttribute(default=list)
    verdicts = UnicodeAttribute(default="{}")
    number = NumberAttribute(default=0)
    entry = UnicodeAttribute(default="")


# --- holdings ---

_AT_ONCE: Final = 100
OWNERS_BYTES: Final = 50_000_000  # of letters in the file that owners make, which is kept in the database


def _letters(reader: Reader) -> Iterator[StoredItem]:
    named: list[tuple[str, str | None]] = []
    for row in reader.query(LETTERS, ledger(reader.tenant_id), index=LedgerRow.gsi):
        named.append((row.item["pk"]["S"], None))
        if len(named) >= _AT_ONCE:
            yield from reader.get(LETTERS, *named)
            named = []
    yield from reader.get(LETTERS, *named)


def _names(reader: Reader) -> Iterator[str]:
    for row in reader.query(LETTERS, ledger(reader.tenant_id), index=LedgerRow.gsi):
        if name := row.item["object"]["S"]:
            yield name


def _newest(reader: Reader) -> Iterator[str]:
    """Yield the names of the letters that came last, as far as the file of owners has room."""
    found = reader.query(LETTERS, ledger(reader.tenant_id), index=LedgerRow.gsi)
    rows = [row.item for row in found if row.item["object"]["S"]]
    room = OWNERS_BYTES
    for row in sorted(rows, key=lambda row: str(row["received_at"]["S"]), reverse=True):
        room -= int(row["size"]["N"])
        if room < 0:
            return
        yield row["object"]["S"]


def _letter_key(tenant_id: str, item: Raw) -> tuple[str, ...]:
    return (letter(tenant_id, digest_of(item["pk"]["S"])),)


def _place(tenant_id: str, item: Raw) -> str:
    """Say what is wrong with the lists that a letter is in, and with the name of its object."""
    is_waiting = item.get("waiting", {"S": waiting(tenant_id)})["S"] == waiting(tenant_id)
    is_listed = item["ledger"]["S"] == ledger(tenant_id) and is_waiting
    name = item["object"]["S"]
    return "" if is_listed and (not name or raw_key(tenant_id, name)) else "is in another list than its own"


def _forms() -> tuple[RowForm, ...]:
    checks = {
        "state": row_forms.one_of(*STATES),
        "sent_to": row_forms.texts,
        "verdicts": row_forms.json_object(row_forms.is_text),
        **row_forms.moments("received_at"),
    }
    return (RowForm(LetterItem, _letter_key, checks=checks, whole=_place),)


declare_holding(
    Holding("letters", (LETTERS,), _letters, Stage.BESIDE, forms=_forms),
    Holding(
        "letters as they came",
        (),
        no_items,
        Stage.BESIDE,
        objects=raw_prefix,
        exported=_names,
        exported_to_owners=_newest,
    ),
)
declare_people("letters", "tickets.letters.ledger")


declare_keys(
    LETTERS,
    {"letter": "TENANT#<tenant>|LETTER#<digest>"},
    indexes={"letters by time": "gsi-ledger", "letters that wait": "gsi-waiting"},
)
