"""Django's session contract on one item per session. Only people who signed in have one.

The item's TTL is a cleaning service, not the rule: DynamoDB may take days, so an expired item is refused on read.
"""

from __future__ import annotations

import time
from typing import Any

from django.contrib.sessions.backends.base import CreateError, SessionBase, UpdateError
from django.utils.crypto import get_random_string

from portal.errors import ConditionFailed
from portal.nosql.items import SessionItem


class SessionStore(SessionBase):
    @classmethod
    def from_item(cls, item: SessionItem) -> SessionStore:
        """A session whose item has been read already; it makes no call of its own."""
        if item.expires_at <= time.time():
            return cls()
        store = cls(item.session_key)
        store._session_cache = store.decode(item.data)  # type: ignore[attr-defined]  # SessionBase's lazy cache
        return store

    def load(self) -> dict[str, Any]:
        item = read(self.session_key) if self.session_key else None
        if item is None or item.expires_at <= time.time():
            self._session_key = None
            return {}
        return self.decode(item.data)

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
            self.session_key,
            data=self.encode(data),
            expires_at=int(time.time()) + self.get_expiry_age(),
        )
        key = SessionItem.session_key
        try:
            item.save(condition=key.does_not_exist() if must_create else key.exists())
        except ConditionFailed as error:
            raise (CreateError if must_create else UpdateError) from error
        return None

    def delete(self, session_key: str | None = None) -> None:
        key = session_key or self.session_key
        if key:
            SessionItem(key).delete()

    def _get_new_session_key(self) -> str:
        # 32 characters of 36: a collision is caught by the condition of create(), so no read is needed first.
        return get_random_string(32, "abcdefghijklmnopqrstuvwxyz0123456789")

    @classmethod
    def clear_expired(cls) -> None:
        """DynamoDB's TTL does it."""


def read(session_key: str) -> SessionItem | None:
    """A session's item by a strongly consistent read: it may have been written a moment ago."""
    try:
        return SessionItem.get(session_key, consistent_read=True)
    except SessionItem.DoesNotExist:
        return None
