"""The gunicorn worker that serves the portal: requests are read apart from the threads that answer them.

gunicorn starts, watches and stops the processes; in each of them waitress reads requests and writes responses in one
loop, and hands a request to a thread when all of it has arrived. A client that sends or reads slowly holds a
connection, not a thread. docs/adr/0014-requests-are-read-apart.md has the measurements.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

from gunicorn.workers.base import Worker
from waitress import wasyncore
from waitress.channel import HTTPChannel
from waitress.server import BaseWSGIServer, create_server

from portal.limits import concurrency

LOOP_SECONDS = 0.3  # between two looks at whether to stop
REQUEST_SECONDS = 60  # within which a request has to arrive as a whole
IDLE_SECONDS = 75  # that a connection may wait for its next request: longer than a load balancer keeps one open
HEAD_BYTES = 65_536
# Beyond it the connection is refused before Django sees it; Django's own limit, DATA_UPLOAD_MAX_MEMORY_SIZE, is lower,
# so that a person who pasted too much gets a page that says so.
BODY_BYTES = 4_000_000


class BufferingWorker(Worker):  # type: ignore[misc]  # gunicorn comes without types
    """A worker process; `threads` and `worker_connections` of gunicorn's configuration hold."""

    @classmethod
    def check_config(cls, cfg: Any, log: Any) -> None:
        """Refuse, before gunicorn starts a worker, what this worker cannot do."""
        if cfg.is_ssl:
            raise RuntimeError("This worker speaks plain HTTP: TLS ends at the proxy in front of it.")

    def run(self) -> None:
        """Serve until gunicorn sends SIGTERM, or has died; then answer what has arrived and end."""
        self._map: dict[int, wasyncore.dispatcher] = {}
        self._arriving: dict[Any, float] = {}  # requests that are not complete, and when they were first seen
        self._seen = 0.0
        concurrency.serve_with(self.cfg.threads)
        server = create_server(
            self.wsgi,
            map=self._map,
            sockets=[listener.sock for listener in self.sockets],
            threads=self.cfg.threads,
            connection_limit=self.cfg.worker_connections,
            channel_timeout=IDLE_SECONDS,
            cleanup_interval=15,
            max_request_header_size=HEAD_BYTES,
            max_request_body_size=BODY_BYTES,
            asyncore_use_poll=True,  # select() ends at 1,024 open files
            clear_untrusted_proxy_headers=False,  # settings.py says which of them count
            ident=None,
        )
        while self.alive and self.ppid == os.getppid():
            self._turn()
        self._finish(time.monotonic() + self.cfg.graceful_timeout)
        server.task_dispatcher.shutdown()

    def _turn(self) -> None:
        wasyncore.loop(timeout=LOOP_SECONDS, count=1, map=self._map, use_poll=True)
        now = time.monotonic()
        if now - self._seen > LOOP_SECONDS:
            self._seen = now
            self.notify()
            self._close_overdue(now)

    def _channels(self) -> Iterator[HTTPChannel]:
        return (entry for entry in list(self._map.values()) if isinstance(entry, HTTPChannel))

    def _close_overdue(self, now: float) -> None:
        """Close connections whose request has been arriving for too long, so that they cannot fill the worker."""
        arriving = [channel for channel in self._channels() if channel.request is not None and not channel.requests]
        self._arriving = {channel.request: self._arriving.get(channel.request, now) for channel in arriving}
        for channel in arriving:
            if now - self._arriving[channel.request] > REQUEST_SECONDS:
                channel.will_close = True

    def _finish(self, deadline: float) -> None:
        """Accept nothing more; let the answers to complete requests leave until ``deadline`` (monotonic clock)."""
        for number, entry in list(self._map.items()):
            if isinstance(entry, BaseWSGIServer):
                del self._map[number]
        while time.monotonic() < deadline and any(c.requests or c.total_outbufs_len for c in self._channels()):
            self._turn()
