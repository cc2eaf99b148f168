"""Sign the links that lead a requester to their ticket, and the short-lived ones that lead to all their tickets.

A link is bound to desk, person and ticket, and ends by its own date or by a revocation. Three counters that only grow,
of the desk, the person and the ticket, are added up to the link's generation: whichever grows ends all links of before
it. They are attributes of items that the page reads anyway. A link opens the page of one ticket, and is no sign-in.

The two kinds have salts of their own, and so have reply addresses: none of them can be used as another.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from math import ceil
from typing import Final, Self

from portal import clock
from portal.dynamo.store import Transaction
from portal.schema import keys
from tenants.tenancy.context import TenantContext
from tickets.desk import changing
from tickets.replies.mail_settings import MailSettings
from tickets.replies.message_ids import MAC_BYTES, MOST, NUMBER_BYTES, TENANT_BYTES, opened, sealed
from tickets.requesters.requesters import Requester
from tickets.ticket import set_aside, stored
from tickets.ticket.stored import SummaryItem, is_requester

ALL_SECONDS: Final = 30 * 60  # that a link to all tickets of a person holds
_TICKET_SALT: Final = "pooldesk.ticket-link"
_ALL_SALT: Final = "pooldesk.all-tickets-link"
_DAY: Final = 24 * 3600
_PREFIX: Final = "rq_"  # of a requester's id, which 32 hexadecimal digits follow
_PERSON_BYTES: Final = 16
_TIME_BYTES: Final = 5
_BYTES: Final = TENANT_BYTES + _PERSON_BYTES + NUMBER_BYTES + NUMBER_BYTES + _TIME_BYTES
_IN_TEXT: Final = re.compile(rf"(/r/(?:all/)?)[A-Za-z2-7]{{{ceil((_BYTES + MAC_BYTES) * 8 / 5)}}}")


@dataclass(frozen=True)
class TicketLink:
    """Hold what a link was made for. `number` is 0 in one that leads to all tickets; `until` is in seconds since 1970.

    A link that was read is genuine; `leads_to` and `leads_to_all` tell whether it still holds.
    """

    tenant_id: str
    person_id: str
    number: int
    generation: int
    until: int

    @property
    def token(self) -> str:
        """Return it signed, for an address. Raises ValueError for what is no id or number."""
        if not is_requester(self.person_id) or not 0 <= self.number <= MOST:
            raise ValueError("links are for tickets of requesters")
        data = bytes.fromhex(keys.tenant(self.tenant_id)) + bytes.fromhex(self.person_id.removeprefix(_PREFIX))
        for value, size in ((self.number, NUMBER_BYTES), (self.generation, NUMBER_BYTES), (self.until, _TIME_BYTES)):
            data += value.to_bytes(size, "big")
        return sealed(_TICKET_SALT if self.number else _ALL_SALT, data)

    @classmethod
    def read(cls, token: str) -> Self | None:
        """Return the link to a ticket in a token; None for anything else, such as a link that was cut."""
        return cls._read(token, _TICKET_SALT)

    @classmethod
    def read_all(cls, token: str) -> Self | None:
        """Return the link to all tickets in a token; None for anything else."""
        return cls._read(token, _ALL_SALT)

    @classmethod
    def _read(cls, token: str, salt: str) -> Self | None:
        data = opened(salt, token, size=_BYTES)
        if data is None:
            return None
        tenant, rest = data[:TENANT_BYTES], data[TENANT_BYTES:]
        person, rest = rest[:_PERSON_BYTES], rest[_PERSON_BYTES:]
        number, generation, until = rest[:NUMBER_BYTES], rest[NUMBER_BYTES:-_TIME_BYTES], rest[-_TIME_BYTES:]
        values = (int.from_bytes(one, "big") for one in (number, generation, until))
        return cls(tenant.hex(), _PREFIX + person.hex(), *values)

    @property
    def is_to_all(self) -> bool:
        return not self.number

    @property
    def is_over(self) -> bool:
        return time.time() >= self.until

    def leads_to(self, summary: SummaryItem, settings: MailSettings, person: Requester | None) -> bool:
        """Tell whether it still leads to this ticket: not over, not revoked, and the ticket is this person's."""
        return (
            person is not None
            and self._is_of(person)
            and self.number == int(summary.number)
            and summary.requester in person.ids
            and self.generation == _generation(settings, person, summary)
            and not self.is_over
        )

    def leads_to_all(self, settings: MailSettings, person: Requester | None) -> bool:
        """Tell whether it still leads to all tickets of this person."""
        return (
            person is not None
            and self._is_of(person)
            and self.generation == _generation(settings, person)
            and not self.is_over
        )

    def _is_of(self, person: Requester) -> bool:
        # Somebody who was merged has no page: their tickets are those of the person who stands for both.
        return self.person_id == person.id and not person.merged_into


def ticket_link(tenant: TenantContext, summary: SummaryItem, person: Requester, settings: MailSettings) -> TicketLink:
    """Return a person's link to their ticket, which holds as long as the desk's settings say."""
    until = int(time.time()) + settings.link_days * _DAY
    generation = _generation(settings, person, summary)
    return TicketLink(tenant.tenant_id, person.id, int(summary.number), generation, until)


def all_link(tenant: TenantContext, person: Requester, settings: MailSettings) -> TicketLink:
    until = int(time.time()) + ALL_SECONDS
    return TicketLink(tenant.tenant_id, person.id, 0, _generation(settings, person), until)


def _generation(settings: MailSettings, person: Requester, summary: SummaryItem | None = None) -> int:
    of_ticket = int(summary.link_generation or 0) if summary else 0
    return settings.link_generation + person.link_generation + of_ticket


def without_tokens(text: str) -> str:
    """Return a text without the tokens of links: answers quote them, and members who read those are no requesters."""
    return _IN_TEXT.sub(r"\1…", text)


def revoke(tenant: TenantContext, number: int) -> None:
    """End all links to a ticket, and let its history say so: one transaction. Raises NotFound where there is none."""
    summary = changing.read(tenant, number)
    set_aside.refuse(summary)
    transaction = Transaction()
    transaction.update(
        SummaryItem(summary.pk, stored.SUMMARY),
        [SummaryItem.link_generation.set((SummaryItem.link_generation | 0) + 1)],
        condition=SummaryItem.pk.exists() & SummaryItem.spam_at.does_not_exist(),
    )
    transaction.put(
        changing.event(tenant, summary.pk, clock.stamp(), verb="ended the requester's links to this ticket")
    )
    tenant.repository.transact(transaction)
