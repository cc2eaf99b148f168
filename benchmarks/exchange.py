"""Send requests one by one or in bursts, over kept connections or within this process.

None follows redirects or keeps cookies: a measured request is what it says and nothing else.
"""

from __future__ import annotations

import gc
import http.client
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import cache
from http.cookies import SimpleCookie
from typing import NamedTuple
from unittest import mock

from django.conf import settings
from django.test import Client

from portal.engines.endpoint import LOOPBACK
from portal.web import middleware

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
        kind = "application/json" if self.key else "application/x-www-form-urlencoded"
        headers = {"Cookie": self.cookie, "Content-Type": kind, "Authorization": self.key and f"Bearer {self.key}"}
        return {name: value for name, value in headers.items() if value}


class Answer(NamedTuple):
    """`cookies` are those that the answer sets; `bill` is its cost in DynamoDB, "" where the portal does not say."""

    status: int
    text: str
    cookies: dict[str, str]
    bill: str


Send = Callable[[RawRequest], Answer]


def in_process(request: RawRequest) -> Answer:
    """Answer a request within this process, with its bill: for counts, and for a profiler that sees all of it."""
    client = _client()
    client.cookies = SimpleCookie()
    headers = request.headers | {"Host": LOOPBACK}
    kind = headers.pop("Content-Type")
    # Not by override_settings, at which Django forgets all templates: each request would compile its own. Guests, too,
    # are told what their pages cost.
    with mock.patch.object(settings, "DEBUG", new=True), mock.patch.object(middleware, "tells_cost"):
        response = client.generic(request.method, request.path, request.body, kind, headers=headers)
    cookies = {name: morsel.value for name, morsel in response.cookies.items()}
    return Answer(response.status_code, response.content.decode(), cookies, response.get("Server-Timing", ""))


@cache
def _client() -> Client:
    """Return the client of this process: each has middlewares of its own, which take longer to load than a request."""
    return Client(raise_request_exception=False)


class BurstFailed(Exception):
    """A connection broke off. The message says what was asked."""


def burst(port: int, sequences: Sequence[Sequence[RawRequest]]) -> tuple[float, list[tuple[float, int]]]:
    """Send all sequences at the same time, each over a connection that is open before the clock starts.

    Return the seconds that all took together, and seconds and status of each request. Raises BurstFailed.
    """
    ready = threading.Barrier(len(sequences) + 1, timeout=TIMEOUT)

    def run(requests: Sequence[RawRequest]) -> list[tuple[float, int]]:
        samples = []
        with closing(http.client.HTTPConnection(LOOPBACK, port, timeout=TIMEOUT)) as connection:
            connection.connect()
            ready.wait()
            for request in requests:
                begun = time.perf_counter()
                connection.request(request.method, request.path, request.body.encode() or None, request.headers)
                response = connection.getresponse()
                response.read()
                samples.append((time.perf_counter() - begun, response.status))
        return samples

    gc.collect()
    gc.freeze()  # what is in use now is looked through once, and not before each of a thousand bursts
    gc.disable()  # a collection meanwhile would be counted as time of what is measured
    try:
        with ThreadPoolExecutor(len(sequences)) as pool:
            waiting = [pool.submit(run, sequence) for sequence in sequences]
            ready.wait()
            begun = time.perf_counter()
            samples = [sample for one in waiting for sample in one.result()]
            return time.perf_counter() - begun, samples
    except (OSError, http.client.HTTPException, threading.BrokenBarrierError) as error:
        raise BurstFailed(f"{sequences[0][0].path}: {type(error).__name__} {error}") from error
    finally:
        gc.enable()
