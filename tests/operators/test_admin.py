"""What operators do in the admin: tenants, accounts, memberships. How it reads and refuses: test_admin_pages.py."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from portal import clock
from portal.dynamo.store import Store
from tenants.audit_trail import recording
from tenants.lifecycle import desk_settings, tenant_lifecycle
from tenants.membership import members
from tenants.sign_in import accounts
from tenants.tenancy import tenant_directory
from tests.support.operators import Operator, make_operator, membership_url, tenant_url, text_of, trail, user_url
from tests.support.world import Browser, World, account_of, captured

NEW = {"name": "Initech", "slug": "", "owner": "charlie@example.com", "plan": "standard", "shards": "2"}


def told(tenant_id: str) -> list[tuple[str, str, str]]:
    """Action, who and from where, newest first."""
    return [(row.action, row.actor_email, row.origin) for row in trail(tenant_id)]


BY_ROOT = ("root@example.com", "admin")

# --- tenants ---


@pytest.mark.parametrize("address", ["charlie@example.com", "nora@example.org"], ids=["account", "none"])
def test_the_owner_of_a_new_tenant_is_invited_by_mail(
    world: World, root: Operator, mailoutbox: list[Any], address: str
) -> None:
    assert root.fill("/admin/tenants/tenant/add/", **(NEW | {"owner": address})).status_code == 302
    (letter,) = mailoutbox
    assert (letter.to, letter.subject) == ([address], "Invitation to Initech on Pooldesk")
    assert "Pooldesk invited you to join the support desk Initech as an owner." in letter.body
    tenant = tenant_directory.find("initech")
    assert (tenant.name, int(tenant.shards)) == ("Initech", 2)
    assert ("tenant.created", *BY_ROOT) in told(tenant.tenant_id)
    page = f"/admin/tenants/tenant/{tenant.tenant_id}/change/"
    assert "has not come yet" in root.says(page)
    link = captured(r"(/invitation/[\w-]+/)", letter.body)
    if address == "charlie@example.com":
        charlie, desk = world.browser("charlie"), {"tenant": tenant.tenant_id}
        assert charlie.post("/tenants/switch/", desk).status_code == 404
        assert charlie.post("/tenants/accept/", desk).status_code == 302
    else:
        new = {"name": "Nora", "new_password1": "a long enough phrase", "new_password2": "a long enough phrase"}
        assert Browser().post(link, new).status_code == 302
    (owner,) = members.owners_of(Store("tenant", tenant.tenant_id))
    assert owner.email == address
    assert "No invitation waits." in root.says(page)


def test_an_owner_who_has_not_come_is_invited_again(
    world: World, root: Operator, mailoutbox: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    root.fill("/admin/tenants/tenant/add/", **(NEW | {"owner": "nora@example.org"}))
    page = f"/admin/tenants/tenant/{tenant_directory.find('initech').tenant_id}/change/"
    real = clock.now
    monkeypatch.setattr(clock, "now", lambda: real() + timedelta(days=8))
    assert "has not come, and the invitation expired" in root.says(page)
    root.act(page, "_invite")
    first, second = mailoutbox
    assert first.to == second.to == ["nora@example.org"]
    assert first.body != second.body


def test_before_a_tenant_is_closed_the_page_says_until_when_it_stays_and_who_is_told(
    world: World, root: Operator, settings: Any
) -> None:
    settings.CLOSING_DAYS = 14
    page = text_of(root.post(tenant_url(world, "acme"), {"_close": "1"}))
    until = clock.now() + timedelta(days=14)
    assert f"It may be deleted from {until:%-d %B %Y}" in page
    assert "the grace is 14 days" in page
    assert "Its owners get a mail with the reason." in page
    assert "May be deleted from" not in root.says(tenant_url(world, "acme"))
    root.act(tenant_url(world, "acme"), "_close")
    assert "May be deleted from" in root.says(tenant_url(world, "acme"))


@pytest.mark.parametrize(
    ("field", "value", "status", "sentence"),
    [
        ("slug", "acme", 409, "The slug acme is taken."),
        ("owner", "x@fa\u00df.de", 422, "such as \u00df"),
        ("slug", "Not A Slug", 422, "Use 1-40 lowercase letters, digits or hyphens."),
        ("shards", "17", 400, "Use 1-16 shards."),
        ("plan", "Gold!", 400, "Use 1-40 lowercase letters, digits or hyphens."),
        ("name", "", 422, "This field is required."),
    ],
)
def test_what_a_rule_refuses_is_an_error_of_the_form_which_keeps_the_rest(
    world: World, root: Operator, field: str, value: str, status: int, sentence: str
) -> None:
    response = root.fill("/admin/tenants/tenant/add/", **(NEW | {field: value}))
    assert response.status_code == status
    form = response.context["adminform"].form
    assert sentence in str(form.errors[field])
    assert form["owner"].value() == (value if field == "owner" else "charlie@example.com")


def test_of_a_new_tenant_everything_that_is_wrong_is_said_at_once(world: World, root: Operator) -> None:
    response = root.fill("/admin/tenants/tenant/add/", **(NEW | {"slug": "Bad Slug!", "owner": ""}))
    assert {"slug", "owner"} <= {*response.context["adminform"].form.errors}


def test_a_suspended_tenant_says_so_to_its_members_until_it_is_resumed(world: World, root: Operator) -> None:
    bob, url = world.browser("bob", "acme"), tenant_url(world, "acme")
    assert "Acme is suspended." in text_of(root.act(url, "_suspend", reason="Unpaid since March", follow=True))
    assert "Acme is already suspended." in text_of(root.act(url, "_suspend", follow=True))
    assert bob.get("/tickets/").status_code == 403
    assert "Acme is suspended." in root.says("/admin/")
    assert "acme" in root.says("/admin/tenants/tenant/?status__exact=suspended")
    root.act(url, "_resume")
    assert bob.get("/tickets/").status_code == 200
    assert "Acme is suspended." not in root.says("/admin/")
    done = [action for action, *_ in told(world.tenants["acme"].tenant_id)]
    assert (done[:2], done.count("tenant.suspended")) == (["tenant.resumed", "tenant.suspended"], 1)
    history = root.says(tenant_url(world, "acme", "history/"))
    row = "root@example.com, admin suspended Acme status: active reason: Unpaid since March, status: suspended"
    assert row in history
    assert "created Acme" in history


def overtaken(monkeypatch: pytest.MonkeyPatch, by: Callable[[], object]) -> None:
    """Somebody else writes between what is read now and its write."""
    commit = recording.commit

    def later(*args: Any, **how: Any) -> None:
        monkeypatch.setattr(recording, "commit", commit)
        by()
        commit(*args, **how)

    monkeypatch.setattr(recording, "commit", later)


def test_a_suspension_never_lists_a_tenant_under_a_slug_that_it_had(
    world: World, root: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = world.context("alice", "acme")
    overtaken(monkeypatch, lambda: desk_settings.rename(alice, name="Acme", slug="acme-2", by=recording.SYSTEM))
    page = root.act(tenant_url(world, "acme"), "_suspend", follow=True)
    assert "Somebody else has just changed this tenant." in text_of(page)
    assert [item.name for item in tenant_directory.all_tenants()] == ["acme-2", "globex"]


def test_the_form_of_a_tenant_leaves_its_shards_as_they_are(world: World, root: Operator) -> None:
    assert root.fill(tenant_url(world, "acme"), plan="large", shards="4").status_code == 302
    tenant = tenant_directory.find("acme")
    assert (tenant.plan, int(tenant.shards), int(tenant.shard_epoch)) == ("large", 1, 0)


# --- stale forms and races ---


def test_a_stale_form_is_refused_with_both_values_and_can_be_sent_again(world: World, root: Operator) -> None:
    make_operator("Ruth")
    url = tenant_url(world, "acme")
    stale = root.get(url)
    assert Operator.signed_in("ruth@example.com").fill(url, plan="gold").status_code == 302
    refused = root.fill(url, stale, plan="silver")
    assert refused.status_code == 409
    assert "you saw “standard”, now it is “gold”, and you entered “silver”" in text_of(refused)
    assert tenant_directory.find("acme").plan == "gold"
    assert root.fill(url, refused).status_code == 302
    assert tenant_directory.find("acme").plan == "silver"


def test_a_form_that_does_not_say_what_it_showed_is_refused(world: World, root: Operator) -> None:
    for seen in ("", "forged", "a:b:c"):
        refused = root.fill(tenant_url(world, "acme"), seen=seen, plan="gold")
        assert (refused.status_code, tenant_directory.find("acme").plan) == (422, "standard")


def test_a_race_lost_between_reading_and_writing_is_an_error_of_the_form(
    world: World, root: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    acme, gold = world.tenants["acme"].tenant_id, tenant_lifecycle.TenantLimits("gold", 1)
    overtaken(monkeypatch, lambda: tenant_lifecycle.change_limits(acme, gold, by=recording.SYSTEM))
    refused = root.fill(tenant_url(world, "acme"), plan="silver")
    assert (refused.status_code, "now it is “gold”" in text_of(refused)) == (409, True)
    assert tenant_directory.find("acme").plan == "gold"


def test_nothing_is_changed_where_its_audit_row_cannot_be_written(
    world: World, root: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "_add_rows", lambda *args: 1 / 0)
    root.raise_request_exception = False
    assert root.fill(tenant_url(world, "acme"), plan="gold").status_code == 500
    assert tenant_directory.find("acme").plan == "standard"


def test_a_form_sent_after_the_session_has_ended_is_offered_again(world: World, root: Operator) -> None:
    shown = root.get("/admin/tenants/tenant/add/")
    root.cookies.clear()
    ended = root.fill("/admin/tenants/tenant/add/", shown, **NEW)
    assert ended.status_code == 401
    resume = captured(r'name="resume" value="([^"]+)"', ended)
    offered = root.sign_in("root@example.com", resume=resume)
    assert "Initech" in text_of(offered)
    assert 'action="/admin/tenants/tenant/add/"' in offered.content.decode()


# --- accounts ---


def test_an_account_is_created_with_its_row_in_the_platforms_trail(world: World, root: Operator) -> None:
    assert root.fill("/admin/tenants/account/add/", email="Dora@Example.com", name="Dora").status_code == 302
    assert accounts.find_by_email("dora@example.com") is not None
    assert ("user.created", *BY_ROOT) in told(recording.PLATFORM)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"email": "bob@example.com"}, "bob@example.com has an account already."),
        ({"name": "Dora\u202egro.live"}, "Use characters that can be seen."),
        ({"name": "\u3164"}, "Use characters that can be seen."),
    ],
)
def test_an_account_that_cannot_be_is_refused(
    world: World, root: Operator, change: dict[str, str], sentence: str
) -> None:
    new = {"email": "dora@example.com", "name": "Dora"}
    refused = root.fill("/admin/tenants/account/add/", **(new | change))
    assert refused.status_code in (400, 409, 422)
    assert sentence in text_of(refused)
    assert accounts.find_by_email("dora@example.com") is None


@pytest.mark.parametrize(
    ("button", "then"), [("_disable", 302), ("_sign_out", 302), ("_operator", 200)], ids=lambda v: str(v)
)
def test_buttons_of_an_account_count_at_the_next_click(world: World, root: Operator, button: str, then: int) -> None:
    bob = world.browser("bob", "acme")
    assert root.act(user_url(world, "bob"), button).status_code == 302
    assert bob.get("/tickets/").status_code == then
    assert bob.get("/admin/").status_code == then
    assert told(recording.PLATFORM)[0][1:] == BY_ROOT
    if button == "_disable":
        root.act(user_url(world, "bob"), "_enable")
        assert world.browser("bob", "acme").get("/tickets/").status_code == 200


def test_an_operator_cannot_lock_themselves_out(world: World, root: Operator) -> None:
    me = account_of("root@example.com")
    for button in ("_disable", "_no_operator"):
        page = root.act(f"/admin/tenants/account/{me.id}/change/", button, follow=True)
        assert "their own" in text_of(page)
    assert root.get("/admin/").status_code == 200


def test_who_is_no_operator_any_more_is_out_at_the_next_click(world: World, root: Operator) -> None:
    ruth = make_operator("Ruth")
    other = Operator.signed_in("ruth@example.com")
    root.act(f"/admin/tenants/account/{ruth.id}/change/", "_no_operator")
    assert other.get("/admin/").status_code == 403


# --- memberships ---


def test_somebody_is_made_a_member_gets_another_role_and_is_removed(world: World, root: Operator) -> None:
    added = root.fill(
        "/admin/tenants/membership/add/", who="vera@example.com", where="globex", role="agent", why="Globex asked."
    )
    assert added.status_code == 302
    assert world.context("vera", "globex").role == "agent"
    assert root.fill(membership_url(world, "vera", "globex"), role="admin", why="Again.").status_code == 302
    assert world.context("vera", "globex").role == "admin"
    url = membership_url(world, "vera", "globex", "delete/")
    assert "is out of the tenant at their next click" in root.says(url)
    assert root.post(url, {"post": "yes"}).status_code == 302
    assert root.get(membership_url(world, "vera", "globex")).status_code == 404
    done = [action for action, *_ in told(world.tenants["globex"].tenant_id)]
    assert done[:3] == ["member.removed", "member.role_changed", "member.added"]


def test_who_is_a_member_already_is_not_made_one_again(world: World, root: Operator) -> None:
    refused = root.fill("/admin/tenants/membership/add/", who="bob@example.com", where="acme", role="owner", why="No.")
    assert refused.status_code == 409
    assert world.context("bob", "acme").role == "agent"


# --- actions that take something away ask first, and keep the reason ---


def test_the_button_to_suspend_only_asks_and_takes_no_reason_that_is_empty_or_too_long(
    world: World, root: Operator
) -> None:
    page = root.post(tenant_url(world, "acme"), {"_suspend": "1"})
    assert (page.status_code, tenant_directory.find("acme").status) == (200, "active")
    assert "Suspend: Acme (acme)" in text_of(page)
    assert "its members see only a page that says so" in text_of(page)
    for reason, said in (("  ", "Say why"), ("x" * 301, "x" * 301)):
        page = root.act(tenant_url(world, "acme"), "_suspend", reason=reason)
        assert (page.status_code, tenant_directory.find("acme").status) == (422, "active")
        assert said in text_of(page)


@pytest.mark.parametrize("action", ["_disable", "_operator"])
def test_an_account_is_not_changed_before_a_reason_is_given(world: World, root: Operator, action: str) -> None:
    assert root.post(user_url(world, "bob"), {action: "1"}).status_code == 200
    bob = account_of("bob@example.com")
    assert (bob.is_active, bob.is_operator) == (True, False)


def test_the_reason_of_a_new_operator_stands_in_the_platforms_trail(world: World, root: Operator) -> None:
    root.act(user_url(world, "bob"), "_operator", reason="Covers the night shift")
    row = trail()[0]
    made = ("user.made_operator", "bob@example.com", "reason: Covers the night shift")
    assert (row.action, row.entity_name, row.after) == made


def test_an_operator_is_not_offered_to_disable_or_demote_themselves(world: World, root: Operator) -> None:
    ruth = make_operator("Ruth")
    for person, offered in ((account_of("root@example.com"), []), (ruth, ["_disable", "_no_operator"])):
        page = root.get(f"/admin/tenants/account/{person.id}/change/").content.decode()
        assert [name for name in ("_disable", "_no_operator") if f'name="{name}"' in page] == offered


def test_signing_somebody_out_says_first_which_sessions_end(world: World, root: Operator) -> None:
    bob = world.browser("bob", "acme")
    page = root.post(user_url(world, "bob"), {"_sign_out": "1"})
    assert page.status_code == 200
    assert re.search(r"signed in \d+ \w{3} 20\d\d, \d\d:\d\d UTC", text_of(page))
    assert bob.get("/tickets/").status_code == 200
    page = root.post(user_url(world, "bob"), {"_sign_out": "1", "confirmed": "1"}, follow=True)
    assert "bob@example.com is signed out on every device." in text_of(page)
    assert bob.get("/tickets/").status_code == 302
