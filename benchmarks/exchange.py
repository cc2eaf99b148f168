"""Send requests one by one or in bursts, over kept connections or within this process.

None follows redirects or keeps cookies: a measured request is what it says and nothing else.
"""

from __future__ import annotations

import gc
import http.client
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from email.message import Message
from functools import cache
from http.cookies import SimpleCookie
from typing import NamedTuple

from django.test import Client

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
    headers: Message
    text: str

    def header(self, name: str) -> str:
        return str(self.headers.get(name, ""))

    def cookie(self, name: str) -> str:
        """Return the value of a cookie that the answer sets, or ""."""
        cookies: SimpleCookie = SimpleCookie()
        for line in self.headers.get_all("Set-Cookie", []):
            cookies.load(line)
        return cookies[name].value if name in cookies else ""


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
        return Answer(response.status, response.headers, response.read().decode())

    def close(self) -> None:
        self._connection.close()


def in_process(request: RawRequest) -> Answer:
    """Answer a request within this process, for a profiler that sees all of it and no socket of ours."""
    headers = {name: value for name, value in request.headers.items() if name != "Content-Type"} | {"Host": HOST}
    kind = request.headers.get("Content-Type", "")
    client = _client()
    client.cookies.clear()
    response = client.generic(request.method, request.path, request.body, kind, headers=headers)
    message = Message()
    cookies = [("Set-Cookie", morsel.OutputString().strip()) for morsel in response.cookies.values()]
    for name, value in [*response.items(), *cookies]:
        message[name] = value
    return Answer(response.status_code, message, response.content.decode())


@cache
def _client() -> Client:
    """Return the client of this process: each has middlewares of its own, which take longer to load than a request."""
    return Client(raise_request_exception=False)


@contextmanager
def without_collection() -> Iterator[None]:
    """Collect garbage before and not meanwhile: it would be counted as time of what is measured."""
    gc.collect()
    gc.freeze()  # what is in use now is looked through once, and not before each of a thousand bursts
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class BurstFailed(Exception):
    """A connection broke off. The message says what was asked."""


def burst(port: int, sequences: Sequence[Sequence[RawRequest]]) -> tuple[float, list[tuple[float, int]]]:
    """Send all sequences at the same time, each over a connection that is open before the clock starts.

    Return the seconds that all took together, and seconds and status of each request. Raises BurstFailed.
    """
    ready = threading.Barrier(len(sequences) + 1, timeout=TIMEOUT)

    def run(requests: Sequence[RawRequest]) -> list[tuple[float, int]]:
        samples = []
        with closing(Connection(port)) as connection:
            ready.wait()
            for request in requests:
                begun = time.perf_counter()
                samples.append((connection(request).status, time.perf_counter() - begun))
        return [(seconds, status) for status, seconds in samples]

    try:
        with without_collection(), ThreadPoolExecutor(len(sequences)) as pool:
            waiting = [pool.submit(run, sequence) for sequence in sequences]
            ready.wait()
            begun = time.perf_counter()
            samples = [sample for one in waiting for sample in one.result()]
            return time.perf_counter() - begun, samples
    except (OSError, http.client.HTTPException, threading.BrokenBarrierError) as error:
        raise BurstFailed(f"{sequences[0][0].path}: {type(error).__name__} {error}") from error
