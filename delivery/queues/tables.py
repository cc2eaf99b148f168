"""Declare who may use the queues, which is the workers and nobody else, and the table of who has which.

The table is the platform's: a tenant's own set is in its configuration, and here it stands beside all others.
"""

from __future__ import annotations

from typing import Final

from delivery.queues.keys import DEPTHS
from delivery.queues.queue_transport import NAME
from portal.schema.registry import Grant, QueueGrant, Role, declare
from portal.schema.tables import Table

_CARRIERS: Final[tuple[Role, ...]] = ("worker", "delivery")

QUEUES = Table(
    "Events.Queues", "platform", "kind", "name", shared="which sets of queues are given is looked at for all tenants"
)

declare(
    QUEUES,
    grants=(
        *(
            QueueGrant(
                role,
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
            )
            for role in _CARRIERS
        ),
        Grant("worker", QUEUES, ("PutItem",), "TellDepths", leading_keys=DEPTHS),
        Grant("platform", QUEUES, ("DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem")),
    ),
)
