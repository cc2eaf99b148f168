"""Actions that take something away ask first, and keep the reason; nobody is offered to act against themselves."""

from __future__ import annotations

import re

import pytest

from tenants.audit_trail import recording
from tenants.operators.facades import AuditRow
from tenants.sign_in import accounts
from tenants.tenancy import tenant_directory
from tests.support.operators import Operator, make_operator, tenant_url, text_of, user_url
from tests.support.world import World


@pytest.fixture
def root(world: World) -> Operator:
    make_operator()
    return Operator.signed_in().open("acme")


def status_of(name: str) -> str:
    return str(tenant_directory.find(name).status)


def test_the_button_to_suspend_only_asks_and_takes_no_reason_that_is_empty_or_too_long(
    world: World, root: Operator
) -> None:
    page = root.post(tenant_url(world, "acme"), {"_suspend": "1"})
    assert (page.status_code, status_of("acme")) == (200, "active")
    assert "Suspend: Acme (acme)" in text_of(page)
    assert "its members see only a page that says so" in text_of(page)
    for reason, said in (("  ", "Say why"), ("x" * 301, "x" * 301)):
        page = root.act(tenant_url(world, "acme"), "_suspend", reason=reason)
        assert (page.status_code, status_of("acme")) == (422, "active")
        assert said in text_of(page)


@pytest.mark.parametrize("action", ["_disable", "_operator"])
def test_an_account_is_not_changed_before_a_reason_is_given(world: World, root: Operator, action: str) -> None:
    before = accounts.find_by_email("bob@example.com")
    assert root.post(user_url(world, "bob"), {action: "1"}).status_code == 200
    after = accounts.find_by_email("bob@example.com")
    assert before is not None
    assert after is not None
    assert (after.is_active, after.is_operator) == (before.is_active, before.is_operator)


def test_the_reason_of_a_new_operator_stands_in_the_platforms_trail(world: World, root: Operator) -> None:
    root.act(user_url(world, "bob"), "_operator", reason="Covers the night shift")
    row = AuditRow.objects.filter(tenant_id=recording.PLATFORM).first()
    made = ("user.made_operator", "bob@example.com", "reason: Covers the night shift")
    assert (row.action, row.entity_name, row.after) == made


def test_an_operator_is_not_offered_to_disable_or_demote_themselves(world: World, root: Operator) -> None:
    me, ruth = accounts.find_by_email("root@example.com"), make_operator("Ruth")
    assert me is not None
    for person, offered in ((me, []), (ruth, ["_disable", "_no_operator"])):
        page = root.get(f"/admin/tenants/account/{person.id}/change/").content.decode()
        assert [name for name in ("_disable", "_no_operator") if f'name="{name}"' in page] == offered


def test_signing_somebody_out_says_first_which_sessions_end(world: World, root: Operator) -> None:
    bob = world.browser("bob", "acme")
    page = root.post(user_url(world, "bob"), {"_sign_out": "1"})
    assert page.status_code == 200
    assert re.search(r"signed in \d+ \w{3} 20\d\d, \d\d:\d\d UTC", text_of(page))
    assert bob.get("/tickets/").status_code == 200
    page = root.post(user_url(world, "bob"), {"_sign_out": "1", "confirmed": "1"}, follow=True)
    assert "bob@example.com is signed out on every device." in text_of(page)
    assert bob.get("/tickets/").status_code == 302
