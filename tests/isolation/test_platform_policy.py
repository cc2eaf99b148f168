"""What operators and sign-ins send as the platform is what its policy allows, held against the document itself."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from portal.dynamo import client
from portal.errors import Conflict
from portal.isolation import guard, policies
from portal.nosql import stored as session_keys
from portal.nosql.stored import SESSIONS, SessionByUser
from tenants.audit_trail.recording import SYSTEM, Actor
from tenants.lifecycle import tenant_lifecycle
from tenants.lifecycle.tenant_lifecycle import TenantLimits
from tenants.membership import accepting, invitations
from tenants.membership.stored import MEMBERS
from tenants.sign_in import factors
from tenants.sign_in.stored import FACTORS
from tenants.tenancy import tenant_directory
from tenants.tenancy.context import Role
from tenants.tenancy.stored import DIRECTORY
from tests.operators.test_admin_pages import paths
from tests.support.admin_example import in_the_admin
from tests.support.factors import code, give_app
from tests.support.folding import Follower, plant, put_aside
from tests.support.operators import Operator, make_operator, membership_url, tenant_url, user_url
from tests.support.world import PASSWORD, Browser, World
from tickets.counting import dead_letters
from tickets.dashboards import verify_runs
from tickets.ticket import stored as ticket_keys
from tickets.ticket.stored import TICKETS

MANUAL = Path(settings.BASE_DIR) / "docs" / "admin.md"


def test_the_example_of_the_manual_needs_the_one_right_that_the_manual_names(engine: None) -> None:
    make_operator()
    asked: set[tuple[str, str]] = set()

    def note(params: dict[str, Any], model: Any, **_: Any) -> None:
        asked.update((r.action, r.resource) for r in guard.requests_of(model.name, params, None))

    client.reset()
    client.connection("platform").client.meta.events.register_last("before-parameter-build", note)
    with in_the_admin():
        root, url = Operator.signed_in(), "/admin/tenants/announcement/"
        root.fill(f"{url}add/", name="new", text="Hello", level="info")
        root.fill(f"{url}new/change/", text="Hello again")
        assert "Hello again" in root.says(url)
        root.post(f"{url}new/delete/", {"post": "yes"})
    client.reset()
    policy = policies.Policy(policies.document("platform"))
    refused = {one for one in asked if not policy.allows(policies.Request(*one, (), None))}
    assert refused == {("dynamodb:BatchGetItem", policies.table_arn(DIRECTORY.full_name))}
    assert "`BatchGetItem`, which `tenants/tenancy/stored.py` does not grant on the directory yet" in MANUAL.read_text()


@pytest.fixture
def held(world: World) -> Iterator[set[str]]:
    """Each request of the platform's client is held against its policy; the actions that were asked for."""
    client.reset()
    policy, seen = policies.Policy(policies.document("platform")), set()

    def check(params: dict[str, Any], model: Any, **_: Any) -> None:
        for request in guard.requests_of(model.name, params, None):
            assert policy.allows(request), f"{request.action} on {request.resource}"
            seen.add(f"{request.action.removeprefix('dynamodb:')} {request.resource.rpartition('/')[2]}")

    client.connection("platform").client.meta.events.register_last("before-parameter-build", check)
    yield seen
    client.reset()


def test_operators_pages_and_buttons_are_allowed(world: World, held: set[str]) -> None:
    make_operator()
    root, bob = Operator.signed_in(), world.browser("bob", "acme")
    put_aside("", 1)
    for path in paths(world):
        assert root.get(path, follow=True).status_code in (200, 403, 404), path
    root.post(f"/admin/tenants/session/{session_keys.session(bob.session_key)}/delete/", {"post": "yes"})
    root.fill(tenant_url(world, "acme"), member_limit="4")
    root.fill("/admin/tenants/membership/add/", who="charlie@example.com", where="acme", role="owner")
    root.post(membership_url(world, "alice", "acme", "delete/"), {"post": "yes"})
    root.fill(membership_url(world, "bob", "acme"), role="admin")
    for button in ("_suspend", "_resume"):
        root.act(tenant_url(world, "acme"), button)
    for button in ("_sign_out", "_disable", "_enable"):
        root.act(user_url(world, "bob"), button)
    assert {f"Query {SessionByUser.gsi.name}", f"DeleteItem {SESSIONS.full_name}"} <= held


def test_people_who_sign_in_and_come_by_an_invitation_are_allowed(world: World, held: set[str]) -> None:
    tenant = tenant_directory.find("acme")
    tenant_lifecycle.change_limits(tenant.tenant_id, TenantLimits("standard", 6), by=SYSTEM)
    alice = world.context("alice", "acme")
    for name in ("nora", "nils"):
        (outcome,) = invitations.invite_all(
            alice, addresses=[f"{name}@example.org"], role=Role.AGENT, by=Actor(alice.user_id)
        )
        assert outcome.sent is not None
        offer = accepting.by_secret(outcome.sent.secret)
        accepting.accept_as_new(offer, name=name, password=PASSWORD, origin="")
    browser = Browser()
    browser.sign_in("nora@example.org")
    assert browser.get("/account/sessions/").status_code == 200
    assert f"ConditionCheckItem {MEMBERS.full_name}" in held


@pytest.fixture
def asked_of_streams() -> Iterator[set[str]]:
    """What the thread behind the Verify button asks of streams, which the web process signs with its own credentials:
    each request is held against the platform's policy. The worker beside it has another role."""
    client.reset()
    policy, seen = policies.Policy(policies.document("platform")), set()

    def check(params: dict[str, Any], model: Any, **_: Any) -> None:
        if threading.current_thread().name == "verify":
            arn = params.get("StreamArn") or policies.table_arn(params["TableName"]) + "/stream/2026"
            assert policy.allows(policies.Request(f"dynamodb:{model.name}", arn, (), None)), model.name
            seen.add(model.name)

    client.streams().client.meta.events.register_last("before-parameter-build", check)
    yield seen
    client.reset()


def test_the_verify_button_is_allowed_what_it_asks_of_the_stream(world: World, asked_of_streams: set[str]) -> None:
    world.tickets("acme", 1)
    follower = Follower()
    follower.fold()
    plant(world.context("alice", "acme"), "TOTALS", open_normal=3)
    with follower.following():
        alice = world.browser("alice", "acme")
        alice.send("/tickets/dashboard/verify/")
        verify_runs.wait_until_done()
    assert 'data-state="drift"' in alice.get("/tickets/dashboard/verified/").content.decode()
    assert asked_of_streams == {"ListStreams", "DescribeStream"}


def test_settling_dead_letters_is_allowed(world: World, held: set[str]) -> None:
    tenant_id = world.tenants["acme"].tenant_id
    world.tickets("acme", 1)
    record = next(r for r in Follower().new() if r.keys["sk"] == ticket_keys.SUMMARY)
    put_aside(tenant_id, 1, json.loads(json.dumps(record.raw, default=str)))
    put_aside(tenant_id, 2)
    put_aside(tenant_id, 3)
    counted, kept, dropped = dead_letters.all_letters()
    dead_letters.replay(counted, by=SYSTEM)
    with pytest.raises(Conflict):
        dead_letters.replay(kept, by=SYSTEM)
    dead_letters.drop(dropped, by=SYSTEM)
    assert f"UpdateItem {TICKETS.full_name}" in held


def test_signing_in_with_a_second_factor_and_changing_it_is_allowed(world: World, held: set[str]) -> None:
    secret, codes = give_app(world, "bob")
    for text in (code(secret, later=1), codes[0]):
        browser = Browser()
        browser.sign_in("bob@example.com")
        assert browser.post("/login/second-step/", {"one_time_code": text}).status_code == 302
    factors.remove_authenticator(world.users["bob"].id, by=SYSTEM)
    assert {f"{action} {FACTORS.full_name}" for action in ("Query", "PutItem", "UpdateItem", "DeleteItem")} <= held
