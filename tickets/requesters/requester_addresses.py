"""Read mail addresses of requesters, as people type them and as letters name them."""

from __future__ import annotations

import re
from email.utils import parseaddr
from typing import Final

import idna

from portal import plain_text
from portal.errors import Invalid

ADDRESS_LIMIT: Final = 254  # bytes; RFC 5321, section 4.5.3.1.3, less the angle brackets
_LOCAL_LIMIT: Final = 64  # bytes; the same section
_LOCAL: Final = re.compile(r'[^\s@<>(),;:\\"\[\]]+\Z')
_HOST: Final = re.compile(r"(?=.{1,253}\Z)[a-z0-9_]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9])?)*\Z")
_LITERAL: Final = re.compile(r"\[[0-9a-fA-F.:IPv]{3,50}\]\Z")


def normal(text: str, *, field: str = "address") -> str:
    """Return an address as it is stored and compared: in lower case, its domain as in the name system.

    Raises Invalid for what is no address.
    """
    local, _, domain = text.strip().rpartition("@")
    try:
        host = _host(domain)
    except ValueError as error:
        raise _none(text, field) from error
    address = f"{local.lower()}@{host}"
    is_local = len(local.encode("utf-8", "replace")) <= _LOCAL_LIMIT and _LOCAL.match(local)
    if not is_local or plain_text.has_controls(local) or len(address.encode()) > ADDRESS_LIMIT:
        raise _none(text, field)
    return address


def _host(domain: str) -> str:
    if _LITERAL.match(domain):
        return domain.lower()
    host = domain.lower() if domain.isascii() else idna.encode(domain, uts46=True).decode().lower()
    if not _HOST.match(host):
        raise ValueError("this is no host")
    return host


def _none(text: str, field: str) -> Invalid:
    shown = plain_text.visible(text.strip())[:60]
    return Invalid(f"“{shown}” is no mail address." if shown else "Enter a mail address.", field=field)


def is_address(text: str) -> bool:
    """Tell whether a text is a mail address."""
    try:
        normal(text)
    except Invalid:
        return False
    return True


def typed(text: str, *, field: str = "requester") -> tuple[str, str]:
    """Return the name and the normal address in `Name <address>`, or in an address alone. Raises Invalid."""
    name, address = parseaddr(text) if "<" in text else ("", text)
    return " ".join(name.split()), normal(address, field=field)
