"""What is stored about tickets: PynamoDB models of Support.Tickets and nothing else.

One ticket is one item collection. Read backwards it is SUMMARY, DETAIL, then the newest activity first, so one
bounded Query always brings what a page shows first.
"""

from __future__ import annotations

from typing import Any

from pynamodb.attributes import ListAttribute, MapAttribute, NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from portal.schema import tables


class SummaryItem(Item):
    """What lists and aggregates need: a shallow duplicate, small, the only item in the indexes.

    `resolver` is a user id, "" for nobody. `version` grows with every change of a field and not with comments.
    `request_id` is the idempotency key of the last write.

    For the aggregates, so that what a ticket adds to them follows from this item alone: when it was first answered
    and last resolved, reopened and commented on; in `days` how often which of these happened on which day
    (`aggregates.day_count`), some 15 bytes for each; and the epoch of aggregates that it is counted in.
    """

    table = tables.TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    tenant_status = UnicodeAttribute()
    resolver_updated = UnicodeAttribute()
    number = NumberAttribute()
    title = UnicodeAttribute()
    status = UnicodeAttribute()
    priority = UnicodeAttribute()
    tags: ListAttribute[Any] = ListAttribute(default=list)
    resolver = UnicodeAttribute(default="")
    resolver_name = UnicodeAttribute(default="")
    requester = UnicodeAttribute(default="")
    requester_name = UnicodeAttribute()
    created_at = UnicodeAttribute()
    updated_at = UnicodeAttribute()
    comment_count = NumberAttribute(default=0)
    version = NumberAttribute(default=1)
    request_id = UnicodeAttribute(default="")
    responded_at = UnicodeAttribute(null=True)
    resolved_at = UnicodeAttribute(null=True)
    reopened_at = UnicodeAttribute(null=True)
    commented_at = UnicodeAttribute(null=True)
    days: MapAttribute[str, int] = MapAttribute(default=dict)  # type: ignore[no-untyped-call]  # unannotated in PynamoDB
    epoch = NumberAttribute(default=0)


class DetailItem(Item):
    """The long part of a ticket, which no list reads."""

    table = tables.TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    description = UnicodeAttribute(default="")


class ChangeMap(MapAttribute[str, str]):
    """One field's change. Values are text as shown to a person."""

    field = UnicodeAttribute()
    before = UnicodeAttribute(default="")
    after = UnicodeAttribute(default="")


class ActivityItem(Item):
    """An entry of a ticket's history: `kind` is comment, note (internal) or event (a change of fields)."""

    table = tables.TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    kind = UnicodeAttribute()
    at = UnicodeAttribute()
    author = UnicodeAttribute(default="")
    author_name = UnicodeAttribute()
    body = UnicodeAttribute(default="")
    verb = UnicodeAttribute(default="")
    changes: ListAttribute[ChangeMap] = ListAttribute(of=ChangeMap, default=list)


class CounterItem(Item):
    """The last ticket number that was given out in a tenant, and the epoch in which new tickets are counted."""

    table = tables.TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    last = NumberAttribute()
    epoch = NumberAttribute(default=0)


class RequestItem(Item):
    """An idempotency record: this request id has created that ticket. Removed by TTL after a day."""

    table = tables.TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    number = NumberAttribute()
    expires_at = NumberAttribute()


class ImportItem(Item):
    """A row of an archive that has become a ticket, or is becoming one while `done` is 0."""

    table = tables.TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    number = NumberAttribute()
    digest = UnicodeAttribute()
    comments = NumberAttribute(default=0)
    done = NumberAttribute(default=0)


class SeedItem(Item):
    """How far the demonstration of a tenant is: the first `written` of `planned` tickets, with times relative to `day`.

    Numbers up to `taken` may belong to tickets that people opened before. `complete` is 1 in the first tenant when
    the whole demonstration was finished once.
    """

    table = tables.TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    day = UnicodeAttribute()
    users = NumberAttribute()
    planned = NumberAttribute()
    written = NumberAttribute(default=0)
    taken = NumberAttribute(default=0)
    complete = NumberAttribute(default=0)


class DeadLetterItem(Item):
    """A stream record that could not be counted: `record` is its JSON, `aggregate` the only item that did not take
    it, "" for all of them. `sequence` begins with the padded sequence number. Removed by TTL after 30 days.

    In a partition of its own (`keys.settled_letters`), with `at` and `expires_at` alone: one that was settled."""

    table = tables.DEAD_LETTERS

    stream = UnicodeAttribute(hash_key=True)
    sequence = UnicodeAttribute(range_key=True)
    tenant_id = UnicodeAttribute(default="")
    aggregate = UnicodeAttribute(default="")
    reason = UnicodeAttribute()
    record = UnicodeAttribute()
    at = UnicodeAttribute()
    expires_at = NumberAttribute()


class VerifiedItem(Item):
    """The last verification of a tenant's aggregates that a person asked for, beside the aggregates themselves.

    `state` is running, ok, drift or unknown. `run` tells a verification from one that took its place. `found` is the
    JSON of the first differences, each [item, count, stored, recounted], and `more` says how many there were beyond.
    """

    table = tables.TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    run = UnicodeAttribute(default="")
    state = UnicodeAttribute()
    started_at = UnicodeAttribute()
    finished_at = UnicodeAttribute(default="")
    by_name = UnicodeAttribute(default="")
    tickets = NumberAttribute(default=0)
    why = UnicodeAttribute(default="")
    found = UnicodeAttribute(default="[]")
    more = NumberAttribute(default=0)
