"""Form the key of a session."""

from __future__ import annotations

from portal.schema import keys


def session(session_key: str) -> str:
    """Return the partition key of a session: a hash of the key in its cookie.

    So neither the table nor its index, a cursor or a page holds anything that somebody could sign in with.
    """
    return keys.digest(session_key)
