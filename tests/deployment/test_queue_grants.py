"""A right to queues that a package declares: in the role's policy, in the template, and in the longest prefix."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import override_settings

from portal.deployment import cfn_yaml
from portal.deployment import template as infra
from portal.engines.endpoint import REGION
from portal.isolation import policies
from portal.schema import registry
from portal.schema.registry import QueueGrant
from tests.support.stacks import ACCOUNT, PRODUCTION, Stack, read, statements_in

SENDING = QueueGrant("worker", "some-mail", ("SendMessage", "GetQueueAttributes"))


@pytest.fixture(autouse=True)
def _declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_queue_grants", {})
    registry.declare(grants=(SENDING,))


@pytest.fixture(autouse=True)
def _deployed_to() -> Iterator[None]:
    with override_settings(AWS_REGION=REGION, AWS_ACCOUNT_ID=ACCOUNT, DYNAMODB_TABLE_PREFIX="Pooldesk.Prod"):
        yield


def may(role: str, action: str, queue: str) -> bool:
    arn = f"arn:aws:sqs:{REGION}:{ACCOUNT}:{queue}"
    return policies.Policy(policies.document(role)).allows(policies.Request(f"sqs:{action}", arn))


@pytest.mark.parametrize(
    ("role", "action", "queue", "allowed"),
    [
        ("worker", "SendMessage", "Pooldesk-Prod-some-mail-17", True),
        ("worker", "GetQueueAttributes", "Pooldesk-Prod-some-mail", True),
        ("worker", "ReceiveMessage", "Pooldesk-Prod-some-mail-17", False),
        ("worker", "SendMessage", "Pooldesk-Prod-other-1", False),
        ("worker", "SendMessage", "Pooldesk-some-mail-1", False),
        ("worker", "SendMessage", "Pooldesk.Prod-some-mail-1", False),
        ("tenant", "SendMessage", "Pooldesk-Prod-some-mail-17", False),
        ("platform", "SendMessage", "Pooldesk-Prod-some-mail-17", False),
        ("seed", "SendMessage", "Pooldesk-Prod-some-mail-17", False),
    ],
)
def test_a_role_does_with_queues_what_it_was_granted_and_no_more(
    role: str, action: str, queue: str, *, allowed: bool
) -> None:
    assert may(role, action, queue) is allowed


def test_the_tenant_role_is_granted_no_queue() -> None:
    with pytest.raises(ValueError, match="a queue is not one tenant's"):
        QueueGrant("tenant", "mail", ("SendMessage",))


def test_the_template_has_the_statement_for_whatever_prefix_a_stack_has(tmp_path: Path) -> None:
    path = tmp_path / "template.yaml"
    path.write_text(cfn_yaml.dump(infra.template()))
    stack = Stack(read(path), **PRODUCTION)
    (granted,) = [s for s in statements_in(stack.resources) if s.get("Sid") == "QueuesSomeMail"]
    assert granted == policies.document("worker")["Statement"][-1]
    assert granted["Resource"] == [f"arn:aws:sqs:{REGION}:{ACCOUNT}:Pooldesk-Prod-some-mail*"]


def test_the_longest_prefix_leaves_room_for_the_name_of_a_queue_and_its_number() -> None:
    assert len(f"{'P' * policies.longest_prefix()}-some-mail-123") == 80
