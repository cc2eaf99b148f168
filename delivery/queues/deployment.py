"""Declare the part of the template that makes the queues.

No queue has a redrive policy: what cannot be delivered is a dead letter of its tenant, in a table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from delivery.queues.queue_transport import ATTRIBUTES, NAME
from portal.deployment.parts import StackPart, declare
from portal.schema.tables import Table

Json = dict[str, Any]

QUEUES: Final = 32  # as many as DELIVERY_QUEUES is by default
_DASHED: Final = {"Fn::Join": ["-", {"Fn::Split": [".", {"Ref": "TablePrefix"}]}]}


def logical_id(queue: int) -> str:
    """Return what a queue is called inside of the template."""
    return f"DeliveryQueue{queue:02}"


def _resources(logical_ids: Callable[[Table], str], roles: dict[str, str]) -> Json:
    return {logical_id(queue): _queue(queue) for queue in range(QUEUES)}


def _queue(queue: int) -> Json:
    return {
        "Type": "AWS::SQS::Queue",
        "Properties": {
            "QueueName": {"Fn::Sub": [f"${{Dashed}}-{NAME}-{queue:02}", {"Dashed": _DASHED}]},
            "MessageRetentionPeriod": int(ATTRIBUTES["MessageRetentionPeriod"]),
            "VisibilityTimeout": int(ATTRIBUTES["VisibilityTimeout"]),
            "SqsManagedSseEnabled": True,
        },
    }


declare(StackPart("queues", resources=_resources))
