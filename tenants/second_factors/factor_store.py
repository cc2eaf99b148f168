"""Read what second factors somebody has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from portal.dynamo import platform
from tenants.second_factors import keys
from tenants.second_factors.items import AuthenticatorItem, PasskeyItem, RecoveryItem
from tenants.second_factors.tables import FACTORS

AUTHENTICATOR: Final = "authenticator"
PASSKEY: Final = "passkey"


@dataclass(frozen=True)
class Factors:
    """The second factors of one person, as stored now."""

    authenticator: AuthenticatorItem | None
    passkeys: Sequence[PasskeyItem]
    recovery: RecoveryItem | None

    @property
    def kinds(self) -> str:
        """Name what there is, for the account: "authenticator passkey", "" for nothing. Codes alone are nothing."""
        return kinds(self.authenticator is not None, bool(self.passkeys))

    @property
    def codes_left(self) -> int:
        return len(self.recovery.hashes or ()) if self.recovery else 0

    def passkey(self, passkey_id: str) -> PasskeyItem | None:
        """Return the passkey of this id. Raises ValueError for what is no id."""
        factor = keys.passkey(passkey_id)
        return next((item for item in self.passkeys if item.factor == factor), None)


def kinds(has_authenticator: bool, has_passkeys: bool) -> str:
    """Name kinds of factors as an account keeps them."""
    return " ".join([AUTHENTICATOR] * has_authenticator + [PASSKEY] * has_passkeys)


def factors_of(user_id: str) -> Factors:
    """Read all factors of a person: one consistent Query."""
    raw = platform.query(FACTORS, keys.person(user_id), consistent=True).items
    by_key = {item["factor"]["S"]: item for item in raw}
    authenticator, recovery = by_key.get(keys.AUTHENTICATOR), by_key.get(keys.RECOVERY)
    passkeys = [PasskeyItem.from_raw_data(item) for key, item in by_key.items() if key.startswith(keys.PASSKEYS)]
    return Factors(
        AuthenticatorItem.from_raw_data(authenticator) if authenticator else None,
        sorted(passkeys, key=lambda item: item.created_at),
        RecoveryItem.from_raw_data(recovery) if recovery else None,
    )
