"""Let the Lambda functions that read the pool's streams read those of a tenant's own tables as well.

Where workers are functions (DELIVERY_WORKERS=0), each mapping of a stream of the pool is repeated, with its settings,
for the table of the same name that one tenant has to itself. So functions, their limits and the queues of their
failures are declared once, in the template.

A function reads streams of its own account and region. Tables at a site elsewhere get no mapping: `run_stream` and
`run_dispatch` read them.

Sources: AWS, "CreateEventSourceMapping" (the account may have one mapping of a function and a stream),
"DeleteEventSourceMapping" (refused while the mapping is being created or changed).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from botocore import xform_name
from botocore.exceptions import BotoCoreError, ClientError
from django.conf import settings

from portal import aws_session
from portal.dynamo import library_errors
from portal.dynamo.retry import retrying
from portal.errors import Throttled

_SETTINGS: Final = (
    "BatchSize", "BisectBatchOnFunctionError", "DestinationConfig", "FilterCriteria", "FunctionResponseTypes",
    "MaximumBatchingWindowInSeconds", "MaximumRecordAgeInSeconds", "MaximumRetryAttempts", "ParallelizationFactor",
    "TumblingWindowInSeconds",
)  # fmt: skip
_ATTEMPTS: Final = 10  # at a mapping that is being created, which takes AWS up to a minute


def repeat(pool_stream: str, own_stream: str) -> None:
    """Map the stream with the ARN `own_stream` to each function that reads `pool_stream`, from its first record.

    Mappings that exist are left as they are. Raises Throttled, Unavailable.
    """
    if settings.DELIVERY_WORKERS:
        return
    there = {mapping["FunctionArn"] for mapping in _mappings(own_stream)}
    for mapping in _mappings(pool_stream):
        function = mapping["FunctionArn"]
        if function in there or _region_and_account(function) != _region_and_account(own_stream):
            continue
        _call(
            "CreateEventSourceMapping",
            unless="ResourceConflictException",  # another process was faster
            EventSourceArn=own_stream,
            FunctionName=function,
            StartingPosition="TRIM_HORIZON",
            **{name: mapping[name] for name in _SETTINGS if name in mapping},
        )


def delete(own_stream: str) -> None:
    """Delete the mappings of a stream. Raises Throttled, also where one is still being created, and Unavailable."""
    if settings.DELIVERY_WORKERS:
        return
    for mapping in _mappings(own_stream):
        retrying(
            partial(_call, "DeleteEventSourceMapping", unless="ResourceNotFoundException", UUID=mapping["UUID"]),
            again=lambda error: isinstance(error, Throttled),
            attempts=_ATTEMPTS,
            first=1.0,
            longest=10.0,
        )


def _mappings(stream: str) -> Iterator[dict[str, Any]]:
    after: dict[str, str] = {}
    while True:
        page = _call("ListEventSourceMappings", EventSourceArn=stream, **after)
        yield from page["EventSourceMappings"]
        if not page.get("NextMarker"):
            return
        after = {"Marker": page["NextMarker"]}


def _region_and_account(arn: str) -> list[str]:
    return arn.split(":")[3:5]


def _call(operation: str, *, unless: str = "", **params: Any) -> dict[str, Any]:
    """Send a request to Lambda. An error with the code `unless` says that there is nothing to do."""
    client = aws_session.client("lambda", settings.AWS_REGION, settings.LAMBDA_ENDPOINT_URL)
    try:
        answer: dict[str, Any] = getattr(client, xform_name(operation))(**params)
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code == unless:
            return {}
        if code in ("ResourceInUseException", "TooManyRequestsException"):
            raise Throttled("Lambda is busy with an event source mapping.") from error
        raise library_errors.translate(error, operation) or error from error
    except BotoCoreError as error:
        raise library_errors.translate(error, operation) or error from error
    return answer
