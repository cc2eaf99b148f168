"""Declare the part of the template that runs the stream worker as a Lambda function, for those who want no pollers.

Sources: AWS, "Lambda parameters for Amazon DynamoDB event source mappings", "Using event filtering with a DynamoDB
event source".
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from portal.deployment import parts, template
from portal.deployment.parts import FunctionPart, StackPart, arn, declare, resource
from portal.schema.registry import Table
from tickets.counting import stored as counting_keys
from tickets.ticket import stored
from tickets.ticket.stored import TICKETS

Json = dict[str, Any]

_WORKER: Final = FunctionPart(
    "Worker",
    "stream-worker",
    "Keeps the aggregates and the search indexes of Pooldesk",
    "tickets.following.lambda_entry.stream_handler",
    # A batch of a thousand records of a thousand tenants takes some 20; the schedule's call may reshard for longer.
    timeout=120,
    environ={"TENANT_ROLE_ARN": arn(template.TENANT)},
    tells_failures=True,
)

_LIFECYCLE: Final = FunctionPart(
    "Lifecycle",
    "lifecycle",
    "Moves and purges the tenants of Pooldesk for which operators have ordered that",
    "tickets.following.lifecycle_lambda.schedule_handler",
    timeout=900,
    secrets=(parts.SIGNING, parts.ENCRYPTION, parts.CERTIFICATE),
    environ={"TENANT_ROLE_ARN": arn(template.TENANT)},
)


def _resources(logical_id: Callable[[Table], str], roles: dict[str, str]) -> Json:
    """Declare function, mapping, queue and log for the stream of the tickets, and what calls it each minute.

    LATE_SECONDS of portal/streams/watermark.py goes by that minute.
    """
    said = "Lets the stream worker say up to when the stream is applied, also while nothing happens"
    return {
        **_WORKER.resources(roles["worker"], after=template.policy_ids("worker")),
        "WorkerStream": resource("AWS::Lambda::EventSourceMapping", _mapping(logical_id(TICKETS))),
        **_WORKER.schedule(said),
        "WorkerAgeAlarm": parts.iterator_age_alarm(_WORKER.function, runbook="stream-lag"),
        **_LIFECYCLE.resources(
            roles["lifecycle"],
            after=[*template.policy_ids("platform"), *template.policy_ids("lifecycle"), parts.MAPPING_POLICY],
        ),
        **_LIFECYCLE.schedule("Lets what operators have ordered for whole tenants be carried out"),
    }


def _mapping(table: str) -> Json:
    wanted = [stored.SUMMARY, stored.DETAIL, counting_keys.MARKER, {"prefix": stored.ACTIVITY_PREFIX}]
    pattern = {"dynamodb": {"Keys": {"sk": {"S": wanted}}}}
    return {
        "EventSourceArn": {"Fn::GetAtt": [table, "StreamArn"]},
        "FunctionName": {"Ref": _WORKER.function},
        # All that there is, so that a stack of yesterday's tickets is counted too.
        "StartingPosition": "TRIM_HORIZON",
        "FilterCriteria": {"Filters": [{"Pattern": json.dumps(pattern, separators=(",", ":"))}]},
        "BatchSize": 1000,
        "MaximumBatchingWindowInSeconds": 1,
        # One invocation for a shard at a time: what is counted is remembered as a position in the shard.
        "ParallelizationFactor": 1,
        # Not for windows: with one the event says which shard it comes from. See tickets/following/lambda_entry.py.
        "TumblingWindowInSeconds": 60,
        "FunctionResponseTypes": ["ReportBatchItemFailures"],
        "BisectBatchOnFunctionError": True,
        # An outage of the database must not lose records, so the age is what ends it: an hour before the stream's.
        "MaximumRetryAttempts": 10000,
        "MaximumRecordAgeInSeconds": 23 * 3600,
        "DestinationConfig": {"OnFailure": {"Destination": arn(_WORKER.failures)}},
    }


declare(StackPart("stream worker", resources=_resources, outputs=_WORKER.outputs()))
