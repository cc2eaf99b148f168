"""Hash passwords with bounded memory, however many people sign in at the same moment."""

from __future__ import annotations

from threading import BoundedSemaphore
from typing import Final

from django.contrib.auth.hashers import Argon2PasswordHasher

AT_A_TIME: Final = 4  # hashes in one process; the others wait
_slots = BoundedSemaphore(AT_A_TIME)


class BoundedArgon2PasswordHasher(Argon2PasswordHasher):
    """Argon2id with 19 MiB, two passes and one thread, so that a process needs 76 MiB for hashes at most.

    Source: OWASP Password Storage Cheat Sheet, Argon2id. Django's own parameters take 100 MiB a hash.
    """

    time_cost = 2
    memory_cost = 19_456  # KiB
    parallelism = 1

    def encode(self, password: str, salt: str) -> str:
        with _slots:
            return str(super().encode(password, salt))

    def verify(self, password: str, encoded: str) -> bool:
        with _slots:
            return bool(super().verify(password, encoded))
