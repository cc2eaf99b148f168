"""Store tickets: PynamoDB models of Support.Tickets and nothing else.

One ticket is one item collection. Read backwards it is SUMMARY, DETAIL, then the newest activity first, so one
bounded Query always brings what a page shows first.
"""

from __future__ import annotations

from typing import Any

from pynamodb.attributes import ListAttribute, MapAttribute, NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from tickets.ticket.tables import TICKETS


class SummaryItem(Item):
    """The vertical partition of a ticket that lists and aggregates read: small, and the only item in the indexes.

    It duplicates nothing: the long text is DetailItem's, and what was said is ActivityItem's.
    `resolver` is a user id, "" for nobody. `version` grows with every change of a field and not with comments. It grows
    with the erasure of a person, too: `erased_versions` are those that erasures made, of which no entry tells.
    `comment_count`, `commented_at` and `updated_at` tell of comments and not of internal notes: viewers see them too.
    `noted_at`, when the last note was added, is for agents alone. Until something else changes the ticket, `raised_at`
    is the same moment, and with `raised_status` and `resolver_raised` the ticket's place in the lists that agents see.

    For the aggregates, so that what a ticket adds to them follows from this item alone: when it was first answered
    and last resolved, reopened and commented on; in `days` how often which of these happened on which day
    (`contributions.day_count`), some 15 bytes for each; and the epoch of aggregates that it is counted in.
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
    tags: ListAttribute[Any] = ListAttribute(default=list)
    resolver = UnicodeAttribute(default="")
    resolver_name = UnicodeAttribute(default="")
    requester = UnicodeAttribute(default="")
    requester_name = UnicodeAttribute()
    created_at = UnicodeAttribute()
    updated_at = UnicodeAttribute()
    comment_count = NumberAttribute(default=0)
    version = NumberAttribute(default=1)
    erased_versions: ListAttribute[Any] = ListAttribute(null=True)
    responded_at = UnicodeAttribute(null=True)
    resolved_at = UnicodeAttribute(null=True)
    reopened_at = UnicodeAttribute(null=True)
    commented_at = UnicodeAttribute(null=True)
    noted_at = UnicodeAttribute(null=True)
    raised_at = UnicodeAttribute(null=True)
    raised_status = UnicodeAttribute(null=True)
    resolver_raised = UnicodeAttribute(null=True)
    days: MapAttribute[str, int] = MapAttribute(default=dict)  # type: ignore[no-untyped-call]  # unannotated in PynamoDB
    epoch = NumberAttribute(default=0)

    @property
    def version_told(self) -> int:
        """Return the version that follows from the history: without those that erasures made."""
        return int(self.version) - len(self.erased_versions or ())


class DetailItem(Item):
    """The long part of a ticket, which no list reads. `request` is the digest of the request that created the ticket,
    which names its RequestItem: what has no list of its own is found by the ticket that it made."""

    table = TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    description = UnicodeAttribute(default="")
    request = UnicodeAttribute(null=True)


class ChangeMap(MapAttribute[str, str]):
    """One field's change. Values are text as shown to a person."""

    field = UnicodeAttribute()
    before = UnicodeAttribute(default="")
    after = UnicodeAttribute(default="")


class ActivityItem(Item):
    """An entry of a ticket's history: `kind` is comment, note (internal) or event (a change of fields).

    `request` is, in a comment or note that a form or a call has made, what it is in `DetailItem`. `former_resolver` is
    the id of the assignee before a change ("" for nobody), whose name alone is among the changes, and
    `former_description` the text before one, of which they have the length: both let a ticket be seen as it was, and
    are missing in events of before they were kept.
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
    former_resolver = UnicodeAttribute(null=True)
    former_description = UnicodeAttribute(null=True)


class CounterItem(Item):
    """The last ticket number that was given out in a tenant, and the epoch in which new tickets are counted.

    While `closed` is there, no number is given out here: the tenant is being moved to another place.
    """

    table = TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    last = NumberAttribute()
    epoch = NumberAttribute(default=0)
    closed = NumberAttribute(null=True)


class RequestItem(Item):
    """An idempotency record: this request has created that ticket, or commented on it. Removed by TTL after a day."""

    table = TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    number = NumberAttribute()
    expires_at = NumberAttribute()
