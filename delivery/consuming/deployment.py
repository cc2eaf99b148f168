"""Declare the part of the template that delivers by a Lambda function, for those who want no workers of their own.

It goes with the stream worker: where that is a function (WorkerService), this is one too, in the same role and from the
same zip. The function acts for one tenant at a time with the tenant role, as the portal does.

Sources: AWS, "Creating and configuring an Amazon SQS event source mapping", "Handling errors for an SQS event source".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from delivery.consuming.slots import HANGS_SECONDS
from delivery.queues import deployment as queues
from delivery.queues.queue_transport import BATCH
from portal.deployment.parts import StackPart, declare
from portal.deployment.stack_roles import TENANT, arn, sub
from portal.schema.tables import Table

Json = dict[str, Any]

_ON_LAMBDA: Final = "DeliveryIsFunction"
_FUNCTION, _LOGS, _POLICY = "DeliveryFunction", "DeliveryLogGroup", "DeliveryFunctionPolicy"
# A tenant has four queues, so it reaches four times as many invocations at most.
_AT_ONCE: Final = 2  # invocations for one queue, the fewest that Lambda takes


def _resources(logical_id: Callable[[Table], str], roles: dict[str, str]) -> Json:
    name = "${AWS::StackName}-delivery"
    write = {
        "Sid": "WriteItsLog",
        "Effect": "Allow",
        "Action": ["logs:CreateLogStream", "logs:PutLogEvents"],
        "Resource": arn(_LOGS),
    }
    return {
        _LOGS: _resource("AWS::Logs::LogGroup", {"LogGroupName": sub(f"/aws/lambda/{name}"), "RetentionInDays": 30}),
        _POLICY: _resource(
            "AWS::IAM::ManagedPolicy",
            {
                "Description": "What deliveries need as a Lambda function",
                "Roles": [{"Ref": roles["worker"]}],
                "PolicyDocument": {"Version": "2012-10-17", "Statement": [write]},
            },
        ),
        _FUNCTION: _resource("AWS::Lambda::Function", _function(name, roles["worker"])) | {"DependsOn": [_POLICY]},
        **{f"{queues.logical_id(queue)}Source": _resource("AWS::Lambda::EventSourceMapping", _mapping(queue))
           for queue in range(queues.QUEUES)},
    }  # fmt: skip


def _resource(kind: str, properties: Json) -> Json:
    return {"Type": kind, "Condition": _ON_LAMBDA, "Properties": properties}


def _function(name: str, role: str) -> Json:
    return {
        "FunctionName": sub(name),
        "Description": "Delivers what leaves the desks of Pooldesk",
        "Runtime": "python3.13",
        "Architectures": ["x86_64"],
        "Handler": "delivery.consuming.consumer_lambda.queue_handler",
        "Code": {"S3Bucket": {"Ref": "WorkerCodeBucket"}, "S3Key": {"Ref": "WorkerCodeKey"}},
        "Role": arn(role),
        "MemorySize": 512,
        "Timeout": int(HANGS_SECONDS),
        "Environment": {
            "Variables": {
                "DYNAMODB_TABLE_PREFIX": {"Ref": "TablePrefix"},
                "AWS_ACCOUNT_ID": {"Ref": "AWS::AccountId"},
                "TENANT_ROLE_ARN": arn(TENANT),
            }
        },
    }


def _mapping(queue: int) -> Json:
    return {
        "EventSourceArn": arn(queues.logical_id(queue)),
        "FunctionName": {"Ref": _FUNCTION},
        "BatchSize": BATCH,
        "FunctionResponseTypes": ["ReportBatchItemFailures"],
        "ScalingConfig": {"MaximumConcurrency": _AT_ONCE},
    }


declare(
    StackPart(
        "deliveries",
        resources=_resources,
        conditions={_ON_LAMBDA: {"Fn::Equals": [{"Ref": "WorkerService"}, "lambda.amazonaws.com"]}},
    )
)
