"""Write and read the text of an API key: `sk_<env>_<tenant>_<prefix><random><checksum>`.

The tenant's id and the prefix are the key of the item, so that one read of one partition finds it. The checksum is
CRC-32 over all before it: a mistyped key is refused without a read, and whoever scans texts for leaked keys takes
nothing else for one. All but the tenant is in base 62, which a double click selects as one word.

The random part has 190 bits. Nobody tries so many, so a stored digest needs no slow hash such as passwords do.

Source: GitHub, "Behind GitHub's new authentication token formats", 2021.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import string
import zlib
from dataclasses import dataclass
from typing import Final

from django.conf import settings

from portal.schema import keys

PREFIX_LENGTH: Final = 8
_RANDOM_LENGTH: Final = 32
_CHECKSUM_LENGTH: Final = 6  # 62 ** 6 is more than 2 ** 32
_BASE: Final = string.digits + string.ascii_uppercase + string.ascii_lowercase
_KEY: Final = re.compile(
    rf"(sk_([a-z]{{1,12}})_([0-9a-f]{{32}})_([0-9A-Za-z]{{{PREFIX_LENGTH}}})[0-9A-Za-z]{{{_RANDOM_LENGTH}}})"
    rf"([0-9A-Za-z]{{{_CHECKSUM_LENGTH}}})\Z"
)
_PREFIX: Final = re.compile(rf"[0-9A-Za-z]{{{PREFIX_LENGTH}}}\Z")


@dataclass(frozen=True)
class KeyAddress:
    """Where the item of a key is, by what the key says: nothing of it is proved."""

    environment: str
    tenant_id: str
    prefix: str


def new(tenant_id: str, prefix: str) -> str:
    """Make the text of a key. Raises ValueError for a tenant's id or a prefix that is none."""
    if not is_prefix(prefix):
        raise ValueError("this is no prefix of a key")
    random = "".join(secrets.choice(_BASE) for _ in range(_RANDOM_LENGTH))
    body = f"sk_{settings.API_KEY_ENVIRONMENT}_{keys.tenant(tenant_id)}_{prefix}{random}"
    return body + checksum(body)


def new_prefix(request_id: str) -> str:
    """Return the prefix of the key that a form makes, the same however often the form is sent."""
    return _in_base_62(int(keys.digest(request_id), 16), PREFIX_LENGTH)


def is_prefix(text: str) -> bool:
    """Tell whether a text has the form of a prefix."""
    return _PREFIX.match(text) is not None


def read(text: str) -> KeyAddress | None:
    """Take a key apart, or return None for what is no key or has a wrong checksum."""
    match = _KEY.match(text)
    if match is None or not hmac.compare_digest(checksum(match[1]), match[5]):
        return None
    return KeyAddress(match[2], match[3], match[4])


def digest(text: str) -> str:
    """Return what is stored of a key: the SHA-256 of its whole text, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def shown(prefix: str) -> str:
    return f"sk_{settings.API_KEY_ENVIRONMENT}_\N{HORIZONTAL ELLIPSIS}_{prefix}\N{HORIZONTAL ELLIPSIS}"


def checksum(body: str) -> str:
    """Return what has to stand behind the rest of a key. It is no secret: anybody can compute it."""
    return _in_base_62(zlib.crc32(body.encode()), _CHECKSUM_LENGTH)


def _in_base_62(number: int, length: int) -> str:
    """Return the lowest `length` digits of a number."""
    digits = []
    for _ in range(length):
        number, digit = divmod(number, len(_BASE))
        digits.append(_BASE[digit])
    return "".join(reversed(digits))
