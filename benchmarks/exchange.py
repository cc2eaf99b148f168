"""One request and its answer, over a kept connection or straight into the WSGI application.

Neither follows redirects nor keeps cookies: a measured request is what it says and nothing else. Django is not
imported here, because the measuring process has no use for it.
"""

from __future__ import annotations

import http.client
import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

HOST = "127.0.0.1"
TIMEOUT = 30  # seconds


class RawRequest(NamedTuple):
    """Hold what a browser would send: `body` is an URL-encoded form, empty for GET. With an API key, JSON."""

    method: str
    path: str
    cookie: str = ""
    body: str = ""
    key: str = ""

    @property
    def headers(self) -> dict[str, str]:
        headers = {"Cookie": self.cookie} if self.cookie else {}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        if self.method == "POST":
            headers["Content-Type"] = "application/json" if self.key else "application/x-www-form-urlencoded"
        return headers


@dataclass(frozen=True)
class Answer:
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str:
        return next((value for n, value in self.headers if n.lower() == name.lower()), "")

    def cookie(self, name: str) -> str:
        """Return the value of a cookie that the answer sets, or ""."""
        for n, value in self.headers:
            pair = value.partition(";")[0].strip()  # WSGI's begin with a space
            if n.lower() == "set-cookie" and pair.startswith(f"{name}="):
                return pair.removeprefix(f"{name}=")
        return ""

    @property
    def text(self) -> str:
        return self.body.decode()


Send = Callable[[RawRequest], Answer]


class Connection:
    """A sender over one TCP connection that is kept open."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection(HOST, port, timeout=TIMEOUT)
        self._connection.connect()

    def __call__(self, request: RawRequest) -> Answer:
        body = request.body.encode() if request.method == "POST" else None
        self._connection.request(request.method, request.path, body, request.headers)
        response = self._connection.getresponse()
        return Answer(response.status, response.getheaders(), response.read())

    def close(self) -> None:
        self._connection.close()


class InProcess:
    """A sender that calls the WSGI application, for a profiler that sees the whole request and no socket of ours."""

    def __init__(self, application: Callable[..., Iterable[bytes]]) -> None:
        self._application = application

    def __call__(self, request: RawRequest) -> Answer:
        path, _, query = request.path.partition("?")
        body = request.body.encode()
        environ: dict[str, Any] = {
            "REQUEST_METHOD": request.method,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "SCRIPT_NAME": "",
            "SERVER_NAME": HOST,
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "HTTP_HOST": HOST,
            "HTTP_COOKIE": request.cookie,
            "HTTP_AUTHORIZATION": request.headers.get("Authorization", ""),
            "REMOTE_ADDR": HOST,
            "CONTENT_TYPE": request.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(body),
            "wsgi.errors": io.StringIO(),
            "wsgi.multithread": True,
            "wsgi.multiprocess": True,
            "wsgi.run_once": False,
        }
        started: list[Any] = []

        def start_response(status: str, headers: list[tuple[str, str]], exc_info: object = None) -> None:
            started[:] = [int(status.partition(" ")[0]), headers]

        chunks = self._application(environ, start_response)
        try:
            content = b"".join(chunks)
        finally:
            close = getattr(chunks, "close", None)
            if close:
                close()
        return Answer(started[0], started[1], content)
