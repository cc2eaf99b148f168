"""Mail that waits is its tenant's, or nobody's; and who carries it reaches nothing but what that needs."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import override_settings

from delivery.outbox import stored
from delivery.outbox.stored import OUTBOX, OutboxItem
from portal.isolation import guard, policies
from portal.isolation.guard import IsolationError
from portal.schema.registry import Role
from tenants.sign_in.stored import USERS, email_key, suppressed_key, user_key
from tests.support import mailing
from tests.support.guarded import A
from tests.support.outbox import rows
from tests.support.world import Browser, World

ADDRESS = "nora@example.org"


@pytest.fixture
def waiting(world: World) -> list[OutboxItem]:
    """An invitation of Acme and a password reset of nobody's, in the outbox."""
    with override_settings(EMAIL_BACKEND=mailing.OUTBOX):
        world.browser("alice", "acme").send("/desk/invitations/", {"addresses": ADDRESS, "role": "agent"})
        Browser().post("/password/reset/", {"email": "bob@example.com"})
    return rows()


def allowed(role: Role, operation: str, table: Any, key: str, tenant: str | None = None) -> bool:
    arn = policies.table_arn(table.full_name)
    return policies.Policy(policies.document(role)).allows(
        policies.Request(f"dynamodb:{operation}", arn, (key,), tenant)
    )


def test_another_tenant_finds_and_changes_neither_acmes_mail_nor_nobodys(
    world: World, waiting: list[OutboxItem]
) -> None:
    globex = world.context("charlie", "globex").repository
    assert len(waiting) == 2
    for row in waiting:
        row_id = stored.row_parts(row.event_id)[1]
        assert globex.get(OutboxItem, stored.outbox_row, row_id, sort=row.timestamp) is None
        with pytest.raises(ValueError, match="another tenant"):
            globex.update(row, [OutboxItem.private.remove()])
        key = {"event_id": {"S": row.event_id}, "timestamp": {"S": row.timestamp}}
        with guard.acting_for(globex.tenant_id), pytest.raises(IsolationError):
            guard.refuse_foreign(
                policies.Policy(policies.document("tenant")), "GetItem", {"TableName": OUTBOX.full_name, "Key": key}
            )
        for operation in ("GetItem", "PutItem", "UpdateItem"):
            assert not allowed("tenant", operation, OUTBOX, row.event_id, globex.tenant_id)


def test_the_platform_writes_mail_down_and_cannot_read_it() -> None:
    row = stored.outbox_row(stored.NO_TENANT, A)
    assert allowed("platform", "PutItem", OUTBOX, row)
    for operation in ("GetItem", "BatchGetItem", "Query", "DeleteItem"):
        assert not allowed("platform", operation, OUTBOX, row)


@pytest.mark.parametrize("operation", ["BatchGetItem", "PutItem", "GetItem", "UpdateItem", "DeleteItem"])
@pytest.mark.parametrize("key", [user_key(A), email_key(ADDRESS), "SUPPRESSED", "SUPPRESSEDX#1"])
def test_a_worker_reaches_no_account(operation: str, key: str) -> None:
    assert not allowed("worker", operation, USERS, key)


def test_a_worker_notes_and_reads_suppressed_addresses_and_clears_none() -> None:
    key = suppressed_key(ADDRESS)
    assert {o for o in ("BatchGetItem", "PutItem", "DeleteItem") if allowed("worker", o, USERS, key)} == {
        "BatchGetItem",
        "PutItem",
    }
