"""The page of a requester's ticket: it says how each comment fared as a letter, and takes the addresses of copies."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import override_settings

from tests.support import mailing
from tests.support.mail_receiver import MailReceiver
from tests.support.operators import calls
from tests.support.world import Browser, World
from tickets.desk import commenting, creating, letter_texts, timelines
from tickets.desk.letter_texts import FromLetter
from tickets.requesters import requesters
from tickets.requesters.requesters import Requester
from tickets.ticket import stored

REQUEST = {"request_id": "0" * 32}


@pytest.fixture
def bob(world: World) -> Browser:
    return world.browser("bob", "acme")


def page(browser: Browser, number: int) -> str:
    return str(browser.get(f"/tickets/{number}/").content.decode())


def send(browser: Browser, number: int, **values: Any) -> Any:
    return browser.send(f"/tickets/{number}/comment/", REQUEST | {"body": "Try again."} | values)


def line(html: str) -> str:
    (found,) = re.findall(r'<p class="entry-delivery.*?</p>', html, re.S)
    return re.sub(r"<[^>]+>", "", str(found))


def test_a_comment_says_that_it_waits_and_then_that_it_was_sent(bob: Browser, number: int, inbox: MailReceiver) -> None:
    assert send(bob, number, cc="grace@example.org, lin@example.org").status_code == 302
    assert line(page(bob, number)).startswith("Waiting to be sent")
    mailing.carry()
    shown = line(page(bob, number))
    assert shown.startswith("Sent by mail")
    assert "copies to grace@example.org, lin@example.org" in shown


def test_the_field_of_copies_says_that_they_cost_the_requester_the_link(bob: Browser, number: int) -> None:
    described = re.search(r'name="cc"[^>]*aria-describedby="(\w+)"', page(bob, number))
    assert described
    assert f'id="{described[1]}">A letter with copies has no link' in page(bob, number)


def test_the_next_comment_is_offered_the_same_copies(bob: Browser, number: int) -> None:
    send(bob, number, cc="grace@example.org; lin@example.org")
    assert 'value="grace@example.org, lin@example.org"' in page(bob, number)


def test_the_copies_of_a_letter_that_came_in_are_offered_without_the_desks_own(world: World, bob: Browser) -> None:
    agent = world.context("bob", "acme")
    ada = requesters.ensure(agent, "ada@example.org")
    own = ("acme@desk.localhost", "reply+abc@desk.localhost")
    opening = FromLetter("d" * 32, cc=("lin@example.org", *own))
    number = creating.create(agent, title="The engine", requester=ada, letter=opening)
    assert 'value="lin@example.org"' in page(bob, number)
    answer = FromLetter("e" * 32, cc=(*own, "grace@example.org"))
    commenting.comment(agent, number, body="It is I.", letter=answer)
    assert 'value="grace@example.org"' in page(bob, number)


@pytest.mark.parametrize("way", ["before", "entry"])
def test_beside_older_entries_the_copies_of_the_latest_are_offered_and_nobody_is_brought_back(
    world: World, bob: Browser, number: int, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(timelines, "ACTIVITY_PAGE", 3)
    monkeypatch.setattr(timelines, "_MORE_THAN_A_PAGE", 4)
    agent = world.context("bob", "acme")
    commenting.comment(agent, number, body="Old.", cc=["lin@example.org"])
    (old,) = [one.sk for one in timelines.ticket(agent, number).activity if one.body == "Old."]
    for n in range(8):
        commenting.comment(agent, number, body=f"New {n}.", cc=["grace@example.org" if n == 7 else "lin@example.org"])
    asked = timelines.before(agent, number, old + "#") if way == "before" else stored.entry_reference(old)
    html = bob.get(f"/tickets/{number}/", {way: asked}).content.decode()
    assert "Old." in html
    assert "New 7." not in html
    assert 'value="grace@example.org"' in html


@pytest.mark.parametrize("mark", [letter_texts.UNCONFIRMED, letter_texts.OTHER_PERSON])
def test_no_copy_is_offered_to_whom_a_letter_names_whose_sender_may_be_somebody_else(
    world: World, bob: Browser, mark: str
) -> None:
    agent = world.context("bob", "acme")
    ada = requesters.ensure(agent, "ada@example.org")
    forged = FromLetter("d" * 32, cc=("eve@evil.example",), marks=(mark,))
    number = creating.create(agent, title="What do I owe you?", requester=ada, letter=forged)
    assert 'value="eve@evil.example"' not in page(bob, number)


def test_an_address_that_is_none_is_named_at_its_field_and_nothing_is_lost(bob: Browser, number: int) -> None:
    answer = send(bob, number, cc="grace@example.org, nobody")
    assert answer.status_code == 422
    html = answer.content.decode()
    assert "“nobody” is no mail address." in html
    assert 'value="grace@example.org, nobody"' in html
    assert "Try again.</textarea>" in html
    assert 'class="entry-delivery' not in html


def test_one_who_types_is_told_that_the_last_letter_came_back(bob: Browser, number: int, inbox: MailReceiver) -> None:
    assert "The last letter" not in page(bob, number)
    inbox.answers["ada@example.org"] = "550 5.1.1 no such user"
    send(bob, number)
    mailing.carry()
    html = page(bob, number)
    assert "was not delivered" in html
    assert html.count("no such user") == 2, "on the comment, and where one types"


def test_without_javascript_a_ticket_of_whom_mail_does_not_reach_says_so_once_a_comment_was_sent(
    world: World, bob: Browser, number: int, ada: Requester, inbox: MailReceiver
) -> None:
    inbox.answers["ada@example.org"] = "550 5.1.1 no such user"
    send(bob, number)
    mailing.carry()
    other = creating.create(world.context("bob", "acme"), title="The wheel", requester=ada)
    assert "Your comment is mailed to" in page(bob, other)
    send(bob, other)
    mailing.carry()
    html = page(bob, other)
    assert line(html).startswith("Not delivered")
    assert "Your comment is mailed to" not in html
    assert "your comment may not be either" in html


def test_a_note_is_not_mailed_and_has_no_copies(bob: Browser, number: int, inbox: MailReceiver) -> None:
    send(bob, number, internal="on", cc="nobody")
    assert mailing.waiting() == []
    assert 'class="entry-delivery' not in page(bob, number)


def test_a_members_ticket_has_no_letters(world: World, bob: Browser) -> None:
    (own,) = world.tickets("acme", 1)
    html = page(bob, own)
    assert "is mailed to" not in html
    assert 'name="cc"' not in html


def test_the_page_costs_what_it_costs_without_letters(world: World, bob: Browser, number: int) -> None:
    (own,) = world.tickets("acme", 1)
    costs = []
    for one in (own, number):
        commenting.comment(world.context("bob", "acme"), one, body="Hello.")
        with calls() as made:
            page(bob, one)
        costs.append([call.operation for call in made])
    assert costs[0] == costs[1]


def test_without_a_domain_for_mail_the_letter_still_goes(bob: Browser, number: int, inbox: MailReceiver) -> None:
    with override_settings(MAIL_DOMAIN=""):
        send(bob, number)
        mailing.carry()
    assert len(inbox.letters) == 1
