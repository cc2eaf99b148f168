"""Read from where a key may be used: networks, and the origins of pages whose scripts may call with it."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network
from typing import Final
from urllib.parse import urlsplit

from django.utils.translation import gettext as _

from portal.errors import Invalid

_MAPPED: Final = IPv6Network("::ffff:0:0/96")  # the IPv4 addresses as IPv6 writes them
_HERE: Final = ("localhost", "127.0.0.1", "[::1]")  # hosts that a page may come from without TLS
_HOST: Final = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*\Z|\[::1\]\Z")


def network(text: str) -> str:
    """Return an address or a network as it is stored, such as 203.0.113.0/24. Raises Invalid."""
    try:
        read = _plain(ipaddress.ip_network(text))
        return str(read.network_address if read.num_addresses == 1 else read)
    except ValueError:
        pass
    try:
        meant = _plain(ipaddress.ip_network(text, strict=False))
    except ValueError:
        raise Invalid(_("“%(value)s” is no network address.") % {"value": text[:60]}, field="addresses") from None
    raise Invalid(
        _("“%(value)s” lies within a network. Write %(meant)s for all of it.") % {"value": text[:60], "meant": meant},
        field="addresses",
    )


def _plain(read: IPv4Network | IPv6Network) -> IPv4Network | IPv6Network:
    """Return a network of IPv4 addresses as one, however it is written: callers are compared so."""
    if isinstance(read, IPv4Network) or not read.subnet_of(_MAPPED):
        return read
    return IPv4Network((int(read.network_address) & 0xFFFFFFFF, read.prefixlen - _MAPPED.prefixlen))


def includes(networks: Iterable[str], address: str) -> bool:
    """Tell whether an address lies in one of these networks; any does where there are none.

    An IPv4 address that is written as IPv6, as sockets for both write it, is that IPv4 address.
    """
    allowed = [_plain(ipaddress.ip_network(one)) for one in networks]
    if not allowed:
        return True
    try:
        caller = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = caller.ipv4_mapped if isinstance(caller, ipaddress.IPv6Address) else None
    return any((mapped or caller) in one for one in allowed)


def origin(text: str) -> str:
    """Return an origin as browsers send it, such as https://app.example.com. Raises Invalid.

    A browser names no port that its scheme has anyway, and a name in other scripts in its ASCII form.
    """
    refused = Invalid(
        _("“%(value)s” is no origin. Write it like https://app.example.com.") % {"value": text[:60]}, field="origins"
    )
    try:
        parts = urlsplit(text.lower())
        port = parts.port
    except ValueError:
        raise refused from None
    host = parts.netloc.rpartition(":")[0] if port is not None else parts.netloc
    if text.lower() != f"{parts.scheme}://{parts.netloc}":  # there is a path, say, or an empty query
        raise refused
    if not _HOST.match(host) or parts.scheme not in ("https", "http"):
        raise refused
    if parts.scheme == "http" and host not in _HERE:
        raise Invalid(_("“%(value)s” is not protected. Use https.") % {"value": text[:60]}, field="origins")
    usual = {"https": 443, "http": 80}[parts.scheme]
    return f"{parts.scheme}://{host}" + ("" if port in (None, usual) else f":{port}")
