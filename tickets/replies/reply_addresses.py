"""Make and read reply addresses: each says to which ticket of which desk an answer belongs, and to whom it was given.
The same for return addresses, from which letters are sent and to which reports on them come back.

`reply+<token>@MAIL_DOMAIN`. The token is signed over the desk, the ticket, the person and whether that person is an
agent, so that the address of a requester never speaks for an agent, and none can be made for another desk or ticket.
A token shows that somebody has had the letter; it does not show who sends the answer.

`bounce+<token>@MAIL_DOMAIN` is signed over the desk, the ticket and the letter. It is the envelope's sender of this
letter alone, so that a report which comes there is about it, and nobody else can report anything (VERP).

Sources: RFC 5321, 4.5.3.1.1 (a local part has up to 64 octets); CVE-2026-47123 of FreeScout, whose notifications to
agents had an address without a signature; Bernstein, "Variable Envelope Return Paths" (1997).
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import Final

from django.conf import settings

from portal.schema import keys
from tickets.replies.message_ids import MOST, NUMBER_BYTES, TENANT_BYTES, handle_of, opened, sealed

PREFIX: Final = "reply+"
RETURN_PREFIX: Final = "bounce+"
_SALT: Final = "pooldesk.reply-address"
_RETURN_SALT: Final = "pooldesk.return-address"
_LETTER_BYTES: Final = 6
_RETURN_BYTES: Final = TENANT_BYTES + NUMBER_BYTES + _LETTER_BYTES
_PERSON_BYTES: Final = 7
_BYTES: Final = TENANT_BYTES + NUMBER_BYTES + _PERSON_BYTES
_AGENT: Final = 1 << 31


@dataclass(frozen=True)
class Claim:
    """Hold what a reply address was made for. `person` stands in for the person's id."""

    tenant_id: str
    number: int
    person: bytes
    is_agent: bool

    def is_of(self, person_id: str) -> bool:
        """Tell whether the address was given to this person."""
        return hmac.compare_digest(self.person, handle_of(self.tenant_id, person_id, size=_PERSON_BYTES))


def address_of(tenant_id: str, number: int, person_id: str, *, is_agent: bool) -> str:
    """Return the address for a person's answers on a ticket. Raises ValueError for what is no tenant's id or number."""
    if not 1 <= number <= MOST:
        raise ValueError(f"a ticket number is from 1 to {MOST}")
    marked = number | (_AGENT if is_agent else 0)
    data = bytes.fromhex(keys.tenant(tenant_id)) + marked.to_bytes(NUMBER_BYTES, "big")
    data += handle_of(tenant_id, person_id, size=_PERSON_BYTES)
    return f"{PREFIX}{sealed(_SALT, data)}@{settings.MAIL_DOMAIN}"


def read(address: str) -> Claim | None:
    """Return what a reply address claims; None for any other address, and for one whose signature does not hold.

    The domain is not compared, since MAIL_DOMAIN may have been another when the letter was sent.
    """
    data = _opened(address, PREFIX, _SALT, _BYTES)
    if data is None:
        return None
    marked = int.from_bytes(data[TENANT_BYTES : TENANT_BYTES + NUMBER_BYTES], "big")
    return Claim(data[:TENANT_BYTES].hex(), marked & MOST, data[-_PERSON_BYTES:], bool(marked & _AGENT))


@dataclass(frozen=True)
class SentLetter:
    """Hold which letter a return address was made for. `letter` stands in for the entry in its Message-ID."""

    tenant_id: str
    number: int
    letter: bytes

    def is_about(self, entry: str) -> bool:
        """Tell whether the letter was about this entry, as Message-IDs name it."""
        return hmac.compare_digest(self.letter, handle_of(self.tenant_id, entry, size=_LETTER_BYTES))


def return_address(tenant_id: str, number: int, entry: str) -> str:
    """Return the address that a letter about an entry is sent from. Raises ValueError as `address_of` does."""
    if not 1 <= number <= MOST:
        raise ValueError(f"a ticket number is from 1 to {MOST}")
    data = bytes.fromhex(keys.tenant(tenant_id)) + number.to_bytes(NUMBER_BYTES, "big")
    data += handle_of(tenant_id, entry, size=_LETTER_BYTES)
    return f"{RETURN_PREFIX}{sealed(_RETURN_SALT, data)}@{settings.MAIL_DOMAIN}"


def read_return(address: str) -> SentLetter | None:
    """Return the letter that a return address was made for; None for any other address."""
    data = _opened(address, RETURN_PREFIX, _RETURN_SALT, _RETURN_BYTES)
    if data is None:
        return None
    number = int.from_bytes(data[TENANT_BYTES:-_LETTER_BYTES], "big")
    return SentLetter(data[:TENANT_BYTES].hex(), number, data[-_LETTER_BYTES:])


def desk_in(address: str) -> str:
    """Return the id of the desk that made a reply address or a return address, "" for any other address."""
    found = read(address) or read_return(address)
    return found.tenant_id if found else ""


def _opened(address: str, prefix: str, salt: str, size: int) -> bytes | None:
    local = address.strip().removeprefix("<").removesuffix(">").rpartition("@")[0].strip('"')
    if not local.isascii() or not local.lower().startswith(prefix):
        return None
    return opened(salt, local[len(prefix) :], size=size)
