"""Keep Django's session contract with one item per session. Only people who signed in have one.

An item is stored under a hash of its session's key, and an index lists the sessions of a person. The item's TTL is a
cleaning service, not the rule: DynamoDB may take days, so an expired item is refused on read.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any, Final

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.base import CreateError, SessionBase, UpdateError
from django.core import signing
from django.utils.crypto import get_random_string

from portal import clock
from portal.dynamo.client import FAN_OUT_THREADS, fan_out
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import chunked
from portal.errors import ConditionFailed, Unavailable
from portal.nosql import stored
from portal.nosql.stored import SessionByUser, SessionItem

TENANT_KEY: Final = "tenant_id"  # in a session: the tenant that it entered last
AGENT_LIMIT: Final = 200  # characters of a browser's name; a session's item stays below 1 KB, one write unit


class SessionStore(SessionBase):
    """Load and save one session. `began` is how its sign-in is listed: "started_at", "address" and "agent"."""

    began: Mapping[str, str]

    def __init__(self, session_key: str | None = None) -> None:
        super().__init__(session_key)
        self.began = {}
        self._stored: SessionItem | None = None

    @classmethod
    def from_item(cls, item: SessionItem, session_key: str) -> SessionStore:
        """Build a session whose item has been read already, without a call."""
        if item.expires_at <= time.time():
            return cls()
        store = cls(session_key)
        store._session_cache = store._opened(item)  # type: ignore[attr-defined]  # SessionBase's lazy cache
        return store

    def begin(self, *, address: str, agent: str) -> None:
        """Note that somebody signs in now, from this network address with this browser."""
        self.began = {"started_at": clock.stamp(), "address": address, "agent": agent[:AGENT_LIMIT]}
        self.modified = True

    def load(self) -> dict[str, Any]:
        item = read(self.session_key) if self.session_key else None
        if item is None or item.expires_at <= time.time():
            self._session_key = None
            return {}
        return self._opened(item)

    def _opened(self, item: SessionItem) -> dict[str, Any]:
        self._stored = item
        began = {name: getattr(item, name) for name in ("started_at", "address", "agent")}
        self.began = {name: value for name, value in began.items() if value}
        return self.decode(item.data)

    def decode(self, session_data: bytes | str) -> dict[str, Any]:
        """Read what `encode` wrote. Its signature is checked once: each request of a session reads the same text."""
        try:
            text = _unsigned(str(session_data), self.key_salt, settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
        except signing.BadSignature:
            return super().decode(session_data)  # which notes it in the log
        found: dict[str, Any] = self.serializer().loads(text)
        return found

    def exists(self, session_key: str) -> bool:
        return read(session_key) is not None

    def create(self) -> None:
        while True:
            self._session_key = self._get_new_session_key()
            try:
                self.save(must_create=True)
            except CreateError:
                continue
            self.modified = True
            return

    def save(self, must_create: bool = False) -> None:
        # First the data: loading it drops the key of a session that has expired.
        data = self._get_session(no_load=must_create)  # type: ignore[attr-defined]  # missing in the stubs
        if self.session_key is None:
            return self.create()
        item = SessionItem(
            stored.session(self.session_key),
            data=self.encode(data),
            expires_at=int(time.time()) + self.get_expiry_age(),
            user_id=data.get(SESSION_KEY),
            tenant_id=data.get(TENANT_KEY) or None,
            **self.began,  # type: ignore[arg-type]  # texts for texts
        ).with_unknown_of(None if must_create else self._stored)
        key = SessionItem.session_key
        try:
            PLATFORM.put(item, condition=key.does_not_exist() if must_create else key.exists())
        except ConditionFailed as error:
            raise (CreateError if must_create else UpdateError) from error
        return None

    def delete(self, session_key: str | None = None) -> None:
        key = session_key or self.session_key
        if key:
            PLATFORM.delete(SessionItem(stored.session(key)))

    def _get_new_session_key(self) -> str:
        # 32 characters of 36: a collision is caught by the condition of create(), so no read is needed first.
        return get_random_string(32, "abcdefghijklmnopqrstuvwxyz0123456789")

    @classmethod
    def clear_expired(cls) -> None:
        """Do nothing: DynamoDB's TTL removes expired items."""


class _AsWritten:
    """A serializer that leaves the text to the one of the session, so that no two requests share what it holds."""

    def dumps(self, obj: Any) -> bytes:
        raise NotImplementedError

    def loads(self, data: bytes) -> bytes:
        return data


@lru_cache(maxsize=1024)
def _unsigned(data: str, salt: str, *_keys: str) -> bytes:
    text: bytes = signing.loads(data, salt=salt, serializer=_AsWritten)
    return text


def read(session_key: str) -> SessionItem | None:
    """Read a session's item, strongly consistent because it may have been written a moment ago."""
    return PLATFORM.get(SessionItem, stored.session(session_key), consistent=True)


def of_user(user_id: str) -> list[SessionByUser]:
    """List a person's sessions that have not expired, the latest first, without their data.

    One Query of up to 1 MB, some 2,000 sessions, eventually consistent. Those that "sign out everywhere" has ended are
    among them until `forget`.
    """
    page = PLATFORM.query(SessionByUser, user_id, descending=True)
    return [row for row in page.items if row.expires_at > time.time()]


def forget(user_id: str) -> int:
    """Remove a person's sessions that have been ended already, so that lists show only those that count; return how
    many that were.

    Sessions that stay because the engine does not answer are removed by TTL; nobody gets in with them.
    """
    with suppress(Unavailable):
        deletions = [partial(PLATFORM.delete, SessionItem(row.session_key)) for row in of_user(user_id)]
        for some in chunked(deletions, FAN_OUT_THREADS):
            fan_out(some)
        return len(deletions)
    return 0
