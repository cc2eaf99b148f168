"""Connections to an endpoint: kept where they may be, replaced where they ended, and each failure by its name."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.awsrequest import AWSPreparedRequest
from botocore.exceptions import (
    ConnectionClosedError,
    EndpointConnectionError,
    HTTPClientError,
    ReadTimeoutError,
    SSLError,
)
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from portal.dynamo import item_protocol
from portal.dynamo.item_protocol import HttpExchange

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Amzn-RequestId: 7\r\n\r\n{}"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n"
CONFIG = SimpleNamespace(connect_timeout=5, read_timeout=60, max_pool_connections=2)
SILENCE = b"silence"


class ScriptedEndpoint:
    """A server that gives one connection after the other its answers, and then ends it."""

    def __init__(self, *connections: list[bytes], tls: ssl.SSLContext | None = None) -> None:
        self.asked: list[bytes] = []
        self.opened = 0
        self._connections, self._tls = connections, tls
        self._over = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self._socket.getsockname()[1]}"

    def exchange(self, **of_session: Any) -> HttpExchange:
        no_proxy = SimpleNamespace(proxy_url_for=lambda url: None)
        return HttpExchange(
            self.url, CONFIG, SimpleNamespace(**{"_proxy_config": no_proxy, "_verify": True} | of_session)
        )

    @contextmanager
    def serving(self) -> Iterator[ScriptedEndpoint]:
        thread = threading.Thread(target=self._serve)
        thread.start()
        try:
            yield self
        finally:
            self._over.set()
            thread.join()
            self._socket.close()

    def _serve(self) -> None:
        for answers in self._connections:
            accepted, _ = self._socket.accept()
            self.opened += 1
            with accepted, suppress(OSError):  # the client went away
                self._answer(self._tls.wrap_socket(accepted, server_side=True) if self._tls else accepted, answers)

    def _answer(self, connection: socket.socket, answers: list[bytes]) -> None:
        for answer in answers:
            asked = b""
            while not asked.endswith(b"\r\n\r\n{}") and (more := connection.recv(65536)):
                asked += more
            self.asked.append(asked)
            if answer == SILENCE:
                self._over.wait()
            else:
                connection.sendall(answer)


def request() -> AWSPreparedRequest:
    return AWSPreparedRequest("POST", "", {"X-Amz-Target": "T"}, b"{}", False)


def test_a_connection_is_kept_for_the_next_request() -> None:
    with ScriptedEndpoint([ANSWER, CHUNKED, ANSWER]).serving() as endpoint:
        exchange = endpoint.exchange()
        answers = [exchange.send(request()) for _ in range(3)]
        assert exchange._idle[0].sock.gettimeout() == CONFIG.read_timeout, "and not what a connection may take"
    assert endpoint.opened == 1
    assert [(a.status_code, a.content) for a in answers] == [(200, b"{}")] * 3
    assert answers[0].headers["x-amzn-requestid"] == "7"


def test_a_header_with_a_line_break_is_not_sent() -> None:
    with ScriptedEndpoint([ANSWER]).serving() as endpoint:
        sent = AWSPreparedRequest("POST", "", {"X-Amz-Target": "T\r\nX-Other: 1"}, b"{}", False)
        with pytest.raises(ConnectionClosedError):
            endpoint.exchange().send(sent)
    assert endpoint.asked == [b""]


@pytest.mark.parametrize(
    "last",
    [
        pytest.param(ANSWER, id="the other side ends it"),
        pytest.param(ANSWER.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), id="the answer says so"),
        pytest.param(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", id="HTTP/1.0"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n{}", id="a body without its length"),
    ],
)
def test_a_connection_that_ended_is_replaced(last: bytes) -> None:
    with ScriptedEndpoint([last], [ANSWER]).serving() as endpoint:
        exchange = endpoint.exchange()
        assert exchange.send(request()).content == b"{}"
        while exchange._idle and not exchange._idle[0].is_readable():
            pass  # the end of the connection is on its way
        assert exchange.send(request()).content == b"{}"
    assert endpoint.opened == 2


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"", ConnectionClosedError),
        (b"HTTP/1.1 200 OK\r\nContent-", ConnectionClosedError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n", ConnectionClosedError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{}", ConnectionClosedError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\n{}", ConnectionClosedError),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{}", ConnectionClosedError),
        (b"SSH-2.0\r\n\r\n", ConnectionClosedError),
        (SILENCE, ReadTimeoutError),
    ],
)
def test_an_answer_that_breaks_off_is_no_answer(
    answer: bytes, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    if answer == SILENCE:
        monkeypatch.setattr(CONFIG, "read_timeout", 0.1)
    with ScriptedEndpoint([answer]).serving() as endpoint:
        exchange = endpoint.exchange()
        with pytest.raises(error):
            exchange.send(request())
        assert not exchange._idle


def test_nobody_listening_is_an_endpoint_that_cannot_be_reached() -> None:
    endpoint = ScriptedEndpoint()
    endpoint._socket.close()
    with pytest.raises(EndpointConnectionError):
        endpoint.exchange().send(request())


def test_an_endpoint_that_answered_nobody_is_not_asked_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CONFIG, "read_timeout", 0.2)
    monkeypatch.setattr(item_protocol, "PROBE_SECONDS", 3600)
    with ScriptedEndpoint([SILENCE]).serving() as endpoint:
        with pytest.raises(ReadTimeoutError):
            endpoint.exchange().send(request())
        with pytest.raises(EndpointConnectionError):
            endpoint.exchange().send(request())
    assert len(endpoint.asked) == 1


def test_no_more_connections_are_kept_than_the_pool_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CONFIG, "max_pool_connections", 0)
    with ScriptedEndpoint([ANSWER], [ANSWER]).serving() as endpoint:
        exchange = endpoint.exchange()
        assert [exchange.send(request()).content for _ in range(2)] == [b"{}"] * 2
    assert endpoint.opened == 2


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate of 127.0.0.1 that no authority has signed, in one file."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "engine")])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    path = tmp_path_factory.mktemp("tls") / "certificate.pem"
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(private + made.public_bytes(pem))
    return path


@pytest.mark.parametrize(
    ("trusts", "outcome"),
    [
        pytest.param(lambda path: str(path), None, id="a certificate of the stated bundle"),
        pytest.param(lambda path: True, SSLError, id="a certificate that nobody has signed"),
    ],
)
def test_the_other_side_shows_its_certificate(
    certificate: Path, trusts: Callable[[Path], Any], outcome: type[HTTPClientError] | None
) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    with ScriptedEndpoint([ANSWER], tls=tls).serving() as endpoint:
        exchange = endpoint.exchange(_verify=trusts(certificate))
        if outcome is None:
            assert exchange.send(request()).content == b"{}"
            assert f"Host: {endpoint.url[8:]}".encode() in endpoint.asked[0]
        else:
            with pytest.raises(outcome):
                exchange.send(request())


def test_behind_a_proxy_botocores_session_is_asked() -> None:
    behind = SimpleNamespace(proxy_url_for=lambda url: "http://proxy:3128")
    exchange = ScriptedEndpoint().exchange(_proxy_config=behind, send=lambda sent: ("asked", sent.body))
    assert exchange.send(request()) == ("asked", b"{}")
