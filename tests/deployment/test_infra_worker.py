"""The stream worker as a Lambda function in infra/template.yaml: all that it needs, and only where it is wanted.

The embedded engine's Lambda knows no windows and drops partial answers, so this is about the template alone.
"""

from __future__ import annotations

import json

import pytest
from django.utils.module_loading import import_string

from portal.deployment import stack_roles
from portal.streams.shards import RETENTION_HOURS
from portal.streams.watermark import LATE_SECONDS
from tests.support.stacks import ACCOUNT, PRODUCTION, WITH_FUNCTION, Stack, committed, statements_in
from tickets.following import lifecycle_lambda

OF_THE_FUNCTION = {
    "WorkerFailuresQueue",
    "WorkerLogGroup",
    "WorkerFunctionPolicy",
    "WorkerFunction",
    "WorkerStream",
    "WorkerSchedule",
    "WorkerSchedulePermission",
    "WorkerScheduleRetries",
}


FUNCTIONS = {"Worker": True, "Dispatch": True, "Sweep": False, "Delivery": False, "Lifecycle": False}


@pytest.fixture(scope="module")
def with_function() -> Stack:
    return Stack(committed(), **WITH_FUNCTION)


@pytest.fixture(scope="module")
def production() -> Stack:
    return Stack(committed(), **PRODUCTION)


def test_who_runs_pollers_gets_nothing_of_lambdas(production: Stack, with_function: Stack) -> None:
    more = {name for name in with_function.resources.keys() - production.resources.keys() if name.startswith("Worker")}
    assert more == OF_THE_FUNCTION
    assert not [r["Type"] for r in production.resources.values() if "Lambda" in r["Type"]]


def test_the_functions_handler_is_there_and_lambda_may_become_its_role(with_function: Stack) -> None:
    function = with_function.properties("WorkerFunction")
    assert callable(import_string(function["Handler"]))
    assert function["Role"] == "WorkerRole.Arn"
    assert function["Code"] == {"S3Bucket": "code", "S3Key": "pooldesk.zip"}
    (trust,) = with_function.properties("WorkerRole")["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "lambda.amazonaws.com"}


def test_whole_tenants_are_taken_up_by_a_function_whose_role_the_web_processes_machines_may_have_too(
    with_function: Stack, production: Stack
) -> None:
    function = with_function.properties("LifecycleFunction")
    assert callable(import_string(function["Handler"]))
    assert function["Role"] == "LifecycleRole.Arn"
    assert function["Timeout"] > lifecycle_lambda.SECONDS
    trusted = {}
    for name, stack in (("functions", with_function), ("pollers", production)):
        (trust,) = stack.properties("LifecycleRole")["AssumeRolePolicyDocument"]["Statement"]
        trusted[name] = trust["Principal"]["Service"]
    web = committed()["Parameters"]["WebService"]["Default"]
    assert trusted == {"functions": [web, "lambda.amazonaws.com"], "pollers": web}


def test_the_function_gets_the_texts_of_tickets_of_one_shard_in_order_and_is_told_which(with_function: Stack) -> None:
    mapping = with_function.properties("WorkerStream")
    assert mapping["EventSourceArn"] == "SupportTicketsTable.StreamArn"
    (only,) = mapping["FilterCriteria"]["Filters"]
    wanted = ["SUMMARY", "DETAIL", "MARKER", {"prefix": "ACTIVITY#"}]
    assert json.loads(only["Pattern"]) == {"dynamodb": {"Keys": {"sk": {"S": wanted}}}}
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


@pytest.mark.parametrize(("function", "tells_failures"), FUNCTIONS.items())
def test_a_function_may_write_its_own_log_and_queue_and_no_other(
    with_function: Stack, function: str, *, tells_failures: bool
) -> None:
    statements = with_function.properties(f"{function}FunctionPolicy")["PolicyDocument"]["Statement"]
    expected = {("logs:CreateLogStream", "logs:PutLogEvents"): f"{function}LogGroup.Arn"}
    if tells_failures:
        expected[("sqs:SendMessage",)] = f"{function}FailuresQueue.Arn"
    assert {tuple(s["Action"]): s["Resource"] for s in statements} == expected
    name = with_function.properties(f"{function}Function")["FunctionName"]
    assert with_function.properties(f"{function}LogGroup")["LogGroupName"] == f"/aws/lambda/{name}"


@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_function_knows_the_tables_of_its_stack(with_function: Stack, function: str) -> None:
    variables = with_function.properties(f"{function}Function")["Environment"]["Variables"]
    assert (variables["DYNAMODB_TABLE_PREFIX"], variables["AWS_ACCOUNT_ID"]) == ("Pooldesk.Prod", ACCOUNT)


def test_each_function_knows_the_sites_of_silos() -> None:
    sites = '{"frankfurt": {"region": "eu-central-1"}}'
    stack = Stack(committed(), **WITH_FUNCTION, Silos=sites)
    for function in FUNCTIONS:
        assert stack.properties(f"{function}Function")["Environment"]["Variables"]["SILOS"] == sites


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_waits_for_the_rights_of_its_role(with_function: Stack, function: str) -> None:
    role = with_function.properties(f"{function}Function")["Role"].removesuffix(".Arn")
    attached = {
        name
        for name, one in with_function.resources.items()
        if one["Type"] == "AWS::IAM::ManagedPolicy" and role in one["Properties"]["Roles"] and "Function" not in name
    }
    assert attached - {"AssumeTenantPolicy"} <= set(with_function.resources[f"{function}Function"]["DependsOn"])


def test_lambda_may_read_the_stream_with_the_workers_policy(with_function: Stack) -> None:
    policies = [with_function.properties(name) for name in stack_roles.policy_ids("worker")]
    (read,) = [statement for statement in statements_in(policies) if statement["Sid"] == "ReadStream"]
    wanted = ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams")
    assert read["Action"] == [f"dynamodb:{action}" for action in wanted]


def test_the_function_is_called_twice_before_pages_call_it_late(with_function: Stack) -> None:
    rule = with_function.properties("WorkerSchedule")
    assert (rule["ScheduleExpression"], rule["State"]) == ("rate(1 minute)", "ENABLED")
    assert LATE_SECONDS > 2 * 60
    assert [target["Arn"] for target in rule["Targets"]] == ["WorkerFunction.Arn"]


def test_only_its_own_schedule_may_call_a_function_and_does_not_repeat_a_call_that_failed(with_function: Stack) -> None:
    scheduled, resources = ("Sweep", "Worker", "Lifecycle"), with_function.resources.values()
    assert [r["Properties"] for r in resources if r["Type"] == "AWS::Lambda::Permission"] == [
        {
            "Action": "lambda:InvokeFunction",
            "FunctionName": f"{name}Function",
            "Principal": "events.amazonaws.com",
            "SourceArn": f"{name}Schedule.Arn",
        }
        for name in scheduled
    ]
    for name in scheduled:
        retries = with_function.properties(f"{name}ScheduleRetries")
        assert (retries["FunctionName"], retries["MaximumRetryAttempts"]) == (f"{name}Function", 0)


@pytest.mark.parametrize("rule", ["FunctionHasCode", "MailHasLinks", "MailIsSent"])
def test_functions_without_what_they_need_are_refused_before_anything_is_made(rule: str) -> None:
    template = committed()
    for parameters, holds in ((WITH_FUNCTION, True), ({"WorkerService": "lambda.amazonaws.com"}, False)):
        stack = Stack(template, **parameters)
        assert stack.resolved(template["Rules"][rule]["RuleCondition"]) is True
        assert stack.resolved(template["Rules"][rule]["Assertions"][0]["Assert"]) is holds
