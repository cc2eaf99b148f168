"""An auditor's access: given by owners for a time, to the audit pages alone, and over at a moment."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from portal import clock
from portal.dynamo.platform import PLATFORM
from portal.errors import Conflict, Invalid
from portal.web.access import for_auditors
from tenants.audit_trail import browsing, chain
from tenants.audit_trail.browsing import TrailFilter
from tenants.audit_trail.recording import SYSTEM, Actor
from tenants.impersonation import impersonating
from tenants.membership import accepting, auditors, invitations, mails, member_changes, members, past_roster
from tenants.sign_in import accounts, impersonation_session
from tenants.tenancy import access_middleware, context
from tenants.tenancy.context import MEMBER_ROLES, Role
from tenants.tenancy.stored import MembershipItem, TenantItem
from tests.desk.test_cost import spent
from tests.isolation.test_outsider import API_CALLS, FORM, ROUTES, SECRET, acme, filled
from tests.membership.test_seats import limit
from tests.privacy.test_person_pages import erased, searched
from tests.support.commands import run
from tests.support.world import PASSWORD, Browser, World, captured
from tickets.desk import changing

__all__ = ["acme"]  # the desk with something behind each of its routes

FIRST = "/acme/desk/evidence/"
ADA = "ada@audit.example"


def audit(world: World, *, days: float = 30) -> Browser:
    """Ada, an auditor of Acme for so many days, signed in and at its first page."""
    alice = world.context("alice", "acme")
    user = accounts.find_by_email(ADA) or accounts.create(email=ADA, name="Ada Audit", password=PASSWORD, by=SYSTEM)
    until = clock.now() + timedelta(days=days)
    sent = auditors.invite(
        alice, name="Ada Audit", address=ADA, purpose="ISO 27001", until=until, by=Actor(alice.user_id)
    )
    accepting.accept(accepting.by_secret(sent.secret), user=user, by=Actor(user.id, ADA))
    world.users["ada"] = user
    return world.browser("ada", "acme")


def sentences(world: World) -> list[str]:
    rows = browsing.page(world.context("alice", "acme").repository, only=TrailFilter()).rows
    return [f"{row.actor} {row.sentence(row.entity)}" for row in rows]


def test_an_owner_invites_by_name_address_and_purpose_and_the_link_leads_to_the_evidence(
    world: World, mailoutbox: list[Any]
) -> None:
    owner, last = world.browser("alice", "acme"), (clock.now() + timedelta(days=20)).date()
    form = {"name": "Ada Audit", "email": ADA, "purpose": "ISO 27001, yearly", "until": f"{last}"}
    assert owner.send("/desk/auditors/", form).status_code == 302
    assert "ISO 27001, yearly" in owner.get("/desk/auditors/").content.decode()
    mails.wait_until_sent()
    path = captured(r"https?://[^/]+(/invitation/[\w-]+/)", mailoutbox[0].body)
    assert "as an auditor" in mailoutbox[0].body
    visitor = Browser()
    joined = visitor.post(path, {"name": "Ada", "new_password1": PASSWORD, "new_password2": PASSWORD}, follow=True)
    assert joined.redirect_chain[-1][0] == FIRST
    assert joined.status_code == 200
    page = owner.get("/desk/auditors/").content.decode()
    assert ADA in page
    assert "invited, not accepted yet" not in page


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"until": "2020-01-01"}, "until"),
        ({"until": f"{(clock.now() + timedelta(days=92)).date()}"}, "until"),
        ({"until": "soon"}, "until"),
        ({"purpose": " "}, "purpose"),
        ({"name": ""}, "name"),
        ({"email": "ada"}, "email"),
    ],
)
def test_an_invitation_that_cannot_be_is_refused_at_its_field_and_loses_nothing(
    world: World, wrong: dict[str, str], field: str
) -> None:
    good = {"name": "Ada", "email": ADA, "purpose": "ISO", "until": f"{(clock.now() + timedelta(days=5)).date()}"}
    answer = world.browser("alice", "acme").send("/desk/auditors/", {**good, **wrong})
    assert answer.status_code == 422
    assert [*answer.context["form"].errors] == [field]
    kept = [value for name, value in {**good, **wrong}.items() if name != "email" and value.strip()]
    assert all(f'value="{value}"' in answer.content.decode() for value in kept)
    assert invitations.pending(world.context("alice", "acme").repository) == []


def test_only_owners_give_an_auditors_access_and_no_form_of_members_does(world: World) -> None:
    world.join("charlie", "acme", Role.ADMIN)
    for address in ("/desk/auditors/", "/desk/access-review/", FIRST):
        assert world.browser("charlie", "acme").get(address).status_code == 403
    alice = world.browser("alice", "acme")
    assert alice.send("/desk/invitations/", {"addresses": ADA, "role": "auditor"}).status_code == 422
    alice.send(f"/desk/members/{world.users['bob'].id}/role/", {"role": "auditor"})
    assert world.context("bob", "acme").role is Role.AGENT
    with pytest.raises(Invalid):
        member_changes.set_role(
            user_id=world.users["bob"].id,
            tenant_id=world.tenants["acme"].tenant_id,
            role=Role.AUDITOR,
            seen=Role.AGENT,
            by=SYSTEM,
        )


def test_no_role_of_members_includes_the_auditor_but_the_owners_and_the_auditor_includes_none() -> None:
    assert [role for role in Role if role.at_least(Role.AUDITOR)] == [Role.OWNER, Role.AUDITOR]
    assert [role for role in MEMBER_ROLES if Role.AUDITOR.at_least(role)] == []


def test_an_auditor_is_refused_by_every_page_that_is_not_marked_for_auditors(acme: World) -> None:
    """Each route of the portal is walked, so that a new one is refused without a change here."""
    ada, opened = audit(acme), set()
    ada.at_desk = str  # type: ignore[method-assign]  # each address as it stands
    for route, view in sorted(ROUTES, key=lambda one: one[0].endswith("evidence/end/")):  # it ends the walk
        access = view.access  # type: ignore[attr-defined]
        if access.level != "member":
            continue
        read, written = ada.get(filled(route)), ada.send(filled(route), FORM)
        page = b"".join(read) if read.streaming else read.content
        assert SECRET not in page.decode(errors="replace") or for_auditors.on(view), route  # type: ignore[arg-type]
        if for_auditors.on(view):  # type: ignore[arg-type]
            opened.add(route.removeprefix("<slug:desk>/desk/"))
            assert read.status_code in (200, 405, *([404] if route.endswith("<str:run>/") else [])), route
        elif read.status_code == 302:
            assert (route, read["Location"]) in [(first, FIRST) for first in FIRST_PAGES], route
        else:
            assert (read.status_code, written.status_code) == (403, 403), route
    assert opened == {
        *("evidence/", "evidence/verify/", "evidence/download/", "evidence/end/", "access-review/"),
        *("audit/", "audit/export/", "settings/access/"),
        *("settings/isolation/", "settings/isolation/files/<str:run>/"),
    }
    assert changing.read(acme.context("alice", "acme"), 7).version == 2
    for route, method in API_CALLS:
        assert ada.generic(method, filled(route), b"{}", "application/json").status_code == 401, route


FIRST_PAGES = ("<slug:desk>/tickets/", "<slug:desk>/", "tickets/<anything:rest>")


def test_an_auditor_is_in_no_list_of_members_and_takes_no_seat(world: World) -> None:
    limit(world, 3)
    audit(world)
    alice = world.browser("alice", "acme")
    for address in ("/desk/members/", "/tickets/new/", "/desk/groups/"):
        assert "Ada Audit" not in alice.get(address).content.decode(), address
    assert "ada" not in {m.email.split("@")[0] for m in members.members_of(world.context("bob", "acme").repository)}
    assert [
        one.email for one in past_roster.at(world.context("alice", "acme"), clock.stamp()) if one.email == ADA
    ] == []


def test_nobody_acts_as_an_auditor(world: World) -> None:
    audit(world)
    operator = accounts.create(email="root@example.com", name="Root", password=PASSWORD, is_operator=True, by=SYSTEM)
    with pytest.raises(Exception, match="Nobody acts as an auditor"):
        impersonating.begin(
            world.tenants["acme"].tenant_id,
            world.users["ada"].id,
            operator=operator,
            operator_session="x",
            reason="to see",
            may_write=False,
            write=lambda *_: [],
        )


def test_an_operator_who_acts_as_a_member_acts_no_more_once_that_one_is_an_auditor(world: World) -> None:
    operator = accounts.create(email="root@example.com", name="Root", password=PASSWORD, is_operator=True, by=SYSTEM)
    alice, bob, root = world.context("alice", "acme"), world.users["bob"], Browser()
    root.sign_in(operator.email)
    begun = impersonating.begin(
        alice.tenant_id,
        bob.id,
        operator=operator,
        operator_session=root.session_key,
        reason="to see",
        may_write=False,
        write=lambda *_: [],
    )
    root.cookies[impersonation_session.COOKIE] = begun.cookie
    assert root.get("/acme/tickets/").status_code == 200
    member_changes.remove_member(alice, user_id=bob.id, by=SYSTEM)
    sent = auditors.invite(
        alice, name="Bob", address=bob.email, purpose="ISO", until=clock.now() + timedelta(days=3), by=SYSTEM
    )
    accepting.accept(accepting.by_secret(sent.secret), user=bob, by=Actor(bob.id))
    assert root.get(FIRST).status_code == 403
    assert [one for one in sentences(world) if "looked" in one] == []


def test_the_access_is_over_at_its_moment_and_at_no_moment_before(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = audit(world, days=1)
    (item,) = auditors.listed(world.context("alice", "acme").repository)
    ends = clock.parse(item.ends_at)
    monkeypatch.setattr(clock, "now", lambda: ends - timedelta(seconds=1))
    assert ada.get(FIRST).status_code == 200
    monkeypatch.setattr(clock, "now", lambda: ends)
    assert ada.get(FIRST)["Location"].startswith("/tenants/")
    assert "Acme" not in ada.get("/tenants/").content.decode()
    assert context.enter(world.users["ada"], world.tenants["acme"].tenant_id) is None
    assert "over" in world.browser("alice", "acme").get("/desk/auditors/").content.decode()


def test_an_owner_changes_the_end_and_ends_it_at_once(world: World) -> None:
    ada, owner = audit(world), world.browser("alice", "acme")
    user = world.users["ada"].id
    last = (clock.now() + timedelta(days=60)).date()
    owner.send(f"/desk/auditors/{user}/until/", {"until": f"{last}"})
    (item,) = auditors.listed(world.context("alice", "acme").repository)
    assert item.ends_at.startswith(f"{last}T23:59:59")
    assert ada.get(FIRST).status_code == 200
    owner.send(f"/desk/auditors/{user}/until/", {"until": f"{last + timedelta(days=60)}"})
    (unchanged,) = auditors.listed(world.context("alice", "acme").repository)
    assert unchanged.ends_at == item.ends_at
    owner.send(f"/desk/auditors/{user}/end/")
    assert ada.get(FIRST)["Location"].startswith("/tenants/")
    with pytest.raises(Conflict):
        auditors.extend(world.context("alice", "acme"), user_id=user, until=clock.now() + timedelta(days=1), by=SYSTEM)
    told = sentences(world)
    assert [one for one in told if "access of the auditor" in one] == [
        f"alice@example.com ended the access of the auditor {ADA}",
        f"alice@example.com changed the end of the access of the auditor {ADA}",
    ]


def test_somebody_whose_access_is_over_can_be_an_auditor_again_or_a_member(world: World) -> None:
    audit(world)
    alice, user = world.context("alice", "acme"), world.users["ada"]
    auditors.end(alice, user_id=user.id, by=SYSTEM)
    assert audit(world).get(FIRST).status_code == 200
    auditors.end(alice, user_id=user.id, by=SYSTEM)
    member_changes.add(user=user, tenant=world.tenants["acme"], role=Role.VIEWER, by=SYSTEM)
    assert world.context("ada", "acme").role is Role.VIEWER


def test_an_auditor_who_is_invited_as_a_member_keeps_the_invitation_until_the_access_has_ended(world: World) -> None:
    ada, alice, user = audit(world), world.context("alice", "acme"), world.users["ada"]
    invitations.invite_all(alice, addresses=[ADA], role=Role.AGENT, by=Actor(alice.user_id))
    waiting = {"tenant": alice.tenant_id}
    assert "You are an auditor of this desk." in ada.post("/tenants/accept/", waiting, follow=True).content.decode()
    assert world.context("ada", "acme").is_auditor
    auditors.end(alice, user_id=user.id, by=SYSTEM)
    ada.post("/tenants/accept/", waiting)
    assert world.context("ada", "acme").role is Role.AGENT


def test_an_auditors_invitation_is_accepted_from_the_list_of_desks(world: World) -> None:
    alice, charlie = world.context("alice", "acme"), world.browser("charlie", "globex")
    until = clock.now() + timedelta(days=3)
    auditors.invite(alice, name="C", address="charlie@example.com", purpose="ISO", until=until, by=SYSTEM)
    charlie.post("/tenants/accept/", {"tenant": alice.tenant_id})
    assert world.context("charlie", "acme").is_auditor


def test_a_look_of_an_auditor_is_in_the_trail_once_in_a_while(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    ada = audit(world)
    for _ in range(3):
        ada.get(FIRST)
        ada.get("/acme/desk/access-review/")
    looks = [one for one in sentences(world) if "looked" in one]
    assert looks == [f"{ADA} looked, as an auditor, at {page}" for page in ("Access review", "Evidence")]
    monkeypatch.setattr(access_middleware, "LOOK_SECONDS", 0)
    ada.get(FIRST)
    assert len([one for one in sentences(world) if "looked" in one]) == 3


@pytest.mark.parametrize("run", ["%23", "a" * 3000, "call-0900-123"])
def test_an_auditor_writes_nothing_into_the_trail_by_an_address(world: World, run: str) -> None:
    ada = audit(world)
    for number in range(2):
        assert ada.send(f"/acme/desk/settings/isolation/files/{run}{number}/").status_code == 404
    assert [one for one in sentences(world) if "looked" in one or "signed report" in one] == []


def test_a_desk_that_asks_for_a_second_factor_asks_auditors_too(world: World) -> None:
    ada = audit(world)
    PLATFORM.update(TenantItem(world.tenants["acme"].tenant_id), [TenantItem.needs_second_factor.set(True)])
    assert ada.get(FIRST)["Location"].startswith("/account/security/")


def test_what_auditors_pages_cost(world: World) -> None:
    ada = audit(world)
    for address in (FIRST, "/desk/access-review/", "/desk/audit/"):
        ada.get(address)  # the look is in the trail now
    bills = [spent(ada, address) for address in (FIRST, "/desk/access-review/", "/desk/audit/")]
    assert [(bill.trips, len(bill.calls), bill.write_units) for bill in bills] == [(2, 4, 0), (4, 14, 0), (2, 2, 0)]


def test_a_desk_that_is_renamed_is_the_auditors_by_its_new_name(world: World) -> None:
    audit(world)
    world.browser("alice", "acme").send("/desk/settings/", {"name": "Acme Works", "slug": "acme-works"})
    assert [(one.name, one.slug) for one in members.memberships_of(world.users["ada"].id)] == [
        ("Acme Works", "acme-works")
    ]


@pytest.mark.parametrize("is_command", [False, True], ids=["on the page", "by the command"])
def test_an_erasure_of_an_auditor_ends_the_access_and_forgets_it(world: World, is_command: bool) -> None:
    ada = audit(world)
    alice = world.browser("alice", "acme")
    if is_command:
        assert run("erase_person", "acme", ADA).status == 0
    else:
        erased(alice, searched(alice, ADA), typed_address=ADA)
    assert auditors.listed(world.context("alice", "acme").repository) == []
    assert ada.get(FIRST)["Location"].startswith("/tenants/")
    trail = alice.get("/desk/audit/").content.decode()
    assert "Ada Audit" not in trail
    assert ADA not in trail


def test_the_chain_of_a_desk_with_an_auditor_is_whole_and_both_sides_of_the_access_say_the_same(world: World) -> None:
    audit(world)
    tenant_id, (item,) = world.tenants["acme"].tenant_id, auditors.listed(world.context("alice", "acme").repository)
    (membership,) = PLATFORM.get_all([(MembershipItem, item.user_id, tenant_id)])
    assert membership is not None
    assert (membership.ends_at, membership.kept_until) == (item.ends_at, item.kept_until)
    assert int(item.kept_until) == int((clock.parse(item.ends_at) + auditors.KEPT).timestamp())
    assert chain.verify(tenant_id).findings == []


def test_an_auditor_sees_the_own_end_and_purpose_and_ends_the_access(world: World) -> None:
    ada = audit(world)
    page = ada.get(FIRST).content.decode()
    assert all(text in page for text in ("ISO 27001", "once in 15 minutes", "End my access now"))
    assert access_middleware.LOOK_SECONDS == 15 * 60
    assert "End my access" not in world.browser("alice", "acme").get("/desk/evidence/").content.decode()
    assert world.browser("alice", "acme").send("/desk/evidence/end/").status_code == 404
    assert ada.send("/desk/evidence/end/").status_code == 302
    assert sentences(world)[0] == f"{ADA} ended the access of the auditor {ADA}"
    assert ada.get(FIRST).status_code != 200


def test_an_auditor_is_led_to_the_audit_pages_alone(world: World) -> None:
    page = audit(world).get("/acme/nothing/").content.decode()
    assert "Go to the evidence" in page
    assert "Go to the queue" not in page
    assert "Next or previous ticket" not in page
    assert 'class="price' not in page
