"""Decide which addresses a webhook may be sent to: those of the public internet, and no others.

Two decisions. `target` reads the text that an admin typed, strictly: what browsers and libraries read in different
ways is refused rather than repaired. `is_public` judges the address that a name resolved to, because only that says
where a connection leads. The list is our own: Python's `is_global` lets 64:ff9b:1::/48, 2002::/16, fec0::/10 and
::127.0.0.1 pass, each of which can lead to a private address.

Sources: IANA, "IPv4 Special-Purpose Address Registry" and "IPv6 Special-Purpose Address Registry"; RFC 4291 (only
2000::/3 is global unicast); OWASP, "Server-Side Request Forgery Prevention Cheat Sheet".
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from typing import Final
from urllib.parse import urlsplit

from django.utils.translation import gettext as _

from portal.errors import Invalid
from portal.web import locales

URL_LIMIT: Final = 2_000  # characters

_V4_REFUSED: Final = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # this network; 0.0.0.0 reaches the machine itself
        "10.0.0.0/8",
        "100.64.0.0/10",  # shared by carriers; some clouds keep their metadata there
        "127.0.0.0/8",
        "168.63.129.16/32",  # Azure's platform, from inside of a machine
        "169.254.0.0/16",  # link-local: the metadata of most clouds
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",  # relays of 6to4
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)
_V6_UNICAST: Final = IPv6Network("2000::/3")
_V6_REFUSED: Final = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # protocols, Teredo among them, which holds an IPv4 address
        "2001:db8::/32",
        "2002::/16",  # 6to4, which holds an IPv4 address
        "2620:4f:8000::/48",
        "3fff::/20",
    )
)
_LABEL: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
# A last label of digits, or 0x and digits, makes the whole an IPv4 address to many readers. Source: WHATWG, "URL".
_NAME: Final = re.compile(rf"(?:{_LABEL}\.)+(?!0x)(?=[a-z0-9-]*[a-z]){_LABEL}\Z", re.IGNORECASE)
_PLAIN: Final = re.compile(r"[!-~]+\Z")  # printable ASCII without the blank


@dataclass(frozen=True)
class WebhookAddress:
    """A checked address. `path` has the query; `host` is a name, or the development receiver's IP address."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def host_header(self) -> str:
        """Return the value of the Host header: the port is left out where it is the scheme's own."""
        usual = {"https": 443, "http": 80}[self.scheme]
        return self.host if self.port == usual else f"{self.host}:{self.port}"


def is_public(address: str) -> bool:
    """Tell whether an IP address, as text, is one of the public internet. Text that is not an address is not public."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv4Address):
        return not any(ip in network for network in _V4_REFUSED)
    if ip.scope_id is not None:
        return False
    return ip in _V6_UNICAST and not any(ip in network for network in _V6_REFUSED)


def is_loopback(address: str) -> bool:
    """Tell whether an IP address, as text, is 127.0.0.1 or ::1."""
    return address in ("127.0.0.1", "::1")


def target(url: str, *, ports: Collection[int], receiver: str = "") -> WebhookAddress:
    """Read the address of an endpoint. Raises Invalid, with a sentence for the person who typed it.

    `receiver` is the origin of the development receiver, "" where there is none: `http://127.0.0.1:8410`.
    """
    locales.within(url, URL_LIMIT, "url")
    if not _PLAIN.match(url) or "\\" in url:
        raise Invalid(
            _("Write the address with plain letters, digits and signs only: no spaces, and names as xn--…"), field="url"
        )
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise Invalid(_("This is not a web address."), field="url") from error
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if receiver and f"{parts.scheme}://{parts.netloc}" == receiver:
        return WebhookAddress(parts.scheme, host, port or 80, path)
    if parts.scheme != "https":
        raise Invalid(_("The address must begin with https://."), field="url")
    if "@" in parts.netloc:
        raise Invalid(_("The address must not hold a user name or password."), field="url")
    if parts.fragment:
        raise Invalid(_("The address must not lead to a part of a page."), field="url")
    if len(host) > 253 or not _NAME.match(host):
        raise Invalid(_("The address must name a host of the internet, such as hooks.example.com."), field="url")
    if parts.netloc.endswith(":") or (port if port is not None else 443) not in ports:
        listed = ", ".join(map(str, sorted(ports)))
        raise Invalid(_("The address must lead to port %(listed)s.") % {"listed": listed}, field="url")
    return WebhookAddress("https", host.lower(), port or 443, path)
