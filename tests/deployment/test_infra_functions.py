"""Workers as Lambda functions in infra/template.yaml, and the queues of all: all that they need, and only where wanted.

The embedded engine's Lambda knows no windows and drops partial answers, so this is about the template alone.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import override_settings
from django.utils.module_loading import import_string

from delivery import lambda_handlers
from delivery.queues.queue_sets import valid_count
from delivery.queues.queue_transport import QueueTransport
from portal.deployment import template
from portal.deployment.parts import MAPPING_POLICY
from portal.streams.shards import RETENTION_HOURS
from portal.streams.watermark import LATE_SECONDS
from tests.support.stacks import ACCOUNT, PRODUCTION, WITH_FUNCTION, Json, Stack, committed, statements_in
from tickets.following import lifecycle_lambda

# Each function with its role, and whether Lambda says in a queue what the function has failed at.
FUNCTIONS = {
    "Worker": ("WorkerRole", True),
    "Dispatch": ("WorkerRole", True),
    "Sweep": ("WorkerRole", False),
    "Delivery": ("DeliveryRole", False),
    "Lifecycle": ("LifecycleRole", False),
    "Rotation": ("RotationRole", False),
}
SCHEDULED = ("Sweep", "Worker", "Lifecycle")


@pytest.fixture(scope="module")
def with_function() -> Stack:
    return Stack(committed(), **WITH_FUNCTION)


@pytest.fixture(scope="module")
def production() -> Stack:
    return Stack(committed(), **PRODUCTION)


def variables(stack: Stack, function: str) -> dict[str, str]:
    found: dict[str, str] = stack.properties(f"{function}Function")["Environment"]["Variables"]
    return found


def trusted(stack: Stack, role: str) -> Any:
    (trust,) = stack.properties(role)["AssumeRolePolicyDocument"]["Statement"]
    return trust["Principal"]["Service"]


def test_who_runs_pollers_gets_nothing_of_lambdas(production: Stack, with_function: Stack) -> None:
    more = with_function.resources.keys() - production.resources.keys()
    everywhere = {"AWS::IAM::ManagedPolicy", "AWS::IAM::Role", "AWS::SQS::Queue"}
    kinds = {with_function.resources[name]["Type"] for name in more} - everywhere
    assert not [name for name, one in production.resources.items() if one["Type"] in kinds or "Lambda" in one["Type"]]
    assert {f"{name}Function" for name in FUNCTIONS} | {"DeliveryQueue00Source"} <= more
    parts = ("LogGroup", "FunctionPolicy", "Function", "Stream", "Schedule", "SchedulePermission", "ScheduleRetries")
    of_the_worker = {f"Worker{part}" for part in ("FailuresQueue", *parts)}
    assert {name for name in more if name.startswith("Worker")} == of_the_worker


# --- each function ---


@pytest.mark.parametrize(("function", "role", "tells_failures"), [(name, *of) for name, of in FUNCTIONS.items()])
def test_a_function_is_there_with_its_role_its_log_and_the_tables_of_its_stack(
    with_function: Stack, function: str, role: str, *, tells_failures: bool
) -> None:
    made = with_function.properties(f"{function}Function")
    assert callable(import_string(made["Handler"]))
    assert made["Role"] == f"{role}.Arn"
    assert made["Code"] == {"S3Bucket": "code", "S3Key": "pooldesk.zip"}
    assert "lambda.amazonaws.com" in trusted(with_function, role)
    known = variables(with_function, function)
    assert (known["DYNAMODB_TABLE_PREFIX"], known["AWS_ACCOUNT_ID"]) == ("Pooldesk.Prod", ACCOUNT)
    statements = with_function.properties(f"{function}FunctionPolicy")["PolicyDocument"]["Statement"]
    expected = {("logs:CreateLogStream", "logs:PutLogEvents"): f"{function}LogGroup.Arn"}
    if tells_failures:
        expected[("sqs:SendMessage",)] = f"{function}FailuresQueue.Arn"
    assert {tuple(s["Action"]): s["Resource"] for s in statements} == expected
    group = with_function.properties(f"{function}LogGroup")["LogGroupName"]
    assert group == f"/aws/lambda/{made['FunctionName']}"
    attached = {
        name
        for name, one in with_function.resources.items()
        if one["Type"] == "AWS::IAM::ManagedPolicy" and role in one["Properties"]["Roles"] and "Function" not in name
    }
    waits_for = with_function.resources[f"{function}Function"]["DependsOn"]
    assert attached - {"AssumeTenantPolicy"} <= set(waits_for), "it is made when its role has its rights"


def test_each_function_knows_the_sites_of_silos() -> None:
    sites = '{"frankfurt": {"region": "eu-central-1"}}'
    stack = Stack(committed(), **WITH_FUNCTION, Silos=sites)
    assert {variables(stack, function)["SILOS"] for function in FUNCTIONS} == {sites}


def test_only_its_own_schedule_calls_a_function_each_minute_and_does_not_repeat_a_call_that_failed(
    with_function: Stack,
) -> None:
    resources = with_function.resources.values()
    assert [
        r["Properties"] for r in resources if r["Type"] == "AWS::Lambda::Permission" and "Rotation" not in str(r)
    ] == [
        {
            "Action": "lambda:InvokeFunction",
            "FunctionName": f"{name}Function",
            "Principal": "events.amazonaws.com",
            "SourceArn": f"{name}Schedule.Arn",
        }
        for name in SCHEDULED
    ]
    for name in SCHEDULED:
        retries = with_function.properties(f"{name}ScheduleRetries")
        assert (retries["FunctionName"], retries["MaximumRetryAttempts"]) == (f"{name}Function", 0)
        rule = with_function.properties(f"{name}Schedule")
        assert (rule["ScheduleExpression"], rule["State"]) == ("rate(1 minute)", "ENABLED")
        assert [target["Arn"] for target in rule["Targets"]] == [f"{name}Function.Arn"]
    assert LATE_SECONDS > 2 * 60, "the worker is called twice before pages call it late"
    assert lambda_handlers.SWEEPS_SECONDS < 60 < with_function.properties("SweepFunction")["Timeout"]
    assert with_function.properties("LifecycleFunction")["Timeout"] > lifecycle_lambda.SECONDS


def test_functions_of_the_stack_alone_can_be_made_to_read_tenants_own_tables(with_function: Stack) -> None:
    policy = with_function.properties(MAPPING_POLICY)
    assert policy["Roles"] == ["LifecycleRole"]
    changes = [s for s in policy["PolicyDocument"]["Statement"] if s["Action"] != ["lambda:ListEventSourceMappings"]]
    functions = [s["Condition"]["StringLike"]["lambda:FunctionArn"].rpartition(":")[2] for s in changes]
    assert functions == [f"{with_function.properties('LifecycleFunction')['FunctionName'].removesuffix('lifecycle')}*"]


@pytest.mark.parametrize("rule", ["FunctionHasCode", "MailHasLinks", "MailIsSent"])
def test_functions_without_what_they_need_are_refused_before_anything_is_made(rule: str) -> None:
    template = committed()
    for parameters, holds in ((WITH_FUNCTION, True), ({"WorkerService": "lambda.amazonaws.com"}, False)):
        stack = Stack(template, **parameters)
        assert stack.resolved(template["Rules"][rule]["RuleCondition"]) is True
        assert stack.resolved(template["Rules"][rule]["Assertions"][0]["Assert"]) is holds


def test_commands_that_move_whole_tenants_run_on_the_web_processes_machines_too(
    with_function: Stack, production: Stack
) -> None:
    web = committed()["Parameters"]["WebService"]["Default"]
    assert trusted(with_function, "LifecycleRole") == [web, "lambda.amazonaws.com"]
    assert trusted(production, "LifecycleRole") == web


# --- streams ---


WANTED = ["SUMMARY", "DETAIL", "MARKER", {"prefix": "ACTIVITY#"}]


@pytest.mark.parametrize(
    ("function", "table", "starts", "pattern"),
    [
        ("Worker", "SupportTickets", "TRIM_HORIZON", {"dynamodb": {"Keys": {"sk": {"S": WANTED}}}}),
        ("Dispatch", "EventsOutbox", "LATEST", {"eventName": ["INSERT", "MODIFY"]}),
    ],
)
def test_a_stream_calls_its_function_in_order_and_tells_a_queue_what_lambda_gives_up(
    with_function: Stack, function: str, table: str, starts: str, pattern: Json
) -> None:
    mapping = with_function.properties(f"{function}Stream")
    assert (mapping["EventSourceArn"], mapping["FunctionName"]) == (f"{table}Table.StreamArn", f"{function}Function")
    (only,) = mapping["FilterCriteria"]["Filters"]
    assert json.loads(only["Pattern"]) == pattern
    assert (mapping["ParallelizationFactor"], mapping["StartingPosition"]) == (1, starts)
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["BisectBatchOnFunctionError"] is True
    assert mapping["DestinationConfig"] == {"OnFailure": {"Destination": f"{function}FailuresQueue.Arn"}}
    assert with_function.properties(f"{function}FailuresQueue")["SqsManagedSseEnabled"] is True
    assert with_function.outputs[f"{function}FailuresQueueUrl"]["Value"] == f"{function}FailuresQueue"


def test_the_worker_is_told_its_shard_and_the_dispatcher_is_called_at_once(with_function: Stack) -> None:
    worker, dispatcher = (with_function.properties(f"{name}Stream") for name in ("Worker", "Dispatch"))
    assert worker["TumblingWindowInSeconds"] > 0, "else the event does not name its shard"
    assert worker["MaximumRecordAgeInSeconds"] < RETENTION_HOURS * 3600
    assert dispatcher["MaximumBatchingWindowInSeconds"] == 0
    assert dispatcher["MaximumRecordAgeInSeconds"] <= 300, "the sweeper finds it long before the stream forgets it"


def test_lambda_may_read_the_stream_with_the_workers_policy(with_function: Stack) -> None:
    policies = [with_function.properties(name) for name in template.policy_ids("worker")]
    (read,) = [statement for statement in statements_in(policies) if statement["Sid"] == "ReadStream"]
    wanted = ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams")
    assert read["Action"] == [f"dynamodb:{action}" for action in wanted]


# --- queues ---


def queues(stack: Stack) -> dict[str, Json]:
    return {name: stack.properties(name) for name in stack.resources if name[:-2] == "DeliveryQueue"}


def test_the_queues_are_those_that_the_workers_look_for_and_encrypted(production: Stack) -> None:
    assert valid_count(32) == len(queues(production)) == 32
    with override_settings(DYNAMODB_TABLE_PREFIX="Pooldesk.Prod", DELIVERY_QUEUES=32):
        names = {QueueTransport().queue_name(number) for number in range(32)}
    assert {properties["QueueName"] for properties in queues(production).values()} == names
    kept = {(one["SqsManagedSseEnabled"], one["MessageRetentionPeriod"]) for one in queues(production).values()}
    assert kept == {(True, 14 * 24 * 3600)}


def test_each_queue_calls_the_function_which_answers_for_each_message_while_it_is_invisible(
    with_function: Stack,
) -> None:
    mappings = [with_function.properties(f"{name}Source") for name in queues(with_function)]
    assert {mapping["EventSourceArn"] for mapping in mappings} == {f"{name}.Arn" for name in queues(with_function)}
    assert {mapping["FunctionName"] for mapping in mappings} == {"DeliveryFunction"}
    assert all(mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"] for mapping in mappings)
    longest = with_function.properties("DeliveryFunction")["Timeout"]
    assert all(properties["VisibilityTimeout"] >= longest for properties in queues(with_function).values())


def test_deliveries_act_for_one_tenant_at_a_time_and_dispatchers_know_that_each_queue_is_served_apart(
    with_function: Stack,
) -> None:
    assert variables(with_function, "Delivery")["TENANT_ROLE_ARN"] == "TenantRole.Arn"
    for name in ("Dispatch", "Sweep"):
        known = variables(with_function, name)
        assert (known["DELIVERY_QUEUES"], known["DELIVERY_WORKERS"]) == (str(len(queues(with_function))), "0")


def test_the_mails_password_is_shown_by_no_description_of_the_stack() -> None:
    assert committed()["Parameters"]["EmailUrl"]["NoEcho"] is True
