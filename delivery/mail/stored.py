"""Declare what carrying mail needs beside the outbox: whom it does not reach, and the queue in which SES says so."""

from __future__ import annotations

from delivery.outbox.stored import OUTBOX
from portal.schema.registry import Grant, QueueGrant, declare
from tenants.sign_in.stored import ANY_SUPPRESSED, USERS

BOUNCES = "bounces"  # the queue in which SES tells what bounced

declare(
    grants=(
        # A mail is written with the change that it tells of, or where no tenant is known; nobody reads it back.
        Grant("platform", OUTBOX, ("PutItem",), "WriteMailDown"),
        # So is the one that tells owners of a paused endpoint.
        Grant("delivery", OUTBOX, ("PutItem",), "WriteMailDown"),
        # The guard holds what carries mail against the worker's rights; on AWS it has the delivery role.
        Grant("worker", USERS, ("BatchGetItem", "PutItem"), "NoteWhoIsNotReached", leading_keys=ANY_SUPPRESSED),
        Grant("delivery", USERS, ("BatchGetItem", "PutItem"), "NoteWhoIsNotReached", leading_keys=ANY_SUPPRESSED),
        QueueGrant(
            "delivery",
            BOUNCES,
            # Lambda asks for the attributes of a queue that it reads.
            ("DeleteMessage", "GetQueueAttributes", "GetQueueUrl", "ReceiveMessage"),
            "ReadWhatBounced",
        ),
    ),
)
