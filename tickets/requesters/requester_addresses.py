"""Read mail addresses of requesters, as people type them and as letters name them."""

from __future__ import annotations

import re
import unicodedata
from email.utils import parseaddr
from typing import Final

import idna
from django.utils.translation import gettext as _

from portal import plain_text
from portal.errors import Invalid

ADDRESS_LIMIT: Final = 254  # bytes; RFC 5321, section 4.5.3.1.3, less the angle brackets
_LOCAL_LIMIT: Final = 64  # bytes; the same section
_LOCAL: Final = re.compile(r'(?:[^\s@<>(),;:\\"\[\]]+|"[^"\\\t\r\n]{1,62}")\Z')  # as it is, or quoted; RFC 5322, 3.4.1
_HOST: Final = re.compile(r"(?=.{1,253}\Z)[a-z0-9_]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9])?)*\Z")
_LITERAL: Final = re.compile(r"\[[0-9a-fA-F.:IPv]{3,50}\]\Z")


def normal(text: str, *, field: str = "address") -> str:
    """Return an address as it is stored and compared: in lower case, its domain as in the name system.

    Raises Invalid for what is no address.
    """
    local, _at, domain = unicodedata.normalize("NFC", text.strip()).rpartition("@")
    try:
        address = f"{local.lower()}@{_host(domain)}"
        is_short = len(local.encode()) <= _LOCAL_LIMIT and len(address.encode()) <= ADDRESS_LIMIT
    except ValueError as error:  # also of a half of a surrogate pair, which no UTF-8 holds
        raise _none(text, field) from error
    if not is_short or not _LOCAL.match(local) or plain_text.has_controls(local):
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
    return Invalid(
        _("“%(shown)s” is no mail address.") % {"shown": shown} if shown else _("Enter a mail address."), field=field
    )


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
