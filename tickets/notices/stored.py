"""Declare how inboxes are stored: a row for each event that concerns a member, and one item of unread tickets.

Rows hold ids alone, so that a page shows texts as they are now, and as the member may read them. The table is not
placed: the platform role reads the item of a member with the desk itself, since each page shows how many wait.
"""

from __future__ import annotations

import re
from typing import Any, Final

from pynamodb.attributes import NumberAttribute, NumberSetAttribute, UnicodeAttribute
from pynamodb.expressions.condition import size

from portal.dynamo.models import Item
from portal.schema import keys
from portal.schema.access_patterns import declare_keys
from portal.schema.holdings import Holding, Stage, declare_holding, declare_people, own_partition
from portal.schema.registry import Grant, Table, declare
from tenants.membership import member_changes
from tenants.tenancy import context

IS_NUMBER: Final = re.compile(r"[1-9][0-9]{0,14}\Z")  # of a ticket
IS_DIGEST: Final = re.compile(r"[0-9a-f]{16}\Z")
INBOX: Final = "inbox"  # the item of a context
MOST_UNREAD: Final = 200  # tickets: 2 KB, so that each page reads half a unit

INBOXES = Table("Support.Inboxes", "tenant", "tenant_id", "part", ttl="expires_at")

declare(
    INBOXES,
    grants=(
        Grant("tenant", INBOXES, ("DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem")),
        Grant("platform", INBOXES, ("BatchGetItem", "DeleteItem")),
    ),
)


def notice(user_id: str, at: str, event: str) -> str:
    """Return the sort key of a notice of something that happened at the stamp `at`, known by the text `event`: the same
    event has the same key. Raises ValueError for what is no id of a person."""
    return keys.joined(keys.user(user_id), at, keys.digest(event, size=8))


def notices_of(user_id: str) -> str:
    """Return the beginning of the sort keys of a member's notices."""
    return keys.beginning(keys.user(user_id))


class InboxItem(Item):
    """The numbers of the tickets with news that a member has not seen. Its sort key is the id of the member.

    `reported` is the Monday of which they got the weekly report last, `month_reported` the first of a month for the
    monthly letter.
    """

    table = INBOXES

    tenant_id = UnicodeAttribute(hash_key=True)
    part = UnicodeAttribute(range_key=True)
    unread = NumberSetAttribute(null=True)
    reported = UnicodeAttribute(null=True)
    month_reported = UnicodeAttribute(null=True)


class NoticeItem(Item):
    """One event that concerns a member. `kind` is a MailKind, `entry` the sort key of the ticket's entry, "" for none.
    `told_at` is when the row was written, which may be later than the event."""

    table = INBOXES

    tenant_id = UnicodeAttribute(hash_key=True)
    part = UnicodeAttribute(range_key=True)
    kind = UnicodeAttribute()
    number = NumberAttribute()
    entry = UnicodeAttribute(default="")
    told_at = UnicodeAttribute()
    expires_at = NumberAttribute()

    @property
    def at(self) -> str:
        return keys.split(self.part)[1]


def has_room() -> Any:
    """Return the condition that the news of one more ticket can be counted."""
    return InboxItem.unread.does_not_exist() | (size(InboxItem.unread.attr_name) < MOST_UNREAD)  # type: ignore[no-untyped-call]  # unannotated in PynamoDB


def of_member(desk_id: str, user_id: str) -> InboxItem:
    """Return the key of a member's own item."""
    return InboxItem(keys.tenant(desk_id), keys.user(user_id))


member_changes.declare_own_item(of_member)
context.declare_item(INBOX, InboxItem, "")
declare_holding(
    Holding(
        "inboxes",
        (INBOXES,),
        own_partition(INBOXES),
        Stage.OWN,
        left_out="it repeats for some weeks what the tickets' own history says",
    )
)
declare_people("inboxes", "tickets.notices.people_in_inboxes")


declare_keys(INBOXES, {"notice": "<tenant>, <person>#<time>#<event>", "inbox": "<tenant>, <person>"})
