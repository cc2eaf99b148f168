"""Declare how tickets are stored: their table with its indexes, keys and items. Holdings are in `holdings.py`.

One ticket is one item collection. Read backwards it is SUMMARY, DETAIL, then the newest activity first, so one
bounded Query always brings what a page shows first.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from typing import Any, Final

from django.utils.translation import gettext_noop
from pynamodb.attributes import (
    Attribute,
    ListAttribute,
    MapAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UnicodeSetAttribute,
)
from pynamodb.constants import MAP
from pynamodb.expressions.condition import size

from portal import clock
from portal.dynamo.models import Item, KeepsUnknown, Kinds
from portal.schema import keys as all_keys
from portal.schema.access_patterns import declare_keys
from portal.schema.registry import Grant, Index, Table, declare
from tickets.ticket.fields import FIELDS, Channel

# A list row, and nothing else: each projected attribute is written to both indexes on every change.
# An index always carries the base table's keys and its own; the other index's key is listed because a row's
# select box states its resolver.
LIST_ROW = (
    *(field.name for field in FIELDS if field.is_listed),
    "number",
    "resolver_name",
    "requester_name",
    "created_at",
    "comment_count",
    "version",
    # Where there is one: when it was last resolved, reopened, commented on, rated. Lists behind numbers need it.
    "resolved_at",
    "reopened_at",
    "commented_at",
    "rated_at",
    "due",
)

STATUS_UPDATED = Index("gsi-status-updated", "tenant_status", "updated_at", (*LIST_ROW, "raised_at"))
STATUS_RESOLVER = Index(
    "gsi-status-resolver", "tenant_status", "resolver_updated", (*LIST_ROW, "updated_at", "raised_at")
)
# Sparse: the tickets whose last change is an internal note, in the order that agents see. See ADR 30.
STATUS_RAISED = Index("gsi-raised", "raised_status", "raised_at", (*LIST_ROW, "tenant_status"))
RESOLVER_RAISED = Index(
    "gsi-raised-resolver", "raised_status", "resolver_raised", (*LIST_ROW, "tenant_status", "raised_at")
)
# Sparse: the tickets of people outside the desk. It holds nothing that a comment changes.
OF_REQUESTER = Index("gsi-requester", "tenant_requester", "created_at", ("number", "title", "status", "priority"))

FILES: Final = "FILES"  # begins the collections of the files of tickets: see tickets/attachments
TICKETS = Table(
    "Support.Tickets",
    "tenant",
    "pk",
    "sk",
    indexes=(STATUS_UPDATED, STATUS_RESOLVER, STATUS_RAISED, RESOLVER_RAISED, OF_REQUESTER),
    ttl="expires_at",
    stream=True,
    leading_keys=all_keys.OWN_COLLECTIONS,
    kept=("SUMMARY", "DETAIL"),  # a ticket is never deleted by itself; a comment that is taken back is
    placed=True,
    copied=("BULK", "COUNTER", FILES, "IMPORT", "IMPORTS", "REQUEST", "TICKET"),  # the stream makes all else of these
    fences=True,
)


declare(
    TICKETS,
    grants=(
        Grant(
            "tenant",
            TICKETS,
            ("BatchGetItem", "ConditionCheckItem", "DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem"),
        ),
        Grant("seed", TICKETS, ("BatchWriteItem",), "WriteInBulk", leading_keys=all_keys.ALL_COLLECTIONS),
    ),
)

# --- keys ---

SUMMARY: Final = "SUMMARY"
DETAIL: Final = "DETAIL"
COUNTER_TICKET: Final = "TICKET"
_REQUEST: Final = "REQUEST"
MADE_TICKET: Final = "TICKET"  # sort keys of the records of requests, by what they made
MADE_COMMENT: Final = "COMMENT"
UNASSIGNED: Final = "UNASSIGNED"
_TICKET: Final = "TICKET"
_ACTIVITY: Final = "ACTIVITY"
_RAISED: Final = "RAISED"
_REQUESTER: Final = "REQUESTER"
_ASIDE: Final = "ASIDE"
MERGED_ASIDE, SPAM_ASIDE = "MERGED", "SPAM"
_OUTSIDE: Final = re.compile(r"rq_[0-9a-f]{32}\Z")
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z\Z", re.ASCII)
ACTIVITY_PREFIX: Final = all_keys.beginning(_ACTIVITY)


def ticket(tenant_id: str, number: int) -> str:
    """Return the partition key of one ticket's item collection. `number` counts from 1 within the tenant."""
    return all_keys.collection(tenant_id, _TICKET, all_keys.whole_number(number, "a ticket number", least=1))


def counter(tenant_id: str) -> str:
    """Return the partition key of the tenant's counters; sort key `COUNTER_TICKET` holds the last ticket number."""
    return all_keys.collection(tenant_id, "COUNTER")


def request(tenant_id: str, request_id: str) -> str:
    """Return the partition key of an idempotency record: one request id creates one ticket, however often it is
    sent."""
    return all_keys.collection(tenant_id, _REQUEST, request_id)


def is_request(pk: str) -> bool:
    """Tell whether a partition key is that of an idempotency record."""
    parts = all_keys.collection_parts(pk)
    return parts is not None and parts[1] == _REQUEST


def activity(at: str, entry_id: str) -> str:
    """Return the sort key of a comment, note or timeline event. `at` is ISO 8601 UTC with microseconds, so keys sort by
    time."""
    return all_keys.joined(_ACTIVITY, at, entry_id)


def activity_from(at: str) -> str:
    """Return the sort key before those of all entries of this moment and later, and after all earlier ones."""
    return all_keys.joined(_ACTIVITY, at)


def entry_reference(activity_key: str) -> str:
    """Return what addresses call an entry: its moment and its id, from which `of_reference` forms the key again."""
    return "~".join(all_keys.split(activity_key)[1:])


def of_reference(reference: str) -> str:
    """Return the sort key of the entry that an address names. Raises ValueError for what names none."""
    at, _, entry = reference.partition("~")
    if not _MOMENT.match(at):
        raise ValueError("this is no moment of an entry")
    return activity(at, entry)


def entry_id(activity_key: str) -> str:
    """Return the entry id in what `activity` formed."""
    return all_keys.split(activity_key)[-1]


def tenant_status(tenant_id: str, status: str, shard: int) -> str:
    """Return the partition key of both ticket indexes: one tenant, one status, one shard."""
    return all_keys.collection(tenant_id, status, all_keys.whole_number(shard, "a shard"))


def raised_status(tenant_id: str, status: str) -> str:
    """Return the partition key of both indexes of noted tickets: one tenant, one status, however many shards."""
    return all_keys.collection(tenant_id, _RAISED, status)


def aside(tenant_id: str, why: str) -> str:
    """Return the partition key, in the ticket indexes, of tickets that are in no list: MERGED_ASIDE or SPAM_ASIDE. It
    is the place of a status and of a requester alike."""
    return all_keys.collection(tenant_id, _ASIDE, why)


def tenant_requester(tenant_id: str, requester_id: str) -> str:
    """Return the partition key of the index of the tickets of people outside the desk: one tenant, one person."""
    return all_keys.collection(tenant_id, _REQUESTER, requester_id)


def is_requester(person_id: str) -> bool:
    """Tell whether an id is that of a requester outside the desk: no user id has its form."""
    return _OUTSIDE.match(person_id) is not None


def place_of_requester(tenant_id: str, requester_id: str) -> str | None:
    """Return where a ticket of this requester is in that index, None for one of somebody of the desk."""
    if is_requester(requester_id):
        return tenant_requester(tenant_id, requester_id)
    all_keys.tenant(tenant_id)  # refuses what is no id, as all builders do
    return None


def shelf_of(tenant_status_key: str) -> tuple[str, int] | None:
    """Return status and shard in what `tenant_status` formed, None for anything else."""
    parts = all_keys.collection_parts(tenant_status_key)
    if parts is None or len(parts[2]) != 1 or not (parts[2][0].isascii() and parts[2][0].isdigit()):
        return None
    return parts[1], int(parts[2][0])


def resolver_updated(resolver: str, updated_at: str) -> str:
    """Return the sort key of gsi-status-resolver. `resolver` is a user id, or "" for nobody: UNASSIGNED keeps the row
    indexed."""
    return all_keys.joined(resolver or UNASSIGNED, updated_at)


def resolver_prefix(resolver: str) -> str:
    """Return the beginning of every `resolver_updated` of this resolver, delimiter included."""
    return all_keys.beginning(resolver or UNASSIGNED)


def status_shard(number: int, shards: int) -> int:
    """Choose the shard of a ticket among `shards` (1 or more): blake2b of its number, so stable across processes.

    The character-product hash printed in AWS's write-sharding page sends 20,000 UUIDs into one suffix; this
    one spreads evenly.
    """
    if shards < 1:
        raise ValueError("there is at least one shard")
    if shards == 1:
        return 0
    digest = hashlib.blake2b(str(number).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % shards


def ticket_number(tenant_id: str, pk: str) -> int | None:
    """Return the number in a ticket's partition key, or None when the key is not a ticket of this tenant.

    Lists use it to drop an index row that another tenant has planted: the row's base key gives it away.
    """
    tenant, owner = all_keys.tenant(tenant_id), owner_of(pk)
    return owner[1] if owner and owner[0] == tenant else None


@lru_cache(maxsize=1024)  # each entry of a ticket is asked for its own
def owner_of(pk: str) -> tuple[str, int] | None:
    """Return tenant and number of a ticket's partition key, or None for anything else."""
    parts = all_keys.collection_parts(pk)
    if parts is None or parts[1] != _TICKET or len(parts[2]) != 1:
        return None
    number = parts[2][0]
    return (parts[0], int(number)) if number.isascii() and number.isdigit() and number[0] != "0" else None


# --- items ---


HELD, SENT, BOUNCED, COMPLAINED = "held", "sent", "bounced", "complained"  # how a comment fared as a letter

COUNT_FORM: Final = 1  # of the summaries that are written now

# Kinds of events in a summary's `days`: a comment of somebody outside the desk is both of the first two.
COMMENTED, RECEIVED, RESOLVED, REOPENED = "c", "q", "r", "o"


def day_count(kind: str, at: str, zone: str) -> str:
    """Return the name under which a summary's `days` counts an event on its day in a time zone: "2026-11-20c"."""
    return clock.day_of(at, zone) + kind


class TextsAttribute(Attribute[dict[str, str]]):
    """A map of texts, which is read as a plain one, empty where there is none: PynamoDB's own makes an instance of a
    class for each row of a list."""

    attr_type = MAP

    def serialize(self, value: Any) -> Any:
        return {name: {"S": text} for name, text in value.items()}

    def deserialize(self, value: Any) -> dict[str, str]:
        return {name: text["S"] for name, text in value.items()}

    def __get__(self, instance: Any, owner: Any) -> Any:
        found = super().__get__(instance, owner)
        return {} if found is None else found


class SummaryItem(Item):
    """The vertical partition of a ticket that lists and aggregates read: small, and the only item in the indexes.

    It duplicates nothing: the long text is DetailItem's, and what was said is ActivityItem's.
    `resolver` is a user id, "" for nobody. `requester` is one too, or the id of a person outside the desk: then
    `tenant_requester` is the ticket's place among those of this person.
    `custom` has the values of the desk's own fields, by their ids; see custom_values.py.
    `version` grows with every change of a field and not with comments. It grows with the erasure of a person, too:
    `erased_versions` are those that erasures made, of which no entry tells.
    `comment_count`, `commented_at` and `updated_at` tell of comments and not of internal notes: viewers see them too.
    `noted_at`, when the last note was added, is for agents alone. Until something else changes the ticket, `raised_at`
    is the same moment, and with `raised_status` and `resolver_raised` the ticket's place in the lists that agents see.

    `link_generation` grows when an agent revokes the links that lead its requester here: tickets/replies.
    `followers` are the ids of members who want to hear of its comments, `muted_by` of those who want to hear nothing
    of it: tickets/notices.

    A ticket that was `merged_into` another one, or is spam since `spam_at`, is aside: it has no place in the lists, and
    what it says stays as it is. `merged` are the numbers of the tickets that were merged into this one, and into those.
    Of spam, `spam_blocks` says that its mark has blocked the sender; `expires_at`, which all items of the ticket have
    then, is when TTL removes it.

    `due` says for lists what the ticket waits for, as due_marks.py packs it. `sla` is the state of its clocks, of which
    tickets/sla alone knows; each is missing where there is none.

    For the aggregates, so that what a ticket adds to them follows from this item alone: when it was first answered
    and last resolved, reopened, commented on and rated; in `days` how often which of these happened on which day
    (`day_count`), some 15 bytes for each; and the epoch of aggregates that it is counted in. `zone` is the time zone of
    the days on which it is counted: that of the desk when it was opened or counted anew, none for UTC. `count_form` is
    COUNT_FORM where it is counted in months too; none for a ticket of before.
    `resolved_before` and `reopened_before` are what the last reopening replaced, "" for nothing, so that it can be
    undone.
    """

    table = TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    tenant_status = UnicodeAttribute()
    resolver_updated = UnicodeAttribute()
    number = NumberAttribute()
    title = UnicodeAttribute()
    status = UnicodeAttribute()
    priority = UnicodeAttribute()
    channel = UnicodeAttribute(default=Channel.HAND.value)
    rating = UnicodeAttribute(default="")
    kind = UnicodeAttribute(default="")
    group = UnicodeAttribute(default="")
    custom = TextsAttribute(null=True)
    tags: ListAttribute[Any] = ListAttribute(default=list)
    resolver = UnicodeAttribute(default="")
    resolver_name = UnicodeAttribute(default="")
    requester = UnicodeAttribute(default="")
    requester_name = UnicodeAttribute()
    tenant_requester = UnicodeAttribute(null=True)
    created_at = UnicodeAttribute()
    updated_at = UnicodeAttribute()
    comment_count = NumberAttribute(default=0)
    version = NumberAttribute(default=1)
    erased_versions: ListAttribute[Any] = ListAttribute(null=True)
    responded_at = UnicodeAttribute(null=True)
    resolved_at = UnicodeAttribute(null=True)
    reopened_at = UnicodeAttribute(null=True)
    resolved_before = UnicodeAttribute(null=True)
    reopened_before = UnicodeAttribute(null=True)
    commented_at = UnicodeAttribute(null=True)
    rated_at = UnicodeAttribute(null=True)
    noted_at = UnicodeAttribute(null=True)
    raised_at = UnicodeAttribute(null=True)
    raised_status = UnicodeAttribute(null=True)
    resolver_raised = UnicodeAttribute(null=True)
    days: MapAttribute[str, int] = MapAttribute(default=dict)  # type: ignore[no-untyped-call]  # unannotated in PynamoDB
    epoch = NumberAttribute(default=0)
    zone = UnicodeAttribute(null=True)
    count_form = NumberAttribute(null=True)
    file_count = NumberAttribute(null=True)
    file_bytes = NumberAttribute(null=True)
    link_generation = NumberAttribute(null=True)
    followers = UnicodeSetAttribute(null=True)
    muted_by = UnicodeSetAttribute(null=True)
    merged_into = NumberAttribute(null=True)
    merged: ListAttribute[Any] = ListAttribute(null=True)
    spam_at = UnicodeAttribute(null=True)
    spam_blocks = NumberAttribute(null=True)
    due = UnicodeAttribute(null=True)
    sla = UnicodeAttribute(null=True)
    expires_at = NumberAttribute(null=True)

    @property
    def is_aside(self) -> bool:
        """Tell whether it is in no list and in no number of the desk, and changes no more."""
        return bool(self.merged_into or self.spam_at)

    @property
    def listeners(self) -> set[str]:
        """Return the ids of those who hear of each comment: the assignee and the followers. It costs no read, so that
        a comment without listeners costs no write more."""
        return ({self.resolver, *(self.followers or ())} - {""}) - (self.muted_by or set())

    def hears(self, user_id: str) -> str:
        """Return why somebody hears of comments: "follows" or "assigned"; "muted", or "" where they do not."""
        if user_id in (self.muted_by or ()):
            return "muted"
        if user_id in (self.followers or ()):
            return "follows"
        return "assigned" if user_id == self.resolver else ""

    @property
    def version_told(self) -> int:
        """Return the version that follows from the history: without those that erasures made."""
        return int(self.version) - len(self.erased_versions or ())


# What is known of a file: nothing yet while a scanner is at work, or what it found. Where there is none, that is said.
FILE_STATES: Final = ("waiting", "clean", "refused", "unscanned", "removed")


def is_file_id(text: str) -> bool:
    """Tell whether a text is the id of a file: 32 hexadecimal digits."""
    return len(text) == 32 and not text.strip("0123456789abcdef")


class FileMap(KeepsUnknown, MapAttribute[str, Any]):
    """A file as the description or comment lists it that it belongs to. `size` is in bytes. `object` is the name of
    its object, null for one that has the name of its id. `preview` is the size of its preview in pixels, as "400x300",
    and null until one is made; "none" where it gets none."""

    id = UnicodeAttribute()
    name = UnicodeAttribute()
    size = NumberAttribute()
    type = UnicodeAttribute()
    state = UnicodeAttribute()
    object = UnicodeAttribute(null=True)
    preview = UnicodeAttribute(null=True)


def may_join(people: Any, user_id: str, *, most: int) -> Any:
    """Return the condition that a set of people, an attribute of SummaryItem, has room for somebody or has them."""
    return people.does_not_exist() | people.contains(user_id) | (size(people.attr_name) < most)  # type: ignore[no-untyped-call]  # unannotated in PynamoDB


class LinkMap(KeepsUnknown, MapAttribute[str, Any]):
    """A link to another ticket of the desk, which has the opposite one: `kind` is one of LINK_KINDS."""

    kind = UnicodeAttribute()
    number = NumberAttribute()


# The kinds of links between tickets, each with that of the other side.
LINK_KINDS: Final = {
    "blocks": "blocked_by",
    "blocked_by": "blocks",
    "duplicate_of": "duplicated_by",
    "duplicated_by": "duplicate_of",
    "relates_to": "relates_to",
    "split_into": "split_from",
    "split_from": "split_into",
}
SPLITS: Final = ("split_into", "split_from")

LINK_LABELS: Final = {
    "blocks": gettext_noop("Blocks"),
    "blocked_by": gettext_noop("Is blocked by"),
    "duplicate_of": gettext_noop("Is a duplicate of"),
    "duplicated_by": gettext_noop("Has the duplicate"),
    "relates_to": gettext_noop("Relates to"),
    "split_into": gettext_noop("Was split into"),
    "split_from": gettext_noop("Was split off from"),
}


class DetailItem(Item):
    """The long part of a ticket, which no list reads. `request` is the digest of the request that created the ticket,
    which names its RequestItem. `message_id` and `letter` are of one that came by mail what they are in ActivityItem.
    `links` are those to other tickets.
    """

    table = TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    description = UnicodeAttribute(default="")
    request = UnicodeAttribute(null=True)
    message_id = UnicodeAttribute(null=True)
    links: ListAttribute[LinkMap] = ListAttribute(of=LinkMap, null=True)
    files: ListAttribute[FileMap] = ListAttribute(of=FileMap, null=True)
    letter: MapAttribute[str, Any] = MapAttribute(null=True)  # type: ignore[no-untyped-call]  # unannotated in PynamoDB
    expires_at = NumberAttribute(null=True)


class ChangeMap(KeepsUnknown, MapAttribute[str, str]):
    """One field's change. Values are text as shown to a person."""

    field = UnicodeAttribute()
    before = UnicodeAttribute(default="")
    after = UnicodeAttribute(default="")


class FormerText(KeepsUnknown, MapAttribute[str, str]):
    """An earlier text of a comment, which stood until `at`, when `by` put another in its place."""

    body = UnicodeAttribute(default="")
    at = UnicodeAttribute()
    by = UnicodeAttribute(default="")
    by_name = UnicodeAttribute(default="")


class ActivityItem(Item):
    """An entry of a ticket's history: `kind` is comment, note (internal) or event (a change of fields).

    `request` is, in a comment or note that a form or a call has made, what it is in `DetailItem`. `delivery` is there
    in a comment that goes to somebody outside as a letter: how that fared, since `delivery_at`, and in `delivery_note`
    why. `cc` are the addresses that it goes to in copy. `message_id` is that of the letter that a comment came as.
    `former_requester` is the id of the requester before a change, and
    `former_resolver` that of the assignee ("" for nobody), whose names alone are among the changes,
    and `former_description` the text before one, of which they have the length: both let a ticket be seen as it was and
    are missing in events of before they were kept.

    `cause` says of what a rule has made by which rule and why; see causes.py.

    `letter` is what a comment that came by mail keeps of its letter; see tickets/desk/letter_texts.py. In a
    ticket with clocks, `sla` numbers the steps that moved them, and `receipt` says how a missed target was counted.

    `former_texts` are what a comment or note said before it was edited, oldest first. One that was deleted keeps no
    text, former ones and files neither: only who deleted it and when.
    """

    table = TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    kind = UnicodeAttribute()
    at = UnicodeAttribute()
    author = UnicodeAttribute(default="")
    author_name = UnicodeAttribute()
    body = UnicodeAttribute(default="")
    verb = UnicodeAttribute(default="")
    changes: ListAttribute[ChangeMap] = ListAttribute(of=ChangeMap, default=list)
    request = UnicodeAttribute(null=True)
    delivery = UnicodeAttribute(null=True)
    delivery_at = UnicodeAttribute(null=True)
    delivery_note = UnicodeAttribute(null=True)
    cc: ListAttribute[Any] = ListAttribute(null=True)
    message_id = UnicodeAttribute(null=True)
    former_requester = UnicodeAttribute(null=True)
    former_resolver = UnicodeAttribute(null=True)
    former_description = UnicodeAttribute(null=True)
    files: ListAttribute[FileMap] = ListAttribute(of=FileMap, null=True)
    letter: MapAttribute[str, Any] = MapAttribute(null=True)  # type: ignore[no-untyped-call]  # unannotated in PynamoDB
    sla = UnicodeAttribute(null=True)
    receipt = UnicodeAttribute(null=True)
    expires_at = NumberAttribute(null=True)
    cause = UnicodeAttribute(null=True)
    former_texts: ListAttribute[FormerText] = ListAttribute(of=FormerText, null=True)
    deleted_at = UnicodeAttribute(null=True)
    deleted_by = UnicodeAttribute(null=True)
    deleted_by_name = UnicodeAttribute(null=True)


# What a Query of one ticket gives.
TICKET_ITEMS: Final = Kinds[SummaryItem | DetailItem | ActivityItem](
    {SUMMARY: SummaryItem, DETAIL: DetailItem, ACTIVITY_PREFIX: ActivityItem}
)


class CounterItem(Item):
    """The last ticket number that was given out in a tenant, and how new tickets are counted: status_dates.py.

    While `closed` is there, no number is given out here: the tenant is being moved to another place.
    """

    table = TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    last = NumberAttribute()
    epoch = NumberAttribute(default=0)
    count_form = NumberAttribute(null=True)
    closed = NumberAttribute(null=True)


class RequestItem(Item):
    """An idempotency record: this request has created that ticket, or commented on it. Removed by TTL after a day."""

    table = TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    number = NumberAttribute()
    expires_at = NumberAttribute()


declare_keys(
    TICKETS,
    {
        "ticket": "TENANT#<tenant>|TICKET#<number>, <part>",
        "counter": "TENANT#<tenant>|COUNTER, <part>",
        "request": "TENANT#<tenant>|REQUEST#<request>, <part>",
    },
    indexes={
        "tickets by status": "gsi-status-updated",
        "tickets by resolver": "gsi-status-resolver",
        "noted tickets": "gsi-raised",
        "noted tickets by resolver": "gsi-raised-resolver",
        "tickets of a requester": "gsi-requester",
    },
)
