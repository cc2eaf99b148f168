"""Bring a letter in as Amazon SES would: put it into the bucket, and tell of it in the queue.

The development mail server and `deliver_mail` do so. The letter then takes the way that it takes in production.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from email.utils import formatdate
from typing import Final

from django.conf import settings

from portal import clock
from portal.objects.object_store import ObjectStore
from portal.queueing import sqs_client
from tickets.letters import envelope
from tickets.letters.envelope import Envelope
from tickets.letters.stored import INCOMING, LETTERS_QUEUE

# A letter that somebody brings in here was not forged on its way.
TRUSTED: Final = dict.fromkeys(envelope.VERDICTS, envelope.PASS)


def deliver(raw: bytes, *, sender: str, recipients: Sequence[str], verdicts: Mapping[str, str] = TRUSTED) -> str:
    """Bring a letter in, and return the name of its object. Raises Unavailable, Throttled and Rejected.

    SES writes Return-Path, and the first Received header, which names the recipient where there is one; so does this.
    """
    found = Envelope(uuid.uuid4().hex, sender, tuple(recipients), clock.stamp(), dict(verdicts))
    whom = f" for {recipients[0]}" if len(recipients) == 1 else ""
    received = f"Received: from localhost by {settings.MAIL_DOMAIN} with SMTP id {found.name}{whom}; {formatdate()}\r\n"
    key, path = INCOMING + found.name, f"Return-Path: <{sender}>\r\n"
    ObjectStore("delivery").put(key, (path + received).encode("utf-8", "replace") + raw)
    tell(found, key)
    return found.name


def tell(found: Envelope, key: str) -> None:
    """Tell of a letter in the bucket, as SES does: one message."""
    body = found.notification(bucket=settings.MAIL_BUCKET, key=key)
    queue = sqs_client.full_name(LETTERS_QUEUE)
    sqs_client.queue_connection("delivery").call("SendMessage", queue, MessageBody=body)
