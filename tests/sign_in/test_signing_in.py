"""Signing in with a second factor: the step after the password, and what is taken in it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.core import mail
from django.test import Client

from portal.dynamo.platform import PLATFORM
from tenants.audit_trail.recording import Actor
from tenants.sign_in import accounts, entering_views, factor_secrets, factors
from tenants.sign_in.stored import FACTORS, AuthenticatorItem
from tests.desk.test_cost import _watching
from tests.support.factors import code, confirmed, give_app, wrong
from tests.support.operators import text_of, trail
from tests.support.world import Browser, World, captured

STEP = "/login/second-step/"
BOB = "bob@example.com"


def at_second_step(email: str = BOB, **extra: str) -> Browser:
    """A browser in which the right password was entered."""
    browser = Browser()
    page = browser.sign_in(email, **extra)
    assert "One more step" in page.content.decode()
    return browser


def enter(browser: Client, text: str, **extra: str) -> Any:
    return browser.post(STEP, {"one_time_code": text, **extra})


def is_signed_in(browser: Client) -> bool:
    return browser.get("/account/").status_code == 200


def test_the_code_of_the_app_signs_in_once_and_the_password_alone_never(world: World) -> None:
    secret, _ = give_app(world, "bob")
    digits = code(secret, later=1)
    first, second = at_second_step(), at_second_step()
    assert not is_signed_in(first)
    assert enter(first, wrong(secret)).status_code == 422
    assert [row.entity_name for row in trail(of="session.refused")] == [BOB]
    assert enter(first, f" {digits[:3]} {digits[3:]} ")["Location"] == "/acme/tickets/"
    assert is_signed_in(first)
    assert enter(second, digits)["Location"] == "/login/", "half a sign-in ends with a whole one"
    assert enter(at_second_step(), digits).status_code == 422


def test_the_page_that_was_asked_for_is_shown_after_the_second_step(world: World) -> None:
    secret, _ = give_app(world, "bob")
    browser = Browser()
    page = browser.sign_in(BOB, next="/tickets/?status=closed")
    back = captured(r'name="next" value="([^"]+)"', page)
    assert enter(browser, code(secret, later=1), next=back)["Location"] == "/tickets/?status=closed"


def test_what_was_typed_before_is_offered_after_the_second_step(world: World) -> None:
    browser = world.browser("bob")
    mark = browser.mark()
    secret, _ = give_app(world, "bob")  # which ends that session
    page = browser.post("/tickets/new/", {"_page": mark, "title": "Nearly lost", "description": "x"})
    kept = captured(r'name="resume" value="([^"]+)"', page)
    page = browser.sign_in(BOB, resume=kept)
    again = captured(r'name="resume" value="([^"]+)"', page)
    assert "Nearly lost" in enter(browser, code(secret, later=1), resume=again).content.decode()


def test_of_two_who_enter_one_code_at_the_same_moment_one_gets_in(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, _ = give_app(world, "bob")
    digits = code(secret, later=1)
    first, second = at_second_step(), at_second_step()
    update = PLATFORM.update

    def overtaken(item: AuthenticatorItem, *args: Any, **values: Any) -> Any:
        monkeypatch.undo()
        assert enter(second, digits).status_code == 302
        return update(item, *args, **values)

    monkeypatch.setattr(PLATFORM, "update", overtaken)
    assert enter(first, digits).status_code == 422


@pytest.mark.parametrize(("later", "status"), [(-2, 422), (-1, 302), (0, 302), (1, 302), (2, 422)])
def test_codes_of_the_step_before_and_after_now_are_taken_and_no_others(
    world: World, monkeypatch: pytest.MonkeyPatch, later: int, status: int
) -> None:
    secret, _ = give_app(world, "bob")
    now = factor_secrets.current_step() + 10
    monkeypatch.setattr(factor_secrets, "current_step", lambda: now)
    assert enter(at_second_step(), code(secret, later=later)).status_code == status
    if later == 1:
        assert enter(at_second_step(), code(secret)).status_code == 422, "a code before one that was used"


def test_each_of_ten_recovery_codes_signs_in_once_and_is_told_to_the_person(world: World) -> None:
    _, codes = give_app(world, "bob")
    mail.outbox.clear()
    assert enter(at_second_step(), codes[3].upper().replace("-", " ")).status_code == 302
    assert "9 of them are left" in str(mail.outbox[0].body)
    again = enter(at_second_step(), codes[3])
    assert again.status_code == 422
    assert "This recovery code is wrong, or was used before. Each works once: take another one." in text_of(again)
    assert "Wait for the next one." not in text_of(again)
    assert [row.after for row in trail(of="user.recovery_code_used")] == ["codes left: 9"]
    assert [enter(at_second_step(), text).status_code for text in codes if text != codes[3]] == [302] * 9


def test_recovery_codes_are_stored_as_hashes_and_the_secret_of_an_app_encrypted(world: World) -> None:
    from tests.support.commands import everything

    secret, codes = give_app(world, "bob")
    stored = str(everything(FACTORS))
    assert "AUTHENTICATOR" in stored
    assert not [text for text in (secret, *codes, *(c.replace("-", "") for c in codes)) if text in stored]


def test_guessing_codes_is_slowed_down_and_a_right_one_waits_too(world: World) -> None:
    secret, _ = give_app(world, "bob")
    browser = at_second_step()
    answers = [enter(browser, wrong(secret)).status_code for _ in range(9)]
    assert answers == [422] * 8 + [429]
    refused = enter(at_second_step(), code(secret, later=1))
    assert refused.status_code == 429
    assert "Each further try before that makes the wait longer." in refused.content.decode()


def test_many_networks_guess_codes_together_no_faster_than_one(world: World) -> None:
    secret, _ = give_app(world, "bob")
    for network in range(8):
        browser = at_second_step()
        browser.post(STEP, {"one_time_code": wrong(secret)}, REMOTE_ADDR=f"192.0.2.{network}")
    assert enter(at_second_step(), wrong(secret)).status_code == 429


def test_strangers_who_guess_codes_do_not_keep_out_who_signed_in_here_before(world: World) -> None:
    secret, codes = give_app(world, "bob")
    mine = at_second_step()
    assert enter(mine, codes[0]).status_code == 302
    mine.post("/logout/")
    stranger = at_second_step()
    for _ in range(9):
        enter(stranger, wrong(secret))
    mine.sign_in(BOB)
    assert enter(mine, code(secret, later=1)).status_code == 302


def test_sign_ins_of_the_time_before_the_factor_give_no_further_guesses(world: World) -> None:
    thief = [Browser() for _ in range(3)]
    for browser in thief:
        browser.sign_in(BOB)
    secret, _ = give_app(world, "bob")
    for browser in thief:
        browser.sign_in(BOB)
    answers = [enter(browser, wrong(secret)).status_code for browser in thief for _ in range(3)]
    assert answers == [422] * 8 + [429]


@pytest.mark.parametrize("text", ["", "x", "a:b:c", "." * 600, "WyJ4Il0:1aaaaa:xxxx"])
def test_without_the_password_there_is_no_second_step(world: World, text: str) -> None:
    secret, _ = give_app(world, "bob")
    browser = Browser()
    browser.cookies["pooldesk_second_step"] = text
    assert enter(browser, code(secret, later=1))["Location"] == "/login/"
    assert not is_signed_in(browser)


def test_another_persons_code_is_refused(world: World) -> None:
    give_app(world, "bob")
    secret, codes = give_app(world, "vera")
    assert [enter(at_second_step(), text).status_code for text in (code(secret, later=1), codes[0])] == [422, 422]


ENDINGS: dict[str, Callable[[str], object]] = {
    "a new password": lambda bob: accounts.set_password(bob, "another long password", by=Actor()),
    "a disabled account": lambda bob: accounts.set_active(bob, False, by=Actor()),
    "some minutes": lambda _: None,
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_half_a_sign_in_ends_with(world: World, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    _, codes = give_app(world, "bob")
    browser = at_second_step()
    ENDINGS[ending](world.users["bob"].id)
    if ending == "some minutes":
        monkeypatch.setattr(entering_views, "SECOND_STEP_SECONDS", -1)
    assert enter(browser, codes[0])["Location"] == "/login/"


def test_a_new_password_does_not_get_around_the_second_step_and_removing_the_factor_does(world: World) -> None:
    give_app(world, "bob")
    new = "another long password"
    accounts.set_password(world.users["bob"].id, new, by=Actor())
    page = Browser().sign_in(BOB, new)
    assert "One more step" in page.content.decode()
    factors.remove_authenticator(world.users["bob"].id, by=Actor())
    assert Browser().sign_in(BOB, new).status_code == 302


def test_the_half_of_a_sign_in_is_shielded_and_goes_with_it(world: World, settings: Any) -> None:
    settings.SESSION_COOKIE_SECURE = True
    secret, _ = give_app(world, "bob")
    browser = at_second_step()
    cookie = browser.cookies["pooldesk_second_step"]
    assert (cookie["httponly"], cookie["samesite"], cookie["secure"], cookie["path"]) == (True, "Lax", True, "/login/")
    enter(browser, code(secret, later=1))
    assert browser.cookies["pooldesk_second_step"].value == ""


def test_a_wrong_password_says_nothing_of_second_factors(world: World) -> None:
    give_app(world, "bob")

    def answer(email: str) -> tuple[int, str, list[str]]:
        browser = Client()
        page = browser.post("/login/", {"email": email, "password": "wrong"})
        text = re.sub(r'value="[^"]*"', "", page.content.decode())
        return page.status_code, text.replace(email, ""), sorted(browser.cookies)

    assert answer(BOB) == answer("vera@example.com") == answer("who@example.com")


def test_no_page_costs_more_for_who_has_a_second_factor(world: World) -> None:
    def calls() -> list[tuple[str, str]]:
        browser = world.browser("bob", "acme")
        with _watching() as bills:
            for page in ("/tickets/", "/account/", "/tenants/"):
                assert browser.get(page).status_code == 200
        return sorted((call.operation, call.table) for bill in bills for call in bill.calls)  # some are made together

    before = calls()
    give_app(world, "bob")
    world.context("alice", "acme")
    assert calls() == before != []


def test_a_sign_in_with_a_code_reads_the_account_and_its_factors_and_no_more(world: World) -> None:
    secret, _ = give_app(world, "bob")
    browser = at_second_step()
    with _watching() as bills:
        enter(browser, code(secret, later=1))
    calls = [(call.operation, call.table.rpartition(".")[2]) for bill in bills for call in bill.calls]
    assert calls.count(("Query", "Factors")) == calls.count(("GetItem", "Users")) == 1
    assert calls.count(("UpdateItem", "Factors")) == 1


def test_a_secret_that_a_former_key_sealed_opens_and_is_sealed_anew(world: World, settings: Any) -> None:
    settings.ENCRYPTION_KEYS = ["the first key"]
    secret, _ = give_app(world, "bob")
    settings.ENCRYPTION_KEYS = ["the second key", "the first key"]
    assert enter(at_second_step(), code(secret)).status_code == 422  # it was used when the app was added
    assert enter(at_second_step(), code(secret, later=1)).status_code == 302
    settings.ENCRYPTION_KEYS = ["the second key"]
    now = factor_secrets.current_step() + 10
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(factor_secrets, "current_step", lambda: now)
        assert enter(at_second_step(), code(secret)).status_code == 302


def test_where_no_key_opens_a_secret_recovery_codes_still_sign_in(world: World, settings: Any) -> None:
    settings.ENCRYPTION_KEYS = ["the first key"]
    secret, codes = give_app(world, "bob")
    settings.ENCRYPTION_KEYS = ["another key"]
    assert enter(at_second_step(), code(secret, later=1)).status_code == 422
    assert enter(at_second_step(), codes[0]).status_code == 302


def test_recovery_codes_do_nothing_at_the_confirmation_of_somebody_signed_in(world: World) -> None:
    _, codes = give_app(world, "bob")
    browser = world.browser("bob")
    assert browser.send("/account/security/confirm/", {"password": codes[0]}).status_code == 422
    assert confirmed(world, "bob")
