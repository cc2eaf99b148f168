"""Declare the part of the template that delivers by a Lambda function, for those who want no workers of their own.

The function acts for one tenant at a time with the tenant role, as the portal does, and has a role of its own for the
little that it does beside. Lambda takes from each queue apart, and as much as _AT_ONCE says: there are no workers with
numbers, so DELIVERY_WORKERS means nothing to it.

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
from portal.deployment.lambda_functions import NOT_GIVEN, FunctionPart, arn, needs, resource
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
        # For the mail that tells owners that an endpoint was paused, and for all mail, which leaves here.
        "PORTAL_BASE_URL": {"Ref": "PortalBaseUrl"},
        "EMAIL_URL": EMAIL_URL,
        "DEFAULT_FROM_EMAIL": {"Ref": "DefaultFromEmail"},
    },
)
# A tenant has four queues, so it reaches four times as many invocations at most.
_AT_ONCE: Final = 2  # invocations for one queue, the fewest that Lambda takes


def _parameters() -> Json:
    return {
        "PortalBaseUrl": {
            "Type": "String",
            "Description": "With Lambda: PORTAL_BASE_URL of the portal, for links in mails",
            "Default": NOT_GIVEN,
        },
        "DefaultFromEmail": {
            "Type": "String",
            "Description": "With Lambda: DEFAULT_FROM_EMAIL of the portal",
            "Default": "Pooldesk <pooldesk@localhost>",
        },
    }


def _resources(logical_id: Callable[[Table], str], roles: dict[str, str]) -> Json:
    return {
        **_DELIVERY.resources(roles["delivery"], after=stack_roles.policy_ids("delivery")),
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


declare(
    StackPart(
        "deliveries",
        resources=_resources,
        parameters=_parameters(),
        rules={"MailHasLinks": needs("PortalBaseUrl", "which begins the links in mails")},
    )
)
