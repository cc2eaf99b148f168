"""Declare what carrying mail needs beside the outbox: which addresses it does not reach, and telling invitations so."""

from __future__ import annotations

from delivery.outbox.tables import OUTBOX
from portal.schema.registry import Grant, QueueGrant, declare
from tenants.identity.keys import ANY_SUPPRESSED
from tenants.identity.tables import USERS
from tenants.membership.tables import INVITES

BOUNCES = "bounces"  # the queue in which SES tells what bounced

declare(
    grants=(
        # A mail is written with the change that it tells of, or where no tenant is known; nobody reads it back.
        Grant("platform", OUTBOX, ("PutItem",), "WriteMailDown"),
        Grant("worker", USERS, ("BatchGetItem", "PutItem"), "NoteWhoIsNotReached", leading_keys=ANY_SUPPRESSED),
        Grant("worker", INVITES, ("UpdateItem",), "TellInvitations"),
        QueueGrant("worker", BOUNCES, ("DeleteMessage", "GetQueueUrl", "ReceiveMessage"), "ReadWhatBounced"),
    ),
)
