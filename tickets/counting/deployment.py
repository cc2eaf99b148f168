"""Declare the part of the template that runs the stream worker as a Lambda function, for those who want no pollers.

Sources: AWS, "Lambda parameters for Amazon DynamoDB event source mappings", "Using event filtering with a DynamoDB
event source", "Creating a rule that runs on a schedule in Amazon EventBridge", "Retain discarded records for a
DynamoDB event source in Lambda".
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from portal.deployment import stack_roles
from portal.deployment.parts import StackPart, declare
from portal.schema.tables import Table
from tickets.counting import keys as counting_keys
from tickets.ticket import keys
from tickets.ticket.tables import TICKETS

Json = dict[str, Any]

ON_LAMBDA: Final = "WorkerIsFunction"
FUNCTION, QUEUE, LOGS, SCHEDULE = "WorkerFunction", "WorkerFailuresQueue", "WorkerLogGroup", "WorkerSchedule"
_LAMBDA: Final = "lambda.amazonaws.com"
_NO_BUCKET: Final = "none"  # "" could be no bucket's name, which the linter notices
_TIMEOUT: Final = 120  # seconds; a batch of a thousand records of a thousand tenants takes some 20


def _condition() -> Json:
    return {"Fn::Equals": [{"Ref": "WorkerService"}, _LAMBDA]}


def _parameters() -> Json:
    return {
        "WorkerService": {
            "Type": "String",
            "Description": "Where the stream worker runs: pollers on ECS or EC2, or a Lambda function of this stack",
            "Default": "ecs-tasks.amazonaws.com",
            "AllowedValues": ["ecs-tasks.amazonaws.com", "ec2.amazonaws.com", _LAMBDA],
        },
        "WorkerCodeBucket": {
            "Type": "String",
            "Description": "With Lambda: the S3 bucket that holds the function's zip",
            "Default": _NO_BUCKET,
        },
        "WorkerCodeKey": {
            "Type": "String",
            "Description": "With Lambda: the key of the zip in that bucket",
            "Default": "pooldesk.zip",
        },
    }


def _rules() -> Json:
    """Refuse a stack without code for its function, before anything is made."""
    given = {"Fn::Not": [{"Fn::Equals": [{"Ref": "WorkerCodeBucket"}, _NO_BUCKET]}]}
    said = "WorkerService=lambda.amazonaws.com needs WorkerCodeBucket, and the zip in it"
    return {
        "FunctionHasCode": {
            "RuleCondition": _condition(),
            "Assertions": [{"Assert": given, "AssertDescription": said}],
        }
    }


def _resources(logical_id: Callable[[Table], str], roles: dict[str, str]) -> Json:
    """Declare function, mapping, queue and log for the stream of the tickets. All conditional."""
    table, role, mine = logical_id(TICKETS), roles["worker"], stack_roles.policy_ids("worker")
    return {
        QUEUE: _resource(
            "AWS::SQS::Queue",
            # What is in there are shard ids and sequence numbers, no data of anybody's.
            {"SqsManagedSseEnabled": True, "MessageRetentionPeriod": 14 * 86400},
        ),
        LOGS: _resource(
            "AWS::Logs::LogGroup",
            {"LogGroupName": {"Fn::Sub": f"/aws/lambda/{_name()}"}, "RetentionInDays": 30},
        ),
        "WorkerFunctionPolicy": _resource("AWS::IAM::ManagedPolicy", _policy(role)),
        FUNCTION: _resource("AWS::Lambda::Function", _function(role), after=["WorkerFunctionPolicy", *mine]),
        "WorkerStream": _resource("AWS::Lambda::EventSourceMapping", _mapping(table)),
        SCHEDULE: _resource("AWS::Events::Rule", _schedule()),
        "WorkerSchedulePermission": _resource("AWS::Lambda::Permission", _schedule_permission()),
    }


def _outputs() -> Json:
    """Tell where Lambda reports the batches that it has given up."""
    return {f"{QUEUE}Url": {"Condition": ON_LAMBDA, "Value": {"Ref": QUEUE}}}


def _resource(kind: str, properties: Json, *, after: list[str] | None = None) -> Json:
    depends = {"DependsOn": after} if after else {}
    return {"Type": kind, "Condition": ON_LAMBDA, **depends, "Properties": properties}


def _name() -> str:
    # The name is ours so that the log group can be; a dot may not stand in the name of a function.
    return "${AWS::StackName}-stream-worker"


def _policy(role: str) -> Json:
    statements = [
        {
            "Sid": "WriteItsLog",
            "Effect": "Allow",
            "Action": ["logs:CreateLogStream", "logs:PutLogEvents"],
            "Resource": _arn(LOGS),
        },
        # Lambda sends in the name of the function's role.
        {"Sid": "TellWhatWasGivenUp", "Effect": "Allow", "Action": ["sqs:SendMessage"], "Resource": _arn(QUEUE)},
    ]
    return {
        "Description": "What the worker needs as a Lambda function",
        "Roles": [{"Ref": role}],
        "PolicyDocument": {"Version": "2012-10-17", "Statement": statements},
    }


def _function(role: str) -> Json:
    return {
        "FunctionName": {"Fn::Sub": _name()},
        "Description": "Keeps the aggregates of Pooldesk",
        "Runtime": "python3.13",
        "Architectures": ["x86_64"],
        "Handler": "tickets.counting.lambda_entry.stream_handler",
        "Code": {"S3Bucket": {"Ref": "WorkerCodeBucket"}, "S3Key": {"Ref": "WorkerCodeKey"}},
        "Role": _arn(role),
        "MemorySize": 512,
        "Timeout": _TIMEOUT,
        "Environment": {
            # AWS_REGION is there already. No secret: the worker signs no cookie.
            "Variables": {
                "DYNAMODB_TABLE_PREFIX": {"Ref": "TablePrefix"},
                "AWS_ACCOUNT_ID": {"Ref": "AWS::AccountId"},
            }
        },
    }


def _mapping(table: str) -> Json:
    pattern = {"dynamodb": {"Keys": {"sk": {"S": [keys.SUMMARY, counting_keys.MARKER]}}}}
    return {
        "EventSourceArn": {"Fn::GetAtt": [table, "StreamArn"]},
        "FunctionName": {"Ref": FUNCTION},
        # All that there is, so that a stack of yesterday's tickets is counted too.
        "StartingPosition": "TRIM_HORIZON",
        "FilterCriteria": {"Filters": [{"Pattern": json.dumps(pattern, separators=(",", ":"))}]},
        "BatchSize": 1000,
        "MaximumBatchingWindowInSeconds": 1,
        # One invocation for a shard at a time: what is counted is remembered as a position in the shard.
        "ParallelizationFactor": 1,
        # Not for windows: with one the event says which shard it comes from. See tickets/counting/lambda_entry.py.
        "TumblingWindowInSeconds": 60,
        "FunctionResponseTypes": ["ReportBatchItemFailures"],
        "BisectBatchOnFunctionError": True,
        # An outage of the database must not lose records, so the age is what ends it: an hour before the stream's.
        "MaximumRetryAttempts": 10000,
        "MaximumRecordAgeInSeconds": 23 * 3600,
        "DestinationConfig": {"OnFailure": {"Destination": _arn(QUEUE)}},
    }


def _schedule() -> Json:
    return {
        "Description": "Lets the stream worker say up to when the stream is applied, also while nothing happens",
        # The shortest rate that there is; LATE_SECONDS of portal/streams/watermark.py goes by it.
        "ScheduleExpression": "rate(1 minute)",
        "State": "ENABLED",
        "Targets": [{"Id": "stream-worker", "Arn": _arn(FUNCTION)}],
    }


def _schedule_permission() -> Json:
    return {
        "Action": "lambda:InvokeFunction",
        "FunctionName": {"Ref": FUNCTION},
        "Principal": "events.amazonaws.com",
        "SourceArn": _arn(SCHEDULE),
    }


def _arn(resource: str) -> Json:
    return {"Fn::GetAtt": [resource, "Arn"]}


declare(
    StackPart(
        "stream worker",
        resources=_resources,
        parameters=_parameters(),
        rules=_rules(),
        conditions={ON_LAMBDA: _condition()},
        outputs=_outputs(),
    )
)
