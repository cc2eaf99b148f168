"""Declare the part of the template that delivers by a Lambda function, for those who want no workers of their own.

It goes with the stream worker: where that is a function (WorkerService), this is one too, in the same role and from the
same zip. The function acts for one tenant at a time with the tenant role, as the portal does.

Sources: AWS, "Creating and configuring an Amazon SQS event source mapping", "Handling errors for an SQS event source".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from delivery.consuming.slots import HANGS_SECONDS
from delivery.mail.deployment import EMAIL_URL
from delivery.queues import deployment as queues
from delivery.queues.queue_transport import BATCH
from portal.deployment import stack_roles
from portal.deployment.lambda_functions import FunctionPart, arn, resource
from portal.deployment.parts import StackPart, declare
from portal.schema.tables import Table

Json = dict[str, Any]

_DELIVERY: Final = FunctionPart(
    "Delivery",
    "delivery",
    "Delivers what leaves the desks of Pooldesk",
    "delivery.consuming.consumer_lambda.queue_handler",
    timeout=int(HANGS_SECONDS),
    environ={
        "DELIVERY_QUEUES": str(queues.QUEUES),
        "TENANT_ROLE_ARN": arn(stack_roles.TENANT),
        "EMAIL_URL": EMAIL_URL,
    },
)
# A tenant has four queues, so it reaches four times as many invocations at most.
_AT_ONCE: Final = 2  # invocations for one queue, the fewest that Lambda takes


def _resources(logical_id: Callable[[Table], str], roles: dict[str, str]) -> Json:
    return {
        **_DELIVERY.resources(roles["worker"], after=stack_roles.policy_ids("worker")),
        **{
            f"{queues.logical_id(queue)}Source": resource("AWS::Lambda::EventSourceMapping", _mapping(queue))
            for queue in range(queues.QUEUES)
        },
    }


def _mapping(queue: int) -> Json:
    return {
        "EventSourceArn": arn(queues.logical_id(queue)),
        "FunctionName": {"Ref": _DELIVERY.function},
        "BatchSize": BATCH,
        "FunctionResponseTypes": ["ReportBatchItemFailures"],
        "ScalingConfig": {"MaximumConcurrency": _AT_ONCE},
    }


declare(StackPart("deliveries", resources=_resources))
