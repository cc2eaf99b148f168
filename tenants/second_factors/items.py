"""Store second factors: PynamoDB models and nothing else."""

from __future__ import annotations

from pynamodb.attributes import NumberAttribute, UnicodeAttribute, UnicodeSetAttribute

from portal.dynamo.client import Item
from tenants.second_factors.tables import FACTORS


class AuthenticatorItem(Item):
    """An authenticator app. `sealed` is its secret, encrypted; `last_step` the 30 seconds, counted since the epoch,
    whose code was used last: no code of these or of earlier ones is taken."""

    table = FACTORS

    user_id = UnicodeAttribute(hash_key=True)
    factor = UnicodeAttribute(range_key=True)
    sealed = UnicodeAttribute()
    last_step = NumberAttribute(default=0)
    created_at = UnicodeAttribute()
    used_at = UnicodeAttribute(null=True)


class PasskeyItem(Item):
    """A passkey. `credential` is its id and public key as WebAuthn has them, in hex; `uses` the authenticator's own
    counter, 0 where it has none. `challenged_at` is when the challenge was made that it signed last, in microseconds
    since the epoch: none of that time or before is taken."""

    table = FACTORS

    user_id = UnicodeAttribute(hash_key=True)
    factor = UnicodeAttribute(range_key=True)
    name = UnicodeAttribute()
    credential = UnicodeAttribute()
    uses = NumberAttribute(default=0)
    challenged_at = NumberAttribute(default=0)
    created_at = UnicodeAttribute()
    used_at = UnicodeAttribute(null=True)


class RecoveryItem(Item):
    """The recovery codes that are left, as hashes; the attribute is missing where none is."""

    table = FACTORS

    user_id = UnicodeAttribute(hash_key=True)
    factor = UnicodeAttribute(range_key=True)
    hashes = UnicodeSetAttribute(null=True)
    created_at = UnicodeAttribute()
