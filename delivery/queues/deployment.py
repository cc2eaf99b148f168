"""Declare the part of the template that makes the queues, and runs dispatcher and deliveries as Lambda functions.

No queue has a redrive policy: what cannot be delivered is a dead letter of its tenant, in a table. Nothing rests on the
outbox's stream, because a sweep each minute finds what Lambda misses or gives up. So the mapping begins at the newest
record and repeats a batch for minutes; a record that breaks the function is told in a queue, because its row would
break the sweep too. The function that delivers acts for one tenant at a time with the tenant role.

Sources: AWS, "Lambda parameters for Amazon DynamoDB event source mappings", "Using event filtering with a DynamoDB
event source", "Creating and configuring an Amazon SQS event source mapping", "Handling errors for an SQS event source".
"""

from __future__ import annotations

import json
from typing import Any, Final

from delivery.outbox.stored import OUTBOX
from delivery.queues.limits import HANGS_SECONDS
from delivery.queues.queue_transport import ATTRIBUTES, BATCH, NAME
from portal.deployment import object_bucket, parts, template
from portal.deployment.parts import FunctionPart, StackPart, arn, declare, needs, resource, text_parameter

Json = dict[str, Any]

QUEUES: Final = 32  # as many as DELIVERY_QUEUES is by default
_DASHED: Final = {"Fn::Join": ["-", {"Fn::Split": [".", {"Ref": "TablePrefix"}]}]}


def queue_id(queue: int) -> str:
    return f"DeliveryQueue{queue:02}"


def _queues() -> Json:
    queues = range(QUEUES)
    return {queue_id(queue): _queue(queue) for queue in queues} | {
        f"{queue_id(queue)}AgeAlarm": _alarm(queue) for queue in queues
    }


def _alarm(queue: int) -> Json:
    """Ring where nobody takes from a queue: one alarm each, since an expression takes at most ten metrics."""
    of_queue = {"QueueName": {"Fn::GetAtt": [queue_id(queue), "QueueName"]}}
    return parts.alarm(
        f"The oldest message of delivery queue {queue:02} waits for more than ten minutes",
        parts.metric("AWS/SQS", "ApproximateAgeOfOldestMessage", of_queue, "Maximum"),
        above=600,
        minutes=5,
        runbook="delivery-queues",
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


_ENVIRON: Final = {"DELIVERY_QUEUES": str(QUEUES)}
_DISPATCH: Final = FunctionPart(
    "Dispatch",
    "dispatcher",
    "Sends what is new in Pooldesk's outbox to the queues",
    "delivery.lambda_handlers.outbox_handler",
    timeout=60,
    environ=_ENVIRON,
    tells_failures=True,
)
_SWEEP: Final = FunctionPart(
    "Sweep",
    "sweeper",
    "Sends what is due in Pooldesk's outbox, and tells how full the queues are",
    "delivery.lambda_handlers.sweep_handler",
    timeout=90,  # twice what a call works on, for one that meets a slow database at its end
    environ=_ENVIRON,
)


def _dispatch(outbox: str, role: str) -> Json:
    policies = template.policy_ids("worker")
    return {
        **_DISPATCH.resources(role, after=policies),
        "DispatchStream": resource("AWS::Lambda::EventSourceMapping", _stream_mapping(outbox)),
        "DispatchAgeAlarm": parts.iterator_age_alarm(_DISPATCH.function, runbook="dispatch-lag"),
        **_SWEEP.resources(role, after=policies),
        **_SWEEP.schedule("Lets the sweeper find what is due in the outbox"),
    }


def _stream_mapping(table: str) -> Json:
    # Rows are removed by TTL alone, long after they were closed.
    pattern = {"eventName": ["INSERT", "MODIFY"]}
    return {
        "EventSourceArn": {"Fn::GetAtt": [table, "StreamArn"]},
        "FunctionName": {"Ref": _DISPATCH.function},
        "StartingPosition": "LATEST",
        "FilterCriteria": {"Filters": [{"Pattern": json.dumps(pattern, separators=(",", ":"))}]},
        "BatchSize": 100,
        # Somebody waits for what is new.
        "MaximumBatchingWindowInSeconds": 0,
        # A tenant's limits are counted by process: more of them at a time would be more limits.
        "ParallelizationFactor": 1,
        "FunctionResponseTypes": ["ReportBatchItemFailures"],
        "BisectBatchOnFunctionError": True,
        "MaximumRetryAttempts": 10,
        "MaximumRecordAgeInSeconds": 300,
        "DestinationConfig": {"OnFailure": {"Destination": arn(_DISPATCH.failures)}},
    }


EMAIL_URL: Final[Json] = {
    "Fn::If": [
        "MailBySes",
        template.sub("ses://${AWS::Region}?configuration_set=${AWS::StackName}-mail"),
        {"Ref": "EmailUrl"},
    ]
}  # of what delivers; parameter and condition are declared with the mail
# The parameter and the condition are declared with the letters, which are filed by what delivers.
MAIL_DOMAIN: Final[Json] = {"Fn::If": ["MailComesIn", {"Ref": "MailDomain"}, ""]}
_DELIVERY: Final = FunctionPart(
    "Delivery",
    "delivery",
    "Delivers what leaves the desks of Pooldesk",
    "delivery.lambda_handlers.queue_handler",
    timeout=int(HANGS_SECONDS),
    secrets=(parts.SIGNING, parts.ENCRYPTION),  # who answers a mail answers to a signed address
    environ=_ENVIRON
    | {
        "TENANT_ROLE_ARN": arn(template.TENANT),
        # For the mail that tells owners that an endpoint was paused, and for all mail, which leaves here.
        "PORTAL_BASE_URL": {"Ref": "PortalBaseUrl"},
        "EMAIL_URL": EMAIL_URL,
        "DEFAULT_FROM_EMAIL": {"Ref": "DefaultFromEmail"},
        "MAIL_BUCKET": {"Ref": parts.BUCKET},
        "FILE_SCANNER": {"Ref": object_bucket.SCANNER},
        "MAIL_DOMAIN": MAIL_DOMAIN,
    },
)
# A tenant has four queues, so it reaches four times as many invocations at most.
_AT_ONCE: Final = 2  # invocations for one queue, the fewest that Lambda takes


def _deliveries(role: str) -> Json:
    return {
        **_DELIVERY.resources(role, after=template.policy_ids("delivery")),
        **{
            f"{queue_id(queue)}Source": resource("AWS::Lambda::EventSourceMapping", _queue_mapping(queue))
            for queue in range(QUEUES)
        },
    }


def _queue_mapping(queue: int) -> Json:
    return {
        "EventSourceArn": arn(queue_id(queue)),
        "FunctionName": {"Ref": _DELIVERY.function},
        "BatchSize": BATCH,
        "FunctionResponseTypes": ["ReportBatchItemFailures"],
        "ScalingConfig": {"MaximumConcurrency": _AT_ONCE},
    }


declare(
    StackPart(
        "deliveries",
        resources=lambda logical_id, roles: {
            **_queues(),
            **_dispatch(logical_id(OUTBOX), roles["worker"]),
            **_deliveries(roles["delivery"]),
        },
        parameters={
            "PortalBaseUrl": text_parameter("With Lambda: PORTAL_BASE_URL of the portal, for links in mails"),
            "DefaultFromEmail": text_parameter(
                "With Lambda: DEFAULT_FROM_EMAIL of the portal", "Pooldesk <pooldesk@localhost>"
            ),
        },
        rules={"MailHasLinks": needs("PortalBaseUrl", "which begins the links in mails")},
        outputs=_DISPATCH.outputs(),
    )
)
