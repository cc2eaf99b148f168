"""Django's handler of test clients, whose middlewares are made once: each client would else make all of them anew."""

from __future__ import annotations

from typing import Any

from django.core.signals import setting_changed
from django.test import client

_PARTS = ("_view_middleware", "_template_response_middleware", "_exception_middleware", "_middleware_chain")

_made: dict[str, Any] = {}


class OneChain(client.ClientHandler):
    """The handler as it is, except that what one has made is there for the next, until a setting changes."""

    def load_middleware(self, is_async: bool = False) -> None:
        if not _made:
            super().load_middleware(is_async)
            _made.update({part: getattr(self, part) for part in _PARTS})
        vars(self).update(_made)


def use() -> None:
    """Give it to each test client that is made from now on."""
    client.ClientHandler = OneChain  # type: ignore[misc]
    setting_changed.connect(lambda **_: _made.clear(), weak=False)
