"""Store accounts, second factors, unique and suppressed addresses, and counters of attempts."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from pynamodb.attributes import BooleanAttribute, NumberAttribute, UnicodeAttribute, UnicodeSetAttribute

from portal import clock
from portal.dynamo.client import Item
from portal.dynamo.models import IndexModel, Kinds
from portal.schema import keys
from portal.schema.access_patterns import declare_keys
from portal.schema.holdings import declare_nothing
from portal.schema.registry import Grant, Table, declare

USERS = Table(
    "Platform.Users",
    "platform",
    "pk",
    shared="an account is a person's, and is read at sign-in, before a tenant is known",
)


class DisabledAccount(IndexModel):
    """An account that may not sign in, and no other: an index of all would be one hot partition."""

    table = USERS
    label = "gsi-disabled"
    leading_keys = ""
    shared = "operators list disabled accounts of all tenants"

    disabled = UnicodeAttribute(hash_key=True)
    pk = UnicodeAttribute()
    email = UnicodeAttribute(range_key=True)
    user_id = UnicodeAttribute()
    name = UnicodeAttribute()
    is_active = BooleanAttribute(default=True)
    is_operator = BooleanAttribute(default=False)
    created_at = UnicodeAttribute()


THROTTLES = Table(
    "Platform.Throttles",
    "platform",
    "bucket",
    ttl="expires_at",
    shared="sign-in attempts are counted before the person is known",
)

FACTORS = Table(
    "Platform.Factors",
    "platform",
    "user_id",
    "factor",
    shared="a second factor is a person's, and is asked for before a tenant is chosen",
)

declare(
    USERS,
    THROTTLES,
    FACTORS,
    grants=(
        Grant("platform", USERS, ("BatchGetItem", "DeleteItem", "GetItem", "PutItem", "UpdateItem")),
        Grant("platform", USERS, ("Query",), "DisabledAccounts", index=DisabledAccount.gsi),
        Grant("platform", THROTTLES, ("BatchGetItem", "UpdateItem")),
        Grant("platform", FACTORS, ("DeleteItem", "PutItem", "Query", "UpdateItem")),
    ),
)
declare_nothing(THROTTLES, "it counts attempts by hashes of accounts and networks, for some hours")
declare_nothing(FACTORS, "it holds what people sign in with, who belong to no tenant by that")


AMBIGUOUS: Final = gettext_noop(
    "This address has a letter, such as \u00df, that would make it another address in lower case. "
    "Write the domain in its xn-- form, or use another address."
)
_SUPPRESSED: Final = "SUPPRESSED"
ANY_SUPPRESSED: Final = keys.beginning(_SUPPRESSED) + "*"  # the pattern, for a policy, of all suppressed addresses


def user_key(user_id: str) -> str:
    """Return the partition key of an account in Platform.Users."""
    return keys.labelled("USER", keys.user(user_id))


def folded(address: str) -> str:
    """Return an e-mail address as it is stored and compared: without surrounding space, in lower case.

    Raises ValueError, with a sentence for people, for none, and for one with a letter that comparing turns into others:
    x@fa\N{LATIN SMALL LETTER SHARP S}.de and x@fass.de are two mailboxes.
    """
    text = address.strip()
    is_text = not any(ord(c) < 32 or 0xD800 <= ord(c) < 0xE000 for c in text)
    if not text or not is_text or len(text.encode()) > 320:
        raise ValueError(_("That is not an e-mail address."))
    if text.casefold() != text.lower():
        raise ValueError(_(AMBIGUOUS))
    return text.casefold()


def email_key(address: str) -> str:
    """Return the partition key of the item that makes an address unique. The address is folded to lower case."""
    return keys.labelled("EMAIL", folded(address))


def suppressed_key(address: str) -> str:
    """Return the partition key of an address that mail does not reach. The address is hashed: whoever has it finds what
    is known of it, and the table makes no list of people. Raises ValueError for what is no address."""
    return keys.joined(_SUPPRESSED, keys.anonymous(folded(address)))


def attempts_key(kind: str, subject: str, window: int) -> str:
    """Return the partition key of a counter of attempts: `kind` says what the subject is, `window` is a number of a
    time slot.

    The subject is hashed: the table then holds no addresses, and any length and character is safe.
    """
    return keys.joined(kind, keys.anonymous(subject), keys.whole_number(window, "a window"))


AUTHENTICATOR_KEY: Final = "AUTHENTICATOR"
RECOVERY_KEY: Final = "RECOVERY"
_PASSKEY: Final = "PASSKEY"
PASSKEY_KEYS: Final = keys.beginning(_PASSKEY)  # with which their sort keys begin


def factors_key(user_id: str) -> str:
    """Return the partition key of somebody's factors. Raises ValueError for what is no id."""
    return keys.user(user_id)


def passkey_digest(credential_id: bytes) -> str:
    """Stand for a passkey in addresses: 32 hex digits."""
    return keys.digest(credential_id.hex())


def passkey_key(passkey_id: str) -> str:
    """Return the sort key of a passkey. Raises ValueError for what is no id of one."""
    if not keys.USER_ID.match(passkey_id):
        raise ValueError("a passkey's id is 32 lower-case hex digits")
    return keys.joined(_PASSKEY, passkey_id)


class AccountItem(Item):
    """A person who can sign in.

    `session_epoch` grows to sign the person out everywhere; `signed_in_at` is the last sign-in, which ends reset links.
    `disabled` is the partition that lists accounts which may not sign in, and is missing in all others.
    `second_factors` names the kinds of its second factors, and is missing where it has none. `profile` is a Profile, as
    text; see accounts.py.
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
    profile = UnicodeAttribute(null=True)
    signed_in_at = UnicodeAttribute(null=True)
    created_at = UnicodeAttribute()


class UniqueItem(Item):
    """Makes an e-mail address or a slug unique: its key is the value, `owner` the account's or tenant's id."""

    table = USERS

    pk = UnicodeAttribute(hash_key=True)
    owner = UnicodeAttribute()


BOUNCED, COMPLAINED = "bounced", "complained"
_SUPPRESSIONS: Final = {
    BOUNCED: gettext_noop("Mail to this address bounced on %(on)s, and none is sent to it since."),
    COMPLAINED: gettext_noop("Mail to this address was reported as unwanted on %(on)s, and none is sent to it since."),
}


def suppressed_sentence(kind: str, at: str) -> str:
    """Say to a person that mail does not reach an address. `at` is a stamp."""
    return _(_SUPPRESSIONS[kind]) % {"on": f"{clock.parse(at):%-d %B %Y}"}


class SuppressedItem(Item):
    """A suppressed mail address, by its hash.

    `kind` is BOUNCED or COMPLAINED, `why` what the mail server said, or "", and `at` when.
    """

    table = USERS

    pk = UnicodeAttribute(hash_key=True)
    kind = UnicodeAttribute()
    why = UnicodeAttribute(default="")
    at = UnicodeAttribute()

    @property
    def sentence(self) -> str:
        return suppressed_sentence(self.kind, self.at)

    @property
    def in_full(self) -> str:
        """Say it to an operator, with what the mail server said."""
        return f"{self.sentence} {self.why}".strip()


class ThrottleItem(Item):
    """Attempts of one subject, such as an account or a network, in one time window."""

    table = THROTTLES

    bucket = UnicodeAttribute(hash_key=True)
    attempts = NumberAttribute(default=0)
    expires_at = NumberAttribute()


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
    """The unused recovery codes, as hashes; without the attribute there are none."""

    table = FACTORS

    user_id = UnicodeAttribute(hash_key=True)
    factor = UnicodeAttribute(range_key=True)
    hashes = UnicodeSetAttribute(null=True)
    created_at = UnicodeAttribute()


FACTOR_ITEMS: Final = Kinds[AuthenticatorItem | PasskeyItem | RecoveryItem](
    {AUTHENTICATOR_KEY: AuthenticatorItem, PASSKEY_KEYS: PasskeyItem, RECOVERY_KEY: RecoveryItem}
)


declare_keys(
    USERS,
    {"account": "USER#<person>", "address": "EMAIL#<address>", "suppressed address": "SUPPRESSED#<digest>"},
    indexes={"disabled accounts": "gsi-disabled"},
)
declare_keys(THROTTLES, {"attempts": ""})
declare_keys(FACTORS, {"second factor": ""})
