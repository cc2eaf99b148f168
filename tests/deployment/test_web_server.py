"""The web server with real sockets, as it is deployed: clients that send or read slowly stall nobody, no request can be
read in two ways, and a server that stops answers what clients have begun to send."""

from __future__ import annotations

import contextlib
import gc
import http.client
import os
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest
from django.conf import settings

from portal.web import gunicorn_config
from tests.support.deployed import GUNICORN, Process, Version
from tests.support.waiting import wait_until

THREADS = 2
SLOW_CLIENTS = 3 * THREADS
REQUESTS = 5
LARGE = "/static/django_htmx/htmx-2.js"  # 170 KB
HEAD = b"Host: 127.0.0.1\r\n"


@pytest.fixture(scope="module")
def version(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Version]:
    environ = {**os.environ, "WEB_THREADS": str(THREADS)}
    with contextlib.closing(Version("today", settings.BASE_DIR, environ, tmp_path_factory.mktemp("slow"))) as version:
        yield version


@pytest.fixture(scope="module")
def portal(version: Version) -> Iterator[Process]:
    with version.serving() as portal:
        yield portal


@contextlib.contextmanager
def connections(portal: Process, first: bytes, *, receive_buffer: int | None = None) -> Iterator[list[socket.socket]]:
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
    portal: Process, path: str = "/healthz", keep_going: list[socket.socket] | None = None, requests: int = REQUESTS
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


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"GET /login/ HTTP/1.1\r\n" + HEAD + b"X-Drip: ",
        b"POST /login/ HTTP/1.1\r\n" + HEAD + b"Content-Length: 1000\r\n\r\n",
        b"POST /login/ HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\n3e8\r\n",
    ],
    ids=["idle", "dripped headers", "a slow body", "chunks that never end"],
)
def test_clients_that_send_slowly_stall_nobody(portal: Process, begun: bytes) -> None:
    with connections(portal, begun) as clients:
        keep_going = clients if begun else []
        assert answered(portal, keep_going=keep_going) == REQUESTS
        assert answered(portal, "/login/", keep_going=keep_going) == REQUESTS


def test_clients_that_do_not_read_stall_nobody(portal: Process) -> None:
    # Sixty answers each, 10 MB and more than the kernel keeps for a client, and so many requests of others that a
    # thread has come to each of those.
    request = f"GET {LARGE} HTTP/1.1\r\n".encode() + HEAD + b"\r\n"
    with connections(portal, request * 60, receive_buffer=2048):
        assert answered(portal, requests=60) == 60
    assert answered(portal, LARGE) == REQUESTS


def test_a_request_in_pieces_is_answered_when_it_is_whole(portal: Process) -> None:
    with connections(portal, b"GET /healthz HT") as clients:
        time.sleep(0.2)
        clients[0].sendall(b"TP/1.1\r\n" + HEAD + b"Connection: close\r\n\r\n")
        assert clients[0].makefile("rb").read().startswith(b"HTTP/1.1 200 OK")


def test_an_upload_is_refused_when_its_length_is_known(portal: Process) -> None:
    head = b"POST /login/ HTTP/1.1\r\n" + HEAD + b"Content-Length: 150000000\r\n\r\n"
    with connections(portal, head) as clients:
        clients[0].settimeout(240)
        assert clients[0].recv(100).startswith(b"HTTP/1.1 413 ")


def test_a_form_with_files_up_to_its_limit_reaches_django_and_a_larger_one_gets_a_page(portal: Process) -> None:
    assert uploaded(portal, settings.FORM_FILES_BYTES - 1000)[0] == 403, "only the token of the form is missing"
    status, page = uploaded(portal, settings.FORM_FILES_BYTES + 100_000)
    assert (status, "is larger than 6 MB" in page) == (413, True)


def uploaded(portal: Process, size: int) -> tuple[int, str]:
    """Send a form with a file without JavaScript, as a browser does; return the status of the answer and its page."""
    part = b'--x\r\nContent-Disposition: form-data; name="attached"; filename="a.bin"\r\n\r\n'
    connection = http.client.HTTPConnection(str(urlsplit(portal.url).netloc), timeout=120)
    connection.request(
        "POST", "/login/", part + bytes(size) + b"\r\n--x--\r\n", {"Content-Type": "multipart/form-data; boundary=x"}
    )
    answer = connection.getresponse()
    page = answer.read().decode()
    connection.close()
    return answer.status, page


# --- where a request ends ---

POST: Final = b"POST /login/ HTTP/1.1\r\n" + HEAD
LENGTH: Final = b"Content-Length: 5\r\n"
CHUNKED: Final = b"Transfer-Encoding: chunked\r\n"
END: Final = b"0\r\n\r\n"
WHOLE: Final = b"GET /login/ HTTP/1.1\r\n" + HEAD + b"\r\n"
NEXT: Final = b"GET /login/ HTTP/1.1\r\n" + HEAD + b"Connection: close\r\n\r\n"

TWO_ENDS: Final = {
    "a length and chunks": POST + LENGTH + CHUNKED + b"\r\n" + END,
    "chunks and a length": POST + CHUNKED + LENGTH + b"\r\n" + END,
    "the same length twice": POST + LENGTH + LENGTH + b"\r\nhello",
    "two lengths": POST + LENGTH + b"Content-Length: 6\r\n\r\nhello",
    "a list of lengths": POST + b"Content-Length: 5, 5\r\n\r\nhello",
    "a length with a sign": POST + b"Content-Length: +5\r\n\r\nhello",
    "a negative length": POST + b"Content-Length: -5\r\n\r\nhello",
    "an empty length": POST + b"Content-Length:\r\n\r\nhello",
    "a coding that nobody knows": POST + b"Transfer-Encoding: xchunked\r\n\r\n" + END,
    "a coding behind a vertical tab": POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n" + END,
    "no coding": POST + b"Transfer-Encoding:\r\n\r\n" + END,
    "chunks twice": POST + CHUNKED + CHUNKED + b"\r\n" + END,
    "chunks of chunks": POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n" + END,
    "chunks that are no chunks": POST + b"Transfer-Encoding: chunked, identity\r\n\r\n" + END,
    "chunks of HTTP/1.0": POST.replace(b"1.1", b"1.0") + b"Connection: keep-alive\r\n" + CHUNKED + b"\r\n" + END,
    "chunks of HTTP/1.2": POST.replace(b"1.1", b"1.2") + CHUNKED + b"\r\n" + END,
    "a folded header": POST + b"X: a\r\n b\r\n" + LENGTH + b"\r\nhello",
    "a folded coding": POST + b"Transfer-Encoding:\r\n chunked\r\n\r\n" + END,
    "a space before the colon": POST + b"Content-Length : 5\r\n\r\nhello",
    "a bare LF behind the start line": POST.replace(b"\r\n", b"\n", 1) + LENGTH + b"\r\nhello",
    "a bare LF in a header": POST + b"X: a\nContent-Length: 5\r\n\r\nhello",
    "a bare CR in a header": POST + b"X: a\rContent-Length: 5\r\n\r\nhello",
    "a bare LF behind a chunk's size": POST + CHUNKED + b"\r\n5\n\r\nhello\r\n" + END,
    "a bare LF in a chunk's extension": POST + CHUNKED + b"\r\n5;a\n\r\nhello\r\n" + END,
    "a bare LF behind the last chunk": POST + CHUNKED + b"\r\n0\n\r\n\r\n",
    "a space behind a chunk's size": POST + CHUNKED + b"\r\n5 \r\nhello\r\n" + END,
    "a chunk's size with a sign": POST + CHUNKED + b"\r\n+5\r\nhello\r\n" + END,
    "a chunk's size with a prefix": POST + CHUNKED + b"\r\n0x5\r\nhello\r\n" + END,
    "a chunk that is longer than its size": POST + CHUNKED + b"\r\n4\r\nhello\r\n" + END,
    "a chunk without an end": POST + CHUNKED + b"\r\n5\r\nhello" + END,
}


def whole_answer(portal: Process, sent: bytes) -> bytes:
    """What comes back until the server closes the connection."""
    address = urlsplit(portal.url)
    with socket.create_connection((str(address.hostname), address.port), timeout=240) as client:
        client.sendall(sent)
        return client.makefile("rb").read()


@pytest.mark.parametrize("kind", TWO_ENDS)
def test_a_request_that_can_be_read_in_two_ways_is_refused_and_nothing_behind_it_is_read(
    portal: Process, kind: str
) -> None:
    answer = whole_answer(portal, TWO_ENDS[kind] + NEXT)
    assert answer.split()[1] == (b"501" if "nobody knows" in kind or "no chunks" in kind else b"400")
    assert answer.count(b"HTTP/1.") == 1


@pytest.mark.parametrize(
    "sent",
    [
        POST + LENGTH + b"\r\nhello",
        POST + CHUNKED + b"\r\n5\r\nhello\r\n" + END,
        POST + CHUNKED.upper() + b'\r\n5;name=value;quoted="a b"\r\nhello\r\n' + END,
        POST + CHUNKED + b"\r\n5\r\nhello\r\n0\r\nContent-Length: 99\r\n\r\n",
        POST + b"Content_Length: 99\r\nTransfer_Encoding: chunked\r\n\r\n",
    ],
)
def test_a_request_that_can_be_read_in_one_way_is_answered_and_so_is_the_next(portal: Process, sent: bytes) -> None:
    answer = whole_answer(portal, sent + NEXT)
    assert [line.split()[1] for line in answer.splitlines() if line.startswith(b"HTTP/1.1 ")] == [b"403", b"200"]


# --- a server that stops ---


# Behind what a test changes: the sign-in page notes each request that reaches it, and waits until
# there is a file `go_on`. With the first request comes work that goes on beside requests.
SLOW: Final = """
import threading, time, uuid, portal.wsgi
from portal.load import tenant_limiter
def work():
    tenant_limiter.stopping.wait()
    while not (here / "go_on").exists(): time.sleep(0.01)
    time.sleep(1)
    (here / "job").touch()
def slow(environ, start, answer=portal.wsgi.application):
    if environ["PATH_INFO"] == "/login/":
        if not tenant_limiter.jobs:
            tenant_limiter.jobs.add(job := threading.Thread(target=work, daemon=True))
            job.start()
        (here / f"arrived-{uuid.uuid4()}").touch()
        while not (here / "go_on").exists(): time.sleep(0.01)
    return answer(environ, start)
portal.wsgi.application = slow
"""


def slow_portal(version: Version, here: Path, change: str = "") -> contextlib.AbstractContextManager[Process]:
    first = (
        f"from pathlib import Path\nfrom portal.web import gunicorn_worker\nhere = Path({str(here)!r})\n{change}{SLOW}"
    )
    return version.serving(*GUNICORN, "--log-level=warning", "--workers=1", "--graceful-timeout=300", first=first)


def test_a_request_that_takes_too_long_to_arrive_is_dropped(version: Version, tmp_path: Path) -> None:
    with (
        slow_portal(version, tmp_path, "gunicorn_worker.REQUEST_SECONDS = 0.5") as portal,
        connections(portal, b"GET / HTTP/1.1\r\n" + HEAD + b"X-Drip: ") as clients,
        contextlib.suppress(ConnectionResetError, BrokenPipeError),
    ):
        clients[0].settimeout(240)
        assert clients[0].recv(1) == b""


def stopping(version: Version, portal: Process, pool: ThreadPoolExecutor) -> Future[int]:
    """Send SIGTERM, and return when no new connection is taken; what is returned waits for the exit status."""
    ended = pool.submit(version.stop, portal)
    address = urlsplit(portal.url)

    def is_refused() -> bool:
        with socket.socket() as client:
            return client.connect_ex((str(address.hostname), address.port)) != 0

    wait_until(is_refused)
    return ended


def answers_to(clients: list[socket.socket]) -> list[tuple[bool, bool]]:
    """Of each connection: whether its request was served, and its end announced."""
    wholes = [client.makefile("rb").read() for client in clients]
    return [(whole.startswith(b"HTTP/1.1 200 OK\r\n"), b"\r\nConnection: close\r\n" in whole) for whole in wholes]


def test_a_stopping_server_answers_what_clients_have_begun_to_send_and_then_ends(
    version: Version, tmp_path: Path
) -> None:
    # Of six whole requests two are at work and four wait for a thread; others have sent a part, or nothing yet.
    with (
        slow_portal(version, tmp_path, "gunicorn_worker.LINGER_SECONDS = 300") as portal,
        ThreadPoolExecutor() as pool,
        connections(portal, WHOLE) as complete,
        connections(portal, WHOLE[:30]) as partial,
        connections(portal, b"") as idle,
    ):
        wait_until(lambda: len([*tmp_path.glob("arrived-*")]) == THREADS)
        ended = stopping(version, portal, pool)
        for one, another in zip(partial, idle, strict=True):
            one.sendall(WHOLE[30:])
            another.sendall(WHOLE)
        (tmp_path / "go_on").touch()
        assert answers_to(complete + partial + idle) == [(True, True)] * 3 * SLOW_CLIENTS
    assert ended.result() == 0
    assert (tmp_path / "job").exists(), "what went on beside requests came to its end"


def test_a_stopping_server_answers_those_who_wait_to_be_let_in(version: Version, tmp_path: Path) -> None:
    with slow_portal(version, tmp_path) as portal, ThreadPoolExecutor() as pool:
        (tmp_path / "go_on").touch()
        worker = worker_of(portal)
        os.kill(worker, signal.SIGSTOP)
        wait_until(lambda: is_stopped(worker))  # a thread that still runs would take the next signal before this one
        with connections(portal, WHOLE) as clients:
            ended = pool.submit(version.stop, portal)
            wait_until(lambda: has_pending(worker, signal.SIGTERM))
            os.kill(worker, signal.SIGCONT)
            assert answers_to(clients) == [(True, True)] * SLOW_CLIENTS
    assert ended.result() == 0


def test_a_stopping_server_does_not_wait_for_idle_connections(version: Version, tmp_path: Path) -> None:
    with slow_portal(version, tmp_path) as portal, ThreadPoolExecutor() as pool, connections(portal, b"") as idle:
        ended = stopping(version, portal, pool)
        assert [client.recv(1) for client in idle] == [b""] * SLOW_CLIENTS
    assert ended.result() == 0


def worker_of(portal: Process) -> int:
    """The process that answers, waited for: the socket is there before it is."""
    children = Path(f"/proc/{portal.pid}/task/{portal.pid}/children")
    wait_until(children.read_text)
    return int(children.read_text())


def is_stopped(process: int) -> bool:
    threads = Path(f"/proc/{process}/task").glob("*/status")
    return all("\nState:\tT" in thread.read_text() for thread in threads)


def has_pending(process: int, number: int) -> bool:
    (mask,) = [line for line in Path(f"/proc/{process}/status").read_text().splitlines() if line.startswith("ShdPnd")]
    return bool(int(mask.split()[1], 16) >> number - 1 & 1)


def test_what_is_loaded_before_the_workers_are_forked_is_never_collected() -> None:
    """A collection would write to each object in the workers, and so end what they share."""
    already = gc.get_freeze_count()
    loaded: list[list[int]] = [[] for _ in range(1000)]
    gunicorn_config.when_ready(None)
    assert gc.get_freeze_count() >= already + len(loaded)
