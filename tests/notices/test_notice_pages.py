"""Following and muting on the ticket page, by the link of a mail, and by the choices on the account page."""

from __future__ import annotations

import pytest

from tenants.audit_trail.recording import SYSTEM
from tenants.membership import mail_choices, member_changes
from tenants.membership.mail_choices import MailKind
from tests.support.world import Browser, World
from tickets.desk import changing
from tickets.notices.following import MuteLink


@pytest.fixture
def desk(world: World) -> World:
    world.tickets("acme", 1)
    return world


def hears(world: World, who: str) -> str:
    return world.browser(who, "acme").get("/tickets/1/").context["hears"]


def change(world: World, who: str, to: str) -> str:
    answer = world.browser(who, "acme").send("/tickets/1/follow/", {"change": to}, follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


def link(world: World, who: str = "bob", **what: object) -> str:
    token = MuteLink(world.tenants["acme"].tenant_id, world.users[who].id, **what).token
    return f"/mail/mute/{token}/"


# --- the ticket page ---


@pytest.mark.parametrize("who", ["bob", "vera"])
def test_a_member_follows_unfollows_and_mutes_a_ticket(desk: World, who: str) -> None:
    assert hears(desk, who) == ""
    assert "You follow this ticket." in change(desk, who, "follow")
    assert hears(desk, who) == "follows"
    assert hears(desk, "alice") == ""
    assert "Unmute" in change(desk, who, "mute")
    assert hears(desk, who) == "muted"
    change(desk, who, "unfollow")
    assert hears(desk, who) == ""


def test_an_assignee_hears_of_the_ticket_and_can_mute_it(desk: World) -> None:
    bob = desk.context("bob", "acme")
    changing.assign(bob, 1, to=bob.user_id, version=1)
    assert hears(desk, "bob") == "assigned"
    change(desk, "bob", "mute")
    assert hears(desk, "bob") == "muted"


def test_following_changes_neither_the_version_nor_the_place_in_lists(desk: World) -> None:
    before = changing.read(desk.context("bob", "acme"), 1)
    change(desk, "bob", "follow")
    after = changing.read(desk.context("bob", "acme"), 1)
    assert (after.version, after.updated_at) == (before.version, before.updated_at)


@pytest.mark.parametrize(("number", "to", "status"), [(1, "love", 400), (1, "", 400), (99, "follow", 404)])
def test_a_broken_form_changes_nothing(desk: World, number: int, to: str, status: int) -> None:
    answer = desk.browser("bob", "acme").send(f"/tickets/{number}/follow/", {"change": to})
    assert answer.status_code == status
    assert hears(desk, "bob") == ""


def test_more_followers_than_a_ticket_takes_are_refused_with_a_sentence(
    desk: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tickets.notices.following.MOST_FOLLOWERS", 1)
    change(desk, "bob", "follow")
    change(desk, "bob", "follow")
    assert "can follow a ticket." in change(desk, "vera", "follow")
    assert (hears(desk, "bob"), hears(desk, "vera")) == ("follows", "")


def test_the_names_to_mention_are_those_of_the_desk_without_oneself(desk: World) -> None:
    found = desk.browser("bob", "acme").get("/tickets/people/names/").json()["people"]
    assert [one["name"] for one in found] == ["Alice Example", "Vera Example"]


# --- the link in a mail ---


def test_the_link_mutes_a_ticket_by_its_button_and_takes_it_back(desk: World) -> None:
    stranger, address = Browser(), link(desk, number=1)
    assert "Stop all mail about ticket #1?" in stranger.get(address).content.decode()
    assert hears(desk, "bob") == ""
    assert "Done." in stranger.post(address, {"change": "mute"}).content.decode()
    assert hears(desk, "bob") == "muted"
    stranger.post(address, {"change": "undo"})
    assert hears(desk, "bob") == ""


def test_the_link_stops_a_kind_of_mail_and_takes_it_back(desk: World) -> None:
    bob, address = desk.context("bob", "acme"), link(desk, kind=MailKind.ENTERED)
    # As a mail program sends it by itself: RFC 8058.
    assert Browser(enforce_csrf_checks=True).post(address, {"List-Unsubscribe": "One-Click"}).status_code == 200
    assert mail_choices.chosen(bob.repository, bob.user_id).unwanted_mail == {MailKind.ENTERED}
    Browser().post(address, {"change": "undo"})
    assert mail_choices.chosen(bob.repository, bob.user_id).unwanted_mail == set()


@pytest.mark.parametrize("broken", ["cut", "changed", "another salt", "no such ticket"])
def test_a_broken_link_says_so_and_changes_nothing(desk: World, broken: str) -> None:
    from django.core import signing

    address = link(desk, number=99 if broken == "no such ticket" else 1)
    token = address.split("/")[-2]
    other = signing.dumps([desk.tenants["acme"].tenant_id, desk.users["bob"].id, 1], salt="other")
    tokens = {"cut": token[:-3], "changed": "x" + token[1:], "another salt": other}
    answer = Browser().post(f"/mail/mute/{tokens.get(broken, token)}/", {"change": "mute"})
    assert answer.status_code == 404
    assert hears(desk, "bob") == ""


def test_the_link_of_somebody_who_left_does_nothing(desk: World) -> None:
    address = link(desk, number=1)
    member_changes.remove(user_id=desk.users["bob"].id, tenant_id=desk.tenants["acme"].tenant_id, by=SYSTEM)
    answer = Browser().post(address, {"change": "mute"})
    assert answer.status_code == 404
    assert changing.read(desk.context("alice", "acme"), 1).muted_by is None


# --- the account page ---


def test_the_profile_leads_to_the_choices_of_each_desk(desk: World) -> None:
    alice = desk.browser("alice", "acme")
    assert "/acme/desk/mail/" in alice.get("/account/profile/").content.decode()
    form = shown(alice)
    assert [form[f"mail_{kind}"] for kind in MailKind] == ["on"] * len(MailKind)
    kept = {name: value for name, value in form.items() if name == "mail_mentioned" or not name.startswith("mail_")}
    alice.send("/desk/mail/", kept)
    assert [name for name in shown(alice) if name.startswith("mail_")] == ["mail_mentioned"]
    assert alice.send("/desk/mail/", {"mail_mentioned": "on"}).status_code == 400, "cut off"
    globex = desk.context("alice", "globex")
    assert mail_choices.chosen(globex.repository, globex.user_id).unwanted_mail == set()


def shown(browser: Browser) -> dict[str, str]:
    """Return what the form of choices sends as it is shown."""
    page = browser.get("/desk/mail/").context["form"]
    form = {page.add_initial_prefix(name): str(page.initial[name]) for name in page.fields}
    return form | {name: "on" if value is True else value for name, value in page.initial.items() if value is not False}


def test_of_two_tabs_each_changes_only_its_own_choices_and_nothing_is_replaced_unseen(desk: World) -> None:
    bob, acme = desk.browser("bob"), desk.context("bob", "acme")
    first, second = shown(bob), shown(bob)
    del first["mail_mentioned"]
    del second["notice_rated"]
    assert bob.send("/desk/mail/", first | {"digest": "7"}).status_code == 302
    assert bob.send("/desk/mail/", second).status_code == 302
    found = mail_choices.chosen(acme.repository, acme.user_id)
    assert (found.unwanted_mail, found.unwanted_notices, found.digest_hour) == (
        {MailKind.MENTIONED},
        {MailKind.RATED},
        7,
    )
    answer = bob.send("/desk/mail/", second | {"digest": "9"})
    assert (answer.status_code, "Stored now: Once a day, at 07:00" in answer.content.decode()) == (409, True)
    assert mail_choices.chosen(acme.repository, acme.user_id).digest_hour == 7


def test_a_kind_of_news_that_the_page_did_not_have_yet_stays_as_it_is(desk: World) -> None:
    bob, acme = desk.browser("bob"), desk.context("bob", "acme")
    before = {name: value for name, value in shown(bob).items() if not name.endswith("_rated")}
    assert bob.send("/desk/mail/", before | {"digest": "7"}).status_code == 302
    found = mail_choices.chosen(acme.repository, acme.user_id)
    assert (found.unwanted_mail, found.unwanted_notices, found.digest_hour) == (set(), set(), 7)


def test_choices_survive_another_role_and_end_with_the_membership(desk: World) -> None:
    from tenants.tenancy.context import Role

    bob, tenant_id = desk.context("bob", "acme"), desk.tenants["acme"].tenant_id
    mail_choices.choose(bob.repository, bob.user_id, set())
    member_changes.set_role(user_id=bob.user_id, tenant_id=tenant_id, role=Role.VIEWER, seen=Role.AGENT, by=SYSTEM)
    assert mail_choices.chosen(bob.repository, bob.user_id).unwanted_mail == set(MailKind)
    member_changes.remove(user_id=bob.user_id, tenant_id=tenant_id, by=SYSTEM)
    desk.join("bob", "acme", Role.AGENT)
    assert mail_choices.chosen(bob.repository, bob.user_id).unwanted_mail == set()
