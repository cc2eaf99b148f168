"""How long a receiver may take, how much it may say, and whose certificate is believed: on real sockets."""

from __future__ import annotations

import itertools
import socket
import threading
import time

import pytest

from delivery.webhooks.safe_addresses import WebhookAddress
from delivery.webhooks.safe_client import ANSWER_LIMIT, NoAnswer, SafeClient
from tests.support.receivers import NAME, Talk, answering, authority, listening, names, request_of

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
QUICK = 0.5  # seconds that a receiver of these tests may take
PATIENCE = 8  # seconds in which even a busy machine has noticed that they are over


def post(port: int, *, deadline: float = 120, body: bytes = b"{}") -> int:
    client = SafeClient(is_allowed=lambda address: True, deadline=deadline)
    return client.post(WebhookAddress("http", "127.0.0.1", port, "/"), body=body, headers={}).status


def dripping(first: bytes, drop: bytes) -> Talk:
    """Say `first`, then `drop` again and again, more often than any timeout of a single read."""

    def talk(connection: socket.socket) -> None:
        request_of(connection)
        connection.sendall(first)
        for _ in range(PATIENCE * 20):
            connection.sendall(drop)
            time.sleep(0.1)

    return talk


@pytest.mark.parametrize(
    ("first", "drop"),
    [
        pytest.param(b"", b"", id="says nothing"),
        pytest.param(b"H", b"", id="stops in the status line"),
        pytest.param(b"", b"H", id="drips the status line"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX: ", b"x", id="drips a header"),
        pytest.param(b"", b"HTTP/1.1 100 Continue\r\n\r\n", id="goes on with 100 Continue"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", b"x", id="drips the body"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n", b"x", id="drips a body of no length"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n", id="drips chunks"),
    ],
)
def test_a_receiver_that_drips_its_answer_is_cut_off(first: bytes, drop: bytes) -> None:
    with listening(dripping(first, drop)) as receiver, pytest.raises(NoAnswer, match=r"No answer within 0\.5 seconds"):
        post(receiver.port, deadline=QUICK)


def test_a_receiver_that_does_not_read_is_cut_off() -> None:
    waiting = threading.Event()
    with (
        listening(lambda connection: bool(waiting.wait(PATIENCE)) and None) as receiver,
        pytest.raises(NoAnswer, match="No answer within"),
    ):
        post(receiver.port, deadline=QUICK, body=b"x" * 30_000_000)
    waiting.set()


@pytest.mark.parametrize("drop", [b"", b"\x16"])
def test_a_handshake_that_does_not_end_is_cut_off(drop: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    names(monkeypatch, hooks_example_com=["127.0.0.1"])

    def talk(connection: socket.socket) -> None:
        # A record of TLS that comes byte by byte: header first, then a body that takes for ever.
        for byte in itertools.chain(b"\x16\x03\x03\x40\x00", itertools.repeat(2, PATIENCE * 10)):
            connection.sendall(bytes([byte]) if drop else b"")
            time.sleep(0.1)

    with listening(talk) as receiver, pytest.raises(NoAnswer, match="No answer within"):
        SafeClient(is_allowed=lambda address: True, deadline=QUICK).post(
            WebhookAddress("https", NAME, receiver.port, "/"), body=b"{}", headers={}
        )


def test_a_name_server_that_does_not_answer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answered.wait(PATIENCE) and [])
    with pytest.raises(NoAnswer, match="No answer within"):
        SafeClient(deadline=QUICK).post(WebhookAddress("https", NAME, 443, "/"), body=b"{}", headers={})
    answered.set()


def test_an_unknown_name_is_said() -> None:
    with pytest.raises(NoAnswer, match=r"There is no host nowhere\.invalid"):
        SafeClient().post(WebhookAddress("https", "nowhere.invalid", 443, "/"), body=b"{}", headers={})


def test_the_second_address_is_tried_where_the_first_takes_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    names(monkeypatch, hooks_example_com=["127.0.0.3", "127.0.0.1"])
    with listening(answering(OK)) as receiver:
        client = SafeClient(is_allowed=lambda address: True)
        answer = client.post(WebhookAddress("http", NAME, receiver.port, "/"), body=b"{}", headers={})
    assert answer.status == 200


def test_a_refused_connection_is_said() -> None:
    with listening(answering(OK)) as receiver:
        closed = receiver.port
    with pytest.raises(NoAnswer, match="Connection refused"):
        post(closed)


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"\x00\x01\x02\r\n\r\n",
        b"HTTP/1.1 OK\r\n\r\n",
        b"",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_what_is_not_http_is_no_answer(answer: bytes) -> None:
    with listening(answering(answer)) as receiver, pytest.raises(NoAnswer):
        post(receiver.port)


def test_an_answer_is_read_up_to_its_limit() -> None:
    endless = b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (ANSWER_LIMIT * 40)
    with listening(answering(endless)) as receiver:
        client = SafeClient(is_allowed=lambda address: True)
        answer = client.post(WebhookAddress("http", "127.0.0.1", receiver.port, "/"), body=b"{}", headers={})
    assert len(answer.body) == ANSWER_LIMIT
    assert answer.is_cut


def test_a_packed_answer_stays_packed() -> None:
    packed = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n\x1f\x8b\x08"
    with listening(answering(packed)) as receiver:
        client = SafeClient(is_allowed=lambda address: True)
        answer = client.post(WebhookAddress("http", "127.0.0.1", receiver.port, "/"), body=b"{}", headers={})
    assert answer.body == b"\x1f\x8b\x08"
    assert answer.header("content-encoding") == "gzip"


# --- TLS ---


def test_a_certificate_is_checked_against_the_name_and_the_name_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    names(monkeypatch, hooks_example_com=["127.0.0.1"])
    told: list[str | None] = []
    serving = authority().serving(NAME)
    serving.sni_callback = lambda connection, name, context: told.append(name)
    heard: list[bytes] = []
    with listening(answering(OK, heard=heard), tls=serving) as receiver:
        client = SafeClient(is_allowed=lambda address: True, trusted=authority().trusting())
        answer = client.post(WebhookAddress("https", NAME, receiver.port, "/"), body=b"{}", headers={})
    assert answer.status == 200
    assert told == [NAME]
    assert f"Host: {NAME}:{receiver.port}".encode() in heard[0]


@pytest.mark.parametrize(
    ("name", "expired", "believed", "said"),
    [
        pytest.param("other.example.com", False, True, "Hostname mismatch", id="of another name"),
        pytest.param(NAME, True, True, "certificate has expired", id="expired"),
        pytest.param(NAME, False, False, "unable to get local issuer", id="of an unknown authority"),
    ],
)
def test_a_wrong_certificate_is_refused_before_anything_is_sent(
    name: str, expired: bool, believed: bool, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names(monkeypatch, hooks_example_com=["127.0.0.1"])
    heard: list[bytes] = []
    with listening(answering(OK, heard=heard), tls=authority().serving(name, expired=expired)) as receiver:
        client = SafeClient(
            is_allowed=lambda address: True, trusted=authority().trusting() if believed else None, deadline=PATIENCE
        )
        with pytest.raises(NoAnswer, match=said):
            client.post(WebhookAddress("https", NAME, receiver.port, "/"), body=b"{}", headers={})
    assert heard == []


def test_a_receiver_that_speaks_no_tls_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    names(monkeypatch, hooks_example_com=["127.0.0.1"])
    with listening(lambda connection: connection.sendall(OK)) as receiver, pytest.raises(NoAnswer, match="encrypted"):
        SafeClient(is_allowed=lambda address: True).post(
            WebhookAddress("https", NAME, receiver.port, "/"), body=b"{}", headers={}
        )
