"""Sign short byte strings for use in mail headers, where letters of either case must mean the same.

Base32 in lower case, without padding. Each purpose has a salt, so that a token for one is worthless for another. Tokens
live as long as the letters that carry them: those of former keys are read while the keys are in SECRET_KEY_FALLBACKS.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Final

from django.conf import settings
from django.utils.crypto import salted_hmac

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
