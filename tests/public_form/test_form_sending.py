"""A request by the public form: its ticket, what that says of its sender, and what is kept from strangers."""

from __future__ import annotations

from html import escape
from typing import Any

import pytest
from django.test import Client

from portal.errors import NotFound
from tenants.audit_trail.recording import SYSTEM
from tenants.lifecycle import closing_mails, desk_closing, tenant_lifecycle
from tests.public_form.conftest import FORM, WORDS, Guest, open_form
from tests.support import defined, mailing
from tests.support.mail_receiver import mail_receiver, parts
from tests.support.world import World
from tickets.desk import changing, timelines
from tickets.public_form import receiving
from tickets.replies import mail_settings
from tickets.requesters import requesters
from tickets.ticket.fields import Channel


def ticket(world: World, number: int = 1) -> Any:
    return timelines.ticket(world.context("bob", "acme"), number)


def test_a_form_becomes_a_ticket_of_its_requester(open_desk: World) -> None:
    answer = Guest().send()
    assert answer.status_code == 200
    assert "Your message has arrived" in answer.content.decode()
    assert "ada@example.org" in answer.content.decode()
    made = ticket(open_desk)
    assert (made.summary.title, made.description, made.summary.channel) == (
        "The engine",
        "It <b>stands</b> still.",
        Channel.FORM,
    )
    person = requesters.by_address(open_desk.context("bob", "acme"), "ada@example.org")
    assert person is not None
    assert (made.summary.requester, person.name) == (person.id, "Ada")


def test_the_page_of_the_ticket_says_that_nothing_confirms_the_sender(open_desk: World) -> None:
    Guest().send(email="bob@example.com")
    page = open_desk.browser("bob", "acme").get("/acme/tickets/1/").content.decode()
    assert "The sender could not be confirmed." in page
    assert "has the address of a member of this desk" in page
    assert "By the public form" in page
    assert "It &lt;b&gt;stands&lt;/b&gt; still." in page


def test_the_answer_is_the_same_for_a_known_a_new_and_a_blocked_address(open_desk: World) -> None:
    alice = open_desk.context("alice", "acme")
    requesters.ensure(alice, "known@example.org", name="Karl Secret")
    mail_settings.change(alice, values={"blocked": ["blocked@example.org"]}, version=0, by=SYSTEM)
    pages = {
        Guest().send(email=f"{who}@example.org").content.decode().replace(f"{who}@", "@")
        for who in ("known", "new", "blocked")
    }
    assert len(pages) == 1
    assert "Secret" not in pages.pop()
    with pytest.raises(NotFound):
        changing.read(alice, 3)


def test_a_known_person_keeps_their_name_and_the_ticket_has_the_other(open_desk: World) -> None:
    requesters.ensure(open_desk.context("alice", "acme"), "ada@example.org", name="Ada Lovelace")
    Guest().send(name="Eve")
    page = open_desk.browser("bob", "acme").get("/acme/tickets/1/").content.decode()
    assert "Ada Lovelace" in page
    assert "The form gives the name Eve." in page


def test_the_same_form_again_makes_one_ticket_and_another_text_is_asked_for_again(open_desk: World) -> None:
    guest = Guest()
    fields = guest.form()
    assert [guest.post(fields).status_code for _ in range(3)] == [200, 200, 200]
    other = guest.post({**fields, "body": "Something else"})
    assert other.status_code == 422
    assert "Something else" in other.content.decode()
    assert "Another message was sent from this page" in other.content.decode()
    assert changing.read(open_desk.context("bob", "acme"), 1).title == "The engine"
    with pytest.raises(NotFound):
        changing.read(open_desk.context("bob", "acme"), 2)


def test_the_acknowledgement_repeats_nothing_and_goes_to_an_address_a_few_times_a_day(open_desk: World) -> None:
    with mail_receiver() as inbox:
        for n in range(receiving.LETTERS_A_DAY + 2):
            # From many networks: each has limits of its own.
            Guest(f"198.51.100.{n}").send(subject="Pills at spam.example", body="spam.example", name="Spam Example")
        mailing.carry()
        assert len(inbox.letters) == receiving.LETTERS_A_DAY
        for letter in inbox.letters:
            assert letter["To"].addresses[0].addr_spec == "ada@example.org"
            told = " ".join([letter["Subject"], letter["To"], *parts(letter)]).lower()
            assert "http://testserver/r/" in told, "it leads to the ticket"
            assert "spam" not in told
            assert "pills" not in told
    assert ticket(open_desk, receiving.LETTERS_A_DAY + 2).summary.title == "Pills at spam.example"


def test_addresses_of_one_mailbox_share_its_acknowledgements(open_desk: World) -> None:
    with mail_receiver() as inbox:
        for n in range(receiving.LETTERS_A_DAY + 2):
            assert Guest(f"198.51.100.{n}").send(email=f"ada+{n}@example.org").status_code == 200
        mailing.carry()
        assert len(inbox.letters) == receiving.LETTERS_A_DAY


def test_a_desk_that_sends_no_acknowledgements_sends_none_for_forms(open_desk: World) -> None:
    alice = open_desk.context("alice", "acme")
    mail_settings.change(alice, values={"acknowledges": False}, version=0, by=SYSTEM)
    with mail_receiver() as inbox:
        Guest().send()
        mailing.carry()
    assert inbox.letters == []


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"email": "nobody"}, "Enter an email address"),
        ({"email": ""}, "This field is required"),
        ({"email": "acme@desk.localhost"}, "an address of the desk itself"),
        ({"subject": "x" * 201}, "at most 200 characters"),
        ({"subject": " "}, "This field is required"),
        ({"body": "x" * 50_001}, "Use at most 50000 characters"),
        ({"body": "a\0b"}, "haracters"),
        ({"website": "http://spam.example"}, "A field that people do not see was filled in"),
        ({"challenge": "forged"}, "open for a long time"),
        ({"challenge": ""}, "open for a long time"),
    ],
)
def test_a_refusal_says_why_and_keeps_what_was_typed(open_desk: World, values: dict[str, str], sentence: str) -> None:
    guest = Guest()
    answer = guest.post({**guest.form(), "body": "What I <i>typed</i>", **values})
    page = answer.content.decode()
    assert answer.status_code == 422
    assert sentence in page
    if "body" not in values:
        assert "What I &lt;i&gt;typed&lt;/i&gt;" in page
    with pytest.raises(NotFound):
        changing.read(open_desk.context("bob", "acme"), 1)


def test_a_form_has_the_fields_that_the_desk_chose(world: World) -> None:
    texts = {"intro": "Hello\nthere", "next_steps": "We ring."}
    open_form(world, asks_name=False, asks_priority=True, takes_files=False, **texts)
    page = Guest().client.get(FORM).content.decode()
    assert 'name="name"' not in page
    assert 'name="attached"' not in page
    assert "Hello\nthere" in page
    answer = Guest().send(priority="urgent", name="ignored")
    assert "We ring." in answer.content.decode()
    assert ticket(world).summary.priority == "urgent"


def test_a_form_asks_the_custom_fields_that_the_desk_chose(world: World) -> None:
    text, number, choice, day, box = defined.one_of_each_type(world)
    open_form(world, own_fields=[text, choice, box], needed_fields=[choice, box])
    page = Guest().client.get(FORM).content.decode()
    assert [name in page for name in (f'"{text}"', f'"{choice}"', f'"{box}"', number, day)] == [True] * 3 + [False] * 2
    given = {text: "EN-4711", choice: "Red one", box: "yes", number: "12", "kind": "kind_1"}
    assert "Your message has arrived" in Guest().send(**given).content.decode()
    assert dict(ticket(world).summary.custom or {}) == {text: "EN-4711", choice: "Red one", box: "yes"}


@pytest.mark.parametrize(
    ("lacks", "sentence"),
    [
        ({"choice_3": ""}, "Enter a value for “Own choice”."),
        ({"choice_3": "Green one"}, "Choose a value from the list."),
        ({"checkbox_5": ""}, "Tick “Own checkbox”."),
        ({"number_2": "many"}, "Enter a number such as 12"),
        ({"text_1": "x" * 201}, "200 are allowed"),
    ],
)
def test_a_custom_field_that_is_wrong_is_named_and_nothing_is_lost(
    world: World, lacks: dict[str, str], sentence: str
) -> None:
    ids = defined.one_of_each_type(world)
    open_form(world, own_fields=ids, needed_fields=ids)
    given = {"text_1": "EN-4711", "number_2": "12", "choice_3": "Blue one", "date_4": "2026-12-24", "checkbox_5": "yes"}
    answer = Guest().send(**{**given, **lacks})
    assert answer.status_code == 422
    page = answer.content.decode()
    assert sentence in page
    assert "EN-4711" in page or "text_1" in lacks
    assert '<option value="Blue one" selected>' in page or "choice_3" in lacks
    with pytest.raises(NotFound):
        changing.read(world.context("bob", "acme"), 1)


def test_the_same_form_with_another_custom_value_is_another_form(world: World) -> None:
    text, *_ = defined.one_of_each_type(world)
    open_form(world, own_fields=[text])
    guest = Guest()
    fields = guest.form(**{text: "EN-1"})
    assert [guest.post(fields).status_code for _ in range(2)] == [200, 200]
    assert guest.post({**fields, text: "EN-2"}).status_code == 422


def test_a_field_that_was_archived_is_asked_no_more(world: World) -> None:
    text, *_ = defined.one_of_each_type(world)
    open_form(world, own_fields=[text], needed_fields=[text])
    defined.change_field(world, text, "Own text", is_archived=True)
    assert text not in Guest().client.get(FORM).content.decode()
    assert Guest().send(**{text: "EN-1"}).status_code == 200
    assert not ticket(world).summary.custom


def test_a_priority_that_was_not_asked_for_is_ignored(open_desk: World) -> None:
    Guest().send(priority="urgent", status="closed", resolver="me", channel="hand", tags="vip")
    made = ticket(open_desk).summary
    assert (made.priority, made.status, made.resolver, made.channel) == ("normal", "open", "", Channel.FORM)


def test_no_open_form_no_desk_a_suspended_and_a_closing_desk_are_one_404(open_desk: World) -> None:
    open_form(open_desk, "globex", by="charlie")
    globex = open_desk.tenants["globex"].tenant_id
    tenant_lifecycle.suspend(globex, by=SYSTEM)
    pages = {path: Client().get(path) for path in ("/forms/globex/", "/forms/nowhere/", "/forms/acme/x/")}
    sent = [Client().post(path, WORDS) for path in ("/forms/globex/", "/forms/nowhere/")]
    tenant_lifecycle.resume(globex, by=SYSTEM)
    assert Client().get("/forms/globex/").status_code == 200
    desk_closing.close(globex, by=SYSTEM, write=closing_mails.to_owners)
    pages["closing"] = Client().get("/forms/globex/")
    open_form(open_desk, is_on=False)
    pages["off"] = Client().get(FORM)
    sent.append(Client().post(FORM, WORDS))
    assert {page.status_code for page in (*pages.values(), *sent)} == {404}
    assert len({page.content for page in pages.values()}) == 1
    assert len({page.content for page in sent}) == 1


def test_a_form_that_was_closed_meanwhile_gives_back_what_was_typed(open_desk: World) -> None:
    open_form(open_desk, is_on=False)
    page = Client(headers={"accept-language": "de"}).post(FORM, WORDS | {"challenge": "a1:b2"}).content.decode()
    assert "Was Sie gesendet haben, ist nicht angekommen." in page
    assert escape(WORDS["body"]) in page
    assert "a1:b2" not in page
    assert "<form" not in page, "there is nowhere to send it"


def test_a_member_is_a_guest_there_and_no_cookie_is_set(open_desk: World) -> None:
    member, visitor = open_desk.browser("alice", "acme"), Client()
    pages = [client.get(FORM) for client in (member, visitor)]
    assert [page.status_code for page in pages] == [200, 200]
    for page in pages:
        assert not page.cookies
        assert "Alice" not in page.content.decode()
        assert open_desk.tenants["acme"].tenant_id not in page.content.decode()
    assert "tickets" in member.get("/acme/tickets/").content.decode().lower()
