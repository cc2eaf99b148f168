"""Encrypt what must be readable again and must not stand in a table: Fernet, which is AES-128-CBC with HMAC-SHA256.

The keys follow from ENCRYPTION_KEYS, or where that is empty from SECRET_KEY and its fallbacks. The first one encrypts
and all decrypt, so that a key can be replaced while the former one still opens what it has sealed.
"""

from __future__ import annotations

import base64
from functools import lru_cache
from typing import Final

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from portal.errors import Invalid

_INFO: Final = b"pooldesk second factors"


def seal(text: str, *, of: str) -> str:
    """Encrypt a text that belongs to somebody; `of` says to whom, and nobody else's opens."""
    return _fernet().encrypt(f"{of}|{text}".encode()).decode()


def opened(sealed: str, *, of: str, seconds: int | None = None) -> str:
    """Return what `seal` took, unless it was sealed longer ago than `seconds`. Raises Invalid."""
    try:
        owner, _, text = _fernet().decrypt(sealed.encode(), ttl=seconds).decode().partition("|")
    except (InvalidToken, UnicodeError) as error:
        raise Invalid("This cannot be opened with the keys of this installation, or is too old.") from error
    if owner != of:
        raise Invalid("This is somebody else's.")
    return text


def is_current(sealed: str) -> bool:
    """Tell whether the first key opens this: what another one has sealed is to be sealed anew."""
    try:
        _fernets(*_keys())[0].decrypt(sealed.encode())
    except InvalidToken:
        return False
    return True


def _fernet() -> MultiFernet:
    return MultiFernet(_fernets(*_keys()))


def _keys() -> list[str]:
    return settings.ENCRYPTION_KEYS or [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]


@lru_cache(maxsize=8)
def _fernets(*keys: str) -> tuple[Fernet, ...]:
    def derived(key: str) -> bytes:
        return HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=_INFO).derive(key.encode())

    return tuple(Fernet(base64.urlsafe_b64encode(derived(key))) for key in keys)
