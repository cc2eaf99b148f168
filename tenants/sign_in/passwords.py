"""Check and hash passwords with bounded memory, and sign the links that reset them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore
from typing import Any, Final

from django.contrib.auth.backends import BaseBackend
from django.contrib.auth.hashers import Argon2PasswordHasher, make_password
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.utils.translation import gettext as _

from portal.errors import LimitReached
from tenants.sign_in import accounts
from tenants.sign_in.accounts import User

AT_A_TIME: Final = 4  # hashes in one process
WAITING: Final = 2  # that wait for their turn, for WAIT_SECONDS at most: the threads are there for others too
WAIT_SECONDS: Final = 2.0
_slots, _seats = BoundedSemaphore(AT_A_TIME), BoundedSemaphore(WAITING)


@contextmanager
def _slot() -> Iterator[None]:
    """Hold one of the slots. Raises LimitReached where too many wait for one."""
    if not _slots.acquire(blocking=False) and not _wait():
        raise LimitReached(_("Very many people are signing in at this moment."), retry_after=2)
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


class EmailBackend(BaseBackend):
    """Checks a password. An unknown address costs the same reads and the same hash, so nobody learns who is here."""

    def authenticate(
        self, request: object, email: str | None = None, password: str | None = None, **kwargs: Any
    ) -> User | None:
        if not email or password is None:
            return None
        user = accounts.find_by_email(email)
        if user is None:
            make_password(password)
            return None
        if not user.check_password(password) or not user.is_active:
            return None
        return user

    def get_user(self, user_id: str) -> User | None:
        user = accounts.find_by_id(user_id)
        return user if user and user.is_active else None


class _ResetLinks(PasswordResetTokenGenerator):
    """A link ends with its first use, a later sign-in, a new password, and the end of all sessions."""

    key_salt = "tenants.identity.reset-links"

    def _make_hash_value(self, user: Any, timestamp: int) -> str:
        account: User = user
        state = (account.id, account.email, account.password, account.session_epoch, account.signed_in_at, timestamp)
        return "|".join(map(str, state))


RESET_LINKS: Final = _ResetLinks()
