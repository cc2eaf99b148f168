"""Where webhooks may go: which addresses are public, and which texts are addresses at all."""

from __future__ import annotations

from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delivery.webhooks.safe_addresses import WebhookAddress, is_public, target
from portal.errors import Invalid

NOT_PUBLIC_TEXT = """
0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 100.127.255.255 127.0.0.1 127.1.2.3
168.63.129.16 169.254.0.1 169.254.169.254 169.254.170.2 172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.8
192.0.0.170 192.0.2.1 192.88.99.1 192.168.0.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1
239.255.255.255 240.0.0.1 255.255.255.255 :: ::1 ::2 ::127.0.0.1 ::10.0.0.1 ::ffff:127.0.0.1 ::ffff:10.0.0.1
::ffff:8.8.8.8 ::ffff:0:127.0.0.1 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::7f00:1 100::1 2001::1
2001:0:7f00:1::1 2001:2::1 2001:10::1 2001:20::1 2001:db8::1 2002:7f00:1::1 2002:a9fe:a9fe:: 2620:4f:8000::1
3fff::1 5f00::1 fc00::1 fd00:ec2::254 fdff::1 fe80::1 fe80::1%eth0 febf::1 fec0::1 feff::1 ff00::1 ff02::1
2606:4700::1%1 4000::1 dead::1
"""
NOT_PUBLIC = NOT_PUBLIC_TEXT.split()
PUBLIC_TEXT = """
1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 52.95.110.1 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0
168.63.129.15 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.167.255.255 192.169.0.0
198.17.255.255 198.20.0.0 223.255.255.255 2001:200::1 2001:4860:4860::8888 2003::1 2606:4700::1111
2a00:1450:4001::1 3ffe:ffff::1
"""
PUBLIC = PUBLIC_TEXT.split()


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_a_special_address_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_the_neighbours_of_special_addresses_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "text", ["", "localhost", "2130706433", "0x7f.1", "127.1", "0177.0.0.1", "\uff11\uff12\uff17.0.0.1", "1.1.1"]
)
def test_what_is_no_ip_address_is_not_public(text: str) -> None:
    assert not is_public(text)


@given(st.ip_addresses())
def test_what_python_holds_private_is_never_public(address: IPv4Address | IPv6Address) -> None:
    if is_public(str(address)):
        assert address.is_global
        assert not address.is_multicast


@given(st.ip_addresses(v=4, network="127.0.0.0/8") | st.ip_addresses(v=4))
def test_an_address_that_holds_another_in_itself_is_not_public(inner: IPv4Address) -> None:
    for form in ("::ffff:{}", "::{}", "64:ff9b::{}", "64:ff9b:1::{}"):
        assert not is_public(str(ip_address(form.format(inner))))
    assert not is_public(str(IPv6Address((0x2002 << 112) | (int(inner) << 80))))


def test_an_address_is_taken_apart_as_it_is_meant() -> None:
    assert target("https://Hooks.Example.com/a/b?c=d&e", ports=[443]) == WebhookAddress(
        "https", "hooks.example.com", 443, "/a/b?c=d&e"
    )
    assert target("https://hooks.example.com", ports=[443]).path == "/"
    assert target("https://hooks.example.com:443/", ports=[443]).host_header == "hooks.example.com"
    assert target("https://hooks.example.com:8443/", ports=[443, 8443]).host_header == "hooks.example.com:8443"
    assert target("https://xn--bcher-kva.example/", ports=[443]).host == "xn--bcher-kva.example"


def test_the_development_receiver_is_taken_by_its_exact_origin_alone() -> None:
    here = "http://127.0.0.1:8410"
    assert target(f"{here}/hooks?x=1", ports=[443], receiver=here) == WebhookAddress(
        "http", "127.0.0.1", 8410, "/hooks?x=1"
    )
    others = ["http://127.0.0.1:8411/", "http://127.0.0.1/", "http://localhost:8410/", "https://127.0.0.1:8410/"]
    for other in [*others, "http://127.0.0.1:8410@evil.example/", "http://127.0.0.1:84100/"]:
        with pytest.raises(Invalid):
            target(other, ports=[443], receiver=here)
    with pytest.raises(Invalid):
        target(f"{here}/", ports=[443])


@given(st.text(max_size=40))
def test_any_text_is_an_address_of_a_named_host_or_refused(text: str) -> None:
    for url in (text, f"https://{text}", f"https://{text}.example.com/"):
        with suppress(Invalid):
            found = target(url, ports=[443])
            assert found.host.isascii()
            assert "." in found.host
            assert found.port == 443
