"""The links that lead requesters to their tickets: for one desk, ticket and person, ended by a date or by us."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.test import override_settings
from hypothesis import assume, given
from hypothesis import strategies as st

from tenants.audit_trail.recording import SYSTEM
from tests.support.world import World
from tickets.desk import changing, timelines
from tickets.notices.following import MuteLink
from tickets.replies import mail_settings, reply_addresses, ticket_links
from tickets.replies.message_ids import MOST
from tickets.replies.ticket_links import TicketLink
from tickets.requesters import requester_changes, requesters
from tickets.requesters.requester_changes import Details
from tickets.requesters.requesters import Requester

desks = st.uuids().map(lambda one: one.hex)
people = desks.map(lambda one: f"rq_{one}")
links = st.builds(TicketLink, desks, people, st.integers(1, MOST), st.integers(0, 2**31), st.integers(0, 2**39))


@given(links)
def test_a_link_says_what_it_was_made_for(link: TicketLink) -> None:
    assert TicketLink.read(link.token) == link
    assert TicketLink.read(link.token.upper()) == link, "mail programs may change the case of an address"


@given(links, st.data())
def test_a_link_with_another_character_is_refused(link: TicketLink, data: st.DataObject) -> None:
    token = link.token
    at = data.draw(st.integers(0, len(token) - 1))
    other = data.draw(st.one_of(st.sampled_from("abcdefghijklmnopqrstuvwxyz234567"), st.characters()))
    assume(other.lower() != token[at])
    assert TicketLink.read(token[:at] + other + token[at + 1 :]) is None
    assert TicketLink.read(token[:at]) is None


@given(links)
def test_each_kind_of_token_is_worthless_as_another(link: TicketLink) -> None:
    to_all = replace(link, number=0).token
    of_agent = reply_addresses.address_of(link.tenant_id, link.number, link.person_id, is_agent=True)
    reply = of_agent.removeprefix("reply+").partition("@")[0]
    mute = MuteLink(link.tenant_id, "1" * 32, number=link.number).token
    assert [TicketLink.read(one) for one in (to_all, reply, mute)] == [None] * 3
    assert [TicketLink.read_all(one) for one in (link.token, reply, mute)] == [None] * 3
    for token in (link.token, to_all):
        assert reply_addresses.read(f"reply+{token}@desk.localhost") is None
        assert MuteLink.read(token) is None


@override_settings(SECRET_KEY="another", SECRET_KEY_FALLBACKS=[])  # of this test alone
def signed_elsewhere(link: TicketLink) -> str:
    return link.token


def test_a_link_of_another_installation_is_refused() -> None:
    link = TicketLink("a" * 32, "rq_" + "2" * 32, 7, 0, 2**32)
    assert TicketLink.read(link.token) == link
    assert TicketLink.read(signed_elsewhere(link)) is None


@pytest.mark.parametrize(("number", "person"), [(-1, "rq_" + "2" * 32), (MOST + 1, "rq_" + "2" * 32), (1, "2" * 32)])
def test_no_link_is_made_for_a_member_or_for_what_is_no_ticket(number: int, person: str) -> None:
    with pytest.raises(ValueError, match="requesters"):
        _ = TicketLink("a" * 32, person, number, 0, 2**32).token


@given(links, st.booleans())
def test_a_text_loses_the_tokens_of_links_and_nothing_else(link: TicketLink, is_to_all: bool) -> None:
    place = "/r/all/" if is_to_all else "/r/"
    token = replace(link, number=0).token if is_to_all else link.token
    quoted = f"> Read it at https://desk.example.com{place}{token}/?rating=good#rating\n> Bye /r/eading"
    told = ticket_links.without_tokens(quoted)
    assert token not in told
    assert told == quoted.replace(token, "…")


# --- what ends a link ---


def link_of(world: World, number: int, person_id: str) -> TicketLink:
    bob = world.context("bob", "acme")
    person = requesters.known(bob, person_id)
    return ticket_links.ticket_link(bob, changing.read(bob, number), person, mail_settings.read(bob))


def holds(world: World, link: TicketLink, *, number: int = 0, desk: str = "acme") -> bool:
    bob = world.context("bob", desk)
    person = requesters.find(bob, link.person_id)
    return link.leads_to(changing.read(bob, number or link.number), mail_settings.read(bob), person)


def holds_for_all(world: World, link: TicketLink) -> bool:
    bob = world.context("bob", "acme")
    return link.leads_to_all(mail_settings.read(bob), requesters.find(bob, link.person_id))


def revoke_ticket(world: World, number: int, ada: Requester) -> None:
    ticket_links.revoke(world.context("bob", "acme"), number)


def revoke_person(world: World, number: int, ada: Requester) -> None:
    requester_changes.revoke_links(world.context("bob", "acme"), ada.id, by=SYSTEM)


def revoke_desk(world: World, number: int, ada: Requester) -> None:
    mail_settings.revoke_links(world.context("alice", "acme"), version=0, by=SYSTEM)


def merge_away(world: World, number: int, ada: Requester) -> None:
    bob = world.context("bob", "acme")
    other = requesters.ensure(bob, "grace@example.org")
    requester_changes.merge(bob, other.id, ada.id, by=SYSTEM)


def merge_and_undo(world: World, number: int, ada: Requester) -> None:
    merge_away(world, number, ada)
    requester_changes.undo_merge(world.context("bob", "acme"), ada.id, by=SYSTEM)


def merge_into(world: World, number: int, ada: Requester) -> None:
    bob = world.context("bob", "acme")
    other = requesters.ensure(bob, "grace@example.org")
    requester_changes.merge(bob, ada.id, other.id, by=SYSTEM)


def take_address(world: World, number: int, ada: Requester) -> None:
    bob = world.context("bob", "acme")
    details = Details(name="Ada", addresses=("new@example.org",))
    requester_changes.change(bob, ada.id, lambda before: details, version=None, by=SYSTEM)


@pytest.mark.parametrize(
    ("end", "ends_those_to_all"),
    [
        (revoke_ticket, False),
        (revoke_person, True),
        (revoke_desk, True),
        (merge_away, True),
        (merge_and_undo, True),
        (merge_into, True),
        (take_address, True),
    ],
)
def test_these_end_a_link(world: World, number: int, ada: Requester, end: object, ends_those_to_all: bool) -> None:
    bob = world.context("bob", "acme")
    link = link_of(world, number, ada.id)
    to_all = ticket_links.all_link(bob, ada, mail_settings.read(bob))
    assert holds(world, link)
    assert holds_for_all(world, to_all)
    end(world, number, ada)  # type: ignore[operator]
    assert not holds(world, link)
    assert holds_for_all(world, to_all) is not ends_those_to_all


def test_a_new_name_ends_no_link(world: World, number: int, ada: Requester) -> None:
    link = link_of(world, number, ada.id)
    details = Details(name="Ada King", addresses=ada.addresses)
    bob = world.context("bob", "acme")
    requester_changes.change(bob, ada.id, lambda before: details, version=None, by=SYSTEM)
    assert holds(world, link)


def test_a_link_made_after_a_revocation_holds(world: World, number: int, ada: Requester) -> None:
    for end in (revoke_ticket, revoke_person, revoke_desk):
        end(world, number, ada)
        assert holds(world, link_of(world, number, ada.id))


def test_a_revocation_is_in_the_history_of_the_ticket(world: World, number: int, ada: Requester) -> None:
    revoke_ticket(world, number, ada)
    entry = timelines.ticket(world.context("bob", "acme"), number).activity[-1]
    assert (entry.author_name, entry.verb) == ("Bob Example", "ended the requester's links to this ticket")


def test_a_link_is_over_after_the_days_that_the_desk_has_set(world: World, number: int, ada: Requester) -> None:
    link = link_of(world, number, ada.id)
    mail_settings.change(world.context("alice", "acme"), values={"link_days": 7}, version=0, by=SYSTEM)
    shorter = link_of(world, number, ada.id)
    assert link.until - shorter.until == pytest.approx(83 * 24 * 3600, abs=600)
    assert not holds(world, replace(link, until=link.until - 91 * 24 * 3600))


def test_a_link_leads_to_no_other_ticket_and_to_no_other_desk(world: World, number: int, ada: Requester) -> None:
    link = link_of(world, number, ada.id)
    of_other = changing.read(world.context("bob", "acme"), number)
    of_other.number, of_other.requester = number, "rq_" + "3" * 32
    person = requesters.find(world.context("bob", "acme"), ada.id)
    settings = mail_settings.read(world.context("bob", "acme"))
    assert not link.leads_to(of_other, settings, person)
    assert not link.leads_to(of_other, settings, None)
    of_other.requester, of_other.number = ada.id, number + 1
    assert not link.leads_to(of_other, settings, person)


# --- the buttons that end links ---


@pytest.mark.parametrize(
    ("who", "address", "sentence"),
    [
        ("bob", "/acme/tickets/{number}/links/end/", "links to this ticket are ended"),
        ("bob", "/acme/requesters/{ada}/links/end/", "All links of Ada Lovelace to their tickets are ended"),
        ("alice", "/acme/desk/settings/mail/links/end/", "All links to tickets are ended"),
    ],
)
def test_a_button_ends_links(world: World, number: int, ada: Requester, who: str, address: str, sentence: str) -> None:
    link = link_of(world, number, ada.id)
    browser = world.browser(who, "acme")
    answer = browser.send(address.format(number=number, ada=ada.id), {"version": "0"}, follow=True)
    assert sentence in answer.content.decode()
    assert not holds(world, link)


def test_settings_that_were_changed_meanwhile_end_no_links(world: World, number: int, ada: Requester) -> None:
    link = link_of(world, number, ada.id)
    mail_settings.change(world.context("alice", "acme"), values={"link_days": 30}, version=0, by=SYSTEM)
    page = "/acme/desk/settings/mail/links/end/"
    answer = world.browser("alice", "acme").send(page, {"version": "0"}, follow=True)
    assert "Somebody else has just changed these settings" in answer.content.decode()
    assert holds(world, link)
