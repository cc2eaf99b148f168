"""Sessions: listed for their owner and for operators, ended one by one, and never shown by their key."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings

from portal.dynamo import meter
from portal.nosql import session_store, stored
from portal.nosql.stored import SessionItem
from tenants.audit_trail.recording import SYSTEM
from tenants.operators.facades import AuditRow
from tenants.sign_in import accounts, session_lifecycle
from tenants.tenancy.request import Ids, read_cookie, write_cookie
from tests.desk.test_cost import _watching
from tests.support.operators import Operator, calls, text_of, user_url
from tests.support.world import PASSWORD, Browser, World

FIREFOX = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:131.0) Gecko/20100101 Firefox/131.0"
PLATFORM = "0" * 32


def id_of(browser: Browser) -> str:
    return stored.session(browser.session_key)


def signed_in(browser: Browser) -> bool:
    return browser.get("/account/").status_code == 200


def at(world: World, who: str = "bob") -> list[str]:
    return [item.session_key for item in session_store.of_user(world.users[who].id)]


@pytest.fixture
def bob(world: World) -> Browser:
    """Bob, who has signed in with Firefox."""
    browser = Browser(REMOTE_ADDR="10.1.2.3", HTTP_USER_AGENT=FIREFOX)
    browser.sign_in("bob@example.com")
    return browser


# --- what is stored ---


def test_a_sign_in_is_noted_with_its_moment_browser_and_address(world: World, bob: Browser) -> None:
    (item,) = session_store.of_user(world.users["bob"].id)
    assert (item.address, item.agent, item.tenant_id) == ("10.1.2.3", FIREFOX, world.tenants["acme"].tenant_id)


def test_no_item_holds_the_key_that_signs_in(world: World, bob: Browser) -> None:
    item = SessionItem.get(id_of(bob))
    assert bob.session_key not in str(item.serialize())
    thief = Browser()
    ids = Ids(item.session_key, world.users["bob"].id, world.browser("bob").pins)
    thief.cookies[settings.SESSION_COOKIE_NAME] = write_cookie(ids)
    assert not signed_in(thief)


def test_a_visitor_who_tries_is_in_no_list(world: World) -> None:
    Browser().post("/login/", {"email": "bob@example.com", "password": "wrong"})
    assert at(world) == []


def test_choosing_another_desk_keeps_the_sign_in_and_moves_the_session(world: World) -> None:
    alice = Browser()
    alice.sign_in("alice@example.com")
    (before,) = session_store.of_user(world.users["alice"].id)
    alice.enter(world.tenants["globex"].tenant_id)
    (after,) = session_store.of_user(world.users["alice"].id)
    assert (before.tenant_id, after.tenant_id) == (None, world.tenants["globex"].tenant_id)
    assert (after.started_at, after.session_key) == (before.started_at, before.session_key)


def test_signing_in_costs_one_write_unit_more_than_without_the_list(world: World) -> None:
    bob = world.users["bob"]
    session = session_store.SessionStore()
    with meter.measure() as bare:
        session.create()
    session["_auth_user_id"] = bob.id
    session["_auth_user_hash"], session["_auth_user_backend"] = "f" * 64, "tenants.sign_in.passwords.EmailBackend"
    session[session_store.TENANT_KEY] = world.tenants["acme"].tenant_id
    session.begin(address="2001:0db8:85a3:0000:0000:8a2e:0370:7334", agent="x" * 500)
    with meter.measure() as listed:
        session.save()
    assert [(c.operation, c.write_units) for c in bare.calls] == [("PutItem", 1)]
    assert [(c.operation, c.write_units) for c in listed.calls] == [("PutItem", 2)]
    session[session_store.TENANT_KEY] = world.tenants["globex"].tenant_id
    with meter.measure() as moved:
        session.save()
    assert [(c.operation, c.write_units) for c in moved.calls] == [("PutItem", 2)]


def test_signing_in_writes_its_session_as_often_as_before(world: World) -> None:
    with _watching() as bills:
        Browser().sign_in("bob@example.com")
    assert [c.table for b in bills for c in b.calls if c.operation == "PutItem" and "Sessions" in c.table] != []
    assert sum(c.operation == "PutItem" for b in bills for c in b.calls) == 2  # Django's new key, then what is in it


# --- a person's own page ---


def test_a_person_sees_the_own_sessions_and_no_others_in_two_round_trips(world: World, bob: Browser) -> None:
    world.browser("alice", "acme")
    with _watching() as bills:
        page = bob.get("/account/sessions/")
    assert (bills[0].trips, [c.operation for c in bills[0].calls]) == (2, ["BatchGetItem", "Query", "Query"])
    assert [row["id"] for row in page.context["sessions"]] == [id_of(bob)]
    says = text_of(page)
    assert "Firefox on Windows from 10.1.2.3, in Acme" in says
    assert "this browser" in says
    assert bob.session_key not in page.content.decode()


def test_another_session_is_ended_and_is_out_at_its_next_click(world: World, bob: Browser) -> None:
    other = world.browser("bob", "acme")
    bob.send(f"/account/sessions/{id_of(other)}/end/")
    assert (signed_in(bob), signed_in(other)) == (True, False)
    assert at(world) == [id_of(bob)]


def test_nobody_ends_the_session_of_somebody_else(world: World, bob: Browser) -> None:
    world.browser("alice", "acme").send(f"/account/sessions/{id_of(bob)}/end/")
    assert signed_in(bob)
    assert at(world) == [id_of(bob)]


@pytest.mark.parametrize("bad", ["x", "f" * 32, "..%2F", "%00", "a" * 3000])
def test_a_session_that_is_not_there_has_ended_already(world: World, bob: Browser, bad: str) -> None:
    response = bob.send(f"/account/sessions/{bad}/end/")
    assert response.status_code in (302, 404)  # type: ignore[attr-defined]
    assert signed_in(bob)


@pytest.mark.parametrize("path", ["/logout/everywhere/", "/account/password/"])
def test_what_ends_every_session_leaves_none_of_them_in_the_list(world: World, bob: Browser, path: str) -> None:
    world.browser("bob", "acme")
    new = {"old_password": PASSWORD} | dict.fromkeys(("new_password1", "new_password2"), "another long one")
    assert bob.send(path, new).status_code == 302  # type: ignore[attr-defined]
    assert at(world) == ([id_of(bob)] if signed_in(bob) else [])


@pytest.mark.parametrize("path", ["/logout/everywhere/", "/account/password/", ""])
def test_a_session_that_was_ended_and_is_still_stored_lets_nobody_in(
    world: World, bob: Browser, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(session_store, "forget", lambda user_id: 0)  # the engine did not answer then
    other = world.browser("bob", "acme")
    new = "another long one"
    if path:
        bob.send(path, {"old_password": PASSWORD, "new_password1": new, "new_password2": new})
    else:
        accounts.set_active(world.users["bob"].id, False, by=SYSTEM)
    assert id_of(other) in at(world)
    assert not signed_in(other)


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        (FIREFOX, "Firefox on Windows"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X)  Safari/604.1", "Safari on iPhone"),
        ("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/129.0 Safari/537.36 Edg/129.0", "Edge on Linux"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) CriOS/120.0 Safari/604.1", "Chrome on iPhone"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) FxiOS/120.0 Safari/605.1.15", "Firefox on iPhone"),
        ("Mozilla/5.0 (iPad; CPU OS 17_0 like Mac OS X) EdgiOS/120.0 Safari/605.1.15", "Edge on iPad"),
        ("Mozilla/5.0 (Linux; Android 14) Chrome/120.0 Mobile Safari/537.36 EdgA/120.0", "Edge on Android"),
        ("curl/8.5.0", "curl/8.5.0"),
        ("", "Unknown browser"),
    ],
)  # fmt: skip
def test_a_browser_is_called_what_people_call_it(agent: str, name: str) -> None:
    assert session_lifecycle.browser_of(agent) == name


# --- operators ---


def test_an_operator_comes_from_a_user_to_the_sessions(world: World, root: Operator, bob: Browser) -> None:
    user_id = world.users["bob"].id
    link = f"/admin/tenants/session/?user_id={user_id}"
    assert f'href="{link}"' in root.get(user_url(world, "bob")).content.decode()
    assert "10.1.2.3" not in root.says(link)
    page = root.open("acme").get(link)
    says = text_of(page)
    assert f"Firefox on Windows {id_of(bob)}" in says
    assert "10.1.2.3" in says
    assert f"Acme {world.tenants['acme'].tenant_id}" in says
    assert bob.session_key not in page.content.decode()


def test_an_operator_ends_one_session(world: World, root: Operator, bob: Browser) -> None:
    other = world.browser("bob", "acme")
    url = f"/admin/tenants/session/{id_of(other)}/delete/"
    assert "It counts at its next click." in root.says(url)
    assert root.post(url, {"post": "yes"}).status_code == 302
    assert (signed_in(bob), signed_in(other)) == (True, False)
    row = AuditRow.objects.filter(tenant_id=PLATFORM)[:1][0]
    assert (row.action, row.actor_email, row.entity_name) == ("session.ended", "root@example.com", "bob@example.com")
    assert "ended a session of bob@example.com" in root.open("acme").says(user_url(world, "bob", "history/"))


def test_a_session_stays_where_its_audit_row_cannot_be_written(
    world: World, root: Operator, bob: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tenants.audit_trail import recording

    monkeypatch.setattr(recording, "_add_rows", lambda *args: 1 / 0)
    root.raise_request_exception = False
    assert root.post(f"/admin/tenants/session/{id_of(bob)}/delete/", {"post": "yes"}).status_code == 500
    assert signed_in(bob)


def test_no_address_of_a_list_holds_a_key(world: World, root: Operator) -> None:
    browsers = [world.browser("bob", "acme") for _ in range(30)]
    with calls() as made:
        page = root.get(f"/admin/tenants/session/?user_id={world.users['bob'].id}").context["cl"]
    assert [c.operation for c in made] == ["BatchGetItem", "Query", "BatchGetItem", "Query"], "and the person's desks"
    second = root.get("/admin/tenants/session/" + page.next_url)
    listed = [*page.result_list, *second.context["cl"].result_list]
    assert {s.pk for s in listed} == {id_of(b) for b in browsers}
    for browser in browsers:
        assert browser.session_key not in page.next_url + second.content.decode()


# --- what is kept of signatures ---


def test_two_requests_of_a_session_share_nothing_that_one_could_change(bob: Browser) -> None:
    item = SessionItem.get(id_of(bob))
    first, second = (session_store.SessionStore.from_item(item, bob.session_key) for _ in range(2))
    first["noted"] = True
    assert ("noted" in first, "noted" in second) == (True, False)


def test_a_signature_of_a_key_that_was_withdrawn_is_good_no_more(bob: Browser, settings: Any) -> None:
    assert signed_in(bob)
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "n" * 60, [settings.SECRET_KEY]
    assert signed_in(bob)
    renewed = bob.cookies[settings.SESSION_COOKIE_NAME].value
    settings.SECRET_KEY_FALLBACKS = []
    assert read_cookie(renewed) is not None  # by the answer
    settings.SECRET_KEY = "m" * 60
    assert (read_cookie(renewed), signed_in(bob)) == (None, False)
