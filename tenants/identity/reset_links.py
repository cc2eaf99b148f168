"""Sign links that set a new password."""

from __future__ import annotations

from typing import Any, Final

from django.contrib.auth.tokens import PasswordResetTokenGenerator

from tenants.identity.models import User


class _ResetLinks(PasswordResetTokenGenerator):
    """A link ends with its first use, a later sign-in, a new password, and the end of all sessions."""

    key_salt = "tenants.identity.reset-links"

    def _make_hash_value(self, user: Any, timestamp: int) -> str:
        account: User = user
        state = (account.id, account.email, account.password, account.session_epoch, account.signed_in_at, timestamp)
        return "|".join(map(str, state))


RESET_LINKS: Final = _ResetLinks()
