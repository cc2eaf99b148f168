"""Write mail down instead of sending it: Django's mail backend of an installation whose mail leaves by the queues.

A mail is one row of the outbox, in the transaction of the change that it tells of where there is one (`add_to`), else
in one of its own. Its text, which may hold a link that is a secret, is in the row's private part: nobody lists it, and
it goes as soon as the mail is sent or given up.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from django.core.mail import EmailMessage, EmailMultiAlternatives
from django.core.mail.backends.base import BaseEmailBackend

from delivery.outbox import publisher
from delivery.outbox.publisher import PAYLOAD_LIMIT, Event, EventType
from delivery.outbox.stored import NO_TENANT, OutboxItem
from portal import clock
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Store, Transaction
from portal.errors import Invalid, PortalError

MAIL: Final = "mail"  # the destination
_OTHER: Final = "message"  # the kind of a mail that does not say its own
_GRACE_SECONDS: Final = 86400  # that a row is kept after its mail is worth nothing any more


@dataclass(frozen=True)
class MailContent:
    """All that a mail consists of, as JSON in its row. `worth_until` is a stamp, "" for none."""

    sender: str
    to: list[str]
    subject: str
    body: str
    cc: list[str] = field(default_factory=list)
    bcc: list[str] = field(default_factory=list)
    reply_to: list[str] = field(default_factory=list)
    subtype: str = "plain"
    alternatives: list[list[str]] = field(default_factory=list)  # content and MIME type of each
    headers: dict[str, str] = field(default_factory=dict)
    worth_until: str = ""

    @classmethod
    def of(cls, message: EmailMessage) -> MailContent:
        if message.attachments:
            raise Invalid("A mail with attachments cannot be sent through the outbox.")
        message.message()  # whoever wrote a line break into a header hears of it now
        worth_until = getattr(message, "worth_until", None)
        return cls(
            sender=message.from_email,
            to=list(message.to),
            subject=str(message.subject),
            body=str(message.body),
            cc=list(message.cc),
            bcc=list(message.bcc),
            reply_to=list(message.reply_to),
            subtype=message.content_subtype,
            alternatives=[[str(a[0]), str(a[1])] for a in getattr(message, "alternatives", ())],
            headers={name: str(value) for name, value in message.extra_headers.items()},
            worth_until=clock.stamp(worth_until) if worth_until else "",
        )

    @classmethod
    def read(cls, text: str) -> MailContent:
        """Read what `written` wrote, without what a newer version may have added."""
        stated: dict[str, Any] = json.loads(text)
        return cls(**{name: stated[name] for name in stated if name in cls.__dataclass_fields__})

    def written(self) -> str:
        content = {name: value for name, value in asdict(self).items() if value}
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        if (size := len(text.encode())) > PAYLOAD_LIMIT:
            raise Invalid(f"The mail “{self.subject}” has {size:,} bytes, and {PAYLOAD_LIMIT:,} at most can be sent.")
        return text

    @property
    def recipients(self) -> list[str]:
        return [*self.to, *self.cc, *self.bcc]

    def without(self, addresses: Collection[str]) -> MailContent:
        to, cc, bcc = ([a for a in some if a not in addresses] for some in (self.to, self.cc, self.bcc))
        return replace(self, to=to, cc=cc, bcc=bcc)

    def message(self, *, message_id: str, tags: Mapping[str, str]) -> EmailMessage:
        """Make the mail. `message_id` is the same each time, by which a mail server knows it again."""
        domain = self.sender.rpartition("@")[2].rstrip("> ") or "localhost"
        message: Any = EmailMultiAlternatives(
            subject=self.subject,
            body=self.body,
            from_email=self.sender,
            to=self.to,
            cc=self.cc,
            bcc=self.bcc,
            reply_to=self.reply_to,
            headers={"Message-ID": f"<{message_id}@{domain}>", **self.headers},
        )
        message.content_subtype = self.subtype
        for content, kind in self.alternatives:
            message.attach_alternative(content, kind)
        message.tags = tags
        return message  # type: ignore[no-any-return]  # it was given one attribute more


class OutboxEmailBackend(BaseEmailBackend):
    """Write each mail as a row of the outbox."""

    def send_messages(self, messages: Sequence[EmailMessage]) -> int:
        """Write each in a transaction of its own. Raises Invalid, Throttled and Unavailable."""
        written = 0
        for message in messages:
            transaction = Transaction()
            try:
                self.add_to(transaction, message)
                tenant_id = getattr(message, "tenant_id", NO_TENANT)
                (PLATFORM if tenant_id == NO_TENANT else Store("tenant", tenant_id)).transact(transaction)
            except PortalError:
                if not self.fail_silently:
                    raise
            else:
                written += 1
        return written

    def add_to(self, transaction: Transaction, message: EmailMessage) -> None:
        """Add a mail to a transaction. Raises Invalid for one that is too large or has attachments."""
        transaction.put(_row(message))


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
