"""Receive events as somebody outside would, and remember how often each of them came."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

EventKey = tuple[str, int, str, str]  # tenant id, ticket, type, and the version or the moment that tells it from others

REFUSED: Final = 0.01  # share of deliveries that are answered with an error, and not remembered


class EventReceiver:
    """Hold what has come: how often by id, and the ids by what they tell of."""

    def __init__(self) -> None:
        self.arrivals: Counter[str] = Counter()
        self.ids: dict[EventKey, set[str]] = defaultdict(set)
        self.refused = 0
        self._chance = random.Random()  # noqa: S311  # which delivery fails is no secret
        self._lock = threading.Lock()

    def take(self, event: dict[str, Any]) -> bool:
        """Remember an event. False where it is refused, now and then, as receivers do."""
        with self._lock:
            if self._chance.random() < REFUSED:
                self.refused += 1
                return False
            self.arrivals[event["id"]] += 1
            self.ids[key_of(event)].add(event["id"])
            return True

    @property
    def doubles(self) -> int:
        return self.arrivals.total() - len(self.arrivals)


def key_of(event: dict[str, Any]) -> EventKey:
    """Return what an event tells of: a change of a ticket by its version, a comment by its moment."""
    data = event["data"]
    return event["tenant"]["id"], int(data["number"]), event["type"], str(data.get("at") or event["sequence"])


@contextmanager
def receiving() -> Iterator[tuple[EventReceiver, str]]:
    """Serve a receiver on this machine while the context lasts. Yields it with its address."""
    receiver = EventReceiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            body = self.rfile.read(length)
            if len(body) < length:  # who was sending it has been killed
                self.close_connection = True
                return
            self.send_response(204 if receiver.take(json.loads(body)) else 503)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="receiver")
    thread.start()
    try:
        yield receiver, f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
