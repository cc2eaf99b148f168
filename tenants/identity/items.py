"""Store accounts, the uniqueness of addresses and slugs, and sign-in counters: PynamoDB models and nothing else."""

from __future__ import annotations

from pynamodb.attributes import BooleanAttribute, NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from tenants.identity.tables import THROTTLES, USERS


class AccountItem(Item):
    """A person who can sign in.

    `session_epoch` grows to sign the person out everywhere; `signed_in_at` is the last sign-in, which ends reset links.
    `disabled` is the partition that lists accounts which may not sign in, and is missing in all others.
    `second_factors` names the kinds of its second factors, and is missing where it has none.
    """

    table = USERS

    pk = UnicodeAttribute(hash_key=True)
    user_id = UnicodeAttribute()
    email = UnicodeAttribute()
    name = UnicodeAttribute()
    password = UnicodeAttribute()
    is_active = BooleanAttribute(default=True)
    disabled = UnicodeAttribute(null=True)
    is_operator = BooleanAttribute(default=False)
    session_epoch = NumberAttribute(default=0)
    second_factors = UnicodeAttribute(null=True)
    signed_in_at = UnicodeAttribute(null=True)
    created_at = UnicodeAttribute()


class UniqueItem(Item):
    """Makes an e-mail address or a slug unique: its key is the value, `owner` the account's or tenant's id."""

    table = USERS

    pk = UnicodeAttribute(hash_key=True)
    owner = UnicodeAttribute()


class SuppressedItem(Item):
    """An address to which nothing is mailed: its key is a hash of it.

    `kind` is "bounced" or "complained", `why` what the mail server said, `at` when.
    """

    table = USERS

    pk = UnicodeAttribute(hash_key=True)
    kind = UnicodeAttribute()
    why = UnicodeAttribute(default="")
    at = UnicodeAttribute()


class ThrottleItem(Item):
    """Attempts of one subject, such as an account or a network, in one time window."""

    table = THROTTLES

    bucket = UnicodeAttribute(hash_key=True)
    attempts = NumberAttribute(default=0)
    expires_at = NumberAttribute()
