"""A HEAD is answered by a head alone, over a real connection: what stood behind it would be read as the next answer."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

import pytest

from tests.support.served import served
from tests.support.world import World


def exchanged(address: str, requests: bytes) -> bytes:
    """What comes back on one connection."""
    parts = urlsplit(address)
    with socket.create_connection((str(parts.hostname), int(parts.port or 80)), timeout=120) as connection:
        connection.sendall(requests)
        return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.parametrize("path", ["/acme/tickets/", "/acme/search/?q=printer", "/no/such/page/", "/api/v1/tickets"])
def test_what_follows_the_head_is_the_next_answer(world: World, path: str) -> None:
    cookies = "; ".join(f"{name}={one.value}" for name, one in world.browser("alice", "acme").cookies.items())
    head = f"Host: 127.0.0.1\r\nCookie: {cookies}\r\n"
    both = f"HEAD {path} HTTP/1.1\r\n{head}\r\nGET /healthz HTTP/1.1\r\n{head}Connection: close\r\n\r\n".encode()
    with served() as address:
        first, second, *_ = exchanged(address, both).split(b"\r\n\r\n")
    length = next(line for line in first.split(b"\r\n") if line.lower().startswith(b"content-length: "))
    assert int(length.split()[1]) > 0, "as long as an answer to GET would be"
    assert second.startswith(b"HTTP/1.1 200 OK")
