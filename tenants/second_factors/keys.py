"""Form the keys of second factors: the partition is a person, the sort key one factor."""

from __future__ import annotations

from typing import Final

from portal.schema import keys

AUTHENTICATOR: Final = "AUTHENTICATOR"
RECOVERY: Final = "RECOVERY"
_PASSKEY: Final = "PASSKEY"
PASSKEYS: Final = keys.beginning(_PASSKEY)  # with which their sort keys begin


def person(user_id: str) -> str:
    """Return the partition key of somebody's factors. Raises ValueError for what is no id."""
    if not isinstance(user_id, str) or not keys.USER_ID.match(user_id):
        raise ValueError("a user id is 32 lower-case hex digits")
    return user_id


def passkey_id(credential_id: bytes) -> str:
    """Stand for a passkey in addresses: 32 hex digits."""
    return keys.digest(credential_id.hex())


def passkey(passkey_id: str) -> str:
    """Return the sort key of a passkey. Raises ValueError for what is no id of one."""
    if not keys.USER_ID.match(passkey_id):
        raise ValueError("a passkey's id is 32 lower-case hex digits")
    return keys.joined(_PASSKEY, passkey_id)
