"""Slow down guessing of passwords, for all web processes together.

An attempt is counted before the password is looked at, so that a hundred parallel guesses are a hundred attempts; a
right password is taken off again. Windows are fixed slots of SIGN_IN_WINDOW seconds, and the previous one counts with
the share of it that is not yet a window ago, so that no edge between two slots allows twice the limit.

Sign-in counts by account and network together: a stranger's wrong passwords do not keep the owner out. A network's
limit stops one that tries many accounts, and an account's own, far higher, many networks that try one account. A
browser in which this account was signed in before (tenants/identity/known_browsers.py) has a counter of its own and
none of those. Networks are IPv4 addresses and /64 prefixes of IPv6, which is what one customer has.
"""

from __future__ import annotations

import ipaddress
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.conf import settings

from portal.dynamo import platform
from portal.dynamo.client import fan_out
from portal.errors import Throttled
from tenants.identity import keys
from tenants.identity.items import ThrottleItem


@dataclass(frozen=True)
class AttemptLimit:
    """Attempts that one subject has in a window. `kind` keeps subjects of different sorts apart."""

    kind: str
    subject: str
    most: int


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
    window, passed = divmod(now, settings.SIGN_IN_WINDOW)
    share = passed / settings.SIGN_IN_WINDOW
    buckets, earlier = ([keys.throttle(n.kind, n.subject, int(w)) for n in limits] for w in (window, window - 1))
    wanted: list[tuple[Any, str, None]] = [(ThrottleItem, bucket, None) for bucket in earlier]
    work: list[Any] = [partial(_count, bucket, 1) for bucket in buckets]
    *counts, stored = fan_out([*work, lambda: platform.get_all(wanted)])
    waits = [
        _wait(count, int(before.attempts) if before else 0, share, limit.most)
        for count, before, limit in zip(counts, stored, limits, strict=True)
    ]
    longest = max(waits)
    return CountedAttempt(tuple(buckets), math.ceil(longest * settings.SIGN_IN_WINDOW / 60) if longest else None)


def succeeded(attempt: CountedAttempt) -> None:
    """Take an attempt with the right password off its counters."""
    fan_out([partial(_count, bucket, -1) for bucket in attempt.buckets])


def count_refusal() -> int:
    """Count a refused sign-in of the whole platform in this window; where that counter is busy, there are very many."""
    window = int(time.time() // settings.SIGN_IN_WINDOW)
    try:
        return _count(keys.throttle("refusals", "all", window), 1)
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


def _count(bucket: str, by: int) -> int:
    item = ThrottleItem(bucket)
    expires = int(time.time()) + 2 * settings.SIGN_IN_WINDOW
    item.update(actions=[ThrottleItem.attempts.add(by), ThrottleItem.expires_at.set(expires)])
    return int(item.attempts)
