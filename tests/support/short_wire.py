"""Ask the engine of the tests over a socket of its own: the same requests and answers, without urllib3 in between.

More than half of what a request costs the tests' own process is the general HTTP of its client: a pool, timeouts, each
header as an object. What botocore has built and signed is written to the engine here in one piece, and it gets the
answer as it came. Requests to any other address, those of processes that tests start, and what fails here go the usual
way; `tests/dynamo` and `tests/engines` try that on engines of their own.
"""

from __future__ import annotations

import os
import socket
import threading
import urllib.parse
from typing import Any

from botocore.awsrequest import AWSResponse
from botocore.httpsession import URLLib3Session

_PATIENCE_SECONDS = 300.0
_PIECE = 1 << 16


class ShortWire:
    """Connections to one address, one for each thread, which stay open."""

    def __init__(self, endpoint_url: str) -> None:
        address = urllib.parse.urlsplit(endpoint_url)
        self._place = (address.hostname or "", address.port or 0)
        self._prefix = endpoint_url + "/"
        self._host = f"Host: {address.netloc}\r\n"
        self._open = threading.local()
        self._usual = URLLib3Session.send

    def lay(self) -> None:
        """Let each of botocore's sessions in this process use it."""
        URLLib3Session.send = lambda session, request: self._send(session, request)  # type: ignore[method-assign]

    def take_up(self) -> None:
        URLLib3Session.send = self._usual  # type: ignore[method-assign]

    def _send(self, session: Any, request: Any) -> Any:
        if not request.url.startswith(self._prefix) or not isinstance(request.body, bytes):
            return self._usual(session, request)
        target = request.url[len(self._prefix) - 1 :]
        lines = [f"{name}: {_text(value)}\r\n" for name, value in request.headers.items()]
        head = "".join([f"{request.method} {target} HTTP/1.1\r\n", self._host, *lines, "\r\n"])
        try:
            status, headers, content = self._answer(head.encode("latin-1") + request.body)
        except OSError:
            self._forget()
            return self._usual(session, request)
        answer = AWSResponse(request.url, status, headers, None)
        answer._content = content
        return answer

    def _answer(self, whole: bytes) -> tuple[int, dict[str, str], bytes]:
        connection = self._connection()
        connection.sendall(whole)
        received = b""
        while (end := received.find(b"\r\n\r\n")) < 0:
            received += _more(connection)
        first, *lines = received[:end].decode("latin-1").split("\r\n")
        headers = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(next(value for name, value in headers.items() if name.lower() == "content-length"))
        pieces, left = [received[end + 4 :]], length - len(received) + end + 4
        while left > 0:
            pieces.append(_more(connection))
            left -= len(pieces[-1])
        return int(first.split(" ", 2)[1]), headers, b"".join(pieces)

    def _connection(self) -> socket.socket:
        mine: tuple[int, socket.socket] | None = getattr(self._open, "mine", None)
        if mine is None or mine[0] != os.getpid():  # a forked child has its parent's
            made = socket.create_connection(self._place, timeout=_PATIENCE_SECONDS)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            mine = self._open.mine = (os.getpid(), made)
        return mine[1]

    def _forget(self) -> None:
        self._open.mine = None


def _more(connection: socket.socket) -> bytes:
    piece = connection.recv(_PIECE)
    if not piece:
        raise ConnectionError("the engine has ended the connection")
    return piece


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value
