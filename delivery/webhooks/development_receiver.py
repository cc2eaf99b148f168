"""Receive webhooks on this machine, for development: show what arrives, check signatures, misbehave on wish.

Other pages may stand beside that of webhooks. Everything is in memory and ends with the process. It binds loopback, and
refuses requests that were made for another host's name, so that no page of the internet reaches it through a browser
here.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from delivery.webhooks import signatures
from portal import clock

SHOWN: Final = 50  # deliveries that are kept
BODY_LIMIT: Final = 1_000_000  # bytes
LONGEST_DELAY: Final = 60.0  # seconds
HOOKS: Final = "/hooks"
HTML: Final = "text/html; charset=utf-8"
_HOSTS: Final = ("127.0.0.1", "localhost")


@dataclass(frozen=True)
class Arrival:
    """One request that has arrived. `is_signed` tells whether one of the known secrets made its signature."""

    at: datetime
    path: str
    event_id: str
    body: str
    is_signed: bool
    is_repeated: bool
    status: int


@dataclass
class Receiving:
    """Hold the secrets that were entered, how to answer, and what has arrived, newest first."""

    status: int = 200
    delay: float = 0.0  # seconds
    secrets: list[str] = field(default_factory=list)
    arrivals: deque[Arrival] = field(default_factory=lambda: deque(maxlen=SHOWN))
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, path: str, headers: Any, body: bytes, status: int) -> None:
        event_id = headers.get("webhook-id", "")
        timestamp, signature = headers.get("webhook-timestamp", ""), headers.get("webhook-signature", "")
        with self.lock:
            is_signed = any(
                signatures.verifies(secret, event_id=event_id, timestamp=timestamp, body=body, signature=signature)
                for secret in self.secrets
            )
            repeated = any(event_id and event_id == other.event_id for other in self.arrivals)
            arrival = Arrival(clock.now(), path, event_id, _readable(body), is_signed, repeated, status)
            self.arrivals.appendleft(arrival)

    def change(self, values: dict[str, str]) -> str:
        """Take what the page's forms hold: a secret to check with, or how to answer from now on."""
        with self.lock:
            if secret := values.get("secret", "").strip():
                self.secrets = [secret, *(other for other in self.secrets if other != secret)][:20]
            self.status = _status(values.get("status", ""), self.status)
            self.delay = _seconds(values.get("delay", ""), self.delay)
        return ""


@dataclass(frozen=True)
class ReceiverPage:
    """A further page. `show` makes it; `take` gets what its form holds, and returns the page that says what is wrong,
    "" where nothing is."""

    show: Callable[[], str]
    take: Callable[[dict[str, str]], str]


class _OnThisMachine(BaseHTTPRequestHandler):
    """Answers requests that were made for a name of this machine."""

    timeout = 30  # seconds without a byte

    def _is_ours(self) -> bool:
        if self.headers.get("host", "").partition(":")[0] in _HOSTS:
            return True
        self._answer(421, "")
        return False

    def _answer(self, status: int, text: str, kind: str = "text/plain", *, location: str = "") -> None:
        content = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        if status == 303:
            self.send_header("Location", location)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the page shows what arrives."""


def server(
    port: int,
    state: Receiving,
    *,
    render: Callable[[Receiving], str],
    pages: Mapping[str, ReceiverPage] = MappingProxyType({}),
) -> ThreadingHTTPServer:
    """Return the receiver's server, bound to loopback. `render` makes its page, `pages` are others by their paths."""

    class Handler(_OnThisMachine):
        def do_GET(self) -> None:
            if self._is_ours():
                page = pages.get(urlsplit(self.path).path)
                self._answer(200, page.show() if page else render(state), HTML)

        def do_POST(self) -> None:
            if not self._is_ours():
                return None
            length = self.headers.get("content-length", "")
            if not length.isdecimal() or int(length) > BODY_LIMIT:
                return self._answer(413, "")
            body, address = self.rfile.read(int(length)), urlsplit(self.path)
            if address.path.startswith(HOOKS):
                return self._receive(address.path, dict(parse_qsl(address.query)), body)
            page = pages.get(address.path, ReceiverPage(lambda: "", state.change))
            values = dict(parse_qsl(body.decode(errors="replace")))
            return self._answer(*_filled_in(page, values, self.headers), HTML, location=address.path)

        def _receive(self, path: str, query: dict[str, str], body: bytes) -> None:
            """Answer as the address asks for (`?status=500&delay=3`), or as the page was told."""
            status = _status(query.get("status", ""), state.status)
            state.take(path, self.headers, body, status)
            time.sleep(_seconds(query.get("delay", ""), state.delay))
            self._answer(status, f"{status}\n")

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


def _filled_in(page: ReceiverPage, values: dict[str, str], headers: Any) -> tuple[int, str]:
    """Take a form, but none that a page of another site sends; return the status and the page to answer with."""
    origin = headers.get("origin", "")
    if origin and urlsplit(origin).netloc != headers["host"]:
        return 403, ""
    problem = page.take(values)
    return (200, problem) if problem else (303, "")


def _status(text: str, otherwise: int) -> int:
    return int(text) if text.isdecimal() and 200 <= int(text) <= 599 else otherwise


def _seconds(text: str, otherwise: float) -> float:
    try:
        return min(max(float(text), 0.0), LONGEST_DELAY) if text else otherwise
    except ValueError:
        return otherwise


def _readable(body: bytes) -> str:
    text = body.decode(errors="replace")
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except ValueError:
        return text
