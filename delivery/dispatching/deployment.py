"""Declare the part of the template that runs the dispatcher as Lambda functions, for those who want no pollers.

One function follows the outbox's stream, the other one sweeps each minute. Nothing rests on the stream: what Lambda
misses, gives up or brings late stands in the index of pending rows, where the sweep finds it. So the mapping begins at
the newest record, and repeats a batch for minutes and not for a day; a record that breaks the function is told in a
queue, because its row would break the sweep too.

Sources: AWS, "Lambda parameters for Amazon DynamoDB event source mappings", "Using event filtering with a DynamoDB
event source".
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from delivery.outbox.tables import OUTBOX
from delivery.queues import deployment as queues
from portal.deployment import alarms, stack_roles
from portal.deployment.lambda_functions import FunctionPart, arn, resource
from portal.deployment.parts import StackPart, declare
from portal.schema.tables import Table

Json = dict[str, Any]

# Lambda takes from each queue apart: no queue keeps another one's workers busy.
_ENVIRON: Final = {"DELIVERY_QUEUES": str(queues.QUEUES), "DELIVERY_WORKERS": "0"}
_DISPATCH: Final = FunctionPart(
    "Dispatch",
    "dispatcher",
    "Sends what is new in Pooldesk's outbox to the queues",
    "delivery.dispatching.dispatcher_lambda.outbox_handler",
    timeout=60,
    environ=_ENVIRON,
    tells_failures=True,
)
_SWEEP: Final = FunctionPart(
    "Sweep",
    "sweeper",
    "Sends what is due in Pooldesk's outbox, and tells how full the queues are",
    "delivery.dispatching.dispatcher_lambda.sweep_handler",
    timeout=90,  # twice what a call works on, for one that meets a slow database at its end
    environ=_ENVIRON,
)


def _resources(logical_id: Callable[[Table], str], roles: dict[str, str]) -> Json:
    role, policies = roles["worker"], stack_roles.policy_ids("worker")
    return {
        **_DISPATCH.resources(role, after=policies),
        "DispatchStream": resource("AWS::Lambda::EventSourceMapping", _mapping(logical_id(OUTBOX))),
        "DispatchAgeAlarm": alarms.iterator_age_alarm(_DISPATCH.function),
        **_SWEEP.resources(role, after=policies),
        **_SWEEP.schedule("Lets the sweeper find what is due in the outbox"),
    }


def _mapping(table: str) -> Json:
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


declare(StackPart("dispatcher", resources=_resources, outputs=_DISPATCH.outputs()))
