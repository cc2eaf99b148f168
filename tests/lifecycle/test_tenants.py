"""Choosing a tenant, and what a page of one tenant may do while another is pinned."""

from __future__ import annotations

import re

import pytest

from tenants.audit_trail.recording import SYSTEM
from tenants.lifecycle import tenant_lifecycle
from tenants.membership import member_changes
from tenants.tenancy.context import Role
from tests.support.world import Browser, World

COMMENT = "/tickets/1/comment/"


def text(response: object) -> str:
    return response.content.decode()  # type: ignore[attr-defined, no-any-return]


def form(mark: str, body: str = "For Acme only") -> dict[str, str]:
    return {"_page": mark, "body": body, "request_id": "a" * 32}


def resume(page: object) -> str:
    """The token by which a page offers what was typed again."""
    token = re.search(r'name="resume" value="([^"]+)"', text(page))
    assert token is not None
    return token[1]


def sent_again(browser: Browser, resumed: str) -> str:
    """Send the form that was offered again, and return the ticket's page."""
    fields = dict(re.findall(r'name="(_page|body|request_id)" value="([^"]*)"', resumed))
    assert browser.post(COMMENT, fields).status_code == 302
    return text(browser.get("/tickets/1/"))


def test_the_chooser_lists_and_searches_the_tenants_of_the_caller(world: World) -> None:
    alice = world.browser("alice", "acme")
    page = text(alice.get("/tenants/"))
    assert ("Acme" in page, "Globex" in page) == (True, True)
    assert "Acme" not in text(world.browser("charlie").get("/tenants/"))
    page = text(alice.get("/tenants/?q=glob"))
    assert "Globex" in page
    assert 'value="' + world.tenants["acme"].tenant_id not in page
    fragment = text(alice.get("/tenants/", headers={"HX-Request": "true"}))
    assert ("<html" in fragment, "Globex" in fragment) == (False, True)


def test_somebody_in_no_tenant_learns_what_to_do(world: World) -> None:
    world.add_user("Nora")
    response = world.browser("nora").get("/tickets/", follow=True)
    assert response.redirect_chain[-1][0].startswith("/tenants/")
    assert "nora@example.com" in text(response)


def test_switching_changes_what_every_page_shows(world: World) -> None:
    world.tickets("acme", 1)
    browser = world.browser("alice", "globex")
    assert "Ticket 1" not in text(browser.get("/tickets/"))
    browser.enter(world.tenants["acme"].tenant_id)
    assert "Ticket 1" in text(browser.get("/tickets/"))
    for path in ("/tickets/", "/tickets/1/", "/tickets/new/", "/account/", "/tenants/"):
        assert "Acme" in text(browser.get(path)), path


def test_switching_to_a_tenant_that_is_not_mine_is_not_found(world: World) -> None:
    browser = world.browser("charlie", "globex")
    for tenant in ("", "x", "0" * 32, "../acme", "*", "acme", world.tenants["acme"].tenant_id):
        assert browser.send("/tenants/switch/", {"tenant": tenant}).status_code == 404, tenant


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
    assert browser.get("/tickets/new/").status_code == 200
    member_changes.set_role(user_id=bob, tenant_id=acme, role=Role.VIEWER, seen=Role.AGENT, by=SYSTEM)
    refused = browser.get("/tickets/new/")
    assert (refused.status_code, "needs the role Agent" in text(refused)) == (403, True)
    assert browser.post(COMMENT, {"_page": mark, "body": "x"}).status_code == 403


def test_a_suspended_tenant_has_its_page_the_others_go_on_and_a_resumed_one_works_again(world: World) -> None:
    browser, acme = world.browser("alice", "acme"), world.tenants["acme"].tenant_id
    tenant_lifecycle.suspend(acme, by=SYSTEM)
    response = browser.get("/tickets/")
    assert (response.status_code, "suspended" in text(response)) == (403, True)
    browser.enter(world.tenants["globex"].tenant_id)
    assert browser.get("/tickets/").status_code == 200
    tenant_lifecycle.resume(acme, by=SYSTEM)
    assert world.browser("bob").get("/tickets/").status_code == 200


# --- two tabs: a page of one tenant, sent while another is pinned ---


def test_a_page_of_one_tenant_cannot_write_into_another(world: World) -> None:
    """Alice opened a page in Acme and then switched to Globex in another tab."""
    world.tickets("acme", 1)
    world.tickets("globex", 1)
    browser, acme = world.browser("alice", "acme"), world.tenants["acme"].tenant_id
    mark = browser.mark()
    browser.enter(world.tenants["globex"].tenant_id)
    response = browser.post(COMMENT, form(mark))
    assert response.status_code == 409
    assert [name for name in ("Acme", "Globex", "For Acme only") if name not in text(response)] == []
    assert "For Acme only" not in text(browser.get("/tickets/1/"))
    resumed = text(browser.post("/tenants/switch/", {"tenant": acme, "resume": resume(response)}))
    assert "For Acme only" in resumed
    assert "For Acme only" not in text(browser.get("/tickets/1/"))
    assert "For Acme only" in sent_again(browser, resumed)


@pytest.mark.parametrize(
    "mark", ["", "0" * 24, "<script>", "é", None], ids=["none", "wrong", "markup", "unicode", "another person's"]
)
def test_a_page_without_a_true_mark_cannot_write(world: World, mark: str | None) -> None:
    world.tickets("acme", 1)
    mark = world.browser("alice", "acme").mark() if mark is None else mark
    response = world.browser("bob").post(COMMENT, form(mark, "kept"))
    assert (response.status_code, "kept" in text(response)) == (409, True)


def test_the_409_page_never_names_a_tenant_of_others(world: World) -> None:
    assert "Acme" not in text(world.browser("charlie").post(COMMENT, form(world.browser("bob").mark(), "x")))


# --- an expired session ---


def test_what_was_typed_survives_an_expired_session_and_returns_to_its_own_tenant(world: World) -> None:
    world.tickets("globex", 1)
    browser = world.browser("alice", "globex")
    kept = form(browser.mark(), "For Globex")
    browser.post("/logout/")
    page = browser.post(COMMENT, kept)
    assert page.status_code == 401
    resumed = text(browser.sign_in("alice@example.com", resume=resume(page)))
    assert ("Globex" in resumed, "For Globex" in resumed) == (True, True)
    assert "For Globex" in sent_again(browser, resumed)


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
