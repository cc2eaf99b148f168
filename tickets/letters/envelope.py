"""Read what Amazon SES tells of a letter that it has received: the envelope, and the verdicts on its sender.

Nothing in the letter itself is trusted for either. The same texts are kept beside the object of each desk, so that a
letter can be filed again from there.

Sources: AWS, "Contents of notifications for Amazon SES email receiving" (`receipt`, verdicts PASS, FAIL, GRAY and
PROCESSING_FAILED), "Metadata in Amazon S3" (2 KB, ASCII).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import Any, Final

from django.utils.translation import gettext as _

from portal import clock
from portal.errors import Invalid

VERDICTS: Final = ("spf", "dkim", "dmarc", "spam", "virus")
PASS, FAIL, GRAY = "PASS", "FAIL", "GRAY"
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,100}\Z")
_MOST: Final = 1800  # bytes of what is kept beside an object
_LONGEST_ADDRESS: Final = 320
_MOST_RECIPIENTS: Final = 50  # of one letter, as many as SES takes


@dataclass(frozen=True)
class Envelope:
    """Hold how a letter came: `name` is that of its object, `sender` the envelope's (its Return-Path), `recipients`
    those that it was delivered to; `verdicts` by name, as in VERDICTS, where they are known."""

    name: str
    sender: str
    recipients: tuple[str, ...]
    received_at: str
    verdicts: dict[str, str] = field(default_factory=dict, hash=False)

    def notification(self, *, bucket: str, key: str) -> str:
        """Return the JSON that Amazon SES sends of such a letter."""
        receipt: dict[str, Any] = {
            "timestamp": self.received_at,
            "recipients": list(self.recipients),
            "action": {"type": "S3", "bucketName": bucket, "objectKey": key},
            **{f"{verdict}Verdict": {"status": status} for verdict, status in self.verdicts.items()},
        }
        mail = {
            "timestamp": self.received_at,
            "source": self.sender,
            "messageId": self.name,
            "destination": list(self.recipients),
        }
        return json.dumps({"notificationType": "Received", "mail": mail, "receipt": receipt})

    def about(self) -> dict[str, str]:
        """Return the texts that are kept beside the object: recipients are left out from where there is no room, at
        last all of them and the sender."""
        shorter = (replace(self, recipients=self.recipients[:n]) for n in range(len(self.recipients), -1, -1))
        fitting = (text for one in shorter if len(text := one._text()) <= _MOST)
        return {"envelope": next(fitting, None) or replace(self, sender="", recipients=())._text()}

    def _text(self) -> str:
        found = {"by": self.sender, "to": list(self.recipients), "at": self.received_at, "verdicts": self.verdicts}
        return json.dumps(found, separators=(",", ":"))

    def to(self, *recipients: str) -> Envelope:
        return replace(self, recipients=recipients)

    def is_from(self, address: str) -> bool:
        """Tell whether the letter's From can be believed: DMARC passed, or where the domain has none, SPF passed for
        the same domain. DKIM alone does not say whose signature it was."""
        dmarc, spf = self.verdicts.get("dmarc"), self.verdicts.get("spf")
        if dmarc == PASS:
            return True
        return dmarc == GRAY and spf == PASS and bool(address) and _domain(address) == _domain(self.sender)


def _domain(address: str) -> str:
    return address.rpartition("@")[2].lower().rstrip(".")


def read(text: str) -> tuple[Envelope, str]:
    """Return the envelope in a notification, and the key of the object with the letter. Takes it as SNS sends it, in an
    envelope of its own or raw. Raises Invalid for what is no notification of a letter in a bucket."""
    try:
        event = json.loads(text)
        if event.get("Type") == "Notification" and "Message" in event:
            event = json.loads(event["Message"])
        mail, receipt = event["mail"], event["receipt"]
        if event["notificationType"] != "Received" or receipt["action"]["type"] != "S3":
            raise ValueError("it is of another kind")
        found = {verdict: receipt.get(f"{verdict}Verdict", {}).get("status") for verdict in VERDICTS}
        envelope = Envelope(
            _checked_name(mail["messageId"]),
            str(mail.get("source") or "").strip("<>")[:_LONGEST_ADDRESS],
            tuple(str(one)[:_LONGEST_ADDRESS] for one in receipt["recipients"][:_MOST_RECIPIENTS]),
            clock.stamp(clock.parse(receipt["timestamp"])),
            {verdict: str(status)[:20] for verdict, status in found.items() if status},
        )
        return envelope, str(receipt["action"]["objectKey"])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Invalid(_("This is no notification of a letter: %(name)s.") % {"name": type(error).__name__}) from error


def read_about(name: str, about: dict[str, str]) -> Envelope:
    """Return the envelope that is kept beside an object; of one without it, nothing is known or trusted."""
    try:
        found = json.loads(about["envelope"])
        return Envelope(_checked_name(name), found["by"], tuple(found["to"]), found["at"], dict(found["verdicts"]))
    except (AttributeError, KeyError, TypeError, ValueError):
        return Envelope(_checked_name(name), "", (), clock.stamp())


def _checked_name(name: str) -> str:
    if not _NAME.match(name) or not name.strip("."):
        raise ValueError("the name of a letter has letters, digits, dots, dashes and underscores")
    return name
