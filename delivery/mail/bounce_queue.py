"""Read the queue in which Amazon SES tells what bounced: as a worker, or as the Lambda function of the template."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from typing import Any

from delivery.mail import ses_notifications
from delivery.mail.tables import BOUNCES
from delivery.queues.queue_transport import BATCH
from portal.errors import Invalid, PortalError
from portal.queueing import sqs_client
from portal.queueing.sqs_client import LONGEST_POLL

log = logging.getLogger("pooldesk.mail")


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
        return ses_notifications.apply(body)
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
