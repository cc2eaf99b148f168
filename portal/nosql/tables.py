"""Declare the table of sessions."""

from __future__ import annotations

from portal.schema.registry import Grant, declare
from portal.schema.tables import Index, Table

# Of sessions that somebody has signed in to, and no others: what a list of them shows.
SESSIONS_BY_USER = Index(
    "gsi-user",
    "user_id",
    "started_at",
    ("tenant_id", "address", "agent", "expires_at"),
    "",
    shared="a person sees and ends their sessions, whatever desk each is at",
)
SESSIONS = Table(
    "Platform.Sessions",
    "platform",
    "session_key",
    indexes=(SESSIONS_BY_USER,),
    ttl="expires_at",
    shared="a session is a person's, and says itself which tenant was chosen",
)

declare(
    SESSIONS,
    grants=(
        Grant("platform", SESSIONS, ("BatchGetItem", "DeleteItem", "GetItem", "PutItem")),
        Grant("platform", SESSIONS, ("Query",), "SessionsByUser", index=SESSIONS_BY_USER),
    ),
)
