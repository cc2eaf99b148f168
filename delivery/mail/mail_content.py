"""Write a mail down as JSON, and make it again from that."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from django.core.mail import EmailMessage, EmailMultiAlternatives

from delivery.outbox.event_types import PAYLOAD_LIMIT
from portal import clock
from portal.errors import Invalid


@dataclass(frozen=True)
class MailContent:
    """All that a mail consists of. `worth_until` is a stamp, "" for none."""

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
        """Take a mail apart. Raises Invalid for one with attachments, and ValueError for one that is malformed."""
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
        """Read what `written` wrote."""
        return cls(**json.loads(text))

    def written(self) -> str:
        """Return it as JSON. Raises Invalid above PAYLOAD_LIMIT."""
        content = {name: value for name, value in asdict(self).items() if value}
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        if (size := len(text.encode())) > PAYLOAD_LIMIT:
            raise Invalid(f"The mail “{self.subject}” has {size:,} bytes, and {PAYLOAD_LIMIT:,} at most can be sent.")
        return text

    @property
    def recipients(self) -> list[str]:
        return [*self.to, *self.cc, *self.bcc]

    def without(self, addresses: Collection[str]) -> MailContent:
        """Return the same mail for all but these recipients."""
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
