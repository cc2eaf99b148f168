"""Inviting people and accepting an invitation: the only way into a desk from the portal."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from datetime import timedelta
from functools import partial
from html import unescape
from typing import Any

import pytest

from portal import clock, plain_text
from portal.errors import Conflict, Forbidden
from tenants.audit_trail.recording import SYSTEM, Actor
from tenants.lifecycle import tenant_lifecycle
from tenants.membership import accepting, invitations, mails, member_changes, members
from tenants.membership.invitations import SentInvite
from tenants.sign_in import accounts
from tenants.sign_in.stored import AccountItem, user_key
from tenants.tenancy.context import Role, TenantContext
from tests.support.commands import run
from tests.support.racing import succeed
from tests.support.stored import put_all
from tests.support.world import PASSWORD, Browser, World, captured

NEW = {"name": "Nora New", "new_password1": "a long enough phrase", "new_password2": "a long enough phrase"}


def invited_by(tenant: TenantContext, address: str, role: Role = Role.AGENT) -> SentInvite:
    """Invite somebody. Raises Conflict, as the outcome of a list says it."""
    (outcome,) = invitations.invite_all(tenant, addresses=[address], role=role, by=Actor(tenant.user_id))
    if outcome.sent is None:
        raise Conflict(outcome.error)
    return outcome.sent


def invite(world: World, address: str, role: Role = Role.AGENT) -> SentInvite:
    return invited_by(world.context("alice", "acme"), address, role)


def link(sent: SentInvite) -> str:
    return f"/invitation/{sent.secret}/"


def role_of(world: World, address: str) -> Role | None:
    user = accounts.find_by_email(address)
    found = members.member(world.context("alice", "acme").repository, user.id) if user else None
    return found.role if found else None


def test_the_link_in_the_mail_leads_somebody_new_into_the_desk(world: World, mailoutbox: list[Any]) -> None:
    alice = world.browser("alice", "acme")
    alice.send("/desk/invitations/", {"addresses": "nora@example.org", "role": "agent"})
    mails.wait_until_sent()
    (letter,) = mailoutbox
    path = captured(r"https?://[^/]+(/invitation/[\w-]+/)", letter.body)
    assert path in letter.alternatives[0][0], "the HTML says the same"
    nora = Browser()
    assert nora.post(path, NEW).status_code == 302
    assert nora.get("/tickets/").context["tenant"].name == "Acme"
    assert role_of(world, "nora@example.org") is Role.AGENT


@pytest.mark.parametrize("name", ["Nora\u202egpj.exe", "\u3164", "\u200b\u2800"])
def test_nobody_takes_a_name_that_cannot_be_seen_or_turns_around(world: World, name: str) -> None:
    page = Browser().post(link(invite(world, "nora@example.org")), NEW | {"name": name})
    assert page.status_code == 422
    assert page.context["form"].errors == {"name": ["Use characters that can be seen."]}
    assert role_of(world, "nora@example.org") is None


LINKS = (
    "Win at https://evil.example/x",
    "www.evil.example",
    "evil.example/win",
    "me@evil.example",
    "mailto:x",
    "a://b",
)
A_LINK = re.compile(r"(?i)https?://|www\.\w|\w[.\u3002]example|\w@\w|mailto:\w|a://b|Booking\.com")


@pytest.mark.parametrize("name", LINKS)
def test_a_name_that_people_choose_is_no_link(world: World, name: str) -> None:
    says = ["Leave links and addresses out: names stand in e-mails."]
    alice = world.browser("alice", "acme")
    pages: list[Any] = [
        alice.send("/desk/settings/", {"name": name, "slug": "acme"}),
        alice.send("/desk/settings/api-keys/new/", {"name": name, "scopes": ["tickets:read"], "grace": "0"}),
        Browser().post(link(invite(world, "nora@example.org")), NEW | {"name": name}),
    ]
    for page in pages:
        assert (page.status_code, page.context["form"].errors["name"]) == (422, says), page.wsgi_request.path
    for command in (("create_tenant", name, "--slug", "x"), ("create_user", "x@example.org", "--name", name)):
        ended = run(*command)
        assert (ended.status, says[0] in ended.err) == (1, True), command


@pytest.mark.parametrize("name", ["Booking.com", "J.R.R. Tolkien", "St. Gallen: Support", "A/B", "Q&A @ Acme", "24:7"])
def test_a_name_with_dots_and_signs_is_one(name: str) -> None:
    assert plain_text.name_fault(name) == ""


@pytest.mark.parametrize(
    "name", [*LINKS, "Booking.com", "evil\u3002example", "\uff57ww.evil.example", "a\r\nb.example"]
)
def test_a_name_stored_before_is_no_link_in_a_mail(world: World, mailoutbox: list[Any], name: str) -> None:
    tenant, account = world.tenants["acme"], AccountItem.get(user_key(world.users["alice"].id))
    tenant.name = account.name = name
    put_all([tenant, account])
    world.browser("alice", "acme").send("/desk/invitations/", {"addresses": "nora@example.org", "role": "agent"})
    Browser().post("/password/reset/", {"email": "alice@example.com"})
    mails.wait_until_sent()
    assert len(mailoutbox) == 2
    for letter in mailoutbox:
        text = "\n".join([letter.subject, letter.body, re.sub(r"<[^>]*>", " ", letter.alternatives[0][0])])
        for ours in ("http://testserver/", "nora@example.org", "alice@example.com"):
            text = text.replace(ours, "")
        assert not A_LINK.search(unescape(text))
        assert len(letter.subject.splitlines()) == 1


def test_who_has_an_account_signs_in_and_accepts(world: World) -> None:
    sent = invite(world, "charlie@example.com", Role.ADMIN)
    visitor = Browser()
    assert b"/login/?next=" in visitor.get(link(sent)).content
    assert visitor.post(link(sent), NEW).status_code == 200, "nobody makes a second account"
    charlie = world.browser("charlie")
    charlie.send(link(sent))
    assert role_of(world, "charlie@example.com") is Role.ADMIN


def test_reading_the_link_writes_nothing_and_it_works_once(world: World) -> None:
    sent = invite(world, "nora@example.org")
    assert [Browser().get(link(sent)).status_code for _ in range(2)] == [200, 200]
    assert role_of(world, "nora@example.org") is None
    assert Browser().post(link(sent), NEW).status_code == 302
    assert Browser().get(link(sent)).status_code == 404


def test_each_line_of_a_pasted_list_has_its_own_answer(world: World) -> None:
    invite(world, "nora@example.org")
    lines = "Nora@Example.org\nnina@example.org\nbob@example.com\n"
    page = world.browser("alice", "acme").send("/desk/invitations/", {"addresses": lines, "role": "agent"})
    assert page.status_code == 422
    assert b"Bob Example is already a member" in page.content
    assert len([error for error in page.context["form"].errors["addresses"] if "already" in error]) == 2
    pending = invitations.pending(world.context("alice", "acme").repository)
    assert sorted(i.email for i in pending) == ["nina@example.org", "nora@example.org"]


def test_of_many_who_accept_at_the_same_moment_one_gets_in(world: World) -> None:
    for attempt in range(5):
        address = f"nora{attempt}@example.org"
        user = accounts.create(email=address, name="Nora", password=PASSWORD, by=SYSTEM)
        offer = accepting.by_secret(invite(world, address).secret)
        assert succeed([partial(accepting.accept, offer, user=user, by=Actor(user.id))] * 6) == 1
        assert role_of(world, address) is Role.AGENT


def test_nobody_invites_above_the_own_role(world: World) -> None:
    world.add_user("Ada")
    world.join("ada", "acme", Role.ADMIN)
    page = world.browser("ada", "acme").send("/desk/invitations/", {"addresses": "n@example.org", "role": "owner"})
    assert page.status_code == 422
    assert invitations.pending(world.context("alice", "acme").repository) == []


def test_an_invitation_waits_where_one_chooses_a_desk(world: World) -> None:
    invite(world, "charlie@example.com")
    charlie = world.browser("charlie", "globex")
    page = charlie.get("/tenants/").content.decode()
    assert "Acme" in page
    charlie.send("/tenants/accept/", {"tenant": world.tenants["acme"].tenant_id})
    assert role_of(world, "charlie@example.com") is Role.AGENT


def test_a_suspended_desk_takes_nobody_in(world: World) -> None:
    sent = invite(world, "nora@example.org")
    tenant_lifecycle.suspend(world.tenants["acme"].tenant_id, by=SYSTEM)
    assert Browser().post(link(sent), NEW).status_code == 410


def test_lines_that_are_no_addresses_are_named_and_nothing_is_sent(world: World, mailoutbox: list[Any]) -> None:
    lines = "nora@example.org\nnot an address\n\nNina <nina@example.org>; also not\n"
    page = world.browser("alice", "acme").send("/desk/invitations/", {"addresses": lines, "role": "agent"})
    assert page.status_code == 422
    assert page.context["form"].errors["addresses"] == [
        "Line 2: \u201cnot an address\u201d is not an e-mail address.",
        "Line 4: \u201calso not\u201d is not an e-mail address.",
        "No invitations were sent.",
    ]
    assert page.context["form"]["addresses"].value() == lines, "what was pasted is still there"
    mails.wait_until_sent()
    assert mailoutbox == []
    assert invitations.pending(world.context("alice", "acme").repository) == []


@pytest.mark.parametrize("address", ["nora@exam\u200bple.org", "nora@\uff45xample.org"])
def test_an_address_with_another_ones_mailbox_is_none(world: World, address: str) -> None:
    page = world.browser("alice", "acme").send("/desk/invitations/", {"addresses": address, "role": "agent"})
    assert page.context["form"].errors["addresses"][0] == f"Line 1: \u201c{address}\u201d is not an e-mail address."


def test_a_pasted_list_takes_names_commas_and_the_same_address_twice(world: World, mailoutbox: list[Any]) -> None:
    lines = "Nora New <nora@example.org>, NORA@example.org\r\nnina@example.org;nils@example.org\r\n"
    page = world.browser("alice", "acme").send("/desk/invitations/", {"addresses": lines, "role": "viewer"})
    assert page.status_code == 302
    mails.wait_until_sent()
    assert sorted(letter.to[0] for letter in mailoutbox) == ["nils@example.org", "nina@example.org", "nora@example.org"]


def test_too_long_a_list_is_refused_whole_and_not_cut_by_the_browser(world: World) -> None:
    assert b"maxlength" not in world.browser("alice", "acme").get("/desk/invitations/").content
    lines = "\n".join(f"n{n}@example.org" for n in range(invitations.MOST_AT_ONCE + 1))
    page = world.browser("alice", "acme").send("/desk/invitations/", {"addresses": lines, "role": "agent"})
    assert page.context["form"].errors["addresses"] == ["You can invite up to 50 people at once. This list has 51."]
    assert invitations.pending(world.context("alice", "acme").repository) == []


def test_of_many_who_invite_one_address_at_the_same_moment_one_does(world: World) -> None:
    alice = world.context("alice", "acme")
    for attempt in range(4):
        assert succeed([partial(invited_by, alice, f"nora{attempt}@example.org")] * 4) == 1
    assert len(invitations.pending(alice.repository)) == 4


def test_an_expired_invitation_is_shown_as_such_and_sent_again_from_the_page(
    world: World, monkeypatch: pytest.MonkeyPatch, mailoutbox: list[Any]
) -> None:
    old = invite(world, "nora@example.org")
    later = clock.now() + timedelta(days=8)
    monkeypatch.setattr(clock, "now", lambda: later)
    alice = world.browser("alice", "acme")
    assert Browser().get(link(old)).status_code == 410
    assert [shown["expired"] for shown in alice.get("/desk/invitations/").context["pending"]] == [True]
    assert alice.send(f"/desk/invitations/{old.invite.invite_id}/resend/").status_code == 302
    mails.wait_until_sent()
    path = captured(r"(/invitation/[\w-]+/)", mailoutbox[0].body)
    assert [Browser().post(one, NEW).status_code for one in (link(old), path)] == [404, 302]
    assert role_of(world, "nora@example.org") is Role.AGENT


def test_revoking_asks_first_and_then_the_address_may_be_invited_again(world: World) -> None:
    sent = invite(world, "nora@example.org")
    alice = world.browser("alice", "acme")
    page = alice.get(f"/desk/invitations/{sent.invite.invite_id}/revoke/")
    assert b"Revoke the invitation for nora@example.org?" in page.content
    assert Browser().get(link(sent)).status_code == 200
    assert alice.get(f"/desk/invitations/{'0' * 32}/revoke/").status_code == 404
    alice.send(f"/desk/invitations/{sent.invite.invite_id}/revoke/")
    assert Browser().get(link(sent)).status_code == 404
    assert invite(world, "nora@example.org").secret != sent.secret


def test_an_admin_touches_no_invitation_above_the_own_role(world: World) -> None:
    sent = invite(world, "nora@example.org", Role.OWNER)
    world.add_user("Ada")
    world.join("ada", "acme", Role.ADMIN)
    ada = world.browser("ada", "acme")
    for what in ("resend", "revoke"):
        assert ada.send(f"/desk/invitations/{sent.invite.invite_id}/{what}/").status_code == 403
    assert Browser().get(link(sent)).status_code == 200


def test_somebody_else_signs_out_and_accepts_as_who_is_invited(world: World) -> None:
    sent = invite(world, "nora@example.org")
    browser = world.browser("charlie")
    page = browser.get(link(sent)).content
    assert (b"charlie@example.com" in page, b"another address" in page) == (True, True)
    with pytest.raises(Forbidden, match="This invitation is for another address"):
        accepting.accept(accepting.by_secret(sent.secret), user=world.users["charlie"], by=Actor("charlie"))
    assert browser.send(link(sent), NEW).status_code == 409, "nor does a form that was open before"
    browser.send("/logout/")
    assert browser.post(link(sent), NEW).status_code == 302
    assert browser.get("/account/").context["user"].email == "nora@example.org"
    assert role_of(world, "charlie@example.com") is None


def test_who_is_a_member_already_keeps_the_role_and_the_invitation_is_used_up(world: World) -> None:
    sent = invite(world, "charlie@example.com", Role.VIEWER)
    world.join("charlie", "acme", Role.ADMIN)
    assert world.browser("charlie", "globex").send(link(sent)).status_code == 302
    assert role_of(world, "charlie@example.com") is Role.ADMIN
    assert Browser().get(link(sent)).status_code == 404


def test_the_switcher_shows_invitations_that_wait_and_none_that_ended(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = world.context("alice", "acme")
    sent = invite(world, "charlie@example.com")
    charlie = world.browser("charlie")

    def waiting() -> list[str]:
        page = charlie.get("/tenants/", headers={"HX-Request": "true"})
        assert (b"Alice Example invited you" in page.content) is bool(page.context["waiting"])
        return [invited["tenant_name"] for invited in page.context["waiting"]]

    assert waiting() == ["Acme"]
    later = clock.now() + timedelta(days=8)
    with monkeypatch.context() as patch:
        patch.setattr(clock, "now", lambda: later)
        assert waiting() == []
        ended = charlie.send("/tenants/accept/", {"tenant": alice.tenant_id}, follow=True)
        assert b"has expired" in ended.content
    invitations.revoke(alice, invite_id=sent.invite.invite_id, by=Actor(alice.user_id))
    assert waiting() == []
    assert charlie.send("/tenants/accept/", {"tenant": alice.tenant_id}).status_code == 404
    assert role_of(world, "charlie@example.com") is None


def test_nobody_accepts_what_waits_for_somebody_else(world: World) -> None:
    invite(world, "nora@example.org")
    for tenant in (world.tenants["acme"].tenant_id, "nothing", ""):
        assert world.browser("charlie").send("/tenants/accept/", {"tenant": tenant}).status_code == 404
    assert role_of(world, "charlie@example.com") is None


# --- an invitation stands with its inviter's right ---


def admin(world: World, name: str, role: Role = Role.ADMIN) -> TenantContext:
    """Somebody more who may invite people to Acme."""
    world.add_user(name)
    world.join(name.lower(), "acme", role)
    return world.context(name.lower(), "acme")


def test_an_invitation_ends_when_its_inviter_is_removed(world: World) -> None:
    sent = invited_by(admin(world, "Olga", Role.OWNER), "nora@example.org", Role.OWNER)
    alice = world.browser("alice", "acme")
    alice.send(f"/desk/members/{world.users['olga'].id}/remove/")
    page = Browser().post(link(sent), NEW)
    assert (page.status_code, "Olga Example can no longer invite you." in page.content.decode()) == (410, True)
    assert accounts.find_by_email("nora@example.org") is None
    assert "No longer valid" in alice.get("/desk/invitations/").content.decode()


def test_an_inviter_who_steps_down_to_admin_no_longer_makes_an_owner_but_still_an_agent(world: World) -> None:
    olga = admin(world, "Olga", Role.OWNER)
    to_owner, to_agent = invited_by(olga, "nora@example.org", Role.OWNER), invited_by(olga, "nina@example.org")
    world.browser("alice", "acme").send(f"/desk/members/{olga.user_id}/role/", {"role": "admin"})
    assert Browser().post(link(to_owner), NEW).status_code == 410
    assert Browser().post(link(to_agent), NEW).status_code == 302
    assert (role_of(world, "nora@example.org"), role_of(world, "nina@example.org")) == (None, Role.AGENT)


def test_an_inviter_who_is_removed_while_the_form_is_open_lets_nobody_in(world: World) -> None:
    ada = admin(world, "Ada")
    offer = accepting.by_secret(invited_by(ada, "charlie@example.com").secret)
    member_changes.remove(user_id=ada.user_id, tenant_id=ada.tenant_id, by=SYSTEM)
    with pytest.raises(Conflict, match="Ada Example can no longer invite you"):
        accepting.accept(offer, user=world.users["charlie"], by=SYSTEM)
    assert role_of(world, "charlie@example.com") is None


def test_an_invitation_of_somebody_who_left_is_not_shown_where_one_chooses_a_desk(world: World) -> None:
    ada = admin(world, "Ada")
    invited_by(ada, "charlie@example.com")
    charlie = world.browser("charlie")
    assert len(charlie.get("/tenants/").context["waiting"]) == 1
    member_changes.remove(user_id=ada.user_id, tenant_id=ada.tenant_id, by=SYSTEM)
    assert charlie.get("/tenants/").context["waiting"] == []


def test_whoever_sends_an_invitation_again_answers_for_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    ada = admin(world, "Ada")
    sent = invited_by(ada, "nora@example.org")
    member_changes.remove(user_id=ada.user_id, tenant_id=ada.tenant_id, by=SYSTEM)
    later = clock.now() + invitations.PAUSE
    monkeypatch.setattr(clock, "now", lambda: later)
    alice = world.context("alice", "acme")
    again = invitations.resend(alice, invite_id=sent.invite.invite_id, by=Actor(alice.user_id))
    assert b"Alice Example invited" in Browser().get(link(again)).content
    assert Browser().post(link(again), NEW).status_code == 302


# --- how many mails, and what stands in them ---


def test_an_invitation_is_sent_again_after_a_pause_and_not_before(
    world: World, mailoutbox: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = invite(world, "nora@example.org")
    alice = world.browser("alice", "acme")
    resend = f"/desk/invitations/{sent.invite.invite_id}/resend/"
    page = alice.send(resend, follow=True)
    assert "You can send it again in 5 minutes." in page.content.decode()
    assert Browser().get(link(sent)).status_code == 200, "the link is still good"
    later = clock.now() + invitations.PAUSE
    monkeypatch.setattr(clock, "now", lambda: later)
    alice.send(resend)
    mails.wait_until_sent()
    assert [letter.to for letter in mailoutbox] == [["nora@example.org"]]


def test_a_desk_sends_a_limited_number_of_invitations_in_an_hour_also_when_it_revokes_them(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(invitations, "MAILS_PER_HOUR", 3)
    monkeypatch.setattr(time, "time", lambda: 1_800_000_000.0)  # the beginning of an hour
    alice = world.browser("alice", "acme")
    for n in range(2):
        sent = invite(world, f"n{n}@example.org")
        alice.send(f"/desk/invitations/{sent.invite.invite_id}/revoke/")
    lines = "a@example.org\nb@example.org"
    page = alice.send("/desk/invitations/", {"addresses": lines, "role": "agent"})
    assert page.context["form"].errors["addresses"] == [
        "b@example.org: This desk has sent 3 invitations within an hour. You can send more in 60 minutes."
    ]
    assert [i.email for i in invitations.pending(world.context("alice", "acme").repository)] == ["a@example.org"]
    monkeypatch.setattr(time, "time", lambda: 1_800_003_600.0)
    invite(world, "b@example.org")


def test_no_more_are_sent_in_an_hour_by_many_at_the_same_moment(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(invitations, "MAILS_PER_HOUR", 4)
    monkeypatch.setattr(time, "time", lambda: 1_800_000_000.0)
    alice = world.context("alice", "acme")

    assert succeed([partial(invited_by, alice, f"n{n}@example.org") for n in range(8)]) == 4


def test_a_subject_holds_the_cleaned_name_of_the_desk_and_nothing_else_that_somebody_chose(world: World) -> None:
    sent = invite(world, "nora@example.org")
    sent.invite.invited_by_name = "Your account is blocked, call\u202e 0900\n" + "!" * 100
    desk = replace(world.context("alice", "acme"), name="Acme\r\nBcc: x@example.org\u202e" + "x" * 100)
    letter = mails.invitation(sent.invite, tenant=desk, url="/")
    assert letter.subject == "Invitation to Acme Bcc: x@ example. org " + "x" * 33 + "… on Pooldesk"
    assert "\u202e" not in letter.body
    assert "!" * 40 not in letter.body
