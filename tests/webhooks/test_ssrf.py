"""Tricks by which an endpoint's address would lead into our own network: none reaches a socket that listens there."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from delivery.webhooks.safe_addresses import WebhookAddress, target
from delivery.webhooks.safe_client import AddressRefused, NoAnswer, SafeClient
from portal.errors import Invalid
from tests.support.receivers import Receiver, answering, authority, listening, names, request_of

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
# Each of them means 127.0.0.1, ::1, a private address or the metadata of a cloud to some reader; {p} is a port that
# the rules allow and that something listens on.
TRICKS = [
    # IPv4, in every way that C libraries, browsers and proxies read it
    "https://127.0.0.1:{p}/", "https://127.1:{p}/", "https://127.0.1:{p}/", "https://0:{p}/", "https://0.0.0.0:{p}/",
    "https://2130706433:{p}/", "https://017700000001:{p}/", "https://0x7f000001:{p}/", "https://0x7f.1:{p}/",
    "https://0x7f.0x0.0x0.0x1:{p}/", "https://0177.0.0.1:{p}/", "https://0177.0.0.01:{p}/", "https://127.0.0.1.:{p}/",
    "https://127.000.000.001:{p}/", "https://127.0.0x1:{p}/", "https://00000000177.1:{p}/", "https://4294967296:{p}/",
    "https://6425673729:{p}/", "https://127.127.127.127:{p}/", "https://169.254.169.254:{p}/latest/meta-data/",
    "https://2852039166:{p}/", "https://0xa9fea9fe:{p}/", "https://10.0.0.1:{p}/", "https://192.168.0.1:{p}/",
    "https://100.100.100.200:{p}/", "https://255.255.255.255:{p}/",
    # IPv6, and IPv4 inside of it
    "https://[::1]:{p}/", "https://[::]:{p}/", "https://[0:0:0:0:0:0:0:1]:{p}/", "https://[::ffff:127.0.0.1]:{p}/",
    "https://[::ffff:7f00:1]:{p}/", "https://[0:0:0:0:0:ffff:127.0.0.1]:{p}/", "https://[::127.0.0.1]:{p}/",
    "https://[64:ff9b::7f00:1]:{p}/", "https://[64:ff9b:1::7f00:1]:{p}/", "https://[2002:7f00:1::]:{p}/",
    "https://[2001:0:7f00:1::]:{p}/", "https://[fe80::1%25lo]:{p}/", "https://[fe80::1%lo]:{p}/", "https://[::1%25lo]:{p}/",
    "https://[fec0::1]:{p}/", "https://[fc00::1]:{p}/", "https://[fd00:ec2::254]:{p}/", "https://[ff02::1]:{p}/",
    "https://[::ffff:0:127.0.0.1]:{p}/", "https://[v1.127.0.0.1]:{p}/", "https://[127.0.0.1]:{p}/",
    # names
    "https://localhost:{p}/", "https://LOCALHOST:{p}/", "https://localhost.:{p}/", "https://localhost.localdomain:{p}/",
    "https://ip6-localhost:{p}/", "https://metadata:{p}/", "https://inside.example.com:{p}/", "https://inside.example.com.:{p}/",
    "https://mixed.example.com:{p}/", "https://sixth.example.com:{p}/", "https://mapped.example.com:{p}/",
    "https://zone.example.com:{p}/", "https://metadata.example.com:{p}/", "https://.127.0.0.1:{p}/", "https://a..b:{p}/",
    # letters and digits that are folded to others, and names that are folded to dots
    "https://\uff11\uff12\uff17.\uff10.\uff10.\uff11:{p}/", "https://127\u30020\u30020\u30021:{p}/", "https://127\uff0e0\uff0e0\uff0e1:{p}/",
    "https://\u2460\u2461\u2466.0.0.1:{p}/", "https://\u24db\u24de\u24d2\u24d0\u24db\u24d7\u24de\u24e2\u24e3:{p}/", "https://loc\u00adalhost:{p}/",
    "https://local\u200bhost:{p}/", "https://127.0.0.1\u2024example.com:{p}/", "https://\u0661\u0662\u0667.0.0.1:{p}/",
    "https://xn--127-.0.0.1:{p}/", "https://inside\uff0eexample.com:{p}/",
    # who is the host: user names, backslashes, blanks, escapes
    "https://hooks.example.com@127.0.0.1:{p}/", "https://hooks.example.com:443@127.0.0.1:{p}/", "https://a:b@inside.example.com:{p}/",
    "https://127.0.0.1:{p}\\@hooks.example.com/", "https://127.0.0.1:{p}#@hooks.example.com/", "https://127.0.0.1:{p}?@hooks.example.com/",
    "https://hooks.example.com\\@127.0.0.1:{p}/", "https://127.0.0.1%2f@hooks.example.com:{p}/", "https://%31%32%37.0.0.1:{p}/",
    "https://127.0.0.1%00.example.com:{p}/", "https://127.0.0.1 .example.com:{p}/", "https:// 127.0.0.1:{p}/", "https://\t127.0.0.1:{p}/",
    "https:///127.0.0.1:{p}/", "https:127.0.0.1:{p}/", "https:\\\\127.0.0.1:{p}/", "//127.0.0.1:{p}/", "https://127.0.0.1:{p}:443/",
    # headers inside of an address
    "https://inside.example.com:{p}/\r\nHost: 127.0.0.1", "https://inside.example.com:{p}\r\n/", "https://inside.example.com:{p}/\x00",
    "https://inside.example.com:{p}/%0d%0aHost:%20127.0.0.1", "https://inside.example.com:{p}/\u010d\u010a",
    # schemes and ports
    "http://inside.example.com:{p}/", "http://127.0.0.1:{p}/", "ftp://127.0.0.1:{p}/", "file:///etc/passwd", "gopher://127.0.0.1:{p}/_x",
    "dict://127.0.0.1:{p}/", "unix:///var/run/docker.sock", "jar:https://127.0.0.1:{p}!/", "data:text/plain,x", "HTTPS+UNIX://%2Frun/",
    "https://hooks.example.com:22/", "https://hooks.example.com:0/", "https://hooks.example.com:65536/", "https://hooks.example.com:-1/",
    "https://hooks.example.com:4\uff143/", "https://hooks.example.com:/", "https://hooks.example.com:+443/", "https://hooks.example.com:80/",
]  # fmt: skip
PLACES = {
    "inside_example_com": ["127.0.0.1"],
    "mixed_example_com": ["93.184.216.34", "127.0.0.1"],
    "sixth_example_com": ["93.184.216.34", "::1"],
    "mapped_example_com": ["::ffff:127.0.0.1"],
    "zone_example_com": ["fe80::1%1"],
    "metadata_example_com": ["169.254.169.254"],
    "localhost_localdomain": ["127.0.0.1"],
}
# What a C library reads as an address, without the rules for texts in front: for the second line alone.
HOSTS_TEXT = """
127.0.0.1 127.1 0 0.0.0.0 2130706433 017700000001 0x7f000001 0x7f.1 0177.0.0.1 127.0.0.1. ::1 ::
::ffff:127.0.0.1 ::ffff:7f00:1 ::127.0.0.1 fe80::1%lo localhost 10.0.0.1 169.254.169.254 2852039166 0xa9fea9fe
64:ff9b::7f00:1 2002:7f00:1:: fec0::1 fd00:ec2::254 255.255.255.255 \uff11\uff12\uff17.0.0.1
"""
HOSTS = HOSTS_TEXT.split()


@pytest.fixture
def trap() -> Iterator[Receiver]:
    with listening(answering(OK)) as receiver:
        yield receiver


def test_the_trap_hears_who_is_let_in(trap: Receiver) -> None:
    anywhere = SafeClient(is_allowed=lambda address: True)
    assert anywhere.post(WebhookAddress("http", "127.0.0.1", trap.port, "/"), body=b"{}", headers={}).body == b"ok"
    assert trap.connections == 1


def test_there_are_more_than_sixty_tricks() -> None:
    assert len(set(TRICKS)) > 60


@pytest.mark.parametrize("trick", TRICKS)
def test_a_trick_reaches_nothing(trick: str, trap: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    names(monkeypatch, **PLACES)
    with pytest.raises((Invalid, AddressRefused)):
        SafeClient().post(target(trick.format(p=trap.port), ports=[443, trap.port]), body=b"{}", headers={})
    assert trap.connections == 0


@pytest.mark.parametrize("host", HOSTS)
def test_the_client_alone_connects_to_nothing_that_is_not_public(host: str, trap: Receiver) -> None:
    with pytest.raises((AddressRefused, NoAnswer)) as refused:
        SafeClient().post(WebhookAddress("https", host, trap.port, "/"), body=b"{}", headers={})
    assert trap.connections == 0
    assert refused.type is AddressRefused or "no host" in refused.value.message


def test_a_name_that_changes_between_check_and_connection_gains_nothing(
    trap: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def rebinding(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.2" if len(asked) == 1 else "127.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    client = SafeClient(is_allowed=lambda address: address == "127.0.0.2", deadline=2)
    with pytest.raises(NoAnswer):
        client.post(WebhookAddress("http", "rebinding.example.com", trap.port, "/"), body=b"{}", headers={})
    assert asked == ["rebinding.example.com"]
    assert trap.connections == 0


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_into_our_network_is_an_answer_and_is_not_followed(status: int, trap: Receiver) -> None:
    answer = f"HTTP/1.1 {status} Moved\r\nLocation: http://127.0.0.1:{trap.port}/\r\nContent-Length: 0\r\n\r\n"
    with listening(answering(answer.encode())) as receiver:
        client = SafeClient(is_allowed=lambda address: True)
        got = client.post(WebhookAddress("http", "127.0.0.1", receiver.port, "/"), body=b"{}", headers={})
    assert got.status == status
    assert receiver.connections == 1
    assert trap.connections == 0


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "https_proxy", "all_proxy"])
def test_a_proxy_of_the_environment_hears_nothing(
    variable: str, trap: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, f"http://127.0.0.1:{trap.port}")
    names(monkeypatch, hooks_example_com=["127.0.0.2"])
    with listening(answering(OK), tls=authority().serving("hooks.example.com"), host="127.0.0.2") as receiver:
        client = SafeClient(is_allowed=lambda address: True, trusted=authority().trusting())
        client.post(WebhookAddress("https", "hooks.example.com", receiver.port, "/"), body=b"{}", headers={})
    assert receiver.connections == 1
    assert trap.connections == 0


def test_one_public_address_among_private_ones_is_not_enough(trap: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    names(monkeypatch, hooks_example_com=["127.0.0.1", "127.0.0.2"])
    client = SafeClient(is_allowed=lambda address: address == "127.0.0.1")
    with pytest.raises(AddressRefused, match=r"hooks\.example\.com leads to an address"):
        client.post(WebhookAddress("http", "hooks.example.com", trap.port, "/"), body=b"{}", headers={})
    assert trap.connections == 0


def test_no_header_can_be_smuggled_in_by_a_path_or_a_value() -> None:
    heard: list[bytes] = []
    with listening(answering(OK, heard=heard)) as receiver:
        client = SafeClient(is_allowed=lambda address: True)
        for path, value in (("/\r\nX-Evil: 1", "a"), ("/ HTTP/1.1\r\n", "a"), ("/", "a\r\nX-Evil: 1")):
            with pytest.raises((NoAnswer, ValueError)):
                client.post(WebhookAddress("http", "127.0.0.1", receiver.port, path), body=b"{}", headers={"x": value})
    assert heard == []


def test_the_request_is_what_the_receiver_expects() -> None:
    heard: list[bytes] = []

    def talk(connection: socket.socket) -> None:
        heard.append(request_of(connection))
        connection.sendall(OK)

    with listening(talk) as receiver:
        client = SafeClient(is_allowed=lambda address: True)
        client.post(
            WebhookAddress("http", "127.0.0.1", receiver.port, "/in?a=b"),
            body=b'{"a": 1}',
            headers={"content-type": "application/json"},
        )
    head, _, body = heard[0].partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /in?a=b HTTP/1.1"
    expected = {f"Host: 127.0.0.1:{receiver.port}", "Content-Length: 8", "Connection: close"}
    assert set(lines[1:]) == expected | {"content-type: application/json"}
    assert body == b'{"a": 1}'
