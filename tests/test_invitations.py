"""Inviting people and accepting an invitation: the only way into a desk from the portal."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from portal import clock
from portal.errors import Conflict, NotFound
from tenants import accounts, invites, mail, members
from tenants.audit import Actor
from tenants.invites import Sent
from tenants.models import User
from tenants.roles import Role
from tests.world import PASSWORD, Browser, World

NEW = {"name": "Nora New", "new_password1": "a long enough phrase", "new_password2": "a long enough phrase"}


def invite(world: World, address: str, role: Role = Role.AGENT) -> Sent:
    alice = world.context("alice", "acme")
    (outcome,) = invites.invite_all(alice, addresses=[address], role=role, by=Actor(alice.user_id))
    assert outcome.sent is not None, outcome.error
    return outcome.sent


def link(sent: Sent) -> str:
    return f"/invitation/{sent.secret}/"


def role_of(world: World, address: str) -> Role | None:
    user = accounts.find_by_email(address)
    found = members.member(world.context("alice", "acme").repository, user.id) if user else None
    return found.role if found else None


def test_the_link_in_the_mail_leads_somebody_new_into_the_desk(world: World, mailoutbox: list[Any]) -> None:
    alice = world.browser("alice", "acme")
    alice.send("/desk/invitations/", {"addresses": "nora@example.org", "role": "agent"})
    mail.wait_until_sent()
    (letter,) = mailoutbox
    path = re.search(r"https?://[^/]+(/invitation/[\w-]+/)", letter.body)
    assert path is not None
    assert path[1] in letter.alternatives[0][0], "the HTML says the same"
    nora = Browser()
    assert nora.post(path[1], NEW).status_code == 302
    assert nora.get("/tickets/").context["tenant"].name == "Acme"
    assert role_of(world, "nora@example.org") is Role.AGENT


def test_reading_the_link_writes_nothing(world: World) -> None:
    sent = invite(world, "nora@example.org")
    for _ in range(2):
        assert Browser().get(link(sent)).status_code == 200
    assert role_of(world, "nora@example.org") is None


def test_who_has_an_account_signs_in_and_accepts(world: World) -> None:
    sent = invite(world, "charlie@example.com", Role.ADMIN)
    visitor = Browser()
    assert b"/login/?next=" in visitor.get(link(sent)).content
    assert visitor.post(link(sent), NEW).status_code == 200, "nobody makes a second account"
    charlie = world.browser("charlie")
    charlie.send(link(sent))
    assert role_of(world, "charlie@example.com") is Role.ADMIN


def test_somebody_else_is_told_so_and_gets_nowhere(world: World) -> None:
    sent = invite(world, "nora@example.org")
    charlie = world.browser("charlie")
    assert b"another address" in charlie.get(link(sent)).content
    assert charlie.send(link(sent)).status_code == 409
    assert role_of(world, "charlie@example.com") is None


def test_an_invitation_works_once(world: World) -> None:
    sent = invite(world, "nora@example.org")
    assert Browser().post(link(sent), NEW).status_code == 302
    assert Browser().get(link(sent)).status_code == 404


def test_of_many_who_accept_at_the_same_moment_one_gets_in(world: World) -> None:
    for attempt in range(5):
        address = f"nora{attempt}@example.org"
        user = accounts.create(email=address, name="Nora", password=PASSWORD)
        offer = invites.of_link(invite(world, address).secret)

        def accept(_: int, user: User = user, offer: invites.Offer = offer) -> bool:
            try:
                invites.accept(offer, user=user, by=Actor(user.id))
            except Conflict:
                return False
            return True

        with ThreadPoolExecutor(6) as pool:
            assert sum(pool.map(accept, range(6))) == 1
        assert role_of(world, address) is Role.AGENT


def test_an_invitation_sent_again_ends_the_old_link_also_after_its_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = invite(world, "nora@example.org")
    later = clock.now() + timedelta(days=8)
    monkeypatch.setattr(clock, "now", lambda: later)
    assert Browser().get(link(old)).status_code == 410
    alice = world.context("alice", "acme")
    new = invites.resend(alice, invite_id=old.invite.invite_id, by=Actor(alice.user_id))
    assert Browser().get(link(old)).status_code == 404
    assert Browser().get(link(new)).status_code == 200


def test_a_revoked_invitation_is_gone_and_the_address_may_be_invited_again(world: World) -> None:
    sent = invite(world, "nora@example.org")
    world.browser("alice", "acme").send(f"/desk/invitations/{sent.invite.invite_id}/revoke/")
    with pytest.raises(NotFound):
        invites.of_link(sent.secret)
    assert invite(world, "nora@example.org").secret != sent.secret


def test_there_is_one_pending_invitation_per_address(world: World) -> None:
    invite(world, "nora@example.org")
    page = world.browser("alice", "acme").send("/desk/invitations/", {"addresses": "Nora@Example.org", "role": "agent"})
    assert page.status_code == 422
    assert b"already" in page.content


def test_each_line_of_a_pasted_list_has_its_own_answer(world: World) -> None:
    lines = "nora@example.org\nbob@example.com\n"
    page = world.browser("alice", "acme").send("/desk/invitations/", {"addresses": lines, "role": "agent"})
    assert page.status_code == 422
    assert b"Bob Example is a member already" in page.content
    assert [i.email for i in invites.pending(world.context("alice", "acme").repository)] == ["nora@example.org"]


def test_nobody_invites_above_the_own_role(world: World) -> None:
    world.add_user("Ada")
    world.join("ada", "acme", Role.ADMIN)
    page = world.browser("ada", "acme").send("/desk/invitations/", {"addresses": "n@example.org", "role": "owner"})
    assert page.status_code == 422
    assert invites.pending(world.context("alice", "acme").repository) == []


@pytest.mark.parametrize("who", ["bob", "vera"])
def test_inviting_takes_an_admin(world: World, who: str) -> None:
    browser = world.browser(who, "acme")
    assert browser.get("/desk/invitations/").status_code == 403
    assert browser.send("/desk/invitations/", {"addresses": "n@example.org", "role": "viewer"}).status_code == 403


def test_an_invitation_waits_where_one_chooses_a_desk(world: World) -> None:
    invite(world, "charlie@example.com")
    charlie = world.browser("charlie", "globex")
    page = charlie.get("/tenants/").content.decode()
    assert "Acme" in page
    charlie.send("/tenants/accept/", {"tenant": world.tenants["acme"].tenant_id})
    assert role_of(world, "charlie@example.com") is Role.AGENT


def test_a_suspended_desk_takes_nobody_in(world: World) -> None:
    from tenants import lifecycle

    sent = invite(world, "nora@example.org")
    lifecycle.set_status(world.tenants["acme"].tenant_id, lifecycle.SUSPENDED)
    assert Browser().post(link(sent), NEW).status_code == 410
