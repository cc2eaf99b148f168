"""Slow down guessing of passwords, for all web processes together.

An attempt is counted before the password is looked at, so that a hundred parallel guesses are a hundred attempts; a
right password is taken off again. Windows are fixed slots of SIGN_IN_WINDOW seconds, and the previous one counts with
the share of it that is not yet a window ago, so that no edge between two slots allows twice the limit.

Sign-in counts by account and network together: a stranger's wrong passwords do not keep the owner out. A network's
limit stops one that tries many accounts, and an account's own, far higher, many networks that try one account. A
browser in which this account was signed in before (tenants/sign_in/attempt_limits.py) has a counter of its own and
none of those. Public forms are counted in the same way.
Networks are IPv4 addresses and /64 prefixes of IPv6, which is what one customer has.
"""

from __future__ import annotations

import ipaddress
import math
import secrets
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from django.conf import settings
from django.core import signing

from portal.dynamo.client import fan_out
from portal.dynamo.platform import PLATFORM
from portal.errors import Throttled
from portal.schema import keys
from tenants.sign_in.stored import ThrottleItem, attempts_key, folded


@dataclass(frozen=True)
class AttemptLimit:
    """Attempts that one subject has in a window, of SIGN_IN_WINDOW seconds where `seconds` is 0. `kind` keeps subjects
    of different sorts apart."""

    kind: str
    subject: str
    most: int
    seconds: int = 0

    @property
    def window(self) -> int:
        return self.seconds or settings.SIGN_IN_WINDOW

    def bucket(self, now: float, *, back: int = 0) -> str:
        """Return the key of its counter, now or so many windows ago."""
        return attempts_key(self.kind, self.subject, int(now // self.window) - back)

    def passed(self, now: float) -> float:
        """Return how much of the current window is over, from 0 to 1."""
        return now % self.window / self.window


@dataclass(frozen=True)
class CountedAttempt:
    """A counted attempt. `wait_minutes` is None when it may go on."""

    buckets: tuple[str, ...]
    wait_minutes: int | None


def network_of(address: str) -> str:
    """Return the network that an address counts for: itself for IPv4, its /64 for IPv6. Anything else stands for
    itself."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((int(parsed), 64), strict=False))
    return str(parsed)


def sign_in(email: str, *, address: str, browser: str = "") -> tuple[AttemptLimit, ...]:
    """Return the limits of signing in. `browser` names a known browser of this account, "" for none."""
    if browser:
        return (AttemptLimit("browser", browser, settings.SIGN_IN_ATTEMPTS),)
    network = network_of(address)
    return (
        AttemptLimit("account and network", f"{network} {email.strip().casefold()}", settings.SIGN_IN_ATTEMPTS),
        AttemptLimit("network", network, settings.SIGN_IN_ATTEMPTS_PER_NETWORK),
        AttemptLimit("account", email, settings.SIGN_IN_ATTEMPTS_PER_ACCOUNT),
    )


def reset_mail(email: str, *, address: str) -> tuple[AttemptLimit, ...]:
    """Return the limits of asking for a reset link: so many mails for one account, and requests of one network."""
    return (
        AttemptLimit("reset account", email, settings.SIGN_IN_ATTEMPTS),
        AttemptLimit("reset network", network_of(address), settings.SIGN_IN_ATTEMPTS_PER_NETWORK),
    )


def old_password(user_id: str) -> tuple[AttemptLimit, ...]:
    """Return the limit of guessing the password of somebody whose session one has."""
    return (AttemptLimit("old password", user_id, settings.SIGN_IN_ATTEMPTS),)


def second_step(user_id: str, *, browser: str = "") -> tuple[AttemptLimit, ...]:
    """Return the limit of guessing codes for somebody whose password one has: for all networks together, because a code
    has six digits. `browser` is as in `sign_in`."""
    kind, subject = ("second step, browser", browser) if browser else ("second step", user_id)
    return (AttemptLimit(kind, subject, settings.SIGN_IN_ATTEMPTS),)


def passkey(*, address: str) -> tuple[AttemptLimit, ...]:
    """Return the limit of passkeys that one network tries: they cannot be guessed, and each costs a signature's
    check."""
    return (AttemptLimit("passkey network", network_of(address), settings.SIGN_IN_ATTEMPTS_PER_NETWORK),)


def begin(limits: Sequence[AttemptLimit]) -> CountedAttempt:
    """Count an attempt: an update for each limit and one BatchGetItem of the previous window, sent together."""
    now = time.time()
    buckets = [limit.bucket(now) for limit in limits]
    wanted: list[tuple[Any, str, None]] = [(ThrottleItem, limit.bucket(now, back=1), None) for limit in limits]
    work: list[Any] = [partial(_count, bucket, 1, limit.window) for bucket, limit in zip(buckets, limits, strict=True)]
    *counts, stored = fan_out([*work, lambda: PLATFORM.get_all(wanted)])
    waits = [
        _wait(count, int(before.attempts) if before else 0, limit.passed(now), limit.most) * limit.window
        for count, before, limit in zip(counts, stored, limits, strict=True)
    ]
    longest = max(waits)
    return CountedAttempt(tuple(buckets), math.ceil(longest / 60) if longest else None)


def counted(limits: Sequence[AttemptLimit]) -> list[float]:
    """Return the attempts that were counted for each limit in the last window, and count none: one BatchGetItem."""
    now = time.time()
    wanted: list[tuple[Any, str, None]] = [
        (ThrottleItem, limit.bucket(now, back=back), None) for limit in limits for back in (0, 1)
    ]
    found = [int(item.attempts) if item else 0 for item in PLATFORM.get_all(wanted)]
    pairs = zip(found[::2], found[1::2], limits, strict=True)
    return [current + previous * (1 - limit.passed(now)) for current, previous, limit in pairs]


def succeeded(attempt: CountedAttempt) -> None:
    """Take an attempt with the right password off its counters."""
    fan_out([partial(_count, bucket, -1) for bucket in attempt.buckets])


def count_refusal() -> int:
    """Count a refused sign-in of the whole platform in this window; where that counter is busy, there are very many."""
    window = int(time.time() // settings.SIGN_IN_WINDOW)
    try:
        return _count(attempts_key("refusals", "all", window), 1)
    except Throttled:
        return sys.maxsize


def _wait(current: int, previous: int, share: float, most: int) -> float:
    """Return after how many windows one more attempt is within the limit, 0 where this one is.

    `share` is how much of the current window is over.
    """
    if current + previous * (1 - share) <= most:
        return 0
    if current < most:
        return 1 - (most - current) / previous - share
    return 1 - share + (1 - (most - 1) / current)


def _count(bucket: str, by: int, window: int = 0) -> int:
    expires = int(time.time()) + 2 * (window or settings.SIGN_IN_WINDOW)
    counted = PLATFORM.update(
        ThrottleItem(bucket), [ThrottleItem.attempts.add(by), ThrottleItem.expires_at.set(expires)]
    )
    return int(counted.attempts)


KNOWN_COOKIE: Final = "pooldesk_known"
KNOWN_LIFETIME: Final = 180 * 24 * 3600  # seconds after the last sign-in
ACCOUNTS: Final = 5  # remembered in one browser; the one that signed in longest ago is forgotten
_SALT: Final = "tenants.identity.known-browsers"


def browser_name(cookie: str, email: str) -> str:
    """Return the name of the browser with this cookie for this account, "" where it is not known."""
    return _read_cookie(cookie).get(_account(email), "")


def browser_name_since(cookie: str, email: str, *, epoch: int) -> str:
    """Return the name as `name_of`, "" where the account signed in here last before its sessions were ended all at
    once."""
    name = browser_name(cookie, email)
    return name if name.endswith(f".{epoch}") else ""


def remembered_cookie(cookie: str, email: str, *, epoch: int) -> str:
    """Return the cookie after this account has signed in, with a fresh name of the browser."""
    account = _account(email)
    others = [pair for pair in _read_cookie(cookie).items() if pair[0] != account]
    pairs = [(account, f"{secrets.token_hex(8)}.{epoch}"), *others][:ACCOUNTS]
    return signing.dumps(dict(pairs), salt=_SALT)


def _account(email: str) -> str:
    return keys.anonymous(folded(email))


def _read_cookie(cookie: str) -> dict[str, str]:
    if not cookie or len(cookie) > 1000:
        return {}
    try:
        stored: dict[str, str] = signing.loads(cookie, salt=_SALT, max_age=KNOWN_LIFETIME)
    except signing.BadSignature:
        return {}
    return stored
