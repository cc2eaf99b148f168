"""Keep the id of the request that is being served, or of the one that caused the work of this thread.

It goes along into the rows of the outbox, the messages of the queues, and the headers of webhooks and mails. It says
nothing of who asked or for what, so that it may be shown to anybody.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

HEADER: Final = "X-Request-Id"
_FORM: Final = re.compile(r"[A-Za-z0-9._-]{8,64}\Z")
_current: ContextVar[str] = ContextVar("request_id", default="")


def new() -> str:
    return secrets.token_hex(16)


def is_one(text: object) -> bool:
    """Tell whether a text has the form of a request id, as clients of the API may choose one: 8 to 64 plain
    characters."""
    return isinstance(text, str) and _FORM.match(text) is not None


def current() -> str:
    """Return the id of the request that caused what is done now, "" where none did."""
    return _current.get()


def use(request_id: str) -> None:
    """Let the request that is being served have this id from now on, until the surrounding `following` ends."""
    _current.set(request_id)


def mark(request_id: str) -> str:
    """Return the end of a log's message, which names the request that caused it, "" where none did."""
    return f" [{request_id}]" if request_id else ""


@contextmanager
def following(request_id: str) -> Iterator[None]:
    """Do what is done in this context because of a request."""
    token = _current.set(request_id)
    try:
        yield
    finally:
        _current.reset(token)
