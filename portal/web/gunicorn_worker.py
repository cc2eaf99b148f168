"""The gunicorn worker that serves the portal: requests are read apart from the threads that answer them.

gunicorn starts, watches and stops the processes; in each of them waitress reads requests and writes responses in one
loop, and hands a request to a thread when all of it has arrived. A client that sends or reads slowly holds a
connection, not a thread. docs/adr/0014-requests-are-read-apart.md has the measurements.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from gunicorn.workers.base import Worker
from waitress import receiver, wasyncore
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.rfc7230 import CHUNK_EXT
from waitress.server import BaseWSGIServer, create_server

from portal.load import tenant_limiter

LOOP_SECONDS = 0.3  # between two looks at whether to stop
LINGER_SECONDS = 0.5  # that a stopping worker leaves an idle connection open: a request may be on its way there
STOP_SECONDS = 2  # of gunicorn's graceful_timeout, for what comes behind the last answer
REQUEST_SECONDS = 60  # within which a request has to arrive as a whole
IDLE_SECONDS = 75  # that a connection may wait for its next request: longer than a load balancer keeps one open
HEAD_BYTES = 65_536
# Beyond it the connection is refused before Django sees it; our own limits, DATA_UPLOAD_MAX_MEMORY_SIZE and, of a form
# with files, FORM_FILES_BYTES, are lower, so that a person who sent too much gets a page that says so.
BODY_BYTES = 4_000_000
BODY_OF_FORM_LIMIT = 2  # times FORM_FILES_BYTES
# waitress' own expressions end with `$`, which also takes a bare LF: a proxy may see the end of a line there.
receiver.ONLY_HEXDIG_RE = re.compile(rb"[0-9A-Fa-f]+\Z")
receiver.CHUNK_EXT_RE = re.compile(CHUNK_EXT.encode("latin-1") + rb"\Z")


class UnambiguousParser(HTTPRequestParser):  # type: ignore[misc]  # waitress comes without types
    """Refuses, with 400, a head by which a proxy may find another end of the request than we do.

    Source: RFC 9112, sections 5.2, 6.1 and 6.3. The connection is closed behind the answer.
    """

    def parse_header(self, header_plus: bytes) -> None:
        start, _, fields = header_plus.partition(b"\r\n")
        lines = fields.split(b"\r\n")
        if any(line.startswith((b" ", b"\t")) for line in lines):
            raise ParsingError("A header is folded over lines")
        named = [(name.lower(), value.strip(b" \t").lower()) for name, _, value in (x.partition(b":") for x in lines)]
        codings = [value for name, value in named if name == b"transfer-encoding"]
        if codings and (not start.endswith(b" HTTP/1.1") or any(name == b"content-length" for name, _ in named)):
            raise ParsingError("The length of the body is said in two ways")
        super().parse_header(header_plus)
        if codings and codings != [b"chunked"]:
            raise ParsingError("Transfer-Encoding is not understood")


class UnambiguousChannel(HTTPChannel):  # type: ignore[misc]  # waitress comes without types
    """A connection whose requests can be read in one way."""

    parser_class = UnambiguousParser


def _begin_beside_requests() -> None:
    """Share this process's rates and report its load, where the project that is served has settings for that.

    Imported here: gunicorn imports this module before Django has its settings, and these declare items.
    """
    if getattr(settings, "RATES_SHARED", False):
        from portal.load import rate_sharing

        rate_sharing.start()
    if getattr(settings, "NOISE_NOTED", False):
        from portal.load import reporting

        reporting.start("web", "platform")


def _end_beside_requests() -> None:
    """Write down what was spent and not written yet, in the time that is left."""
    if getattr(settings, "NOISE_NOTED", False):
        from portal.load import reporting

        reporting.stop(seconds=STOP_SECONDS / 2)


class BufferingWorker(Worker):  # type: ignore[misc]  # gunicorn comes without types
    """A worker process; `threads` and `worker_connections` of gunicorn's configuration hold."""

    @classmethod
    def check_config(cls, cfg: Any, log: Any) -> None:
        """Refuse, before gunicorn starts a worker, what this worker cannot do."""
        if cfg.is_ssl:
            raise RuntimeError("This worker speaks plain HTTP: TLS ends at the proxy in front of it.")

    def run(self) -> None:
        """Serve until gunicorn sends SIGTERM, or has died; then answer what clients have begun to send, and end."""
        self._map: dict[int, wasyncore.dispatcher] = {}
        self._arriving: dict[Any, float] = {}  # requests that are not complete, and when they were first seen
        self._seen = 0.0
        tenant_limiter.serve_with(self.cfg.threads)
        _begin_beside_requests()
        server = create_server(
            self.wsgi,
            map=self._map,
            sockets=[listener.sock for listener in self.sockets],
            threads=self.cfg.threads,
            connection_limit=self.cfg.worker_connections,
            channel_timeout=IDLE_SECONDS,
            cleanup_interval=15,
            max_request_header_size=HEAD_BYTES,
            max_request_body_size=max(BODY_BYTES, BODY_OF_FORM_LIMIT * getattr(settings, "FORM_FILES_BYTES", 0)),
            asyncore_use_poll=True,  # select() ends at 1,024 open files
            clear_untrusted_proxy_headers=False,  # settings.py says which of them count
            ident=None,
        )
        for listener in self._listeners():
            listener.channel_class = UnambiguousChannel
        while self.alive and self.ppid == os.getppid():
            self._turn()
        self._finish(time.monotonic() + self.cfg.graceful_timeout - STOP_SECONDS)
        server.task_dispatcher.shutdown(timeout=STOP_SECONDS)
        _end_beside_requests()

    def _turn(self) -> None:
        wasyncore.loop(timeout=LOOP_SECONDS, count=1, map=self._map, use_poll=True)
        now = time.monotonic()
        if now - self._seen > LOOP_SECONDS:
            self._seen = now
            self.notify()
            self._close_overdue(now)

    def _channels(self) -> Iterator[HTTPChannel]:
        return (entry for entry in list(self._map.values()) if isinstance(entry, HTTPChannel))

    def _listeners(self) -> list[BaseWSGIServer]:
        return [entry for entry in self._map.values() if isinstance(entry, BaseWSGIServer)]

    def _close_overdue(self, now: float) -> None:
        """Close connections whose request has been arriving for too long, so that they cannot fill the worker."""
        arriving = [channel for channel in self._channels() if channel.request is not None and not channel.requests]
        self._arriving = {channel.request: self._arriving.get(channel.request, now) for channel in arriving}
        for channel in arriving:
            if now - self._arriving[channel.request] > REQUEST_SECONDS:
                channel.will_close = True

    def _finish(self, deadline: float) -> None:
        """Answer what clients have begun to send, until ``deadline`` (monotonic clock), and accept nothing more.

        A connection is closed behind the last answer that is due on it, which says so. An idle one is closed after a
        moment in which a request that is on its way arrives. gunicorn kills a worker that goes on for longer.
        """
        tenant_limiter.stopping.set()
        for listener in self._listeners():
            self._accept_waiting(listener)
        began = time.time()  # as waitress counts
        while time.monotonic() < deadline and (
            [*self._channels()] or any(x.is_alive() for x in [*tenant_limiter.jobs])
        ):
            for channel in self._channels():
                with channel.requests_lock:
                    if channel.requests:
                        channel.requests[-1].headers["CONNECTION"] = "close"
                    elif channel.request is None and not channel.total_outbufs_len:
                        channel.will_close |= time.time() - max(began, channel.last_activity) > LINGER_SECONDS
            self._turn()

    def _accept_waiting(self, listener: BaseWSGIServer) -> None:
        """Accept the connections that clients have opened already, then leave the socket: they would be reset."""
        before = -1
        while before != len(self._map):
            before = len(self._map)
            listener.handle_accept()
        listener.del_channel()
        listener.socket.close()
