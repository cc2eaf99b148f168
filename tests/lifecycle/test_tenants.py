"""Choosing a tenant, and what a page of one tenant may do while another is pinned."""

from __future__ import annotations

import re

import pytest

from tenants.audit_trail.recording import SYSTEM
from tenants.lifecycle import tenant_lifecycle
from tenants.membership import member_changes
from tenants.tenancy.roles import Role
from tests.support.world import Browser, World


def text(response: object) -> str:
    return response.content.decode()  # type: ignore[attr-defined, no-any-return]


def test_the_chooser_lists_only_the_tenants_of_the_caller(world: World) -> None:
    page = text(world.browser("alice").get("/tenants/"))
    assert "Acme" in page
    assert "Globex" in page
    assert "Acme" not in text(world.browser("charlie").get("/tenants/"))


def test_somebody_in_no_tenant_learns_what_to_do(world: World) -> None:
    world.add_user("Nora")
    browser = world.browser("nora")
    response = browser.get("/tickets/", follow=True)
    assert response.redirect_chain[-1][0].startswith("/tenants/")
    assert "nora@example.com" in text(response)


def test_switching_changes_what_every_page_shows(world: World) -> None:
    world.tickets("acme", 1)
    browser = world.browser("alice", "globex")
    assert "Ticket 1" not in text(browser.get("/tickets/"))
    browser.enter(world.tenants["acme"].tenant_id)
    assert "Ticket 1" in text(browser.get("/tickets/"))


def test_the_current_tenant_is_on_every_page(world: World) -> None:
    world.tickets("acme", 1)
    browser = world.browser("bob")
    for path in ("/tickets/", "/tickets/1/", "/tickets/new/", "/account/", "/tenants/"):
        assert "Acme" in text(browser.get(path)), path


@pytest.mark.parametrize("tenant", ["", "x", "0" * 32, "../acme", "*", "acme"])
def test_switching_to_a_tenant_that_is_not_mine_is_not_found(world: World, tenant: str) -> None:
    browser = world.browser("charlie", "globex")
    assert browser.send("/tenants/switch/", {"tenant": tenant}).status_code == 404
    assert browser.send("/tenants/switch/", {"tenant": world.tenants["acme"].tenant_id}).status_code == 404


def test_the_chooser_can_be_searched(world: World) -> None:
    page = text(world.browser("alice").get("/tenants/?q=glob"))
    assert "Globex" in page
    assert 'value="' + world.tenants["acme"].tenant_id not in page


def test_the_switcher_is_a_fragment_for_htmx(world: World) -> None:
    page = text(world.browser("alice", "acme").get("/tenants/", headers={"HX-Request": "true"}))
    assert "<html" not in page
    assert "Globex" in page


def test_a_removed_member_is_out_at_the_next_click(world: World) -> None:
    browser = world.browser("bob")
    assert browser.get("/tickets/").status_code == 200
    member_changes.unseed_member(world.users["bob"].id, world.tenants["acme"].tenant_id)
    assert browser.get("/tickets/").status_code == 302
    assert "Ticket" not in text(browser.get("/tickets/", follow=True))


def test_a_changed_role_counts_at_the_next_click(world: World) -> None:
    world.tickets("acme", 1)
    browser = world.browser("bob")
    mark = browser.mark()
    bob, acme = world.users["bob"].id, world.tenants["acme"].tenant_id
    member_changes.set_role(user_id=bob, tenant_id=acme, role=Role.VIEWER, seen=Role.AGENT, by=SYSTEM)
    assert browser.get("/tickets/new/").status_code == 403
    assert browser.post("/tickets/1/comment/", {"_page": mark, "body": "x"}).status_code == 403


def test_a_suspended_tenant_has_its_page_and_the_others_go_on(world: World) -> None:
    browser = world.browser("alice", "acme")
    tenant_lifecycle.suspend(world.tenants["acme"].tenant_id, by=SYSTEM)
    response = browser.get("/tickets/")
    assert response.status_code == 403
    assert "suspended" in text(response)
    browser.enter(world.tenants["globex"].tenant_id)
    assert browser.get("/tickets/").status_code == 200


def test_a_resumed_tenant_works_again(world: World) -> None:
    browser = world.browser("bob")
    tenant_lifecycle.suspend(world.tenants["acme"].tenant_id, by=SYSTEM)
    assert browser.get("/tickets/").status_code == 403
    tenant_lifecycle.resume(world.tenants["acme"].tenant_id, by=SYSTEM)
    assert browser.get("/tickets/").status_code == 200


@pytest.mark.parametrize(
    ("who", "expected"), [("alice", 200), ("bob", 200), ("vera", 403)], ids=["owner", "agent", "viewer"]
)
def test_only_agents_and_above_open_tickets(world: World, who: str, expected: int) -> None:
    assert world.browser(who, "acme").get("/tickets/new/").status_code == expected


def test_the_refusal_names_the_role_that_is_needed(world: World) -> None:
    assert "needs the role Agent" in text(world.browser("vera").get("/tickets/new/"))


# --- two tabs: a page of one tenant, sent while another is pinned ---


@pytest.fixture
def stale(world: World) -> tuple[Browser, str, World]:
    """Alice opened a page in Acme and then switched to Globex in another tab."""
    world.tickets("acme", 1)
    world.tickets("globex", 1)
    browser = world.browser("alice", "acme")
    mark = browser.mark()
    browser.enter(world.tenants["globex"].tenant_id)
    return browser, mark, world


def test_a_page_of_one_tenant_cannot_write_into_another(stale: tuple[Browser, str, World]) -> None:
    browser, mark, world = stale
    response = browser.post("/tickets/1/comment/", {"_page": mark, "body": "For Acme only", "request_id": "a" * 32})
    assert response.status_code == 409
    assert "For Acme only" not in text(browser.get("/tickets/1/"))
    browser.enter(world.tenants["acme"].tenant_id)
    assert "For Acme only" not in text(browser.get("/tickets/1/"))


def test_the_409_page_names_both_tenants_and_shows_what_was_typed(stale: tuple[Browser, str, World]) -> None:
    browser, mark, _ = stale
    page = text(browser.post("/tickets/1/comment/", {"_page": mark, "body": "For Acme only"}))
    assert "Acme" in page
    assert "Globex" in page
    assert "For Acme only" in page


def test_after_switching_back_the_form_is_offered_again_and_arrives(stale: tuple[Browser, str, World]) -> None:
    browser, mark, world = stale
    form = {"_page": mark, "body": "For Acme only", "request_id": "a" * 32}
    page = text(browser.post("/tickets/1/comment/", form))
    token = re.search(r'name="resume" value="([^"]+)"', page)
    assert token is not None
    acme = world.tenants["acme"].tenant_id
    resumed = text(browser.post("/tenants/switch/", {"tenant": acme, "resume": token[1]}))
    assert "For Acme only" in resumed
    fields = dict(re.findall(r'name="(_page|body|request_id)" value="([^"]*)"', resumed))
    assert browser.post("/tickets/1/comment/", fields).status_code == 302
    assert "For Acme only" in text(browser.get("/tickets/1/"))


@pytest.mark.parametrize("mark", ["", "0" * 24, "<script>", "é"], ids=["none", "wrong", "markup", "unicode"])
def test_a_page_without_a_true_mark_cannot_write(world: World, mark: str) -> None:
    world.tickets("acme", 1)
    response = world.browser("bob").post("/tickets/1/comment/", {"_page": mark, "body": "kept", "request_id": "a" * 32})
    assert response.status_code == 409
    assert "kept" in text(response)


def test_a_page_of_another_person_cannot_write(world: World) -> None:
    world.tickets("acme", 1)
    mark = world.browser("alice", "acme").mark()
    response = world.browser("bob").post("/tickets/1/comment/", {"_page": mark, "body": "x", "request_id": "a" * 32})
    assert response.status_code == 409


def test_the_409_page_never_names_a_tenant_of_others(world: World) -> None:
    mark = world.browser("bob").mark()
    page = text(world.browser("charlie").post("/tickets/1/comment/", {"_page": mark, "body": "x"}))
    assert "Acme" not in page


# --- an expired session ---


def test_what_was_typed_survives_an_expired_session(world: World) -> None:
    world.tickets("acme", 1)
    browser = world.browser("bob")
    form = {"_page": browser.mark(), "body": "A long answer", "request_id": "a" * 32}
    browser.post("/logout/")
    page = browser.post("/tickets/1/comment/", form)
    assert page.status_code == 401
    token = re.search(r'name="resume" value="([^"]+)"', text(page))
    assert token is not None
    resumed = text(browser.sign_in("bob@example.com", resume=token[1]))
    assert "A long answer" in resumed
    fields = dict(re.findall(r'name="(_page|body|request_id)" value="([^"]*)"', resumed))
    assert browser.post("/tickets/1/comment/", fields).status_code == 302
    assert "A long answer" in text(browser.get("/tickets/1/"))


def test_a_kept_form_returns_to_its_own_tenant(world: World) -> None:
    world.tickets("globex", 1)
    browser = world.browser("alice", "globex")
    form = {"_page": browser.mark(), "body": "For Globex", "request_id": "a" * 32}
    browser.post("/logout/")
    token = re.search(r'name="resume" value="([^"]+)"', text(browser.post("/tickets/1/comment/", form)))
    assert token is not None
    resumed = text(browser.sign_in("alice@example.com", resume=token[1]))
    assert "Globex" in resumed
    fields = dict(re.findall(r'name="(_page|body|request_id)" value="([^"]*)"', resumed))
    assert browser.post("/tickets/1/comment/", fields).status_code == 302


def test_a_damaged_kept_form_does_not_stop_anybody_from_signing_in(world: World) -> None:
    response = Browser().sign_in("bob@example.com", resume="forged:token")
    assert response.status_code == 302  # type: ignore[attr-defined]


def test_a_password_is_never_kept(world: World) -> None:
    browser = world.browser("bob")
    browser.post("/logout/")
    response = browser.post("/account/password/", {"old_password": "secret-1", "new_password1": "secret-2"})
    assert "secret" not in text(response)


def test_a_partial_request_of_a_signed_out_person_moves_the_whole_page(world: World) -> None:
    browser = world.browser("bob")
    browser.post("/logout/")
    response = browser.get(
        "/tickets/", headers={"HX-Request": "true", "HX-Current-URL": "http://testserver/tickets/3/"}
    )
    assert response.status_code == 204
    assert response["HX-Redirect"] == "/login/?next=/tickets/3/"
