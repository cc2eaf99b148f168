"""Declare the table of a desk's mail: its settings, the Message-IDs that a carrier gave its letters, and the number of
letters that wait for somebody.

The settings are changed by the platform role, in the transaction of their audit row. The others are written as the
tenant; the platform role reads the number with the desk itself, since each page shows it.
"""

from __future__ import annotations

from typing import Any, Final

from pynamodb.attributes import BooleanAttribute, ListAttribute, NumberAttribute, UnicodeAttribute

from portal.dynamo.models import Item
from portal.schema import keys, row_forms
from portal.schema.access_patterns import declare_keys
from portal.schema.holdings import Holding, Raw, Stage, TenantArrival, declare_holding, declare_people, own_partition
from portal.schema.registry import Grant, Table, declare
from portal.schema.row_forms import RowForm

SETTINGS: Final = "SETTINGS"
WAITING: Final = "WAITING"
_SENT: Final = "SENT"
_SENT_PREFIX: Final = keys.beginning(_SENT)
HISTORY_CHOICES: Final = (0, 1, 5, 20)  # earlier messages that a letter can quote
LINK_DAYS_CHOICES: Final = (7, 30, 90, 365)  # that a link to a ticket holds

MAIL = Table("Support.Mail", "tenant", "tenant_id", "part")

declare(
    MAIL,
    grants=(
        Grant("tenant", MAIL, ("GetItem", "PutItem", "UpdateItem")),
        Grant("platform", MAIL, ("BatchGetItem", "PutItem", "UpdateItem")),
    ),
)


def sent(carrier_id: str) -> str:
    """Return the sort key of a letter by the Message-ID that its carrier gave it, or by the digest of a long one."""
    is_short = len(carrier_id) <= 128 and not set(carrier_id) & set("#|")
    return keys.joined(_SENT, carrier_id if is_short and carrier_id.isprintable() else keys.digest(carrier_id))


class MailSettingsItem(Item):
    """The mail settings of a desk.

    `sender_name` is the name in From, "" for the desk's. `history` is how many earlier messages a letter quotes.
    `addresses` are addresses of the desk's own that are forwarded to it; `blocked` addresses and `@domains` whose
    letters it does not take. `domain` is the desk's own sending domain, and `domain_sender` the address there that
    letters come from; `domain_proved_at` is when its DNS last named this desk, missing where it does not, and
    `domain_findings` the JSON of what the last check found, at `domain_checked_at`. `link_days` is how long a link to a
    ticket holds, and `link_generation` grows when an admin revokes all of them. `version` grows with each change.
    """

    table = MAIL

    tenant_id = UnicodeAttribute(hash_key=True)
    part = UnicodeAttribute(range_key=True)
    sender_name = UnicodeAttribute(default="")
    signature = UnicodeAttribute(default="")
    history = NumberAttribute(default=5)
    acknowledges = BooleanAttribute(default=True)
    acknowledgement = UnicodeAttribute(default="")
    addresses: ListAttribute[Any] = ListAttribute(default=list)
    blocked: ListAttribute[Any] = ListAttribute(default=list)
    domain = UnicodeAttribute(default="")
    domain_sender = UnicodeAttribute(default="")
    domain_proved_at = UnicodeAttribute(null=True)
    domain_checked_at = UnicodeAttribute(null=True)
    domain_findings = UnicodeAttribute(null=True)
    link_days = NumberAttribute(default=90)
    link_generation = NumberAttribute(default=0)
    version = NumberAttribute(default=1)


class SentItem(Item):
    """A letter whose carrier replaced its Message-ID: the ticket `number` that it is about."""

    table = MAIL

    tenant_id = UnicodeAttribute(hash_key=True)
    part = UnicodeAttribute(range_key=True)
    carrier_id = UnicodeAttribute()
    number = NumberAttribute()


class WaitingCountItem(Item):
    """The number of letters that wait for somebody of the desk; missing while none has waited yet."""

    table = MAIL

    tenant_id = UnicodeAttribute(hash_key=True)
    part = UnicodeAttribute(range_key=True)
    total = NumberAttribute(default=0)


# --- holdings ---


_AMOUNT: Final = row_forms.between(0, 10**9)


def _fit(item: Raw, arrival: TenantArrival) -> Raw:
    """Take the proof of its domain from a desk that comes under another id: the DNS names the former one."""
    if arrival.same_id:
        return item
    return {name: value for name, value in item.items() if name not in ("domain_proved_at", "domain_findings")}


def _sent_key(tenant_id: str, item: Raw) -> tuple[str, str]:
    return keys.tenant(tenant_id), sent(item["carrier_id"]["S"])


def _forms() -> tuple[RowForm, ...]:
    checks = {
        "history": lambda number: int(number) in HISTORY_CHOICES,
        "link_days": lambda number: int(number) in LINK_DAYS_CHOICES,
        "addresses": row_forms.texts,
        "blocked": row_forms.texts,
        "domain_findings": row_forms.json_object(row_forms.is_text),
        **row_forms.moments_if_any("domain_proved_at", "domain_checked_at"),
    }
    return (
        RowForm(MailSettingsItem, lambda own, _: (keys.tenant(own), SETTINGS), begins=SETTINGS, checks=checks),
        RowForm(
            WaitingCountItem, lambda own, _: (keys.tenant(own), WAITING), begins=WAITING, checks={"total": _AMOUNT}
        ),
        RowForm(SentItem, _sent_key, begins=_SENT_PREFIX),
    )


declare_holding(Holding("mail settings", (MAIL,), own_partition(MAIL), Stage.OWN, fit=_fit, forms=_forms))
declare_people("mail settings", "tickets.replies.mail_settings")


declare_keys(
    MAIL,
    {
        "mail settings": "<tenant>, SETTINGS",
        "sent letter": "<tenant>, SENT#<id>",
        "waiting letters": "<tenant>, WAITING",
    },
)
