"""Whom a link lets in: to one ticket and to nothing else, and everybody else sees one and the same page."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from typing import Any

import pytest
from django.test import Client

from portal.dynamo import meter
from tenants.audit_trail.recording import SYSTEM, Actor
from tenants.lifecycle import tenant_lifecycle
from tests.desk.test_cost import spent
from tests.requester_pages.conftest import Guest, link_of
from tests.support import mailing
from tests.support.commands import run
from tests.support.mail_receiver import MailReceiver, parts
from tests.support.outbox import rows
from tests.support.world import World
from tickets.desk import changing, commenting, creating
from tickets.notices.following import MuteLink
from tickets.replies import mail_settings, reply_addresses, ticket_links
from tickets.replies.ticket_links import TicketLink
from tickets.requesters import requester_changes, requesters
from tickets.requesters.requesters import Requester
from tickets.ticket.fields import Status
from tickets.ticket.stored import SUMMARY, SummaryItem
from tickets.ticket.stored import ticket as ticket_key

ONCE = "1" * 32


def without_tokens(page: str) -> str:
    return re.sub(r"/r/[^/\"]+/", "/r/…/", page)


def gone(token: str, kind: str = "") -> str:
    """The page at a link that does not hold."""
    answer = Client().get(f"/r/{kind}{token}/")
    assert answer.status_code == 404, answer.content
    return without_tokens(answer.content.decode())


@pytest.fixture
def refused() -> str:
    return gone("nonsense")


def expired(world: World, link: TicketLink) -> str:
    return replace(link, until=1).token


def of_nobody(world: World, link: TicketLink) -> str:
    return replace(link, person_id="rq_" + "9" * 32).token


def of_no_ticket(world: World, link: TicketLink) -> str:
    return replace(link, number=4711).token


def of_no_desk(world: World, link: TicketLink) -> str:
    return replace(link, tenant_id="f" * 32).token


def at_another_desk(world: World, link: TicketLink) -> str:
    return replace(link, tenant_id=world.tenants["globex"].tenant_id).token


def revoked(world: World, link: TicketLink) -> str:
    ticket_links.revoke(world.context("bob", "acme"), link.number)
    return link.token


def of_an_erased_person(world: World, link: TicketLink) -> str:
    assert run("erase_person", "acme", "ada@example.org").status == 0
    return link.token


def of_a_merged_person(world: World, link: TicketLink) -> str:
    bob = world.context("bob", "acme")
    grace = requesters.ensure(bob, "grace@example.org")
    requester_changes.merge(bob, grace.id, link.person_id, by=SYSTEM)
    return link.token


def of_a_blocked_sender(world: World, link: TicketLink) -> str:
    mail_settings.block(world.context("bob", "acme"), "ada@example.org", by=SYSTEM)
    return link.token


def of_a_suspended_desk(world: World, link: TicketLink) -> str:
    tenant_lifecycle.suspend(world.tenants["acme"].tenant_id, by=Actor("operator", "ops@example.com"))
    return link.token


def cut(world: World, link: TicketLink) -> str:
    return link.token[:-1]


def to_all(world: World, link: TicketLink) -> str:
    return replace(link, number=0).token


def agents_reply_address(world: World, link: TicketLink) -> str:
    user = world.users["bob"].id
    return reply_addresses.address_of(link.tenant_id, link.number, user, is_agent=True)[6:].partition("@")[0]


def requesters_reply_address(world: World, link: TicketLink) -> str:
    return reply_addresses.address_of(link.tenant_id, link.number, link.person_id, is_agent=False)[6:].partition("@")[0]


def agents_mute_link(world: World, link: TicketLink) -> str:
    return MuteLink(link.tenant_id, world.users["bob"].id, number=link.number).token


@pytest.mark.parametrize(
    "make",
    [
        expired,
        of_nobody,
        of_no_ticket,
        of_no_desk,
        at_another_desk,
        revoked,
        of_an_erased_person,
        of_a_merged_person,
        of_a_blocked_sender,
        of_a_suspended_desk,
        cut,
        to_all,
        agents_reply_address,
        requesters_reply_address,
        agents_mute_link,
    ],
)
def test_every_link_that_does_not_hold_shows_the_same_page(
    world: World, number: int, ada: Requester, refused: str, make: Callable[..., str]
) -> None:
    link = link_of(world, number, ada)
    assert Guest(link.token).get().status_code == 200
    token = make(world, link)
    assert gone(token) == refused
    assert "Send me a new link" in refused
    for what in ("answer", "close", "rate", "all"):
        answer = Guest(token).send(what, body="Hello.", rating="good", request_id=ONCE)
        assert answer.status_code == 404, what
    for what in ("files/", f"files/{'0' * 32}/"):
        assert Client().get(f"/r/{token}/{what}").status_code in (404, 405)
    if make not in (of_a_suspended_desk,):
        summary = changing.read(world.context("bob", "acme"), number)
        assert (summary.status, summary.comment_count, summary.rating) == ("open", 0, "")


def test_a_link_opens_its_ticket_and_no_other_one_of_the_same_person(
    world: World, number: int, ada: Requester, guest: Guest
) -> None:
    bob = world.context("bob", "acme")
    other = creating.create(bob, title="Another matter", description="Quite another.", requester=ada)
    commenting.comment(bob, other, body="Of the other one.")
    page = guest.text()
    assert "nother" not in page
    assert "other one" not in page


def test_a_link_ends_when_the_ticket_becomes_somebody_elses(world: World, number: int, ada: Requester) -> None:
    link = link_of(world, number, ada)
    bob = world.context("bob", "acme")
    item = SummaryItem(bob.repository.key(ticket_key, number), SUMMARY)
    bob.repository.update(item, [SummaryItem.requester.set("rq_" + "3" * 32)])
    assert Guest(link.token).get().status_code == 404


def test_a_link_is_no_token_for_the_desk(world: World, number: int, ada: Requester) -> None:
    token = link_of(world, number, ada).token
    assert reply_addresses.read(f"reply+{token}@desk.localhost") is None
    assert MuteLink.read(token) is None
    assert Client().get(f"/mail/mute/{token}/").status_code == 404
    assert Client().get(f"/acme/tickets/{number}/?token={token}").status_code == 302
    api = Client().get(f"/api/v1/tickets/{number}", HTTP_AUTHORIZATION=f"Bearer {token}")
    assert api.status_code == 401


# --- letters ---


def addresses_in(letter: Any) -> list[str]:
    text, html = parts(letter)
    found = re.findall(r"http://testserver(/r/[^\s#]+)(?:#rating)?", text)
    shown = [unescape(one) for one in re.findall(r'href="http://testserver(/r/[^"#]+)(?:#rating)?"', html)]
    assert found == shown, "the same links in both"
    return found


def test_an_acknowledgement_and_an_answer_lead_to_the_ticket(world: World, ada: Requester, inbox: MailReceiver) -> None:
    bob = world.context("bob", "acme")
    number = creating.create(bob, title="Broken", requester=ada, acknowledge=True)
    commenting.comment(bob, number, body="We look into it.")
    mailing.carry()
    assert len(inbox.letters) == 2
    for letter in inbox.letters:
        (address,) = addresses_in(letter)
        assert "Broken" in Client().get(address).content.decode()


def test_a_letter_with_copies_has_no_link(world: World, number: int, inbox: MailReceiver) -> None:
    bob = world.context("bob", "acme")
    commenting.comment(bob, number, body="To both of you.", cc=["grace@example.org"])
    mailing.carry()
    assert addresses_in(inbox.letters[0]) == [], "who reads along would answer in the requester's place"


def test_the_letter_that_resolves_asks_for_a_rating_and_says_all_in_the_requesters_language(
    world: World, number: int, ada: Requester, inbox: MailReceiver
) -> None:
    bob = world.context("bob", "acme")
    german = requester_changes.Details(name=ada.name, addresses=ada.addresses, language="de")
    requester_changes.change(bob, ada.id, lambda before: german, version=None, by=SYSTEM)
    commenting.comment(bob, number, body="It works now.", then=Status.RESOLVED)
    mailing.carry()
    page, good, bad = addresses_in(inbox.letters[0])
    assert (good, bad) == (f"{page}?rating=good", f"{page}?rating=bad")
    text, html = parts(inbox.letters[0])
    assert '#rating">Unsere Hilfe als gut bewerten</a>' in html, "the link is named, not spelled out"
    for german_words in ("Unsere Hilfe als gut bewerten", "Bitte antworten Sie oberhalb dieser Zeile", "schrieb"):
        assert german_words in text
        assert german_words in re.sub(r"<[^>]+>", "", html)
    assert '<html lang="de">' in html
    assert not {"wrote", "reply"} & {*text.split()}
    Client().get(bad)
    assert changing.read(bob, number).rating == "", "programs that scan mail open links"


# --- new links ---


def ask_anew(token: str) -> str:
    page = str(Client().post(f"/r/{token}/new/").content.decode())
    assert "Please look into your mailbox" in page
    assert Client().get(f"/r/{token}/new/").status_code == 404
    return page


def test_a_new_link_goes_to_the_address_on_record(
    world: World, number: int, ada: Requester, inbox: MailReceiver
) -> None:
    link = link_of(world, number, ada)
    old = expired(world, link)
    assert ask_anew(old) == ask_anew("nonsense"), "nobody learns whether there is such a link"
    assert mailing.carry() == ["answered"]
    assert inbox.envelopes[0][1] == ["ada@example.org"]
    (address,) = addresses_in(inbox.letters[0])
    assert "The engine stops" in Client().get(address).content.decode()
    assert inbox.letters[0]["Auto-Submitted"] == "auto-replied"


@pytest.mark.parametrize(
    "make", [of_nobody, of_no_ticket, of_no_desk, at_another_desk, of_an_erased_person, of_a_suspended_desk, cut]
)
def test_no_letter_leaves_for_a_link_that_was_of_nobody(
    world: World, number: int, ada: Requester, inbox: MailReceiver, make: Callable[..., str]
) -> None:
    ask_anew(make(world, link_of(world, number, ada)))
    mailing.carry()
    assert inbox.letters == []


def test_a_person_is_sent_few_links(world: World, number: int, guest: Guest, inbox: MailReceiver) -> None:
    for _ in range(6):
        ask_anew(guest.token)
    mailing.carry()
    assert len(inbox.letters) == 3
    assert "A few links were sent already" in guest.send("all", follow=True).content.decode()


# --- all tickets of a person ---


def list_address(guest: Guest, inbox: MailReceiver) -> str:
    page = guest.send("all", follow=True).content.decode()
    assert "We have sent the link" in page
    assert "ada@example.org" not in page, "whoever else has the link does not learn it"
    mailing.carry()
    (address,) = addresses_in(inbox.letters[-1])
    return address


def test_a_second_link_by_mail_leads_to_all_tickets_of_the_person(
    world: World, number: int, ada: Requester, guest: Guest, inbox: MailReceiver
) -> None:
    bob = world.context("bob", "acme")
    creating.create(bob, title="A newer one", requester=ada)
    creating.create(bob, title="Of somebody else", requester=requesters.ensure(bob, "grace@example.org"))
    page = Client().get(list_address(guest, inbox)).content.decode()
    assert page.index("A newer one") < page.index("The engine stops")
    assert "Of somebody else" not in page
    (newer, _) = re.findall(r'href="(/r/all/[^"]+/\d+/)"', page)
    assert "A newer one" in Client().get(newer, follow=True).content.decode()


def test_the_list_has_pages(world: World, number: int, ada: Requester) -> None:
    bob = world.context("bob", "acme")
    for n in range(30):
        creating.create(bob, title=f"Matter {n:02}", requester=ada)
    address = f"/r/all/{ticket_links.all_link(bob, ada, mail_settings.read(bob)).token}/"
    seen: list[str] = []
    while address:
        page = Client().get(address).content.decode()
        seen += re.findall(r"Matter \d\d|The engine stops", re.sub(r"<title>.*?</title>", "", page))
        following = re.findall(r'href="([^"]+)" rel="next"', page)
        address = unescape(following[0]) if following else ""
    assert seen == [f"Matter {n:02}" for n in reversed(range(30))] + ["The engine stops"]


def test_a_link_to_all_tickets_opens_no_other_persons_and_ends_soon(
    world: World, number: int, ada: Requester, refused: str
) -> None:
    bob = world.context("bob", "acme")
    grace = requesters.ensure(bob, "grace@example.org")
    other = creating.create(bob, title="Of Grace", requester=grace)
    link = ticket_links.all_link(bob, ada, mail_settings.read(bob))
    assert Client().get(f"/r/all/{link.token}/{other}/").status_code == 404
    assert Client().get(f"/r/all/{link.token}/{number}/").status_code == 302
    assert gone(link.token) == refused, "it is no link to a ticket"
    over = replace(link, until=1).token
    assert gone(over, "all/") == refused
    assert Client().get(f"/r/all/{over}/{number}/").status_code == 404
    assert gone(link_of(world, number, ada).token, "all/") == refused
    ours = Client().get(f"/r/all/{link.token}/?after=nonsense")
    assert ours.status_code == 400
    requester_changes.revoke_links(bob, ada.id, by=SYSTEM)
    assert gone(link.token, "all/") == refused


def test_the_list_takes_two_round_trips(world: World, number: int, ada: Requester) -> None:
    bob = world.context("bob", "acme")
    link = ticket_links.all_link(bob, ada, mail_settings.read(bob))
    bill: meter.Meter = spent(Client(), f"/r/all/{link.token}/")  # type: ignore[arg-type]  # a browser of nobody
    assert bill.trips == 2
    assert [call.operation for call in bill.calls].count("Query") == 1


def test_a_letter_that_was_asked_for_is_not_sent_once_the_ticket_is_gone_to_somebody_else(
    world: World, number: int, ada: Requester, guest: Guest, inbox: MailReceiver
) -> None:
    ask_anew(guest.token)
    bob = world.context("bob", "acme")
    grace = requesters.ensure(bob, "grace@example.org")
    item = SummaryItem(bob.repository.key(ticket_key, number), SUMMARY)
    bob.repository.update(item, [SummaryItem.requester.set(grace.id)])
    mailing.carry()
    assert inbox.letters == []
    assert all(not row.pending for row in rows())
