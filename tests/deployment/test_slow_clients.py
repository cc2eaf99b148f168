"""Clients that send or read slowly hold connections, and stall nobody: real sockets, the portal as it is deployed."""

from __future__ import annotations

import contextlib
import http.client
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.browser.portal_process import Portal, serve
from tests.support.waiting import wait_until

THREADS = 2
SLOW_CLIENTS = 3 * THREADS
REQUESTS = 5
LARGE = "/static/django_htmx/htmx-2.js"  # 170 KB
HEAD = b"Host: 127.0.0.1\r\n"


@pytest.fixture(scope="module")
def portal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Portal]:
    with serve(tmp_path_factory.mktemp("slow") / "web.log", WEB_THREADS=str(THREADS)) as portal:
        yield portal


@contextlib.contextmanager
def connections(portal: Portal, first: bytes, *, receive_buffer: int | None = None) -> Iterator[list[socket.socket]]:
    """Yield open connections on which `first` was sent and nothing is read."""
    address = urlsplit(portal.url)
    with contextlib.ExitStack() as stack:
        clients = []
        for _ in range(SLOW_CLIENTS):
            client = stack.enter_context(socket.socket())
            if receive_buffer:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            client.connect((str(address.hostname), address.port))
            client.sendall(first)
            clients.append(client)
        yield clients


def answered(
    portal: Portal, path: str = "/healthz", keep_going: list[socket.socket] | None = None, requests: int = REQUESTS
) -> int:
    """Count the requests that get their answer while the slow clients send one byte more before each."""
    count = 0
    for _ in range(requests):
        for client in keep_going or []:
            with contextlib.suppress(OSError):  # after a minute a request that has not arrived is dropped
                client.sendall(b"x")
        connection = http.client.HTTPConnection(str(urlsplit(portal.url).netloc), timeout=120)
        connection.request("GET", path)
        count += connection.getresponse().status == 200
        connection.close()
    return count


def test_dripped_headers_stall_nobody(portal: Portal) -> None:
    with connections(portal, b"GET /login/ HTTP/1.1\r\n" + HEAD + b"X-Drip: ") as clients:
        assert answered(portal, keep_going=clients) == REQUESTS
        assert answered(portal, "/login/", keep_going=clients) == REQUESTS


def test_slow_bodies_stall_nobody(portal: Portal) -> None:
    head = b"POST /login/ HTTP/1.1\r\n" + HEAD + b"Content-Length: 1000\r\n\r\n"
    with connections(portal, head) as clients:
        assert answered(portal, keep_going=clients) == REQUESTS


def test_chunks_that_never_end_stall_nobody(portal: Portal) -> None:
    head = b"POST /login/ HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\n3e8\r\n"
    with connections(portal, head) as clients:
        assert answered(portal, keep_going=clients) == REQUESTS


def test_idle_connections_stall_nobody(portal: Portal) -> None:
    with connections(portal, b""):
        assert answered(portal) == REQUESTS


def test_clients_that_do_not_read_stall_nobody(portal: Portal) -> None:
    # Sixty answers each, 10 MB and more than the kernel keeps for a client, and so many requests of others that a
    # thread has come to each of those.
    request = f"GET {LARGE} HTTP/1.1\r\n".encode() + HEAD + b"\r\n"
    with connections(portal, request * 60, receive_buffer=2048):
        assert answered(portal, requests=60) == 60
    assert answered(portal, LARGE) == REQUESTS


def test_a_request_in_pieces_is_answered_when_it_is_whole(portal: Portal) -> None:
    with connections(portal, b"GET /healthz HT") as clients:
        time.sleep(0.2)
        clients[0].sendall(b"TP/1.1\r\n" + HEAD + b"Connection: close\r\n\r\n")
        assert clients[0].makefile("rb").read().startswith(b"HTTP/1.1 200 OK")


def test_a_request_that_takes_too_long_to_arrive_is_dropped_and_a_stopping_server_answers_what_has_arrived(
    tmp_path: Path,
) -> None:
    arrived = tmp_path / "arrived"
    (tmp_path / "impatient.py").write_text(
        "from portal.web import gunicorn_worker\ngunicorn_worker.REQUEST_SECONDS = 0.5\nfrom tests.settings import *\n"
        "import time\nfrom pathlib import Path\n"
        "class Slow:\n"
        "    def __init__(self, get): self.get = get\n"
        "    def __call__(self, request):\n"
        "        if request.path == '/login/':\n"
        f"            Path({str(arrived)!r}).touch()\n"
        "            time.sleep(2)\n"
        "        return self.get(request)\n"
        "MIDDLEWARE = ['impatient.Slow', *MIDDLEWARE]\n"
    )
    environ = {"DJANGO_SETTINGS_MODULE": "impatient", "PYTHONPATH": str(tmp_path), "WEB_THREADS": str(THREADS)}
    with serve(tmp_path / "web.log", **environ) as portal:
        with (
            connections(portal, b"GET / HTTP/1.1\r\n" + HEAD + b"X-Drip: ") as clients,
            contextlib.suppress(ConnectionResetError, BrokenPipeError),
        ):
            clients[0].settimeout(240)
            assert clients[0].recv(1) == b""
        connection = http.client.HTTPConnection(str(urlsplit(portal.url).netloc), timeout=120)
        connection.request("GET", "/login/")
        wait_until(arrived.exists)
    assert connection.getresponse().status == 200


def test_an_upload_is_refused_when_its_length_is_known(portal: Portal) -> None:
    head = b"POST /login/ HTTP/1.1\r\n" + HEAD + b"Content-Length: 150000000\r\n\r\n"
    with connections(portal, head) as clients:
        clients[0].settimeout(240)
        assert clients[0].recv(100).startswith(b"HTTP/1.1 413 ")
