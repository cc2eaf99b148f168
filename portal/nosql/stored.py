"""Declare the table of sessions, its key and its items."""

from __future__ import annotations

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from portal.dynamo.models import IndexModel
from portal.schema import keys
from portal.schema.access_patterns import declare_keys
from portal.schema.registry import Grant, Table, declare


def session(session_key: str) -> str:
    """Return the partition key of a session: a hash of the key in its cookie.

    So neither the table nor its index, a cursor or a page holds anything that somebody could sign in with.
    """
    return keys.digest(session_key)


SESSIONS = Table(
    "Platform.Sessions",
    "platform",
    "session_key",
    ttl="expires_at",
    shared="a session belongs to a person, and names the chosen tenant",
)


class SessionItem(Item):
    """A signed-in browser. `expires_at` is seconds since the epoch: DynamoDB's TTL removes the item some time later.

    `session_key` is `session` of the key in the cookie. Person, time, network and desk are repeated beside `data` for
    the index by user; `user_id` and `started_at` are missing before sign-in.
    """

    table = SESSIONS

    session_key = UnicodeAttribute(hash_key=True)
    data = UnicodeAttribute()
    expires_at = NumberAttribute()
    user_id = UnicodeAttribute(null=True)
    started_at = UnicodeAttribute(null=True)
    tenant_id = UnicodeAttribute(null=True)
    address = UnicodeAttribute(null=True)
    agent = UnicodeAttribute(null=True)


class SessionByUser(IndexModel):
    """A row of the list of a person's sessions: of those that somebody has signed in to, and no others."""

    table = SESSIONS
    label = "gsi-user"
    leading_keys = ""
    shared = "a person lists and ends their sessions in all desks"

    user_id = UnicodeAttribute(hash_key=True)
    started_at = UnicodeAttribute(range_key=True)
    session_key = UnicodeAttribute()
    tenant_id = UnicodeAttribute(null=True)
    address = UnicodeAttribute(null=True)
    agent = UnicodeAttribute(null=True)
    expires_at = NumberAttribute()


declare(
    SESSIONS,
    grants=(
        Grant("platform", SESSIONS, ("BatchGetItem", "DeleteItem", "GetItem", "PutItem")),
        Grant("platform", SESSIONS, ("Query",), "SessionsByUser", index=SessionByUser.gsi),
    ),
)


declare_keys(SESSIONS, {"session": ""}, indexes={"sessions by person": "gsi-user"})
