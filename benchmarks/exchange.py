"""One request and its answer, over a kept connection or within this process.

Neither follows redirects nor keeps cookies: a measured request is what it says and nothing else. Django is not
imported here, because the measuring process has no use for it.
"""

from __future__ import annotations

import http.client
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

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
    """A sender within this process, for a profiler that sees the whole request and no socket of ours."""

    def __init__(self) -> None:
        from django.test import Client

        self._client = Client(raise_request_exception=False)

    def __call__(self, request: RawRequest) -> Answer:
        headers = {name: value for name, value in request.headers.items() if name != "Content-Type"}
        kind = request.headers.get("Content-Type", "")
        response = self._client.generic(
            request.method, request.path, request.body, kind, headers={**headers, "Host": HOST}
        )
        self._client.cookies.clear()
        cookies = [("Set-Cookie", morsel.OutputString()) for morsel in response.cookies.values()]
        return Answer(response.status_code, [*response.items(), *cookies], response.content)
