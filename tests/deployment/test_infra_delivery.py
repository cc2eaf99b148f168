"""Queues and deliveries in infra/template.yaml: queues for all, the function where the workers are functions."""

from __future__ import annotations

import json

import pytest
from django.test import override_settings
from django.utils.module_loading import import_string

from delivery import lambda_handlers
from delivery.queues.queue_sets import valid_count
from delivery.queues.queue_transport import QueueTransport
from tests.support.stacks import PRODUCTION, WITH_FUNCTION, Stack, committed

# Types of what a stack has without functions too.
SHARED = {"AWS::IAM::ManagedPolicy", "AWS::SQS::Queue"}


@pytest.fixture(scope="module")
def with_function() -> Stack:
    return Stack(committed(), **WITH_FUNCTION)


@pytest.fixture(scope="module")
def production() -> Stack:
    return Stack(committed(), **PRODUCTION)


def queues(stack: Stack) -> dict[str, dict[str, object]]:
    return {name: stack.properties(name) for name in stack.resources if name[:-2] == "DeliveryQueue"}


def test_the_queues_are_those_that_the_workers_look_for(production: Stack) -> None:
    assert valid_count(32) == len(queues(production)) == 32
    with override_settings(DYNAMODB_TABLE_PREFIX="Pooldesk.Prod", DELIVERY_QUEUES=32):
        names = {QueueTransport().queue_name(number) for number in range(32)}
    assert {properties["QueueName"] for properties in queues(production).values()} == names


def test_every_queue_is_encrypted(production: Stack) -> None:
    assert all(properties["SqsManagedSseEnabled"] is True for properties in queues(production).values())


def test_who_runs_workers_gets_no_function(production: Stack, with_function: Stack) -> None:
    more = with_function.resources.keys() - production.resources.keys()
    of_lambda = {with_function.resources[name]["Type"] for name in more}
    assert {"DeliveryFunction", "DispatchFunction", "SweepFunction", "DeliveryQueue00Source"} <= more
    assert not [name for name, one in production.resources.items() if one["Type"] in of_lambda - SHARED]


def test_each_queue_calls_the_function_which_answers_for_each_message(with_function: Stack) -> None:
    mappings = [with_function.properties(f"{name}Source") for name in queues(with_function)]
    assert {mapping["EventSourceArn"] for mapping in mappings} == {f"{name}.Arn" for name in queues(with_function)}
    assert {mapping["FunctionName"] for mapping in mappings} == {"DeliveryFunction"}
    assert all(mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"] for mapping in mappings)


def test_the_function_is_there_and_acts_for_one_tenant_at_a_time(with_function: Stack) -> None:
    function = with_function.properties("DeliveryFunction")
    assert callable(import_string(function["Handler"]))
    assert function["Role"] == "DeliveryRole.Arn"
    assert function["Environment"]["Variables"]["TENANT_ROLE_ARN"] == "TenantRole.Arn"


def test_the_mails_password_is_shown_by_no_description_of_the_stack() -> None:
    assert committed()["Parameters"]["EmailUrl"]["NoEcho"] is True


def test_a_message_stays_invisible_while_its_invocation_lasts(with_function: Stack) -> None:
    longest = with_function.properties("DeliveryFunction")["Timeout"]
    assert all(properties["VisibilityTimeout"] >= longest for properties in queues(with_function).values())


# --- the dispatcher ---


@pytest.mark.parametrize("name", ["Dispatch", "Sweep"])
def test_the_dispatchers_functions_send_as_the_worker_to_queues_that_are_each_served_apart(
    with_function: Stack, name: str
) -> None:
    function = with_function.properties(f"{name}Function")
    assert callable(import_string(function["Handler"]))
    assert function["Role"] == "WorkerRole.Arn"
    variables = function["Environment"]["Variables"]
    assert variables["DELIVERY_QUEUES"] == str(len(queues(with_function)))
    assert variables["DELIVERY_WORKERS"] == "0"


def test_the_outboxs_stream_calls_the_dispatcher_at_once_and_names_what_fails(with_function: Stack) -> None:
    mapping = with_function.properties("DispatchStream")
    assert (mapping["EventSourceArn"], mapping["FunctionName"]) == ("EventsOutboxTable.StreamArn", "DispatchFunction")
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["BisectBatchOnFunctionError"] is True
    assert mapping["ParallelizationFactor"] == 1
    assert mapping["MaximumBatchingWindowInSeconds"] == 0
    (only,) = mapping["FilterCriteria"]["Filters"]
    assert json.loads(only["Pattern"]) == {"eventName": ["INSERT", "MODIFY"]}


def test_what_the_dispatcher_gives_up_is_told_and_is_found_by_the_sweeper_long_before_the_stream_forgets_it(
    with_function: Stack,
) -> None:
    mapping = with_function.properties("DispatchStream")
    assert mapping["DestinationConfig"] == {"OnFailure": {"Destination": "DispatchFailuresQueue.Arn"}}
    assert mapping["MaximumRecordAgeInSeconds"] <= 300
    assert mapping["StartingPosition"] == "LATEST"
    assert with_function.properties("DispatchFailuresQueue")["SqsManagedSseEnabled"] is True
    assert with_function.outputs["DispatchFailuresQueueUrl"]["Value"] == "DispatchFailuresQueue"


def test_the_sweeper_is_called_each_minute_and_ends_before_its_time_is_up(with_function: Stack) -> None:
    rule = with_function.properties("SweepSchedule")
    assert (rule["ScheduleExpression"], rule["State"]) == ("rate(1 minute)", "ENABLED")
    assert [target["Arn"] for target in rule["Targets"]] == ["SweepFunction.Arn"]
    assert lambda_handlers.SWEEPS_SECONDS < 60 < with_function.properties("SweepFunction")["Timeout"]
