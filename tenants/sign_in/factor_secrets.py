"""Compute codes of authenticator apps, make and hash recovery codes, and encrypt the apps' secrets.

Codes follow RFC 6238: 6 digits, SHA-1, 30 seconds, which all apps support. Secrets are encrypted with Fernet, which is
AES-128-CBC with HMAC-SHA256. The keys follow from ENCRYPTION_KEYS, or where that is empty from SECRET_KEY and its
fallbacks. The first key encrypts and all decrypt, so that a key can be replaced while the former one still works.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import time
from functools import lru_cache
from typing import Final

import pyotp
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.utils.crypto import constant_time_compare
from django.utils.translation import gettext

from portal.errors import Invalid

STEP_SECONDS: Final = 30
LEEWAY: Final = 1  # steps before and after now: the clocks of phones are a little off
ISSUER: Final = "Pooldesk"


def new_secret() -> str:
    """Return 160 random bits in base 32, as RFC 4226 recommends."""
    return pyotp.random_base32()


def app_address(secret: str, *, email: str) -> str:
    """Return the otpauth:// address that a QR code holds."""
    return str(pyotp.TOTP(secret).provisioning_uri(name=email, issuer_name=ISSUER))


def current_step() -> int:
    """Return the number of the 30 seconds that are now, since the epoch."""
    return int(time.time()) // STEP_SECONDS


def step_of(secret: str, code: str, *, after: int = 0) -> int | None:
    """Return the step whose code this is, near now and later than `after`, or None. Spaces in the code do not count."""
    digits = "".join(code.split())
    if not (digits.isascii() and digits.isdecimal()):
        return None
    app, now = pyotp.TOTP(secret), current_step()
    near = range(max(now - LEEWAY, after + 1), now + LEEWAY + 1)
    return next((step for step in near if constant_time_compare(app.generate_otp(step), digits)), None)


COUNT: Final = 10
LENGTH: Final = 16  # characters of 32: 80 random bits, so that a plain hash is not to be searched through
_ALPHABET: Final = "abcdefghjkmnpqrstuvwxyz023456789"  # without what is read as something else: i, l, o, 1
_GROUP: Final = 4


def new_codes() -> list[str]:
    """Return fresh codes, as `abcd-efgh-jkmn-pqrs`."""
    texts = ("".join(secrets.choice(_ALPHABET) for _ in range(LENGTH)) for _ in range(COUNT))
    return ["-".join(text[i : i + _GROUP] for i in range(0, LENGTH, _GROUP)) for text in texts]


def is_recovery_code(text: str) -> bool:
    """Tell whether this has the form of a code, whoever's."""
    return len(plain := _plain(text)) == LENGTH and not set(plain) - set(_ALPHABET)


def hash_of_code(code: str, *, user_id: str) -> str:
    """Return the hash of somebody's code, without regard to case, spaces and hyphens."""
    return hashlib.sha256(f"{user_id}|{_plain(code)}".encode()).hexdigest()


def _plain(text: str) -> str:
    return "".join(text.split()).replace("-", "").casefold()


_INFO: Final = b"pooldesk second factors"


def seal(text: str, *, of: str) -> str:
    """Encrypt a text that belongs to somebody; `of` says to whom, and nobody else's opens."""
    return _fernet().encrypt(f"{of}|{text}".encode()).decode()


def opened(sealed: str, *, of: str, seconds: int | None = None) -> str:
    """Return what `seal` took, unless it was sealed longer ago than `seconds`. Raises Invalid."""
    try:
        owner, _, text = _fernet().decrypt(sealed.encode(), ttl=seconds).decode().partition("|")
    except (InvalidToken, UnicodeError) as error:
        raise Invalid(gettext("This cannot be opened with the keys of this installation, or is too old.")) from error
    if owner != of:
        raise Invalid(gettext("This is somebody else's."))
    return text


def is_sealed_with_current_key(sealed: str) -> bool:
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
