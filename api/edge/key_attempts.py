"""Bound how many keys one network address may try in vain, so that whoever has none costs little and delays nobody.

Until its item is read a key proves nothing, and anybody can write a tenant's id into one. So what is tried counts under
the address that it comes from, and under no tenant. A key that let in before is known by its digest and goes uncounted:
it is not kept out by others behind the same address. Once it is refused it is as unknown as any.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import ceil
from typing import Final

from django.conf import settings

from portal.errors import LimitReached
from portal.quotas import RecentTenants, TokenBucket
from tenants.api_keys.key_authentication import KeyRefused
from tenants.sign_in import attempt_limits

PER_SECOND: Final = 1.0  # that an address may try in vain for good; API_KEY_ATTEMPTS may come at once


class TooManyAttempts(LimitReached):
    """This network address has tried too many keys that let nobody in."""

    code = "too_many_attempts"


class KeyAttempts:
    """Count what is tried at this process, for any number of threads. The stored data is bounded."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._lock = threading.Lock()
        self._networks = RecentTenants(
            lambda _: TokenBucket(per_second=PER_SECOND, burst=settings.API_KEY_ATTEMPTS, clock=clock)
        )
        self._good: RecentTenants[bool] = RecentTenants(lambda _: True)

    def knows(self, digest: str) -> bool:
        """Tell whether the key of this digest let in when it was last tried here."""
        with self._lock:
            return self._good.known(digest) is not None

    @contextmanager
    def counted(self, digest: str, *, address: str) -> Iterator[None]:
        """Count the key that is tried inside under its network, unless it is known. Raises TooManyAttempts.

        It is counted before it is looked at, so that many at once are many; what was no KeyRefused is taken off again.
        """
        bucket = None if self.knows(digest) else self._take(attempt_limits.network_of(address))
        try:
            yield
        except KeyRefused:
            with self._lock:
                self._good.forget(digest)
            raise
        except Exception:
            self._give_back(bucket)
            raise
        with self._lock:
            self._good.of(digest)
        self._give_back(bucket)

    def _take(self, network: str) -> TokenBucket | None:
        if settings.API_KEY_ATTEMPTS < 1:
            return None
        with self._lock:
            bucket = self._networks.of(network)
            if not bucket.take():
                seconds = max(1, ceil(bucket.seconds_to_next()))
                sentence = "Too many API keys that let nobody in were tried from this network address."
                raise TooManyAttempts(sentence, retry_after=seconds)
            return bucket

    def _give_back(self, bucket: TokenBucket | None) -> None:
        if bucket is not None:
            with self._lock:
                bucket.give_back()


attempts: Final = KeyAttempts()  # of this process
