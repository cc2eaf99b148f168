"""Adding and removing second factors: who may, what it ends, and what is told."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import pytest
from django.core import mail
from django.test import Client

from portal.errors import Conflict
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor
from tenants.sign_in import factors, security_views
from tenants.tenancy import request as tenancy_request
from tests.desk.test_cost import _watching
from tests.support import mailing
from tests.support.factors import SECURITY, add_passkey, code, codes_in, confirmed, give_app
from tests.support.operators import trail
from tests.support.soft_passkey import SoftPasskey
from tests.support.world import Browser, World, account_of, captured

APP = f"{SECURITY}authenticator/"


def text_of(response: Any) -> str:
    return " ".join(response.content.decode().split())


def secret_on(page: Any) -> str:
    return captured(r'<code class="desk-secret"[^>]*>([A-Z2-7 ]+)</code>', page).replace(" ", "")


def setup_on(page: Any) -> str:
    return captured(r'name="setup" value="([^"]+)"', page)


def add_app(browser: Browser, **extra: str) -> tuple[str, Any]:
    """An app that is set up by the page, as a person does it: the secret, and the answer."""
    page = browser.get(APP)
    secret = secret_on(page)
    return secret, browser.send(APP, {"one_time_code": code(secret), "setup": setup_on(page), **extra})


def is_signed_in(browser: Client) -> bool:
    return browser.get("/account/").status_code == 200


def told() -> list[tuple[str, str]]:
    """What the platform's trail tells of second factors, the last first."""
    return [(row.action, row.after) for row in trail() if "factor" in row.action or "recovery" in row.action]


CHANGES: dict[str, Callable[[Browser], Any]] = {
    "add an app": lambda browser: browser.send(APP, {"one_time_code": "000000", "setup": "x"}),
    "see a secret": lambda browser: browser.get(APP),
    "remove the app": lambda browser: browser.send(f"{APP}remove/"),
    "make a passkey": lambda browser: browser.get(f"{SECURITY}passkeys/options/"),
    "add a passkey": lambda browser: browser.send(f"{SECURITY}passkeys/", {"name": "x", "credential": "{}"}),
    "remove a passkey": lambda browser: browser.send(f"{SECURITY}passkeys/{'a' * 32}/remove/"),
    "renew the codes": lambda browser: browser.send(f"{SECURITY}codes/"),
    "ask about the app": lambda browser: browser.get(f"{APP}remove/"),
    "ask about the codes": lambda browser: browser.get(f"{SECURITY}codes/"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_no_factor_changes_before_the_password_was_asked_again(world: World, change: str) -> None:
    give_app(world, "bob")
    browser = world.browser("bob")
    answer = CHANGES[change](browser)
    assert (answer.status_code, answer.get("Location", SECURITY)) in ((302, SECURITY), (403, SECURITY))
    assert "Remove" not in browser.get(SECURITY).content.decode()
    assert told() == [("user.factor_added", "factor: authenticator app")]


def test_guessing_the_password_of_an_open_session_is_slowed_down(world: World) -> None:
    browser = world.browser("bob")
    answers = [browser.send(f"{SECURITY}confirm/", {"password": "wrong"}).status_code for _ in range(9)]
    assert answers == [422] * 8 + [429]
    assert browser.get(APP).status_code == 302, "a wrong password opens no changes"


def test_changes_are_open_for_some_minutes_after_a_sign_in(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = Browser()
    browser.sign_in("bob@example.com")
    assert browser.get(APP).status_code == 200
    monkeypatch.setattr(tenancy_request, "CONFIRMED_SECONDS", -1)
    assert browser.get(APP).status_code == 302


def test_an_app_is_added_by_a_code_of_the_secret_that_is_shown_and_recovery_codes_are_shown_once(world: World) -> None:
    browser = confirmed(world, "bob")
    page = browser.get(APP)
    drawn = page.content.decode().split('class="qr-code"')[1].split("</div>")[0]
    assert ("<svg" in drawn, "style" in drawn) == (True, False), "it needs no exception from the policy"
    assert page.context["address"].startswith("otpauth://totp/Pooldesk:bob%40example.com?secret=" + secret_on(page))
    refused = browser.send(APP, {"one_time_code": "12 34", "setup": setup_on(page)})
    assert (refused.status_code, secret_on(refused), told()) == (422, secret_on(page), [])
    _, answer = add_app(browser)
    assert len(set(codes_in(answer))) == 10
    assert "no-store" in answer["Cache-Control"]
    found = captured(r'href="data:text/plain;charset=utf-8,([^"]+)" download="', answer)
    first, *lines = unquote(found).strip().splitlines()
    assert "bob@example.com" in first
    assert [line for line in lines if line] == codes_in(answer)
    security = browser.get(SECURITY)
    assert "Added just now" in re.sub(r"<[^>]+>", "", text_of(security))
    assert codes_in(security) == []


@pytest.mark.parametrize("whose", ["vera", "bob"])
def test_a_secret_of_somebody_elses_page_or_of_long_ago_is_not_taken(
    world: World, monkeypatch: pytest.MonkeyPatch, whose: str
) -> None:
    page = confirmed(world, whose).get(APP)
    if whose == "bob":
        monkeypatch.setattr(security_views, "SETUP_SECONDS", -1)
    answer = confirmed(world, "bob").send(APP, {"one_time_code": code(secret_on(page)), "setup": setup_on(page)})
    assert (answer.status_code, told()) == (302, [])


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_the_page_of_the_codes_says_where_they_went_when_it_is_loaded_again(world: World, method: str) -> None:
    browser = confirmed(world, "bob")
    secret, _ = add_app(browser)
    again = browser.get(APP) if method == "GET" else browser.send(APP, {"one_time_code": code(secret)})
    assert again["Location"] == SECURITY
    page = text_of(browser.get(SECURITY))
    assert "Its recovery codes were shown once: if you did not keep them, replace them." in page
    assert 'href="/account/security/codes/"' in page


def first_removal(browser: Browser) -> str:
    return SECURITY + captured(r"(passkeys/[0-9a-f]{32}/remove/)", browser.get(SECURITY))


def test_removing_and_replacing_say_what_follows_and_wait_for_an_answer(world: World) -> None:
    here = confirmed(world, "bob")
    add_app(here)
    assert "your only second factor: your recovery codes go with it" in text_of(here.get(f"{APP}remove/"))
    add_passkey(here, SoftPasskey(), "Laptop")
    assert "Your other second factors stay" in text_of(here.get(f"{APP}remove/"))
    assert "Remove the passkey “Laptop”?" in text_of(here.get(first_removal(here)))
    assert "The 10 codes that are left stop working." in text_of(here.get(f"{SECURITY}codes/"))
    assert [action for action, _ in told()] == ["user.factor_added"] * 2


def test_what_is_not_there_is_not_asked_about_and_not_removed(world: World) -> None:
    add_passkey(confirmed(world, "bob"), SoftPasskey())
    world.users["bob"] = account_of("bob@example.com")
    bobs, vera = first_removal(confirmed(world, "bob")), confirmed(world, "vera")
    assert "has no authenticator app" in text_of(vera.get(f"{APP}remove/", follow=True))
    assert "Add one first" in text_of(vera.send(f"{SECURITY}codes/", follow=True))
    for removal in (bobs, f"{SECURITY}passkeys/{'a' * 32}/remove/"):
        assert "no such passkey" in text_of(vera.get(removal, follow=True))
        assert "no such passkey" in text_of(vera.send(removal, follow=True))
    assert len(told()) == 1


def test_a_second_factor_beside_the_first_brings_no_new_codes_and_the_last_takes_them_along(world: World) -> None:
    give_app(world, "bob")
    browser = confirmed(world, "bob")
    answer = add_passkey(browser, SoftPasskey())
    assert (answer.status_code, codes_in(answer)) == (302, [])
    browser.send(first_removal(browser))
    page = browser.send(f"{APP}remove/", follow=True)
    assert "The authenticator app is removed, and your recovery codes with it." in text_of(page)


def test_new_recovery_codes_void_the_former(world: World) -> None:
    _, former = give_app(world, "bob")
    new = codes_in(confirmed(world, "bob").send(f"{SECURITY}codes/"))
    browser = Browser()
    browser.sign_in("bob@example.com")
    assert browser.post("/login/second-step/", {"one_time_code": former[0]}).status_code == 422
    assert browser.post("/login/second-step/", {"one_time_code": new[0]}).status_code == 302


def test_each_change_ends_all_sessions_but_this_one(world: World) -> None:
    here = confirmed(world, "bob")
    passkey = SoftPasskey()
    steps: list[Callable[[], Any]] = [
        lambda: add_app(here)[1],
        lambda: add_passkey(here, passkey),
        lambda: here.send(f"{SECURITY}codes/"),
        lambda: here.send(first_removal(here)),
        lambda: here.send(f"{APP}remove/"),
    ]
    for step in steps:
        there = world.browser("bob")
        assert is_signed_in(there)
        assert step().status_code in (200, 302)
        assert (is_signed_in(here), is_signed_in(there)) == (True, False)
        world.users["bob"] = account_of("bob@example.com")


def test_the_mail_about_a_change_is_in_its_transaction(world: World, settings: Any) -> None:
    settings.EMAIL_BACKEND = mailing.OUTBOX
    give_app(world, "bob")
    (row,) = mailing.waiting()
    assert mailing.content(row)["to"] == ["bob@example.com"]


def test_the_trail_and_a_mail_tell_of_each_change(world: World) -> None:
    mail.outbox.clear()
    here = confirmed(world, "bob")
    add_app(here)
    add_passkey(here, SoftPasskey(), "Laptop")
    here.send(f"{SECURITY}codes/")
    here.send(f"{APP}remove/")
    assert told() == [
        ("user.factor_removed", "factor: authenticator app"),
        ("user.recovery_codes_renewed", ""),
        ("user.factor_added", "factor: passkey, name: Laptop"),
        ("user.factor_added", "factor: authenticator app"),
    ]
    said = [str(letter.body) for letter in mail.outbox if letter.to == ["bob@example.com"]]
    parts = ("authenticator app was added", "passkey “Laptop” was added", "codes were replaced", "app was removed")
    assert [part in text for part, text in zip(parts, said, strict=True)] == [True] * 4


def test_of_two_changes_at_the_same_moment_one_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    give_app(world, "bob")
    user_id, by = world.users["bob"].id, Actor()
    commit = recording.commit

    def overtaken(*args: Any, **values: Any) -> None:
        monkeypatch.undo()
        factors.renew_codes(user_id, by=by)
        commit(*args, **values)

    monkeypatch.setattr(recording, "commit", overtaken)
    with pytest.raises(Conflict):
        factors.remove_authenticator(user_id, by=by)
    assert told()[0] == ("user.recovery_codes_renewed", "")


def test_no_more_than_twenty_passkeys_are_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factors, "PASSKEY_LIMIT", 1)
    browser = confirmed(world, "bob")
    add_passkey(browser, SoftPasskey())
    assert "up to 1 passkeys" in text_of(add_passkey(browser, SoftPasskey()))


@pytest.mark.parametrize("name", ["", "  ", "x" * 61, "\u202ereversed"])
def test_a_passkey_has_a_name_that_can_be_seen(world: World, name: str) -> None:
    assert add_passkey(confirmed(world, "bob"), SoftPasskey(), name).status_code == 422
    assert told() == []


def test_the_security_page_costs_one_query(world: World) -> None:
    give_app(world, "bob")
    browser = world.browser("bob", "acme")
    with _watching() as bills:
        browser.get(SECURITY)
    assert [call.operation for bill in bills for call in bill.calls] == ["BatchGetItem", "Query"]
