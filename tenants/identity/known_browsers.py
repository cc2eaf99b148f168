"""Recognise a browser in which somebody signed in before, by a signed cookie that lives long.

The cookie lets nobody in. It gives attempts to sign in to these accounts a counter of their own, which strangers cannot
fill. It holds up to ACCOUNTS pairs of a hashed address and a random name of the browser, behind which stands the
account's epoch of then: who knew the password before a second factor came may have signed in a thousand times, in a
thousand browsers.
"""

from __future__ import annotations

import secrets
from typing import Final

from django.core import signing

from portal.schema import keys
from tenants.identity.keys import folded

COOKIE: Final = "pooldesk_known"
LIFETIME: Final = 180 * 24 * 3600  # seconds after the last sign-in
ACCOUNTS: Final = 5  # remembered in one browser; the one that signed in longest ago is forgotten
_SALT: Final = "tenants.identity.known-browsers"


def name_of(cookie: str, email: str) -> str:
    """Return the name of the browser with this cookie for this account, "" where it is not known."""
    return _read(cookie).get(_account(email), "")


def name_since(cookie: str, email: str, *, epoch: int) -> str:
    """Return the name as `name_of`, "" where the account signed in here last before its sessions were ended all at
    once."""
    name = name_of(cookie, email)
    return name if name.endswith(f".{epoch}") else ""


def remembered(cookie: str, email: str, *, epoch: int) -> str:
    """Return the cookie after this account has signed in, with a fresh name of the browser."""
    account = _account(email)
    others = [pair for pair in _read(cookie).items() if pair[0] != account]
    pairs = [(account, f"{secrets.token_hex(8)}.{epoch}"), *others][:ACCOUNTS]
    return signing.dumps(dict(pairs), salt=_SALT)


def _account(email: str) -> str:
    return keys.anonymous(folded(email))


def _read(cookie: str) -> dict[str, str]:
    if not cookie or len(cookie) > 1000:
        return {}
    try:
        stored: dict[str, str] = signing.loads(cookie, salt=_SALT, max_age=LIFETIME)
    except signing.BadSignature:
        return {}
    return stored
