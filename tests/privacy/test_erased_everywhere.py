"""A person is written wherever the product can write one, and then erased and looked for by a scan."""

from __future__ import annotations

import re
from typing import Any

import pytest

from delivery.mail import bounces
from portal import clock
from portal.schema import registry
from tenants.api_keys.scopes import Scope
from tenants.audit_trail.recording import Actor
from tenants.membership import invitations, mail_choices, member_changes
from tenants.tenancy.context import Role
from tests.support.api_client import ApiClient
from tests.support.api_keys import alter, make_key
from tests.support.commands import everything, run
from tests.support.endpoints import endpoint
from tests.support.mailing import OUTBOX
from tests.support.operators import text_of
from tests.support.world import World
from tickets.dashboards import verify_runs
from tickets.desk import changing, commenting, creating
from tickets.notices import following
from tickets.ticket.fields import Priority
from tickets.verification import verify

BOB = "bob@example.com"
# What docs/privacy.md says stays, and why: the trail, the account with its sessions, and what goes after some days.
STAYS = {
    "Audit.AdminActions",
    "Platform.Users",
    "Platform.Sessions",
    "Events.Outbox",
    "Events.Deliveries",
    "Api.Answers",
}


@pytest.fixture
def known(world: World, monkeypatch: pytest.MonkeyPatch, settings: Any) -> World:
    """Bob was an owner of Acme, did all that an owner can do, and was written about; then he was removed."""
    settings.EMAIL_BACKEND = OUTBOX
    acme, root = world.tenants["acme"].tenant_id, Actor(world.users["alice"].id, "alice@example.com")
    member_changes.set_role(user_id=world.users["bob"].id, tenant_id=acme, role=Role.OWNER, seen=Role.AGENT, by=root)
    bob, alice = world.context("bob", "acme"), world.context("alice", "acme")
    _as_requester_assignee_and_author(world)
    following.follow(bob, 1, bob.user_id)
    following.mute(bob, 2, bob.user_id)
    mail_choices.choose(bob.repository, bob.user_id, set())
    browser = world.browser("bob", "acme")
    browser.send("/desk/invitations/", {"addresses": "nora@example.org", "role": "agent"})
    key, text = make_key(bob, *Scope, name="Key of a person")
    alter(key, name=f"Key of {BOB}")  # as names could be before
    assert ApiClient(text).send("/tickets", {"title": "From a system"}).status_code == 201
    endpoint(alice, name=f"for {BOB}", types=("ticket.created",))
    monkeypatch.setattr(verify_runs, "_logged", lambda tenant, run: None)
    browser.send("/tickets/dashboard/verify/")
    browser.send("/tickets/dashboard/verify/stop/")
    with verify.held(bob.repository, by=bob.user_name):
        pass
    member_changes.remove(user_id=bob.user_id, tenant_id=bob.tenant_id, by=root)
    world.browser("alice", "acme").send("/desk/invitations/", {"addresses": BOB, "role": "agent"})
    (invite,) = [one for one in invitations.pending(alice.repository) if one.email == BOB]
    bounces.note_undelivered(
        alice.tenant_id, f"invitation/{invite.invite_id}", why=f"550 {BOB}?", sent_at=clock.stamp()
    )
    return world


def _as_requester_assignee_and_author(world: World) -> None:
    bob, alice = world.context("bob", "acme"), world.context("alice", "acme")
    creating.create(bob, title=f"Write to {BOB}", description=f"It is {BOB}.", tags=["vip", BOB])
    for version, title, tags in ((1, f"{BOB} and others", [BOB, "two"]), (2, "Now without", [])):
        told = {"title": title, "description": f"Not {title}", "priority": Priority.LOW, "tags": tags}
        changing.edit(alice, 1, version=version, **told)
    changing.assign(alice, 1, to=bob.user_id, version=3)
    changing.assign(bob, 1, to=alice.user_id, version=4)
    commenting.comment(bob, 1, body="Mine.")
    commenting.comment(alice, 1, body=f"Ask {BOB.upper()}.", internal=True)
    creating.create(alice, title="Still his", tags=[BOB])
    changing.assign(alice, 2, to=bob.user_id, version=1)


def traces(world: World) -> set[str]:
    """The tables in which Bob is found, by id, name or address, in any attribute."""
    bob = world.users["bob"]
    return {
        table.name
        for table in registry.tables()
        for item in everything(table)
        if any(text in repr(item).casefold() for text in (bob.id, bob.name.casefold(), BOB))
    }


def test_after_an_erasure_a_scan_finds_the_person_only_where_the_page_on_privacy_says(known: World) -> None:
    assert traces(known) - STAYS == {
        "Events.Endpoints", "Platform.Memberships", "Support.Tickets", "Tenants.ApiKeys", "Tenants.Invites",
        "Tenants.Unreached",
    }  # fmt: skip
    told = run("find_person", "acme", BOB).err
    counted = re.search(r"the name \d+ times and the address in \d+ texts, in 3 tickets and outside tickets", told)
    assert counted is not None, told
    browser = known.browser("alice", "acme")
    assert counted[0] in text_of(browser.send("/desk/settings/person/", {"address": BOB}))
    ended = run("erase_person", "acme", BOB, "--texts")
    assert ended.status == 0, ended.err
    assert ended.out.endswith(f": in place of {counted[0]}.\n")
    assert f"in place of {counted[0]}" in text_of(browser.get("/desk/settings/person/"))
    assert traces(known) - STAYS == set()
    found = run("find_person", "acme", BOB)
    assert (found.out.startswith("audit trail"), "There is nothing to erase." in found.err) == (True, True)
    page = browser.get("/desk/invitations/").content.decode()  # what others were sent by the person is from nobody
    assert ("nora@example.org" in page, "Erased person" in page, "Bob Example" in page) == (True, True, False)
