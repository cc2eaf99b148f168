"""The stream worker as a Lambda function in infra/template.yaml: all that it needs, and only where it is wanted.

The embedded engine's Lambda knows no windows and drops partial answers, so this is about the template alone.
"""

from __future__ import annotations

import json

import pytest
from django.utils.module_loading import import_string

from portal.streams.shards import RETENTION_HOURS
from portal.streams.watermark import LATE_SECONDS
from tests.support.stacks import ACCOUNT, PRODUCTION, WITH_FUNCTION, Stack, committed, statements_in

OF_THE_FUNCTION = {
    "WorkerFailuresQueue",
    "WorkerLogGroup",
    "WorkerFunctionPolicy",
    "WorkerFunction",
    "WorkerStream",
    "WorkerSchedule",
    "WorkerSchedulePermission",
}


@pytest.fixture(scope="module")
def with_function() -> Stack:
    return Stack(committed(), **WITH_FUNCTION)


@pytest.fixture(scope="module")
def production() -> Stack:
    return Stack(committed(), **PRODUCTION)


def test_who_runs_pollers_gets_nothing_of_lambdas(production: Stack, with_function: Stack) -> None:
    more = {name for name in with_function.resources.keys() - production.resources.keys() if "Delivery" not in name}
    assert more == OF_THE_FUNCTION
    assert not [r["Type"] for r in production.resources.values() if "Lambda" in r["Type"]]


def test_the_functions_handler_is_there_and_lambda_may_become_its_role(with_function: Stack) -> None:
    function = with_function.properties("WorkerFunction")
    assert callable(import_string(function["Handler"]))
    assert function["Role"] == "WorkerRole.Arn"
    assert function["Code"] == {"S3Bucket": "code", "S3Key": "pooldesk.zip"}
    (trust,) = with_function.properties("WorkerRole")["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "lambda.amazonaws.com"}
    variables = function["Environment"]["Variables"]
    assert variables == {"DYNAMODB_TABLE_PREFIX": "Pooldesk.Prod", "AWS_ACCOUNT_ID": ACCOUNT}


def test_the_function_gets_summaries_of_one_shard_in_order_and_is_told_which(with_function: Stack) -> None:
    mapping = with_function.properties("WorkerStream")
    assert mapping["EventSourceArn"] == "SupportTicketsTable.StreamArn"
    (only,) = mapping["FilterCriteria"]["Filters"]
    assert json.loads(only["Pattern"]) == {"dynamodb": {"Keys": {"sk": {"S": ["SUMMARY", "MARKER"]}}}}
    assert mapping["ParallelizationFactor"] == 1
    assert mapping["TumblingWindowInSeconds"] > 0, "else the event does not name its shard"
    assert mapping["StartingPosition"] == "TRIM_HORIZON"


def test_what_lambda_gives_up_is_told_to_an_encrypted_queue(with_function: Stack) -> None:
    mapping = with_function.properties("WorkerStream")
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["BisectBatchOnFunctionError"] is True
    assert mapping["MaximumRecordAgeInSeconds"] < RETENTION_HOURS * 3600
    assert mapping["DestinationConfig"] == {"OnFailure": {"Destination": "WorkerFailuresQueue.Arn"}}
    assert with_function.properties("WorkerFailuresQueue")["SqsManagedSseEnabled"] is True


def test_the_function_may_write_its_own_log_and_queue_and_no_other(with_function: Stack) -> None:
    statements = with_function.properties("WorkerFunctionPolicy")["PolicyDocument"]["Statement"]
    assert {tuple(s["Action"]): s["Resource"] for s in statements} == {
        ("logs:CreateLogStream", "logs:PutLogEvents"): "WorkerLogGroup.Arn",
        ("sqs:SendMessage",): "WorkerFailuresQueue.Arn",
    }
    name = with_function.properties("WorkerFunction")["FunctionName"]
    assert with_function.properties("WorkerLogGroup")["LogGroupName"] == f"/aws/lambda/{name}"


def test_lambda_may_read_the_stream_with_the_workers_policy(with_function: Stack) -> None:
    (read,) = [s for s in statements_in(with_function.properties("WorkerPolicy")) if s["Sid"] == "ReadStream"]
    wanted = ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams")
    assert read["Action"] == [f"dynamodb:{action}" for action in wanted]


def test_the_function_is_called_twice_before_pages_call_it_late(with_function: Stack) -> None:
    rule = with_function.properties("WorkerSchedule")
    assert (rule["ScheduleExpression"], rule["State"]) == ("rate(1 minute)", "ENABLED")
    assert LATE_SECONDS > 2 * 60
    assert [target["Arn"] for target in rule["Targets"]] == ["WorkerFunction.Arn"]


def test_only_that_schedule_may_call_the_function(with_function: Stack) -> None:
    assert [r["Properties"] for r in with_function.resources.values() if r["Type"] == "AWS::Lambda::Permission"] == [
        {
            "Action": "lambda:InvokeFunction",
            "FunctionName": "WorkerFunction",
            "Principal": "events.amazonaws.com",
            "SourceArn": "WorkerSchedule.Arn",
        }
    ]


def test_a_function_without_code_is_refused_before_anything_is_made() -> None:
    rule = committed()["Rules"]["FunctionHasCode"]
    for parameters, holds in ((WITH_FUNCTION, True), ({"WorkerService": "lambda.amazonaws.com"}, False)):
        stack = Stack(committed(), **parameters)
        assert stack.resolved(rule["RuleCondition"]) is True
        assert stack.resolved(rule["Assertions"][0]["Assert"]) is holds
