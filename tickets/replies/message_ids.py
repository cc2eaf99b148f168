"""Make and recognise the Message-IDs of the letters that desks send.

`<r.<token>.<entry>@MAIL_DOMAIN>`, where the token is signed over desk, ticket and entry: an answer that names one in
In-Reply-To or References belongs to that ticket, and nobody can make one for another.

Source: RFC 5322, 3.6.4.

Tokens of letters are base32 in lower case, since letters of either case must mean the same. Each purpose has a salt,
and those of former keys are read while the keys are in SECRET_KEY_FALLBACKS.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from typing import Final, NamedTuple

from django.conf import settings
from django.utils.crypto import salted_hmac

from portal.schema import keys
from tenants.tenancy.context import TenantContext
from tickets.replies import stored
from tickets.replies.stored import SentItem
from tickets.ticket.stored import activity

MAC_BYTES: Final = 9  # nobody can try 2^72 letters
TENANT_BYTES: Final = 16
NUMBER_BYTES: Final = 4
MOST: Final = 2**31 - 1  # the largest ticket number; the bit above it is free for another use


def sealed(salt: str, data: bytes, *, about: str = "") -> str:
    """Return the data with its MAC, which covers `about`, too."""
    return _text(data + _mac(settings.SECRET_KEY, salt, data, about))


def opened(salt: str, text: str, *, size: int, about: str = "") -> bytes | None:
    """Return the `size` bytes of data in what `sealed` made; None for any other text. Upper case is read as lower."""
    raw = _raw(text)
    if raw is None or len(raw) != size + MAC_BYTES:
        return None
    data, mac = raw[:size], raw[size:]
    keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    is_ours = any(hmac.compare_digest(mac, _mac(key, salt, data, about)) for key in keys)
    return data if is_ours else None


def handle_of(tenant_id: str, person_id: str, *, size: int) -> bytes:
    """Stand in for a person's id within a desk, where only `size` bytes have room."""
    return hashlib.blake2b(f"{tenant_id}/{person_id}".encode(), digest_size=size).digest()


def _mac(key: str, salt: str, data: bytes, about: str) -> bytes:
    signed = salted_hmac(salt, data.hex() + about, secret=key, algorithm="sha256")
    return signed.digest()[:MAC_BYTES]


def _text(raw: bytes) -> str:
    return base64.b32encode(raw).decode().rstrip("=").lower()


def _raw(text: str) -> bytes | None:
    if not text.isascii():
        return None  # some letters beyond ASCII become ASCII in lower case
    try:
        raw = base64.b32decode(text.upper() + "=" * (-len(text) % 8))
    except ValueError:
        return None
    return raw if _text(raw) == text.lower() else None  # spare bits at the end would let two texts mean the same


_SALT: Final = "pooldesk.message-id"
_BYTES: Final = TENANT_BYTES + NUMBER_BYTES
_ENTRY: Final = re.compile(r"[a-z0-9-]{1,40}\Z")
_PLACE: Final = re.compile(r"(\d{4})(\d\d)(\d\d)t(\d\d)(\d\d)(\d\d)(\d{6})z-([0-9a-z]{1,12})\Z", re.ASCII)
_FROM_SES: Final = "amazonses.com"  # what the domains end with that Amazon SES puts into Message-IDs
_FORM: Final = re.compile(r"r\.([a-z2-7]{40,60})\.([a-z0-9-]{1,40})\Z")


class Thread(NamedTuple):
    """The ticket that a Message-ID of ours belongs to, and the `entry` that the letter was about."""

    tenant_id: str
    number: int
    entry: str = ""


def message_id(tenant_id: str, number: int, entry: str) -> str:
    """Return the Message-ID, in its brackets, of the letter about an entry: the same each time it is sent.

    `entry` is the id of the entry, or another text that no second letter of the ticket has. Raises ValueError.
    """
    if not 1 <= number <= MOST:
        raise ValueError(f"a ticket number is from 1 to {MOST}")
    part = entry.lower() if _ENTRY.match(entry.lower()) else keys.digest(entry)
    data = bytes.fromhex(keys.tenant(tenant_id)) + number.to_bytes(NUMBER_BYTES, "big")
    return f"<r.{sealed(_SALT, data, about=part)}.{part}@{settings.MAIL_DOMAIN or 'localhost'}>"


def read_message_id(text: str) -> Thread | None:
    """Return the ticket of a Message-ID of ours; None for any other, and for one whose signature does not hold.

    The domain is not compared, since MAIL_DOMAIN may have been another when the letter was sent.
    """
    local = text.strip().removeprefix("<").removesuffix(">").rpartition("@")[0]
    found = _FORM.match(local.lower()) if local.isascii() else None
    if found is None:
        return None
    data = opened(_SALT, found[1], size=_BYTES, about=found[2])
    if data is None:
        return None
    return Thread(data[:TENANT_BYTES].hex(), int.from_bytes(data[TENANT_BYTES:], "big"), found[2])


def entry_of(sort: str) -> str:
    """Return what stands for an entry in Message-IDs and in tags, by its sort key: time and id, without delimiters."""
    _, at, entry_id = keys.split(sort)
    return f"{re.sub(r'[-:.]', '', at)}-{entry_id}".lower()


def sort_of(entry: str) -> str | None:
    """Return the sort key in what `entry_of` made; None for another text."""
    found = _PLACE.match(entry)
    if found is None:
        return None
    year, month, day, hour, minute, second, micro, entry_id = found.groups()
    return activity(f"{year}-{month}-{day}T{hour}:{minute}:{second}.{micro}Z", entry_id)


# --- where the carrier puts a Message-ID of its own into a letter ---


def known_message(tenant: TenantContext, text: str) -> Thread | None:
    """Return the ticket of a Message-ID that Amazon SES gave a letter of this desk: one GetItem; None for any other."""
    carrier_id, _, domain = text.strip().removeprefix("<").removesuffix(">").partition("@")
    if not carrier_id or not domain.lower().endswith(_FROM_SES):
        return None
    item = tenant.repository.get(SentItem, keys.tenant, sort=stored.sent(carrier_id))
    return Thread(tenant.tenant_id, int(item.number)) if item else None


def remember(tenant: TenantContext, carrier_id: str, number: int) -> None:
    """Store the id that a carrier gave a letter about a ticket: one PutItem."""
    tenant.repository.put(SentItem(tenant.tenant_id, stored.sent(carrier_id), carrier_id=carrier_id, number=number))
