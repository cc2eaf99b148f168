"""Receivers on real sockets for webhooks, with TLS by an authority of the tests' own."""

from __future__ import annotations

import datetime
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

Talk = Callable[[socket.socket], None]
NAME = "hooks.example.com"


@dataclass
class Receiver:
    """One listening socket. `connections` counts who connected, `requests` holds what was read from each."""

    port: int
    connections: int = 0
    requests: list[bytes] = field(default_factory=list)


@dataclass(frozen=True)
class Authority:
    """Signs certificates that contexts of `trusting` believe."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    def trusting(self) -> ssl.SSLContext:
        pem = self.certificate.public_bytes(serialization.Encoding.PEM).decode()
        return ssl.create_default_context(cadata=pem)

    def serving(self, name: str, *, expired: bool = False) -> ssl.SSLContext:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _certificate(name, key, self.certificate.subject, self.key, expired=expired)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with TemporaryDirectory() as folder:
            path = Path(folder) / "receiver.pem"
            path.write_bytes(
                key.private_bytes(
                    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
                )
                + certificate.public_bytes(serialization.Encoding.PEM)
            )
            context.load_cert_chain(path)
        return context


@cache
def authority() -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Authority of the tests")])
    return Authority(key, _certificate("", key, name, key))


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Name,
    signing: ec.EllipticCurvePrivateKey,
    *,
    expired: bool = False,
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]) if name else issuer
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=2))
        .not_valid_after(now + datetime.timedelta(days=-1 if expired else 1))
        .add_extension(x509.BasicConstraints(ca=not name, path_length=None), critical=True)
    )
    if name:
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    return builder.sign(signing, hashes.SHA256())


@contextmanager
def listening(talk: Talk, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> Iterator[Receiver]:
    """Answer each connection with `talk`, in a thread of its own, until the block ends."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as server:
        receiver = Receiver(server.getsockname()[1])

        def converse(connection: socket.socket) -> None:
            with suppress(OSError), connection:
                connection.settimeout(120)
                secured = tls.wrap_socket(connection, server_side=True) if tls else connection
                with secured:
                    talk(secured)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    receiver.connections += 1
                    threading.Thread(target=converse, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield receiver
        server.shutdown(socket.SHUT_RDWR)


def request_of(connection: socket.socket) -> bytes:
    """The whole of one request: its head, and as much of a body as the head says."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += _some(connection)
    head, _, body = received.partition(b"\r\n\r\n")
    lengths = [line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    while len(body) < int(lengths[0]):
        body += _some(connection)
    return head + b"\r\n\r\n" + body


def _some(connection: socket.socket) -> bytes:
    some = connection.recv(65536)
    if not some:
        raise OSError("closed")
    return some


def answering(answer: bytes, *, heard: list[bytes] | None = None) -> Talk:
    """Read one request, send these bytes and close."""

    def talk(connection: socket.socket) -> None:
        received = request_of(connection)
        if heard is not None:
            heard.append(received)
        connection.sendall(answer)

    return talk


def names(patch: pytest.MonkeyPatch, **places: Sequence[str]) -> list[str]:
    """Let names resolve to these addresses; `_` stands for a dot. Returns the names that are asked for, as they are."""
    asked: list[str] = []
    known = {name.replace("_", "."): addresses for name, addresses in places.items()}

    def answer(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        asked.append(host)
        if host not in known:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [_found(address, port) for address in known[host]]

    patch.setattr(socket, "getaddrinfo", answer)
    return asked


def _found(address: str, port: int) -> tuple[object, ...]:
    bare, _, zone = address.partition("%")
    if ip_address(bare).version == 4:
        return (socket.AF_INET, socket.SOCK_STREAM, 6, "", (bare, port))
    return (socket.AF_INET6, socket.SOCK_STREAM, 6, "", (bare, port, 0, int(zone or 0)))
