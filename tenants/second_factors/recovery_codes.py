"""Make recovery codes, and hash them: each lets in once who lost what else they had."""

from __future__ import annotations

import hashlib
import secrets
from typing import Final

COUNT: Final = 10
LENGTH: Final = 16  # characters of 32: 80 random bits, so that a plain hash is not to be searched through
_ALPHABET: Final = "abcdefghjkmnpqrstuvwxyz023456789"  # without what is read as something else: i, l, o, 1
_GROUP: Final = 4


def new_codes() -> list[str]:
    """Return fresh codes, as `abcd-efgh-jkmn-pqrs`."""
    texts = ("".join(secrets.choice(_ALPHABET) for _ in range(LENGTH)) for _ in range(COUNT))
    return ["-".join(text[i : i + _GROUP] for i in range(0, LENGTH, _GROUP)) for text in texts]


def is_one(text: str) -> bool:
    """Tell whether this has the form of a code, whoever's."""
    return len(plain := _plain(text)) == LENGTH and not set(plain) - set(_ALPHABET)


def hash_of(code: str, *, user_id: str) -> str:
    """Return the hash of somebody's code, without regard to case, spaces and hyphens."""
    return hashlib.sha256(f"{user_id}|{_plain(code)}".encode()).hexdigest()


def _plain(text: str) -> str:
    return "".join(text.split()).replace("-", "").casefold()
