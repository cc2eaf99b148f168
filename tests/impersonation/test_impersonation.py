"""An operator acts as a member of a desk: for a reason, for a short time, and in sight of its owners."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.core import mail

from portal.nosql.session_store import SessionStore
from tenants.audit_trail import browsing
from tenants.audit_trail.browsing import TrailFilter
from tenants.audit_trail.recording import SYSTEM
from tenants.audit_trail.stored import AUDIT
from tenants.lifecycle import tenant_lifecycle
from tenants.membership import members, own_profile
from tenants.sign_in import accounts
from tenants.sign_in.accounts import Profile
from tenants.sign_in.impersonation_session import COOKIE, VISIT, item_of, read, read_cookie
from tenants.tenancy import context
from tests.support.commands import everything
from tests.support.mailing import AT_ONCE
from tests.support.operators import IDENTITY, Operator, calls, make_operator, membership_url, text_of
from tests.support.world import World, account_of
from tickets.desk import changing, timelines

REASON = "They cannot see ticket 1."
CHANGE = "/acme/tickets/1/change/"


class ActingOperator(Operator):
    """An operator's browser at Acme's pages, which sends forms with the mark of the member's pages."""

    def begin(self, world: World, who: str = "bob", *, write: bool = False) -> Any:
        action = "_act_writing" if write else "_act_reading"
        self.as_mark = context.page_mark_of(world.users[who].id, world.tenants["acme"].tenant_id)
        return self.act(membership_url(world, who, "acme"), action, reason=REASON)

    def mark(self) -> str:
        return self.as_mark


@pytest.fixture
def root(world: World) -> ActingOperator:
    make_operator()
    world.tickets("acme", 1)
    browser = ActingOperator()
    browser.sign_in("root@example.com")
    return browser


def trail(world: World) -> list[tuple[str, str, str]]:
    found = browsing.everything(world.context("alice", "acme").repository, only=TrailFilter())
    return [(row.action, row.actor, row.entity) for row in found]


def status_of(world: World) -> str:
    return str(changing.read(world.context("alice", "acme"), 1).status)


# --- beginning ---


def test_the_operator_sees_the_desk_as_the_member_does_under_a_banner(world: World, root: ActingOperator) -> None:
    assert root.begin(world)["Location"] == "/acme/tickets/"
    page = text_of(root.get("/acme/tickets/"))
    assert "you act as Bob Example in Acme, reading only, until" in page
    assert "Ticket 1" in page
    assert root.get("/acme/desk/members/").status_code == 403  # Bob is no admin


def test_nothing_begins_without_a_reason_or_a_confirmation_or_where_it_is_not_allowed(
    world: World, root: ActingOperator, settings: Any
) -> None:
    bob = membership_url(world, "bob", "acme")
    assert root.act(bob, "_act_reading", reason=" ").status_code == 422
    asked = root.post(bob, {"_act_writing": "1", "reason": REASON})
    assert "Your changes to tickets are real, and name you and the member." in text_of(asked)
    minutes, settings.IMPERSONATION_MINUTES = settings.IMPERSONATION_MINUTES, 0
    root.begin(world)
    settings.IMPERSONATION_MINUTES = minutes
    accounts.set_operator(world.users["bob"].id, True, by=SYSTEM)
    root.begin(world)
    assert COOKIE not in root.cookies


def test_before_it_begins_the_page_says_who_is_told_and_when_it_ends(
    world: World, root: ActingOperator, settings: Any
) -> None:
    page = text_of(root.post(membership_url(world, "bob", "acme"), {"_act_reading": "1"}))
    assert "They get a mail with the reason at once." in page
    assert "It ends after 30 minutes, or when you stop." in page
    assert "Your changes" not in page
    settings.IMPERSONATION_MAILS = False
    assert "get a mail" not in text_of(root.post(membership_url(world, "bob", "acme"), {"_act_reading": "1"}))


def test_a_reason_that_was_typed_beside_the_button_is_not_asked_again(world: World, root: ActingOperator) -> None:
    typed = {"_act_reading": "1", "why": "Ticket 7 shows nothing"}
    page = root.post(membership_url(world, "bob", "acme"), typed).content.decode()
    assert "Ticket 7 shows nothing</textarea>" in page
    assert "Say why" not in page


def test_tickets_are_not_changed_in_the_place_of_a_viewer(world: World, root: ActingOperator) -> None:
    assert "Act as this member and change tickets" in root.says(membership_url(world, "bob", "acme"))
    assert "Act as this member and change tickets" not in root.says(membership_url(world, "vera", "acme"))
    root.begin(world, "vera", write=True)
    assert COOKIE not in root.cookies
    assert "Vera Example is a viewer, and can change no tickets." in root.says(membership_url(world, "vera", "acme"))


def test_the_owners_are_told_by_mail(world: World, root: ActingOperator, settings: Any) -> None:
    settings.EMAIL_BACKEND = AT_ONCE
    settings.IMPERSONATION_MAILS = False
    root.begin(world)
    assert mail.outbox == []
    settings.IMPERSONATION_MAILS = True
    alice = world.users["alice"]
    own_profile.change(alice.id, name=alice.name, profile=Profile("Asia/Kolkata"), by=SYSTEM)
    root.begin(world)
    (told,) = mail.outbox
    assert told.to == ["alice@example.com"]
    for words in (REASON, "Bob Example", "/acme/desk/settings/access/", "Asia/Kolkata (UTC+5:30)"):
        assert words in told.body


def test_in_development_the_link_in_the_mail_leads_to_the_port_that_took_the_request(
    world: World, root: ActingOperator, settings: Any
) -> None:
    settings.EMAIL_BACKEND, settings.DEBUG, settings.PORTAL_BASE_URL = AT_ONCE, True, ""
    root.begin(world)
    assert "\nhttp://127.0.0.1:80/acme/desk/settings/access/\n" in mail.outbox[0].body


# --- what may be done ---


def test_reading_only_changes_nothing(world: World, root: ActingOperator) -> None:
    root.begin(world)
    assert root.send(CHANGE, {"status": "closed", "version": "1"}).status_code == 403
    assert status_of(world) == "open"


def test_a_change_names_both_in_the_history(world: World, root: ActingOperator) -> None:
    root.begin(world, write=True)
    page = root.says("/acme/tickets/")
    assert "you act as Bob Example in Acme until" in page
    assert "Your changes to tickets are real." in page
    root.send(CHANGE, {"status": "closed", "version": "1"})
    assert status_of(world) == "closed"
    assert timelines.ticket(world.context("alice", "acme"), 1).activity[-1].author_name == "Root as Bob Example"


def test_a_row_of_the_audit_trail_names_both(world: World, root: ActingOperator) -> None:
    root.begin(world, write=True)
    root.send("/acme/tickets/export/", {"format": "csv"})
    assert ("export.made", "root@example.com as bob@example.com", "tickets") in trail(world)


@pytest.mark.parametrize(
    "address",
    [
        "desk/leave/",
        "desk/invitations/",
        "desk/settings/api-keys/new/",
        "desk/settings/",
        "desk/settings/webhooks/new/",
        "desk/settings/person/",
        "desk/settings/export/ask/",
        "desk/settings/export/download/",
    ],
)
def test_what_concerns_the_desk_itself_is_refused_even_as_its_owner(
    world: World, root: ActingOperator, address: str
) -> None:
    root.begin(world, "alice", write=True)
    before = trail(world)
    answer = root.send(f"/acme/{address}", {"name": "Stolen", "addresses": "x@example.com", "role": "owner"})
    assert answer.status_code == 403
    assert "Only Alice Example can do this." in text_of(answer)
    assert trail(world) == before


@pytest.mark.parametrize("address", ["/account/", "/account/password/", "/account/sessions/", "/tenants/"])
def test_the_members_own_pages_stay_closed(world: World, root: ActingOperator, address: str) -> None:
    root.begin(world, write=True)
    for answer in (root.get(address), root.send(address)):
        assert answer.status_code == 403


def test_a_page_that_the_member_may_not_see_says_as_whom_the_operator_acts(world: World, root: ActingOperator) -> None:
    root.begin(world)
    page = text_of(root.get("/acme/desk/settings/access/"))
    assert "This needs the role Owner." in page
    assert "You act as Bob Example, an agent in Acme." in page
    assert "Choose another desk" not in text_of(root.get("/acme/nowhere/"))


def test_a_member_cannot_be_removed(world: World, root: ActingOperator) -> None:
    root.begin(world, "alice", write=True)
    root.send(f"/acme/desk/members/{world.users['vera'].id}/remove/")
    assert members.member(world.context("alice", "acme").repository, world.users["vera"].id)


def test_another_desk_of_the_member_is_not_there(world: World, root: ActingOperator) -> None:
    root.begin(world, "alice")
    assert root.get("/globex/tickets/").status_code == 404


def test_a_form_without_the_members_mark_is_refused(world: World, root: ActingOperator) -> None:
    root.begin(world, write=True)
    root.as_mark = context.page_mark_of(world.users["alice"].id, world.tenants["acme"].tenant_id)
    assert root.send(CHANGE, {"status": "closed", "version": "1"}).status_code == 409


def test_a_suspended_desk_can_be_read(world: World, root: ActingOperator) -> None:
    tenant_lifecycle.suspend(world.tenants["acme"].tenant_id, by=SYSTEM, reason="unpaid")
    root.begin(world, write=True)
    assert root.get("/acme/tickets/1/").status_code == 200
    assert root.send(CHANGE, {"status": "closed", "version": "1"}).status_code == 403


def test_the_identity_is_read_in_one_round_trip_and_the_page_costs_what_it_costs_the_member(
    world: World, root: ActingOperator
) -> None:
    root.begin(world)
    with calls() as acting:
        root.get("/acme/tickets/1/")
    bob = world.browser("bob", "acme")
    with calls() as own:
        bob.get("/acme/tickets/1/")
    assert [call.operation for call in acting] == [call.operation for call in own]
    assert [call.operation for call in acting].count(IDENTITY) == 1


# --- the end ---


def test_stopping_leads_back_to_the_admin_where_the_operator_stayed_signed_in(
    world: World, root: ActingOperator
) -> None:
    root.begin(world)
    assert root.get("/admin/").status_code == 200
    back = root.post("/impersonation/stop/")
    assert root.get(back["Location"]).status_code == 200
    assert root.get("/acme/tickets/").status_code != 200


def test_the_admin_shows_that_a_visit_goes_on_and_ends_it(world: World, root: ActingOperator) -> None:
    words = "You act as Bob Example (bob@example.com) in this browser, reading only, until"
    assert words not in root.says("/admin/")
    root.begin(world)
    page = root.get("/admin/tenants/tenant/")
    assert words in text_of(page)
    assert 'action="/impersonation/stop/"' in page.content.decode()
    assert 'href="/account/"' not in page.content.decode()  # which is Bob's meanwhile
    root.post("/impersonation/stop/")
    assert words not in root.says("/admin/")


def test_the_admin_shows_no_visit_of_another_browser(world: World, root: ActingOperator) -> None:
    root.begin(world)
    elsewhere = ActingOperator()
    elsewhere.sign_in("root@example.com")
    elsewhere.cookies[COOKIE] = root.cookies[COOKIE].value
    assert "You act as" not in elsewhere.says("/admin/")


def test_beginning_and_end_stand_in_the_trail_and_on_the_owners_page(world: World, root: ActingOperator) -> None:
    root.begin(world)
    alice = world.browser("alice", "acme")
    assert "goes on" in text_of(alice.get("/desk/settings/access/"))
    root.post("/impersonation/stop/")
    assert [row for row in trail(world) if row[0].startswith("impersonation.")] == [
        ("impersonation.ended", "root@example.com", "bob@example.com"),
        ("impersonation.begun", "root@example.com", "bob@example.com"),
    ]
    assert "visit:" not in text_of(alice.get("/desk/audit/"))
    page = text_of(alice.get("/desk/settings/access/"))
    assert REASON in page
    assert "goes on" not in page


def test_the_time_is_limited_by_what_is_stored(world: World, root: ActingOperator) -> None:
    root.begin(world)
    ids = read_cookie(root.cookies[COOKIE].value)
    found = read(ids) if ids else None
    assert ids
    assert found
    assert found.until <= time.time() + 30 * 60
    item_of(ids.session_key, replace(found, until=int(time.time()) - 1)).save()
    page = root.get("/acme/tickets/")
    assert (page.status_code, "You no longer act as a member" in text_of(page)) == (403, True)
    assert trail(world)[0][0] == "impersonation.ended"
    assert root.get("/acme/tickets/").status_code == 302  # to choose a desk, as the operator


def sign_out_and_in(world: World, root: ActingOperator) -> None:
    kept = root.cookies[COOKIE].value
    root.post("/logout/")
    root.sign_in("root@example.com")
    root.cookies[COOKIE] = kept


def end_as_the_member(world: World, root: ActingOperator) -> None:
    bob = world.browser("bob", "acme")
    page = bob.get("/account/sessions/")
    assert "Pooldesk: root@example.com" in text_of(page)
    (session,) = [row["id"] for row in page.context["sessions"] if not row["is_here"]]
    bob.post(f"/account/sessions/{session}/end/")


ENDINGS: dict[str, Callable[[World, ActingOperator], object]] = {
    "the member becomes an operator": lambda world, _: accounts.set_operator(world.users["bob"].id, True, by=SYSTEM),
    "the operator is one no more": lambda *_: accounts.set_operator(
        account_of("root@example.com").id, False, by=SYSTEM
    ),
    "the member is removed": lambda world, _: world.browser("alice", "acme").send(
        f"/desk/members/{world.users['bob'].id}/remove/"
    ),
    "the operator signs out": sign_out_and_in,
    "the member ends the session": end_as_the_member,
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_it_ends_at_the_next_click_once(world: World, root: ActingOperator, ending: str) -> None:
    root.begin(world)
    assert root.get("/acme/tickets/").status_code == 200
    ENDINGS[ending](world, root)
    assert root.get("/acme/tickets/").status_code == 403


def test_the_cookie_is_worth_nothing_in_another_browser(world: World, root: ActingOperator) -> None:
    elsewhere = ActingOperator()
    elsewhere.sign_in("root@example.com")
    for other in (world.browser("charlie"), elsewhere, ActingOperator()):
        root.begin(world)  # an attempt elsewhere ends it
        other.cookies[COOKIE] = root.cookies[COOKIE].value
        assert other.get("/acme/tickets/1/").status_code == 403


def test_a_visit_that_ran_out_has_its_end_in_the_trail_at_the_operators_next_click(
    world: World, root: ActingOperator
) -> None:
    root.begin(world)
    del root.cookies[COOKIE]  # it dies with the visit
    session = SessionStore(root.session_key)
    session[VISIT] = {**session[VISIT], "until": 0}
    session.save()
    for _ in range(2):
        root.get("/admin/")
    ended = [raw for raw in everything(AUDIT) if raw["action"]["S"] == "impersonation.ended"]
    assert ["its time was over" in raw["after"]["S"] for raw in ended] == [True]


@pytest.mark.parametrize("may_write", [False, True])
def test_forms_whose_sending_would_be_refused_are_switched_off(
    world: World, root: ActingOperator, may_write: bool
) -> None:
    world.tickets("acme", 1)
    root.begin(world, write=may_write)
    page = root.get("/acme/tickets/1/").content.decode()
    forms = re.findall(r'<form\b[^>]*method="post"[^>]*>\s*<fieldset class="plain" disabled>', page)
    every = re.findall(r'<form\b[^>]*method="post"[^>]*>', page)
    assert bool(forms) is not may_write
    assert ("Forms are switched off" in page) is not may_write
    assert any('action="/impersonation/stop/"' in form for form in every)
    assert not any('action="/impersonation/stop/"' in form for form in forms), "the way out works"
    assert re.search(r'<form\b[^>]*method="get"[^>]*>\s*(?!<fieldset class="plain")', page)
