"""Signing in and out, passwords, sessions."""

from __future__ import annotations

import re
import time
from http.cookies import Morsel
from typing import Any

import pytest
from django.core import mail as outbox
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from portal.dynamo import client
from portal.errors import Invalid
from portal.nosql import stored as session_keys
from portal.nosql.stored import SESSIONS, SessionItem
from tenants.audit_trail import recording
from tenants.audit_trail.recording import SYSTEM
from tenants.membership.mails import wait_until_sent
from tenants.operators.facades import AuditRow
from tenants.sign_in import accounts
from tenants.sign_in.stored import AccountItem, user_key
from tenants.tenancy.request import Ids, write_cookie
from tests.desk.test_cost import _watching
from tests.support.commands import run
from tests.support.hashers import QuickArgon2
from tests.support.world import PASSWORD, Browser, World, account_of, captured

COOKIE = "pooldesk_session"


def signed_in(browser: Client) -> bool:
    return browser.get("/account/").status_code == 200


def sign_in(email: str = "bob@example.com", password: str = PASSWORD, **more: str) -> Any:
    return Browser().sign_in(email, password, **more)


@pytest.mark.parametrize(
    ("email", "asked", "leads_to"),
    [
        ("bob@example.com", "", "/acme/tickets/"),
        ("alice@example.com", "", "/tenants/"),  # she is a member of several
        (" BOB@Example.com ", "", "/acme/tickets/"),
        *(
            ("bob@example.com", evil, "/acme/tickets/")
            for evil in ("https://evil.example/", "//evil.example", "javascript:alert(1)", "/\\evil.example")
        ),
        ("bob@example.com", "/acme/tickets/?tag=" + "a" * 3000, "/acme/"),
        ("bob@example.com", "/acme/\x00", "/acme/"),
    ],
)
def test_signing_in_leads_to_the_only_desk_or_the_choice_and_never_to_another_site(
    world: World, email: str, asked: str, leads_to: str
) -> None:
    response = sign_in(email, next=asked)
    assert (response.status_code, response["Location"].startswith(leads_to)) == (302, True)


def test_after_signing_in_the_page_that_was_asked_for_is_shown(world: World) -> None:
    browser = Browser()
    asked = browser.get("/tickets/?status=closed")
    assert asked["Location"] == "/login/?next=/tickets/%3Fstatus%3Dclosed"
    back = captured(r'name="next" value="([^"]+)"', browser.get(asked["Location"]))
    assert browser.sign_in("bob@example.com", next=back)["Location"] == "/tickets/?status=closed"
    asked = "/tickets/?status=closed&tag=a%26b&resolver=me"
    credentials = {"email": "alice@example.com", "password": PASSWORD, "next": asked}
    page = Browser().post("/login/", credentials, follow=True)
    assert page.context["next"] == asked, "the choice of desks keeps the whole address"


def test_a_wrong_password_and_an_unknown_address_get_the_same_answer(world: World) -> None:
    def answer(email: str) -> tuple[int, str]:
        response = Client().post("/login/", {"email": email, "password": "wrong"})
        text = re.sub(r'value="[^"]*"', "", response.content.decode())
        return response.status_code, text.replace(email, "")

    assert answer("bob@example.com") == answer("who@example.com")


def test_an_unknown_address_costs_the_same_calls_as_a_known_one(world: World) -> None:
    def calls(email: str) -> list[tuple[str, str]]:
        with _watching() as bills:
            Client().post("/login/", {"email": email, "password": "wrong"})
        return sorted((call.operation, call.table) for bill in bills for call in bill.calls)

    Client().post("/login/", {"email": "first@example.com", "password": "wrong"})  # the trail's chain begins
    assert calls("bob@example.com") == calls("who@example.com") != []


def test_an_unknown_address_costs_one_hash_as_a_known_one_does(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []
    encode, verify = QuickArgon2.encode, QuickArgon2.verify
    monkeypatch.setattr(QuickArgon2, "encode", lambda s, p, salt: (hashed.append("new"), encode(s, p, salt))[1])
    monkeypatch.setattr(QuickArgon2, "verify", lambda s, p, e: (hashed.append("old"), verify(s, p, e))[1])
    Client().post("/login/", {"email": "bob@example.com", "password": "wrong"})
    known, hashed[:] = len(hashed), []
    Client().post("/login/", {"email": "who@example.com", "password": "wrong"})
    assert len(hashed) == known == 1


def test_passwords_are_stored_as_argon2(world: World) -> None:
    assert world.users["bob"].password.startswith("argon2$argon2id$")


def test_an_inactive_account_cannot_sign_in(world: World) -> None:
    AccountItem(user_key(world.users["bob"].id)).update(actions=[AccountItem.is_active.set(False)])
    assert sign_in().status_code == 422


def test_signing_in_makes_a_new_session(world: World) -> None:
    browser = world.browser("bob")
    first = browser.session_key
    browser.sign_in("bob@example.com")
    assert browser.session_key != first
    with pytest.raises(SessionItem.DoesNotExist):
        SessionItem.get(session_keys.session(first))


def test_the_session_cookie_is_shielded(world: World, settings: object) -> None:
    settings.SESSION_COOKIE_SECURE = True  # type: ignore[attr-defined]
    browser = Browser()
    browser.sign_in("bob@example.com")
    cookie: Morsel[str] = browser.cookies[COOKIE]
    assert (cookie["httponly"], cookie["samesite"], cookie["secure"]) == (True, "Lax", True)


@pytest.mark.parametrize("way", ["/logout/", "/logout/everywhere/"])
def test_signing_out_ends_the_session_on_the_server_and_everywhere_all_of_them(world: World, way: str) -> None:
    here, there, thief = world.browser("bob"), world.browser("bob"), Client()
    thief.cookies[COOKIE] = here.cookies[COOKIE].value
    here.send(way)
    assert [signed_in(thief), signed_in(there)] == [False, way == "/logout/"]


def test_a_session_item_holds_its_end_of_life(world: World) -> None:
    browser = Browser()
    browser.sign_in("bob@example.com")
    item = SessionItem.get(session_keys.session(browser.session_key))
    assert abs(item.expires_at - time.time() - 14 * 24 * 3600) < 60
    described = client.connection("platform").call("DescribeTimeToLive", TableName=SESSIONS.full_name)
    assert described["TimeToLiveDescription"]["AttributeName"] == "expires_at"


def test_an_expired_session_is_refused_before_ttl_removes_it(world: World) -> None:
    browser = world.browser("bob")
    SessionItem(session_keys.session(browser.session_key)).update(
        actions=[SessionItem.expires_at.set(int(time.time()) - 1)]
    )
    assert not signed_in(browser)


@pytest.mark.parametrize(
    "cookie", ["", "x", "a.b.c", "a.b.c:forged", "." * 200, "\x00", "é" * 50, "a" * 5000], ids=lambda c: repr(c[:8])
)
def test_a_forged_cookie_is_nobody(world: World, cookie: str) -> None:
    browser = Client()
    browser.cookies[COOKIE] = cookie
    assert browser.get("/account/").status_code == 302


def test_a_cookie_of_one_person_cannot_name_another(world: World) -> None:
    browser = world.browser("bob")
    forged = write_cookie(Ids(browser.session_key, world.users["alice"].id))
    browser.cookies[COOKIE] = forged
    assert not signed_in(browser)


def test_changing_the_password_signs_other_devices_out(world: World) -> None:
    here, there = world.browser("bob"), world.browser("bob")
    new = "another long password"
    data = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
    assert here.send("/account/password/", data).status_code == 302
    assert signed_in(here)
    assert not signed_in(there)
    assert sign_in(password=new).status_code == 302


@pytest.mark.parametrize(
    ("old", "first", "second", "says"),
    [
        ("wrong", "another long password", "another long password", "not your current password"),
        (PASSWORD, "another long password", "something else here", "do not match"),
        (PASSWORD, "short", "short", "too short"),
        (PASSWORD, "password12", "password12", "too common"),
        (PASSWORD, "bob@example.com", "bob@example.com", "too similar"),
    ],
)
def test_a_bad_new_password_is_explained_at_its_field(
    world: World, old: str, first: str, second: str, says: str
) -> None:
    data = {"old_password": old, "new_password1": first, "new_password2": second}
    response = world.browser("bob").send("/account/password/", data)
    assert response.status_code == 422
    assert says in response.content.decode()


def reset_link(email: str) -> str | None:
    outbox.outbox.clear()
    assert Client().post("/password/reset/", {"email": email})["Location"] == "/password/reset/sent/"
    wait_until_sent()
    found = re.search(r"http://testserver(/password/reset/\S+)", outbox.outbox[0].body) if outbox.outbox else None
    return found[1] if found else None


def test_a_reset_link_sets_a_new_password_once(world: World) -> None:
    link = reset_link("bob@example.com") or ""
    new = {"new_password1": "another long password", "new_password2": "another long password"}
    browser, page = world.browser("bob"), Client().get(link)
    assert page.status_code == 200
    assert ("no-store" in page["Cache-Control"], page["Referrer-Policy"]) == (True, "same-origin")
    assert browser.get("/tickets/")["Cache-Control"] == "private, no-store"
    assert Client().post(link, new).status_code == 302
    assert not signed_in(browser), "it signs everybody out"
    assert reset_link("who@example.com") is None
    assert Client().get(link).status_code == 404
    assert sign_in(password=new["new_password1"]).status_code == 302


def test_of_two_who_use_one_reset_link_at_the_same_moment_one_sets_the_password(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = reset_link("bob@example.com") or ""
    first, second = (
        {"new_password1": text, "new_password2": text} for text in ("the first phrase", "the second phrase")
    )
    set_password = accounts.set_password

    def overtaken(*args: Any, **values: Any) -> Any:
        monkeypatch.undo()
        assert Client().post(link, second).status_code == 302
        return set_password(*args, **values)

    monkeypatch.setattr(accounts, "set_password", overtaken)
    assert Client().post(link, first).status_code == 404
    assert sign_in(password="the second phrase").status_code == 302


def test_of_two_password_changes_at_the_same_moment_one_is_made(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def changed(to: str) -> Any:
        data = {"old_password": PASSWORD, "new_password1": to, "new_password2": to}
        return browsers.pop().send("/account/password/", data)

    browsers = [world.browser("bob"), world.browser("bob")]
    set_password = accounts.set_password

    def overtaken(*args: Any, **values: Any) -> Any:
        monkeypatch.undo()
        assert changed("the second phrase").status_code == 302
        return set_password(*args, **values)

    monkeypatch.setattr(accounts, "set_password", overtaken)
    refused = changed("the first phrase")
    assert refused.status_code == 409
    assert "Your password has just been changed elsewhere." in refused.content.decode()
    assert [sign_in(password=f"the {which} phrase").status_code for which in ("first", "second")] == [422, 302]


def test_a_sign_in_that_renews_an_old_hash_does_not_bring_back_a_changed_password(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    bob = account_of("bob@example.com")
    accounts.set_password(bob.id, "the second phrase", by=SYSTEM)
    monkeypatch.setattr(QuickArgon2, "must_update", lambda *_: True)
    assert bob.check_password(PASSWORD), "as it was read before the change"
    assert [sign_in(password=password).status_code for password in (PASSWORD, "the second phrase")] == [422, 302]


SHARP = "x@fa\u00df.de"  # which is another domain than fass.de, and becomes it where letters are compared


def test_an_address_that_would_become_another_one_is_refused_wherever_it_is_entered(world: World) -> None:
    accounts.create(email="x@fass.de", name="Other", password=PASSWORD, by=SYSTEM)
    alice, says = world.browser("alice", "acme"), "such as \u00df"
    pages: list[Any] = [
        Browser().sign_in(SHARP),
        Client().post("/password/reset/", {"email": SHARP}),
        alice.send("/desk/invitations/", {"addresses": SHARP, "role": "agent"}),
        alice.send("/desk/settings/person/", {"address": SHARP}),
    ]
    for page in pages:
        assert page.status_code == 422, page.wsgi_request.path
        assert says in page.content.decode(), page.wsgi_request.path
    commands = [("create_user", SHARP, "--name", "X"), ("create_operator", SHARP, "--name", "X")]
    for command in commands:
        ended = run(*command)
        assert (ended.status, says in ended.err) == (1, True), command
    assert accounts.find_by_email(SHARP) is None
    with pytest.raises(Invalid, match=says):
        accounts.create(email=SHARP, name="X", password=None, by=SYSTEM)


def test_a_reset_link_ends_with_a_later_sign_in(world: World) -> None:
    link = reset_link("bob@example.com") or ""
    assert Client().get(link).status_code == 200
    Browser().sign_in("bob@example.com")
    assert Client().get(link).status_code == 404


def test_a_link_in_a_mail_leads_to_the_portal_whatever_host_the_request_names(world: World, settings: Any) -> None:
    settings.PORTAL_BASE_URL = "https://desk.example.com"
    outbox.outbox.clear()
    Client(HTTP_HOST="127.0.0.1:6666").post("/password/reset/", {"email": "bob@example.com"})
    wait_until_sent()
    assert "https://desk.example.com/password/reset/" in outbox.outbox[0].body
    assert "6666" not in outbox.outbox[0].body


def test_without_a_base_address_no_mail_is_sent_in_production(world: World, settings: Any) -> None:
    settings.PORTAL_BASE_URL = ""
    with pytest.raises(ImproperlyConfigured, match="PORTAL_BASE_URL"):
        Client().post("/password/reset/", {"email": "bob@example.com"})


def test_the_trail_tells_who_changed_a_password_and_from_where(world: World) -> None:
    new = {"new_password1": "another long password", "new_password2": "another long password"}
    world.browser("bob").post("/account/password/", new | {"old_password": PASSWORD})
    Client().post(reset_link("alice@example.com") or "", new)
    rows = [r for r in AuditRow.objects.filter(tenant_id=recording.PLATFORM)[:50] if r.action == "user.password_set"]
    assert [(r.actor_email, r.origin) for r in rows] == [
        ("alice@example.com", "127.0.0.1"),
        ("bob@example.com", "127.0.0.1"),
    ]


@pytest.mark.parametrize("link", ["/password/reset/x/y/", "/password/reset/MQ/set-password/", "/password/reset/%FF/t/"])
def test_a_made_up_reset_link_is_not_found(world: World, link: str) -> None:
    assert Client().get(link).status_code == 404


def test_reset_mails_for_one_address_are_limited(world: World) -> None:
    for _ in range(12):
        Client().post("/password/reset/", {"email": "bob@example.com"})
    wait_until_sent()
    assert len(outbox.outbox) == 8


def test_a_visitor_has_no_session_item(engine: None) -> None:
    browser = Client()
    browser.get("/login/")
    browser.post("/login/", {"email": "x@example.com", "password": "y"})
    assert COOKIE not in browser.cookies


def test_a_password_is_hashed_again_when_its_parameters_are_outdated(world: World, settings: object) -> None:
    before = account_of("bob@example.com").password
    settings.PASSWORD_HASHERS = ["tests.support.hashers.StrongerArgon2"]  # type: ignore[attr-defined]
    assert sign_in().status_code == 302
    assert account_of("bob@example.com").password != before


def test_every_page_has_the_headers_that_a_browser_needs(world: World) -> None:
    response = Client().get("/login/")
    assert "default-src 'self'" in response["Content-Security-Policy"]
    assert "unsafe" not in response["Content-Security-Policy"]
    assert (response["X-Frame-Options"], response["X-Content-Type-Options"]) == ("DENY", "nosniff")
