"""The template has the queues that the workers look for, encrypted, and keeping what is in them for two weeks."""

from __future__ import annotations

from django.test import override_settings

from delivery.queues.queue_transport import QueueTransport
from tests.support.stacks import PRODUCTION, Stack, committed


def test_production_has_the_queues_of_the_default_number_by_the_names_that_workers_use() -> None:
    stack = Stack(committed(), **PRODUCTION)
    queues = [r["Properties"] for r in stack.resources.values() if r["Type"] == "AWS::SQS::Queue"]
    with override_settings(DYNAMODB_TABLE_PREFIX="Pooldesk.Prod", DELIVERY_QUEUES=32):
        transport = QueueTransport()
        wanted = [transport.queue_name(number) for number in range(transport.queues)]
    queues = [queue for queue in queues if "-delivery-" in str(queue.get("QueueName"))]
    assert [queue["QueueName"] for queue in queues] == wanted
    assert {queue["SqsManagedSseEnabled"] for queue in queues} == {True}
    assert {queue["MessageRetentionPeriod"] for queue in queues} == {14 * 24 * 3600}
