"""Take what Amazon SES tells of mails that came back or were reported, and suppress the addresses.

Sources: AWS, "Contents of event data that Amazon SES publishes to Amazon SNS" (`eventType`, or `notificationType` where
the identity itself tells), "Using the Amazon SES account-level suppression list", "Amazon SNS raw message delivery".
"""

from __future__ import annotations

import json
from email.utils import parseaddr
from typing import Any, Final, Literal

from delivery.mail import undelivered_mail
from portal import clock
from portal.errors import Invalid
from portal.schema import keys
from tenants.sign_in import suppressed_addresses
from tenants.sign_in.suppressed_addresses import BOUNCED, COMPLAINED

_TAGGED: Final = undelivered_mail.INVITATION.replace("/", "_")  # a tag's value has no slash
_IS_WANTED: Final = "not-spam"  # the feedback of somebody who took a mail out of the spam folder

Told = Literal["bounced", "complained", "other"]


def apply(text: str) -> Told:
    """Note what one notification says, and return what it was: a bounce for good, a complaint, or anything else.

    Takes it as SNS sends it, in an envelope or raw. The same again replaces itself. Raises Invalid for what is no
    notification of SES, and what the database raises.
    """
    try:
        event = _event(text)
        kind = event.get("eventType") or event["notificationType"]
        if kind == "Bounce" and event["bounce"]["bounceType"] == "Permanent":
            return _bounced(event)
        if kind == "Complaint" and event["complaint"].get("complaintFeedbackType") != _IS_WANTED:
            return _complained(event)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Invalid(f"This is no notification of Amazon SES: {type(error).__name__}.") from error
    return "other"


def _event(text: str) -> dict[str, Any]:
    event: dict[str, Any] = json.loads(text)
    if event.get("Type") == "Notification" and "Message" in event:
        event = json.loads(event["Message"])
    return event


def _bounced(event: dict[str, Any]) -> Told:
    bounce = event["bounce"]
    at = _stamp(bounce["timestamp"])
    for recipient in bounce["bouncedRecipients"]:
        why = recipient.get("diagnosticCode") or bounce.get("bounceSubType", "")
        suppressed_addresses.note(_address(recipient), kind=BOUNCED, why=why, at=at)
    tags = event.get("mail", {}).get("tags", {})
    tenant_id, about = ((tags.get(name) or [""])[0] for name in ("tenant", "about"))
    if keys.TENANT_ID.match(tenant_id) and about.startswith(_TAGGED):
        invitation = undelivered_mail.INVITATION + about.removeprefix(_TAGGED)
        why = suppressed_addresses.sentence(BOUNCED, at)
        undelivered_mail.tell(tenant_id, invitation, why=why, sent_at=_stamp(event["mail"]["timestamp"]))
    return "bounced"


def _complained(event: dict[str, Any]) -> Told:
    complaint = event["complaint"]
    for recipient in complaint["complainedRecipients"]:
        why = complaint.get("complaintFeedbackType") or ""
        suppressed_addresses.note(_address(recipient), kind=COMPLAINED, why=why, at=_stamp(complaint["timestamp"]))
    return "complained"


def _address(recipient: dict[str, Any]) -> str:
    return parseaddr(recipient["emailAddress"])[1]


def _stamp(text: str) -> str:
    return clock.stamp(clock.parse(text))
