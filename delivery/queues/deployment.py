"""Declare the part of the template that makes the queues.

No queue has a redrive policy: what cannot be delivered is a dead letter of its tenant, in a table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from delivery.queues.queue_transport import ATTRIBUTES, NAME
from portal.deployment import alarms
from portal.deployment.parts import StackPart, declare
from portal.schema.tables import Table

Json = dict[str, Any]

QUEUES: Final = 32  # as many as DELIVERY_QUEUES is by default
_DASHED: Final = {"Fn::Join": ["-", {"Fn::Split": [".", {"Ref": "TablePrefix"}]}]}


def logical_id(queue: int) -> str:
    """Return what a queue is called inside of the template."""
    return f"DeliveryQueue{queue:02}"


def _resources(logical_ids: Callable[[Table], str], roles: dict[str, str]) -> Json:
    queues = range(QUEUES)
    return {logical_id(queue): _queue(queue) for queue in queues} | {
        f"{logical_id(queue)}AgeAlarm": _alarm(queue) for queue in queues
    }


def _alarm(queue: int) -> Json:
    """Ring where nobody takes from a queue: one alarm each, since an expression takes at most ten metrics."""
    of_queue = {"QueueName": {"Fn::GetAtt": [logical_id(queue), "QueueName"]}}
    return alarms.alarm(
        f"The oldest message of delivery queue {queue:02} waits for more than ten minutes",
        alarms.metric("AWS/SQS", "ApproximateAgeOfOldestMessage", of_queue, "Maximum"),
        above=600,
        minutes=5,
    )


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
