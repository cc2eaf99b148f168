"""Remember for a few minutes that somebody knew the password, until the second step: a signed text, and no session.

It opens nothing but the second step. It ends with its time, with a sign-in, a new password, a changed factor, and
whatever else ends sessions: what is signed is held against the account as it is stored.
"""

from __future__ import annotations

from typing import Final

from django.core import signing
from django.utils.crypto import constant_time_compare, salted_hmac

from tenants.identity import accounts
from tenants.identity.models import User

LIFETIME: Final = 600  # seconds
_SALT: Final = "tenants.second-factors.half-signed-in"


def token(user: User) -> str:
    return signing.dumps([user.id, _state(user)], salt=_SALT)


def read(text: str) -> User | None:
    """Return who knew the password, or None where that is not so or not so any more: one GetItem."""
    if not text or len(text) > 500:
        return None
    try:
        user_id, state = signing.loads(text, salt=_SALT, max_age=LIFETIME)
    except (signing.BadSignature, ValueError):
        return None
    user = accounts.find_by_id(user_id)
    if user is None or not user.is_active or not constant_time_compare(state, _state(user)):
        return None
    return user


def _state(user: User) -> str:
    parts = (user.id, user.password, str(user.session_epoch), user.signed_in_at)
    return salted_hmac(_SALT, "|".join(parts), algorithm="sha256").hexdigest()
