"""Keep the messages that the next page shows in a cookie."""

from __future__ import annotations

from typing import Any

from django.contrib.messages.storage.cookie import CookieStorage


class DroppingStorage(CookieStorage):
    """A cookie of messages that drops the oldest ones when it is full.

    With DEBUG, Django would answer 500 to a request whose changes are written already.
    """

    def update(self, response: Any) -> list[Any]:
        super().update(response)
        return []
