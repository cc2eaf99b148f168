"""Make and recognise the Message-IDs of the letters that desks send.

`<r.<token>.<entry>@MAIL_DOMAIN>`, where the token is signed over desk, ticket and entry: an answer that names one in
In-Reply-To or References belongs to that ticket, and nobody can make one for another.

Source: RFC 5322, 3.6.4.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from django.conf import settings

from portal.schema import keys
from tickets.replies.mail_tokens import MOST, NUMBER_BYTES, TENANT_BYTES, opened, sealed

_SALT: Final = "pooldesk.message-id"
_BYTES: Final = TENANT_BYTES + NUMBER_BYTES
_ENTRY: Final = re.compile(r"[a-z0-9-]{1,40}\Z")
_FORM: Final = re.compile(r"r\.([a-z2-7]{40,60})\.([a-z0-9-]{1,40})\Z")


class Thread(NamedTuple):
    """The ticket that a Message-ID of ours belongs to."""

    tenant_id: str
    number: int


def message_id(tenant_id: str, number: int, entry: str) -> str:
    """Return the Message-ID, in its brackets, of the letter about an entry: the same each time it is sent.

    `entry` is the id of the entry, or another text that no second letter of the ticket has. Raises ValueError.
    """
    if not 1 <= number <= MOST:
        raise ValueError(f"a ticket number is from 1 to {MOST}")
    part = entry.lower() if _ENTRY.match(entry.lower()) else keys.digest(entry)
    data = bytes.fromhex(keys.tenant(tenant_id)) + number.to_bytes(NUMBER_BYTES, "big")
    return f"<r.{sealed(_SALT, data, about=part)}.{part}@{settings.MAIL_DOMAIN or 'localhost'}>"


def read_message_id(text: str) -> Thread | None:
    """Return the ticket of a Message-ID of ours; None for any other, and for one whose signature does not hold.

    The domain is not compared, since MAIL_DOMAIN may have been another when the letter was sent.
    """
    local = text.strip().removeprefix("<").removesuffix(">").rpartition("@")[0]
    found = _FORM.match(local.lower()) if local.isascii() else None
    if found is None:
        return None
    data = opened(_SALT, found[1], size=_BYTES, about=found[2])
    if data is None:
        return None
    return Thread(data[:TENANT_BYTES].hex(), int.from_bytes(data[TENANT_BYTES:], "big"))
