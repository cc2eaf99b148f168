"""Declare who may use the queues, which is the workers and nobody else, and the table of who has which.

The table is the platform's: a tenant's own set is in its configuration, and here it stands beside all others.
"""

from __future__ import annotations

from delivery.queues.keys import DEPTHS
from delivery.queues.queue_transport import NAME
from portal.schema.registry import Grant, QueueGrant, declare
from portal.schema.tables import Table

QUEUES = Table("Events.Queues", "platform", "kind", "name")

declare(
    QUEUES,
    grants=(
        QueueGrant(
            "worker",
            NAME,
            (
                "ChangeMessageVisibility",
                "DeleteMessage",
                "GetQueueAttributes",
                "GetQueueUrl",
                "ReceiveMessage",
                "SendMessage",
            ),
            "CarryWhatLeaves",
        ),
        Grant("worker", QUEUES, ("PutItem",), "TellDepths", leading_keys=DEPTHS),
        Grant("platform", QUEUES, ("GetItem", "PutItem", "Query", "UpdateItem")),
    ),
)
