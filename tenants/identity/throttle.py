"""Slows down guessing of passwords, per account and per network address, for all web processes together.

An attempt is counted before the password is looked at, so that a hundred parallel guesses are a hundred
attempts; a right password clears the account's count. Windows are fixed slots of SIGN_IN_WINDOW seconds.
The address counts failures only: people behind one proxy sign in all morning.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from django.conf import settings

from portal.dynamo.client import fan_out
from tenants.identity import keys
from tenants.identity.items import ThrottleItem


@dataclass(frozen=True)
class Attempt:
    """A counted attempt to sign in. `wait_minutes` is None when it may go on."""

    buckets: tuple[str, str]
    wait_minutes: int | None


def begin(email: str, address: str) -> Attempt:
    """Count an attempt for this account and this address: two updates, sent together."""
    window = int(time.time()) // settings.SIGN_IN_WINDOW
    account, network = keys.throttle("account", email, window), keys.throttle("address", address, window)
    by_account, by_network = fan_out([lambda: _count(account, 1), lambda: _count(network, 1)])
    wait = None
    if by_account > settings.SIGN_IN_ATTEMPTS_PER_ACCOUNT or by_network > settings.SIGN_IN_ATTEMPTS_PER_ADDRESS:
        wait = math.ceil(((window + 1) * settings.SIGN_IN_WINDOW - time.time()) / 60)
    return Attempt((account, network), wait)


def succeeded(attempt: Attempt) -> None:
    """The password was right: forget the account's wrong ones and take this one off the address."""
    account, network = attempt.buckets
    fan_out([lambda: ThrottleItem(account).delete(), lambda: _count(network, -1)])


def _count(bucket: str, by: int) -> int:
    item = ThrottleItem(bucket)
    expires = int(time.time()) + 2 * settings.SIGN_IN_WINDOW
    item.update(actions=[ThrottleItem.attempts.add(by), ThrottleItem.expires_at.set(expires)])
    return int(item.attempts)
