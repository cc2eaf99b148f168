"""A desk whose partition is slow holds its share of the threads and no more: gunicorn, and an engine that waits."""

from __future__ import annotations

import http.client
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.conf import settings

from tests.support.deployed import Process, Version
from tests.support.world import Browser, World

THREADS = 4  # half of which one desk may have


class WaitingEngine(ThreadingHTTPServer):
    """Stands in front of the engine, and keeps what is asked of one tenant's tickets until `go_on` is set."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.tenant_id = ""
        self.go_on, self.held = threading.Event(), threading.Semaphore(0)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: WaitingEngine

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if f"TENANT#{self.server.tenant_id}|".encode() in body:
            self.server.held.release()
            self.server.go_on.wait(120)
        engine = http.client.HTTPConnection(urlsplit(settings.DYNAMODB_ENDPOINT_URL).netloc, timeout=120)
        engine.request("POST", self.path, body, dict(self.headers.items()))
        answer = engine.getresponse()
        content = answer.read()
        engine.close()
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.headers["Content-Type"])
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def engine_in_front() -> Iterator[WaitingEngine]:
    waiting = WaitingEngine()
    threading.Thread(target=waiting.serve_forever, daemon=True).start()
    yield waiting
    waiting.go_on.set()
    waiting.shutdown()
    waiting.server_close()


@pytest.fixture
def portal(engine_in_front: WaitingEngine, tmp_path: Path) -> Iterator[Process]:
    environ = {"DYNAMODB_ENDPOINT_URL": engine_in_front.url, "WEB_THREADS": str(THREADS), "DYNAMODB_READ_TIMEOUT": "60"}
    with (
        closing(Version("today", settings.BASE_DIR, os.environ | environ, tmp_path)) as version,
        version.serving() as portal,
    ):
        yield portal


def ask(portal: Process, browser: Browser, path: str) -> int:
    connection = http.client.HTTPConnection(urlsplit(portal.url).netloc, timeout=120)
    cookie = browser.cookies[settings.SESSION_COOKIE_NAME].value
    connection.request("GET", path, headers={"Cookie": f"{settings.SESSION_COOKIE_NAME}={cookie}"})
    status = connection.getresponse().status
    connection.close()
    return status


def test_a_desk_whose_partition_is_slow_holds_up_itself_alone(
    world: World, engine_in_front: WaitingEngine, portal: Process
) -> None:
    bob, charlie = world.browser("bob"), world.browser("charlie")
    engine_in_front.tenant_id = world.tenants["acme"].tenant_id
    with ThreadPoolExecutor(THREADS) as people:
        waiting = [people.submit(ask, portal, bob, "/acme/tickets/") for _ in range(THREADS // 2)]
        for _ in waiting:
            assert engine_in_front.held.acquire(timeout=120)
        assert [ask(portal, bob, "/acme/tickets/") for _ in range(3)] == [429] * 3, "at once: the others still wait"
        assert [ask(portal, charlie, "/globex/tickets/") for _ in range(3)] == [200] * 3
        assert not any(one.done() for one in waiting)
        engine_in_front.go_on.set()
        assert [one.result() for one in waiting] == [200] * len(waiting)
    assert ask(portal, bob, "/acme/tickets/") == 200
