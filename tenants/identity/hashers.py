"""Hash passwords with bounded memory, however many people sign in at the same moment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore
from typing import Final

from django.contrib.auth.hashers import Argon2PasswordHasher

from portal.errors import LimitReached

AT_A_TIME: Final = 4  # hashes in one process
WAITING: Final = 2  # that wait for their turn, for WAIT_SECONDS at most: the threads are there for others too
WAIT_SECONDS: Final = 2.0
_slots, _seats = BoundedSemaphore(AT_A_TIME), BoundedSemaphore(WAITING)


@contextmanager
def _slot() -> Iterator[None]:
    """Hold one of the slots. Raises LimitReached where too many wait for one."""
    if not _slots.acquire(blocking=False) and not _wait():
        raise LimitReached("Very many people are signing in at this moment.", retry_after=2)
    try:
        yield
    finally:
        _slots.release()


def _wait() -> bool:
    if not _seats.acquire(blocking=False):
        return False
    try:
        return _slots.acquire(timeout=WAIT_SECONDS)
    finally:
        _seats.release()


class BoundedArgon2PasswordHasher(Argon2PasswordHasher):
    """Argon2id with 19 MiB, two passes and one thread, so that a process needs 76 MiB for hashes at most.

    Source: OWASP Password Storage Cheat Sheet, Argon2id. Django's own parameters take 100 MiB a hash.
    """

    time_cost = 2
    memory_cost = 19_456  # KiB
    parallelism = 1

    def encode(self, password: str, salt: str) -> str:
        with _slot():
            return str(super().encode(password, salt))

    def verify(self, password: str, encoded: str) -> bool:
        with _slot():
            return bool(super().verify(password, encoded))
