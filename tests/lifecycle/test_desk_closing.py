"""Closing a desk: it can be read and not changed, its owners are told, and it can be undone until it is purged."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.core import mail
from django.test import override_settings

from portal import clock
from portal.errors import Conflict
from tenants.audit_trail.recording import SYSTEM
from tenants.lifecycle import closing_mails, desk_closing, tenant_lifecycle
from tenants.membership import mails, member_changes, own_profile
from tenants.sign_in.accounts import Profile
from tenants.tenancy import tenant_directory
from tenants.tenancy.context import Role
from tests.support import mailing
from tests.support.api_client import api_client
from tests.support.commands import run
from tests.support.operators import Operator, calls, make_operator, membership_url, tenant_url, text_of
from tests.support.world import Browser, World

NAMED = {"typed_name": "Acme", "reason": "We moved on."}


def close(world: World, slug: str = "acme") -> None:
    desk_closing.close(world.tenants[slug].tenant_id, by=SYSTEM, write=closing_mails.to_owners)


def status(world: World) -> str:
    return tenant_directory.get(world.tenants["acme"].tenant_id).status


def test_an_owner_closes_the_desk_by_typing_its_name_with_a_reason_and_undoes_it(world: World) -> None:
    alice = world.browser("alice", "acme")
    page = alice.send("/desk/settings/close/", NAMED | {"typed_name": "acme"})
    assert (page.status_code, "This is not the name of the desk" in text_of(page)) == (422, True)
    assert status(world) == "active"
    assert "Acme is closed" in text_of(alice.send("/desk/settings/close/", NAMED, follow=True))
    assert status(world) == "closing"
    trail = text_of(alice.get("/desk/audit/"))
    assert ("closed" in trail, "We moved on." in trail) == (True, True)
    alice.send("/desk/settings/close/undo/", follow=True)
    assert status(world) == "active"
    assert alice.send("/tickets/new/", {"title": "x", "description": "y"}).status_code != 403


def test_each_page_says_from_when_the_desk_may_be_deleted_and_offers_the_undo_to_owners_alone(world: World) -> None:
    close(world)
    until = clock.parse(str(tenant_directory.get(world.tenants["acme"].tenant_id).closes_at))
    day = f"{until.day} {until:%b %Y, %H:%M} UTC"
    said = f"Acme is closed and may be deleted from {day} on. Until then everything can be read, and nothing can be "
    said += "changed: forms are switched off."
    for person, undo in (("alice", True), ("bob", False)):
        for path in ("/tickets/", "/account/"):
            page = world.browser(person, "acme").get(path)
            assert said in text_of(page), (person, path)
            assert ("desk/settings/close/" in page.content.decode()) == undo
    assert "may be deleted" not in text_of(world.browser("charlie", "globex").get("/tickets/"))


def test_when_the_grace_has_ended_the_page_and_the_mail_say_so_and_why_it_was_closed(world: World) -> None:
    tenant_id = world.tenants["acme"].tenant_id
    desk_closing.close(tenant_id, by=SYSTEM, write=closing_mails.to_owners, days=0, reason="The contract has ended.")
    page = text_of(world.browser("alice", "acme").get("/tickets/"))
    assert "Acme is closed. Its grace has ended, so it may be deleted at any time." in page
    body = str(mail.outbox[-1].body)
    assert "The reason given: The contract has ended." in body
    assert "It may be deleted at any time now" in body
    assert "Until that has begun an owner can undo the closing here" in body


OWNERS = ("/desk/settings/", "/desk/settings/close/", "/desk/settings/person/", "/desk/settings/sign-in/")
ADMINS = ("/desk/members/", "/desk/invitations/", "/desk/audit/", "/tickets/dashboard/")
PAGES = {
    "alice": (*OWNERS, *ADMINS, "/tickets/", "/tickets/1/", "/tickets/1/edit/", "/tickets/new/", "/account/"),
    "bob": ("/tickets/", "/tickets/1/", "/tickets/1/assign/", "/tickets/new/", "/account/"),
    "vera": ("/tickets/", "/tickets/1/", "/account/"),
}
SHUT = "</fieldset></form>"


def forms(browser: Browser, paths: tuple[str, ...]) -> tuple[set[str], set[str]]:
    """Where the forms of these pages lead that can be sent, and where those that are switched off."""
    sent, shut = set[str](), set[str]()
    for path in paths:
        page = browser.get(path).content.decode()
        for begin, inner in re.findall(r'<form([^>]*method="post"[^>]*)>(.*?</form>)', page, re.DOTALL):
            action = re.search(r'action="([^"]*)"', begin)
            is_shut = inner.startswith('<fieldset class="switched-off" disabled>') and inner.endswith(SHUT)
            (shut if is_shut else sent).add(action[1] if action else path)
    return sent, shut


def test_of_a_closed_desk_each_form_that_is_shown_can_be_sent_and_the_others_are_switched_off(world: World) -> None:
    world.tickets("acme", 1)
    close(world)
    for person, paths in PAGES.items():
        browser = world.browser(person, "acme")
        sent, shut = forms(browser, paths)
        for path in shut:
            assert "can only be read" in text_of(browser.send(path)), (person, path)
        of_desk = {path for path in sent if path.startswith("/acme/")} - {"/acme/tickets/display/"}  # in a cookie
        assert of_desk == {
            "alice": {
                "/acme/desk/settings/close/undo/", "/acme/desk/settings/person/", "/acme/desk/audit/export/",
                "/acme/tickets/export/",
            },
        }.get(person, {"/acme/tickets/export/"}), person  # fmt: skip
        assert shut
        assert "/account/password/" in sent
        assert b'href="/acme/tickets/new/"' not in browser.get("/tickets/").content


def test_what_is_read_as_a_file_is_still_exported(world: World) -> None:
    close(world)
    alice = world.browser("alice", "acme")
    for path in ("/tickets/export/", "/desk/audit/export/"):
        answer: Any = alice.send(path)
        assert (answer.status_code, bool(b"".join(answer.streaming_content))) == (200, True)


def test_the_banner_costs_no_read(world: World) -> None:
    bob, asked = world.browser("bob", "acme"), []
    for change in (lambda: None, lambda: close(world)):
        change()
        with calls() as made:
            bob.get("/tickets/")
        asked.append(sorted(call.operation for call in made))
    assert asked[0] == asked[1] != []


def test_nobody_changes_anything_and_what_was_typed_is_shown(world: World) -> None:
    number, *_ = world.tickets("acme", 1)
    close(world)
    for person in ("alice", "bob"):
        browser = world.browser(person, "acme")
        assert browser.get(f"/tickets/{number}/").status_code == 200
        page = browser.send(f"/tickets/{number}/comment/", {"body": "Please keep this sentence."})
        assert page.status_code == 403
        assert "Please keep this sentence." in text_of(page)
    assert world.browser("alice", "acme").send("/desk/settings/", {"name": "Other", "slug": "acme"}).status_code == 403


def test_a_key_reads_and_is_refused_what_changes(world: World) -> None:
    api = api_client(world)
    close(world)
    assert api.ask("/tickets").status_code == 200
    refused = api.send("/tickets", {"title": "x", "description": "y"})
    assert (refused.status_code, refused.json()["code"]) == (403, "tenant_closing")


def test_nobody_joins_a_desk_that_is_closing(world: World) -> None:
    alice = world.browser("alice", "acme")
    alice.send("/desk/invitations/", {"addresses": "nora@example.org", "role": "agent"})
    mails.wait_until_sent()
    link = re.search(r"http://testserver(/invitation/\S+)", mail.outbox[0].body)
    assert link is not None
    close(world)
    assert "This desk is being closed." in text_of(Browser().get(link[1]))


def test_the_owners_get_a_mail_by_the_outbox_and_another_one_when_it_is_undone(world: World) -> None:
    alice = world.users["alice"]
    own_profile.change(alice.id, name=alice.name, profile=Profile("Asia/Kolkata"), by=SYSTEM)
    with override_settings(EMAIL_BACKEND=mailing.OUTBOX):
        close(world)
        until = clock.parse(str(tenant_directory.get(world.tenants["acme"].tenant_id).closes_at))
        desk_closing.reopen(world.tenants["acme"].tenant_id, by=SYSTEM, write=closing_mails.to_owners)
        assert mail.outbox == []
        assert mailing.carry() == ["answered", "answered"]
    there = until.astimezone(clock.zone_of("Asia/Kolkata"))
    assert sorted((letter.to, letter.subject) for letter in mail.outbox) == [
        (["alice@example.com"], f"Acme may be deleted from {there:%-d %b %Y} on"),
        (["alice@example.com"], "Acme will not be deleted"),
    ]
    closed = next(str(letter.body) for letter in mail.outbox if "may be" in letter.subject)
    assert "/acme/desk/settings/close/" in closed
    assert f"From {there:%-d %b %Y, %H:%M} Asia/Kolkata (UTC+5:30) on it may be deleted" in closed


def test_an_owner_reads_moments_in_mails_in_the_own_zone_and_form(world: World) -> None:
    profile = Profile(zone="Asia/Kathmandu", date_form="dots")
    own_profile.change(world.users["alice"].id, name="Alice Example", profile=profile, by=SYSTEM)
    with override_settings(EMAIL_BACKEND=mailing.OUTBOX):
        close(world)
        mailing.carry()
    until = clock.parse(str(tenant_directory.get(world.tenants["acme"].tenant_id).closes_at)) + timedelta(minutes=345)
    assert mail.outbox[0].subject == f"Acme may be deleted from {until:%d.%m.%Y} on"
    assert f"From {until:%d.%m.%Y, %H:%M} Asia/Kathmandu (UTC+5:45) on it may be deleted" in mail.outbox[0].body


def test_in_development_the_link_leads_to_the_port_that_took_the_request_and_a_command_names_the_page(
    world: World,
) -> None:
    link = "http://127.0.0.1:80/acme/desk/settings/close/"
    with override_settings(EMAIL_BACKEND=mailing.AT_ONCE, DEBUG=True, PORTAL_BASE_URL=""):
        alice = world.browser("alice", "acme")
        alice.send("/desk/settings/close/", NAMED)
        alice.send("/desk/settings/close/undo/")
        run("close_tenant", "acme")
    closed, undone, by_command = (letter.body for letter in mail.outbox)
    assert f"\n{link}\n" in closed
    assert "\nhttp://127.0.0.1:80/acme/tickets/\n" in undone
    assert "On the page /acme/desk/settings/close/, at the address where you open Pooldesk." in by_command


def test_a_desk_that_was_suspended_stays_shut_while_it_is_closing_and_is_suspended_after_the_undo(world: World) -> None:
    acme = world.tenants["acme"].tenant_id
    tenant_lifecycle.suspend(acme, by=SYSTEM)
    close(world)
    assert world.browser("alice", "acme").get("/tickets/").status_code == 403
    assert [item.name for item in tenant_directory.suspended_tenants(9)] == []
    assert desk_closing.reopen(acme, by=SYSTEM, write=closing_mails.to_owners) == "suspended"
    assert [item.name for item in tenant_directory.suspended_tenants(9)] == ["acme"]
    assert tenant_directory.closing_tenants(9) == []


def test_what_is_closing_is_neither_suspended_nor_resumed_nor_closed_again(world: World) -> None:
    acme = world.tenants["acme"].tenant_id
    close(world)
    close_again = partial(desk_closing.close, write=closing_mails.to_owners)
    for change in (tenant_lifecycle.suspend, tenant_lifecycle.resume, close_again):
        with pytest.raises(Conflict, match="Acme is closing"):
            change(acme, by=SYSTEM)
    assert status(world) == "closing"


def test_an_owner_who_has_just_lost_the_role_closes_nothing(world: World) -> None:
    alice = world.context("alice", "acme")
    bob = world.users["bob"]
    member_changes.set_role(user_id=bob.id, tenant_id=alice.tenant_id, role=Role.OWNER, seen=Role.AGENT, by=SYSTEM)
    member_changes.set_role(
        user_id=alice.user_id, tenant_id=alice.tenant_id, role=Role.AGENT, seen=Role.OWNER, by=SYSTEM
    )
    with pytest.raises(Conflict):
        desk_closing.close(alice.tenant_id, by=SYSTEM, write=closing_mails.to_owners, at_work=alice)
    assert status(world) == "active"


def test_an_operator_closes_a_desk_with_a_reason_and_undoes_it_in_the_admin(world: World) -> None:
    make_operator()
    root = Operator.signed_in()
    page = root.act(tenant_url(world, "acme"), "_close", follow=True)
    assert "Acme is closed, and may be deleted from" in text_of(page)
    assert "Acme is closed, and may be deleted from" in root.says("/admin/")
    root.act(tenant_url(world, "acme"), "_reopen")
    assert status(world) == "active"
    assert "Acme is closed" not in root.says("/admin/")


def test_the_commands_close_with_other_days_and_undo(world: World) -> None:
    assert run("close_tenant", "acme", "--days", "3").status == 0
    until = clock.parse(str(tenant_directory.get(world.tenants["acme"].tenant_id).closes_at))
    assert abs(until - clock.now() - timedelta(days=3)) < timedelta(minutes=5)
    assert f"already closed. It may be deleted from {until:%-d %B %Y, %H:%M} UTC on." in run("close_tenant", "acme").out
    assert run("reopen_tenant", "acme").status == 0
    assert status(world) == "active"
    assert run("reopen_tenant", "acme").status == 1
    assert run("close_tenant", "acme", "--days", "-1").status == 1


@pytest.mark.parametrize(
    "command",
    [
        ("rename_tenant", "acme", "works"),
        ("create_api_key", "--tenant", "acme", "--name", "Sync", "--scopes", "tickets:read"),
        ("add_member", "charlie@example.com", "--tenant", "acme", "--role", "agent"),
        ("reshard_tenant", "acme", "--shards", "2"),
        ("place_tenant", "acme", "--on", "bridge"),
        ("time_machine", "acme", "1", "--at", "2026-11-01T00:00:00", "--restore"),
    ],
    ids=lambda command: command[0],
)
def test_commands_change_nothing_in_a_closed_desk_and_name_the_way(world: World, command: tuple[str, ...]) -> None:
    close(world)
    ended = run(*command)
    assert (ended.status, ended.out) == (1, "")
    assert ended.err.startswith("Acme is closed, and nothing in it can be changed. Undo the closing first")
    assert "reopen_tenant acme" in ended.err


def test_operators_change_nothing_in_a_closed_desk_before_it_is_reopened(world: World) -> None:
    make_operator()
    close(world)
    root, said = Operator.signed_in(), "Acme is closed, and nothing in it can be changed."
    changes: list[tuple[str, Any]] = [
        ("limits", lambda: root.fill(tenant_url(world, "acme"), plan="gold")),
        ("role", lambda: root.fill(membership_url(world, "bob", "acme"), role="admin", why="Asked.")),
        (
            "member",
            lambda: root.fill(
                "/admin/tenants/membership/add/", who="charlie@example.com", where="acme", role="agent", why="Asked."
            ),
        ),
        ("place", lambda: root.post("/admin/places/?tenant=acme", {"to": "bridge", "grace": "7", "reason": "Asked."})),
        ("shards", lambda: root.post("/admin/shards/?tenant=acme", {"shards": "2", "reason": "Asked."})),
    ]
    assert [name for name, change in changes if said not in text_of(change())] == []
    root.act(membership_url(world, "bob", "acme", "delete/"), "post")
    assert not world.browser("bob").get("/tenants/").context["memberships"], "access can still be taken away"
    root.act(tenant_url(world, "acme"), "_reopen")
    assert run("add_member", "charlie@example.com", "--tenant", "acme", "--role", "agent").status == 0
