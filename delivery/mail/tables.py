"""Declare what carrying mail needs beside the outbox: whom it does not reach, and the queue in which SES says so."""

from __future__ import annotations

from delivery.outbox.tables import OUTBOX
from portal.schema.registry import Grant, QueueGrant, declare
from tenants.identity.keys import ANY_SUPPRESSED
from tenants.identity.tables import USERS

BOUNCES = "bounces"  # the queue in which SES tells what bounced

declare(
    grants=(
        # A mail is written with the change that it tells of, or where no tenant is known; nobody reads it back.
        Grant("platform", OUTBOX, ("PutItem",), "WriteMailDown"),
        Grant("worker", USERS, ("BatchGetItem", "PutItem"), "NoteWhoIsNotReached", leading_keys=ANY_SUPPRESSED),
        QueueGrant("worker", BOUNCES, ("DeleteMessage", "GetQueueUrl", "ReceiveMessage"), "ReadWhatBounced"),
    ),
)
