"""Write mail down instead of carrying it: Django's mail backend of an installation whose mail leaves by the queues.

A mail is one row of the outbox, in the transaction of the change that it tells of where there is one (`add_to`), else
in one of its own. Its text, which may hold a link that is a secret, stands in the row's private part: nobody lists it,
and it goes as soon as the mail is sent or given up.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from django.core.mail import EmailMessage
from django.core.mail.backends.base import BaseEmailBackend

from delivery.mail.mail_content import MailContent
from delivery.outbox import publisher
from delivery.outbox.event_types import Event, EventType
from delivery.outbox.stored import NO_TENANT, OutboxItem
from portal import clock
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Store, Transaction
from portal.errors import PortalError

MAIL: Final = "mail"  # the destination
_OTHER: Final = "message"  # the kind of a mail that does not say its own
_GRACE_SECONDS: Final = 86400  # that a row is kept after its mail is worth nothing any more


class OutboxEmailBackend(BaseEmailBackend):
    """Write each mail as a row of the outbox."""

    def send_messages(self, messages: Sequence[EmailMessage]) -> int:
        """Write each in a transaction of its own. Raises Invalid, Throttled and Unavailable."""
        written = 0
        for message in messages:
            transaction = Transaction()
            try:
                self.add_to(transaction, message)
                _commit(transaction, getattr(message, "tenant_id", NO_TENANT))
            except PortalError:
                if not self.fail_silently:
                    raise
            else:
                written += 1
        return written

    def add_to(self, transaction: Transaction, message: EmailMessage) -> None:
        """Add a mail to a transaction. Raises Invalid for one that is too large or has attachments."""
        transaction.put(_row(message))


def _commit(transaction: Transaction, tenant_id: str) -> None:
    if tenant_id == NO_TENANT:
        PLATFORM.transact(transaction)
    else:
        Store("tenant", tenant_id).transact(transaction)


def _row(message: EmailMessage) -> OutboxItem:
    tenant_id = getattr(message, "tenant_id", NO_TENANT)
    content = MailContent.of(message)
    kind = EventType(f"mail.{getattr(message, 'kind', _OTHER)}", 1, "A mail is to be sent.", ())
    kept = publisher.KEPT_SECONDS
    if content.worth_until:
        kept = int(clock.parse(content.worth_until).timestamp() - time.time()) + _GRACE_SECONDS
    row = publisher.new_row(
        tenant_id=tenant_id,
        tenant={"id": tenant_id},
        queues=getattr(message, "queues", ()),
        events=[Event(kind, {}, 0)],
        members=[publisher.member(0, MAIL)],
        subject=getattr(message, "about", ""),
        private=content.written(),
        kept=kept,
    )
    if getattr(message, "decoy", False):  # as much to write as the others, and nothing that anybody finds or reads
        row.private = "." * len(str(row.private))
        row.open = row.pending = row.due_at = None
    return row
