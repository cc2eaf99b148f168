"""A flood of letters under ever-changing names is held back as a whole, and nothing of it is lost."""

from __future__ import annotations

import pytest

from delivery.queues import direct_work
from portal.errors import Unavailable
from tests.mail_in.test_letter_pages import shown_count, text_of
from tests.support.letters_in import come_in, drain, letter, rows
from tests.support.world import World
from tickets.letters import deciding, ledger, letter_rates, stored
from tickets.replies.reply_addresses import address_of
from tickets.requesters import requesters

LIMIT = 3


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letter_rates, "SENDERS", LIMIT)


def flood(count: int, *, first: int = 0) -> None:
    for n in range(first, first + count):
        sender = f"p{n}@flood.example"
        raw = letter(sender=sender, subject=f"Buy {n}", body=str(n), message_id=f"<{n}@flood.example>")
        come_in(raw, sender=sender)


def states(mail: World, where: str = "acme") -> list[str]:
    return [row.state for row in reversed(rows(mail, where))]


def test_letters_of_ever_more_strangers_are_held_back_with_a_sentence_and_make_no_people(mail: World) -> None:
    flood(LIMIT + 2)
    assert states(mail) == [ledger.FILED] * LIMIT + [ledger.HELD] * 2
    page = mail.browser("bob").get("/acme/letters/waiting/")
    assert "does not know this sender" in text_of(page)
    assert shown_count(mail.browser("bob").get("/acme/letters/")) == "2"
    assert requesters.by_address(mail.context("bob", "acme"), f"p{LIMIT}@flood.example") is None


def test_many_letters_of_few_senders_are_a_flood_too(mail: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letter_rates, "SENDERS", 100)
    monkeypatch.setattr(letter_rates, "LETTERS", 2)
    flood(3)
    assert states(mail) == [ledger.FILED, ledger.FILED, ledger.HELD]


def test_people_whom_the_desk_knows_are_heard_during_a_flood(mail: World) -> None:
    come_in(letter())
    zoe = requesters.by_address(mail.context("bob", "acme"), "zoe@customer.example")
    assert zoe is not None
    flood(LIMIT + 1)
    come_in(letter(subject="Something else", message_id="<2@customer.example>"))
    reply = address_of(mail.tenants["acme"].tenant_id, 1, zoe.id, is_agent=False)
    come_in(
        letter(subject="Re: Printer", message_id="<3@else.example>", sender="a@else.example"),
        reply,
        sender="a@else.example",
    )
    assert states(mail)[-2:] == [ledger.FILED] * 2


def test_a_forged_sender_is_no_known_one(mail: World) -> None:
    come_in(letter())
    flood(LIMIT)
    come_in(letter(subject="Something else", message_id="<2@customer.example>"), dmarc="FAIL")
    assert states(mail)[-1] == ledger.HELD


def test_the_flood_of_one_desk_holds_back_no_letter_of_another(mail: World) -> None:
    flood(LIMIT + 1)
    come_in(letter(to="globex@desk.localhost"), "globex@desk.localhost")
    assert states(mail, "globex") == [ledger.FILED]


def test_one_press_files_all_that_were_held_back_and_nothing_else(mail: World) -> None:
    flood(LIMIT + 2)
    come_in(letter(subject="Spam", message_id="<spam@customer.example>"), spam="FAIL")
    bob = mail.browser("bob")
    bob.get("/acme/tickets/")
    page = text_of(bob.send("/acme/letters/held/file/", {}, follow=True))
    assert "2 letters will be filed in a moment." in page
    drain()
    assert states(mail) == [ledger.FILED] * (LIMIT + 2) + [ledger.WAITING]
    assert shown_count(bob.get("/acme/letters/")) == "1"
    assert "No letter is held back any more." in text_of(bob.send("/acme/letters/held/file/", {}, follow=True))


def test_the_press_is_bounded_and_goes_on_where_it_ended(mail: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deciding, "HELD_AT_ONCE", 2)
    flood(LIMIT + 3)
    bob = mail.browser("bob")
    bob.get("/acme/tickets/")
    for left in (1, 0):
        page = text_of(bob.send("/acme/letters/held/file/", {}, follow=True))
        assert ("More wait: press the button again" in page) is bool(left)
        drain()
        assert states(mail).count(ledger.HELD) == left
    assert states(mail) == [ledger.FILED] * (LIMIT + 3)


def test_a_letter_that_was_pressed_twice_or_discarded_meanwhile_is_filed_once_or_not_at_all(mail: World) -> None:
    flood(LIMIT + 2)
    bob = mail.browser("bob")
    bob.get("/acme/tickets/")
    for _ in range(2):
        bob.send("/acme/letters/held/file/", {})
    repository = mail.context("bob", "acme").repository
    ledger.discard(repository, ledger.get(repository, stored.digest_of(rows(mail)[0].pk)))
    drain()
    assert states(mail) == [ledger.FILED] * (LIMIT + 1) + [ledger.DISCARDED]
    assert sorted(int(row.number) for row in rows(mail)) == [0, *range(1, LIMIT + 2)]


def test_letters_stay_held_back_where_the_queues_do_not_answer(mail: World, monkeypatch: pytest.MonkeyPatch) -> None:
    flood(LIMIT + 1)
    bob = mail.browser("bob")
    bob.get("/acme/tickets/")

    def away(*args: object, **how: object) -> None:
        raise Unavailable("The queues are away.")

    with monkeypatch.context() as patch:
        patch.setattr(direct_work, "send", away)
        assert bob.send("/acme/letters/held/file/", {}).status_code == 503
    assert states(mail)[-1] == ledger.HELD
    assert "File all that were held back" in bob.get("/acme/letters/waiting/").content.decode()
