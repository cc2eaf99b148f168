"""Ready answers of a person are found, exported with the desk, and deleted when the person is erased."""

from __future__ import annotations

from typing import Any

import pytest

from tenants.audit_trail.recording import SYSTEM
from tenants.membership import member_changes
from tenants.tenancy.context import TenantContext
from tests.support.commands import run
from tests.support.world import World
from tickets.ready_answers import answer_changes, answer_reading, stored
from tickets.ready_answers.answer_reading import Given
from tickets.ready_answers.stored import ReadyAnswerItem

BOB = "bob@example.com"


def kept(tenant: TenantContext, shortcut: str, body: str, *, shared: bool, **how: Any) -> str:
    given = Given(f"About {shortcut}", shortcut, body, **how)
    return str(answer_changes.create(tenant, given, shared=shared, by=SYSTEM).answer_id)


def test_an_erasure_deletes_a_persons_own_answers_and_replaces_them_in_others(
    alice: TenantContext, world: World
) -> None:
    bob = world.context("bob", "acme")
    kept(bob, "mine", "My own text", shared=False)
    shared = kept(alice, "bob", f"Write to {BOB}.", shared=True, resolver=bob.user_id)
    page = world.browser("alice", "acme").send("/desk/settings/person/", {"address": BOB}).content.decode()
    assert "ready answer of their own" in page.lower()
    assert "ready answer, its text" in page.lower()
    assert "ready answer that assigns tickets to them" in page.lower()
    member_changes.remove(user_id=bob.user_id, tenant_id=alice.tenant_id, by=SYSTEM)
    assert run("erase_person", "acme", BOB, "--texts").status == 0
    item = answer_reading.read(alice, shared)
    assert (BOB in item.body, item.resolver) == (False, "")
    assert [one.owner for one in rows(alice)] == [stored.DESK]
    assert [row.title for row in answer_reading.find(alice, "bob")] == ["About bob"]


def rows(tenant: TenantContext) -> list[ReadyAnswerItem]:
    return [*tenant.repository.query_all(ReadyAnswerItem, stored.answers, begins_with=stored.TEXTS)]


def test_own_answers_of_a_member_who_leaves_wait_for_them_and_are_shown_to_nobody(
    alice: TenantContext, world: World
) -> None:
    bob = world.context("bob", "acme")
    answer = kept(bob, "mine", "My own text", shared=False)
    member_changes.remove(user_id=bob.user_id, tenant_id=alice.tenant_id, by=SYSTEM)
    assert answer_reading.find(alice, "mine") == []
    with pytest.raises(answer_reading.UnknownAnswer):
        answer_reading.read(alice, answer)
    assert len(rows(alice)) == 1
