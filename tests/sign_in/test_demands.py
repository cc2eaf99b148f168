"""Where a second factor is demanded: the operators' admin, and desks whose owners wish so. And its reset."""

from __future__ import annotations

import runpy
from typing import Any

import pytest
from django.core import mail

from tenants.audit_trail.recording import Actor
from tenants.lifecycle import desk_settings
from tenants.sign_in import factors
from tenants.tenancy.context import Role
from tests.sign_in.test_changing import add_app, is_signed_in, text_of
from tests.support import commands
from tests.support.api_client import api_client
from tests.support.factors import SECURITY, code, confirmed, give_app
from tests.support.operators import Operator, make_operator, trail, user_url
from tests.support.world import Browser, World, account_of

PAGE = "/desk/settings/sign-in/"


@pytest.fixture
def demanding(world: World) -> World:
    """Acme demands a second factor; Alice, who owns it, has one."""
    give_app(world, "alice")
    alice = world.users["alice"]
    assert desk_settings.demand_second_factor(
        world.context("alice", "acme"), demanded=True, by=Actor(alice.id, alice.email)
    )
    return world


# --- desks ---


def test_an_owner_demands_a_second_factor_and_the_trail_tells(world: World) -> None:
    give_app(world, "alice")
    browser = world.browser("alice", "acme")
    assert browser.send(PAGE, {"demanded": "on"}).status_code == 302
    assert browser.get("/tickets/").status_code == 200
    (row,) = trail(world.tenants["acme"].tenant_id, of="tenant.sign_in_changed")
    assert (row.before, row.after) == ("second factor: not demanded", "second factor: demanded")
    bob = world.browser("bob", "acme")
    assert bob.get("/tickets/").status_code == 302
    assert browser.send(PAGE, {"initial-demanded": "True"}).status_code == 302
    assert bob.get("/tickets/").status_code == 200, "the owner has ended the demand"


def test_an_owner_without_one_cannot_demand_it(world: World) -> None:
    browser = world.browser("alice", "acme")
    answer = browser.send(PAGE, {"demanded": "on"})
    assert answer.status_code == 422
    assert "your own account first" in text_of(answer)
    assert browser.get("/tickets/").status_code == 200


def test_the_settings_name_who_has_none(world: World) -> None:
    give_app(world, "alice")
    text = text_of(world.browser("alice", "acme").get(PAGE)).split("Without a second factor")[1]
    assert ("bob@example.com" in text, "vera@example.com" in text, "alice@example.com" in text) == (True, True, False)


def test_a_member_without_one_is_led_to_add_it_and_goes_on_from_there(demanding: World) -> None:
    browser = demanding.browser("bob", "acme")
    asked = browser.get("/tickets/?status=closed")
    assert asked["Location"] == f"{SECURITY}?next=/acme/tickets/%3Fstatus%3Dclosed"
    assert "Acme asks for a second factor, and your account has none." in text_of(browser.get(asked["Location"]))
    browser = confirmed(demanding, "bob", "acme")
    _, codes = add_app(browser, next="/acme/tickets/?status=closed")
    assert 'href="/acme/tickets/?status=closed"' in codes.content.decode()
    assert browser.get("/tickets/?status=closed").status_code == 200


def test_who_has_a_factor_works_until_they_remove_the_last_one_and_are_warned_of_that(demanding: World) -> None:
    give_app(demanding, "bob")
    browser = confirmed(demanding, "bob", "acme")
    assert browser.get("/tickets/").status_code == 200
    page = text_of(browser.get(f"{SECURITY}authenticator/remove/"))
    assert "Acme asks for a second factor: you get in there again once you have added one." in page
    browser.send(f"{SECURITY}authenticator/remove/")
    assert browser.get("/tickets/")["Location"].startswith(SECURITY)


def sign_ins(world: World, who: str) -> int:
    rows = trail(world.tenants["acme"].tenant_id, of="session.started")
    return sum(row.actor_email == f"{who}@example.com" for row in rows)


def test_the_trail_tells_of_a_sign_in_once_the_desk_has_let_the_member_in(demanding: World) -> None:
    browser = Browser()
    browser.sign_in("bob@example.com")
    browser.get("/acme/tickets/")
    assert sign_ins(demanding, "bob") == 0
    add_app(browser)
    browser.get("/acme/tickets/")
    browser.get("/acme/tickets/")
    assert sign_ins(demanding, "bob") == 1


def test_parts_of_pages_lead_there_and_forms_are_kept_while_other_desks_stay_open(demanding: World) -> None:
    browser = demanding.browser("bob", "acme")
    part = browser.get("/tickets/", headers={"HX-Request": "true"})
    assert (part.status_code, part["HX-Redirect"][: len(SECURITY)]) == (204, SECURITY)
    answer = browser.send("/tickets/new/", {"title": "Nearly lost", "description": "x"})
    assert (answer.status_code, "Nearly lost" in text_of(answer)) == (403, True)
    demanding.join("bob", "globex", Role.AGENT)
    assert demanding.browser("bob", "globex").get("/tickets/").status_code == 200


def test_api_keys_go_on_working(demanding: World) -> None:
    client = api_client(demanding, where="acme")
    assert client.call("GET", "/api/v1/tickets", {}, api="").status_code == 200


# --- operators ---


def test_an_operator_without_one_is_led_to_add_it_before_the_admin_opens(world: World, settings: Any) -> None:
    make_operator()
    browser = Operator.signed_in()
    assert browser.get("/admin/").status_code == 200, "in development the password is enough"
    settings.OPERATOR_SECOND_FACTOR = True
    assert browser.get("/admin/")["Location"] == f"{SECURITY}?next=/admin/"
    assert browser.post("/admin/tenants/tenant/add/", {"name": "x"}).status_code == 403
    assert "The operators&#39; admin asks for a second factor" in text_of(browser.get(f"{SECURITY}?next=/admin/"))
    _, codes = add_app(browser, next="/admin/")
    assert 'href="/admin/"' in codes.content.decode()
    assert browser.get("/admin/").status_code == 200


@pytest.mark.parametrize(("debug", "demanded"), [("true", False), ("false", True)])
def test_it_is_demanded_wherever_debug_is_off(monkeypatch: pytest.MonkeyPatch, debug: str, demanded: bool) -> None:
    monkeypatch.setenv("DEBUG", debug)
    monkeypatch.delenv("OPERATOR_SECOND_FACTOR", raising=False)
    assert runpy.run_path("portal/settings.py")["OPERATOR_SECOND_FACTOR"] is demanded


# --- who has lost them ---


def test_an_operator_resets_the_factors_of_who_has_lost_them(world: World) -> None:
    give_app(world, "bob")
    mail.outbox.clear()
    bobs = world.browser("bob")
    make_operator()
    root = Operator.signed_in()
    assert "authenticator" in root.says(user_url(world, "bob"))
    answer = root.act(user_url(world, "bob"), "_reset_factors", reason="Showed an id card.", follow=True)
    assert "has no second factor any more" in text_of(answer)
    assert not is_signed_in(bobs)
    assert Browser().sign_in("bob@example.com").status_code == 302
    said = str(mail.outbox[-1].body)
    reason = "Showed an id card."
    told = ("operator of the platform removed all second factors", "your password alone signs you in", reason)
    assert [words in said for words in (*told, "If you did not ask for this", "If it was you")] == [True] * 4 + [False]
    assert reset_rows() == [("root@example.com", "admin", "reason: Showed an id card.")]


def reset_rows() -> list[tuple[str, str, str]]:
    return [(row.actor_email, row.origin, row.after) for row in trail(of="user.factors_reset")]


def test_an_operator_does_not_reset_their_own(world: World) -> None:
    root = make_operator()
    world.users["root"] = root
    secret, _ = give_app(world, "root")
    browser = Operator.signed_in()
    browser.post("/login/second-step/", {"one_time_code": code(secret, later=1)})
    browser.act(user_url(world, "root"), "_reset_factors")
    assert account_of(root.email).second_factors == "authenticator"


def test_the_command_resets_them_too(world: World) -> None:
    nothing = commands.run("reset_second_factor", "bob@example.com", "--reason", "x")
    assert (nothing.status, nothing.err) == (1, "This account has no second factor.")
    assert commands.run("reset_second_factor", "who@example.com", "--reason", "x").status == 1
    give_app(world, "bob")
    refused = commands.run("reset_second_factor", "bob@example.com", "--reason", "\u200b")
    assert (refused.status, refused.err) == (1, "Say why: the audit trail keeps it.")
    ended = commands.run("reset_second_factor", "Bob@example.com", "--reason", "Lost the phone.")
    assert (ended.status, ended.out) == (0, "bob@example.com has no second factor any more.\n")
    assert reset_rows() == [("", "reset_second_factor", "reason: Lost the phone.")]
    assert Browser().sign_in("bob@example.com").status_code == 302


def test_a_reset_ends_the_recovery_codes(world: World) -> None:
    _, codes = give_app(world, "bob")
    factors.reset(world.users["bob"].id, reason="x", by=Actor())
    give_app(world, "bob")
    browser = Browser()
    browser.sign_in("bob@example.com")
    assert browser.post("/login/second-step/", {"one_time_code": codes[0]}).status_code == 422
