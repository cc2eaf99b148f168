"""Learn from Amazon SES which mails bounced or were reported, and suppress their addresses.

SES writes to a queue, which a worker reads (`note_bounces`) or the Lambda function of the template.

Sources: AWS, "Contents of event data that Amazon SES publishes to Amazon SNS" (`eventType`, or `notificationType` where
the identity itself tells), "Using the Amazon SES account-level suppression list", "Amazon SNS raw message delivery".
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parseaddr
from typing import Any, Final, Literal

from delivery.mail.stored import BOUNCES
from delivery.queues.queue_transport import BATCH
from portal import clock
from portal.dynamo.store import Store
from portal.errors import Invalid, PortalError
from portal.queueing import sqs_client
from portal.queueing.sqs_client import LONGEST_POLL
from portal.schema import keys
from tenants.membership import invitations
from tenants.sign_in import suppressed_addresses
from tenants.sign_in.stored import BOUNCED, COMPLAINED, suppressed_sentence

log = logging.getLogger("pooldesk.mail")

INVITATION: Final = "invitation/"  # what the mail of an invitation says that it is about, before the invitation's id
_TAGGED: Final = INVITATION.replace("/", "_")  # a tag's value has no slash
_IS_WANTED: Final = "not-spam"  # the feedback of somebody who took a mail out of the spam folder

Told = Literal["bounced", "complained", "other"]


@dataclass(frozen=True)
class Feedback:
    """A mail of a tenant that bounced for good, or that somebody reported as unwanted.

    `about` is the tag of the mail, `addresses` are those that it did not reach, each with a sentence that says why.
    """

    kind: Literal["bounced", "complained"]
    tenant_id: str
    about: str
    addresses: Mapping[str, str]


_takers: Final[dict[str, Callable[[Feedback], None]]] = {}


def declare_feedback(beginning: str, take: Callable[[Feedback], None]) -> None:
    """Let `take` hear of the mails whose tag `about` begins so.

    A complaint about such a mail concerns its tenant alone: what others send to the address goes out as before.
    """
    _takers[beginning] = take


def read(*, wait: int = LONGEST_POLL) -> Counter[str]:
    """Take up to 10 notifications, note them and delete them. Returns how many there were of each kind: none where
    the queue is empty for `wait` seconds (at most 20).

    Raises Unavailable, Throttled and Rejected; what was not deleted comes again.
    """
    connection, queue = sqs_client.queue_connection("delivery"), sqs_client.full_name(BOUNCES)
    answer = connection.call("ReceiveMessage", queue, MaxNumberOfMessages=BATCH, WaitTimeSeconds=wait)
    counts: Counter[str] = Counter()
    for message in answer.get("Messages", []):
        counts[note(message["Body"])] += 1
        connection.call("DeleteMessage", queue, ReceiptHandle=message["ReceiptHandle"])
    return counts


def note(body: str) -> str:
    """Note one notification, and return its kind; "refused" where it is none, which is logged without its content."""
    try:
        return apply(body)
    except Invalid as error:
        log.error("A message was thrown away: %s", error.message)
        return "refused"


def note_batch(event: Mapping[str, Any]) -> dict[str, Any]:
    """Note what Lambda brings. Returns the ids of the messages that must stay in the queue."""
    stay = []
    for record in event.get("Records", ()):
        try:
            note(record["body"])
        except PortalError as error:
            log.warning("A notification of Amazon SES stays in its queue: %s", error.message)
            stay.append({"itemIdentifier": record["messageId"]})
    return {"batchItemFailures": stay}


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
    reasons = {}
    for recipient in bounce["bouncedRecipients"]:
        why = recipient.get("diagnosticCode") or bounce.get("bounceSubType", "")
        suppressed_addresses.note(_address(recipient), kind=BOUNCED, why=why, at=at)
        reasons[_address(recipient)] = why or suppressed_sentence(BOUNCED, at)
    tenant_id, about = _tags(event)
    _tell("bounced", tenant_id, about, reasons)
    if tenant_id and about.startswith(_TAGGED):
        invitation = INVITATION + about.removeprefix(_TAGGED)
        why = suppressed_sentence(BOUNCED, at)
        note_undelivered(tenant_id, invitation, why=why, sent_at=_stamp(event["mail"]["timestamp"]))
    return "bounced"


def _complained(event: dict[str, Any]) -> Told:
    complaint = event["complaint"]
    at = _stamp(complaint["timestamp"])
    reasons = {_address(one): suppressed_sentence(COMPLAINED, at) for one in complaint["complainedRecipients"]}
    if _tell("complained", *_tags(event), reasons):
        return "complained"
    for recipient in complaint["complainedRecipients"]:
        why = complaint.get("complaintFeedbackType") or ""
        suppressed_addresses.note(_address(recipient), kind=COMPLAINED, why=why, at=at)
    return "complained"


def _tags(event: dict[str, Any]) -> tuple[str, str]:
    """Return the tenant's id and what the mail is about, "" where the event does not say it."""
    tags = event.get("mail", {}).get("tags", {})
    tenant_id, about = (str((tags.get(name) or [""])[0]) for name in ("tenant", "about"))
    return (tenant_id if keys.TENANT_ID.match(tenant_id) else ""), about


def _tell(kind: Literal["bounced", "complained"], tenant_id: str, about: str, reasons: Mapping[str, str]) -> bool:
    """Tell whoever takes the feedback on such a mail; False where nobody does."""
    taker = next((take for beginning, take in _takers.items() if about.startswith(beginning)), None)
    if taker is None or not tenant_id:
        return False
    taker(Feedback(kind, tenant_id, about, reasons))
    return True


def _address(recipient: dict[str, Any]) -> str:
    return parseaddr(recipient["emailAddress"])[1]


def _stamp(text: str) -> str:
    return clock.stamp(clock.parse(text))


def note_undelivered(tenant_id: str, about: str, *, why: str, sent_at: str) -> None:
    """Write down, as its tenant, why the mail that was written at `sent_at` did not get through: one UpdateItem."""
    if about.startswith(INVITATION):
        invite_id = about.removeprefix(INVITATION)
        invitations.note_unreached(Store("tenant", tenant_id), invite_id, why=why, sent_at=sent_at)
