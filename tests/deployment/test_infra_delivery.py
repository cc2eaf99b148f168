"""Queues and deliveries in infra/template.yaml: queues for all, the function where the workers are functions."""

from __future__ import annotations

import pytest
from django.test import override_settings
from django.utils.module_loading import import_string

from delivery.queues.queue_transport import QueueTransport
from delivery.queues.sets import valid_count
from tests.support.stacks import PRODUCTION, WITH_FUNCTION, Stack, committed


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
    assert not [name for name in production.resources if name.endswith("Source") or "DeliveryFunction" in name]
    assert "DeliveryFunction" in with_function.resources


def test_each_queue_calls_the_function_which_answers_for_each_message(with_function: Stack) -> None:
    mappings = [with_function.properties(f"{name}Source") for name in queues(with_function)]
    assert {mapping["EventSourceArn"] for mapping in mappings} == {f"{name}.Arn" for name in queues(with_function)}
    assert {mapping["FunctionName"] for mapping in mappings} == {"DeliveryFunction"}
    assert all(mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"] for mapping in mappings)


def test_the_function_is_there_and_acts_for_one_tenant_at_a_time(with_function: Stack) -> None:
    function = with_function.properties("DeliveryFunction")
    assert callable(import_string(function["Handler"]))
    assert function["Role"] == "WorkerRole.Arn"
    assert function["Environment"]["Variables"]["TENANT_ROLE_ARN"] == "TenantRole.Arn"


def test_a_message_stays_invisible_while_its_invocation_lasts(with_function: Stack) -> None:
    longest = with_function.properties("DeliveryFunction")["Timeout"]
    assert all(properties["VisibilityTimeout"] >= longest for properties in queues(with_function).values())
