"""Pages of letters: those that need a decision, all of them, and each as it came."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from delivery.queues import queue_readers
from tests.desk.test_cost import spent
from tests.support.letters_in import come_in, drain, letter, objects, post, rows, work
from tests.support.world import World
from tickets.letters import filing, ledger, reconciling, stored
from tickets.letters.stored import INCOMING, LETTERS_QUEUE
from tickets.replies import mail_settings
from tickets.replies.stored import WAITING, WaitingCountItem

HTML = (
    b"From: Zoe <zoe@customer.example>\r\nTo: acme@desk.localhost\r\nSubject: Looks\r\n"
    b"Message-ID: <h@customer.example>\r\n"
    b"MIME-Version: 1.0\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
    b'<p>Hello <b>there</b></p><script>alert(1)</script><img src="https://tracker.example/p.png">'
    b'<form action="https://evil.example"><input></form>'
)


def digest(mail: World) -> str:
    return stored.digest_of(rows(mail)[0].pk)


def text_of(response) -> str:
    assert response.status_code == 200
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def test_a_letter_that_could_not_be_filed_is_listed_with_its_reason_and_can_be_filed(mail: World) -> None:
    come_in(letter(), spam="FAIL")
    bob = mail.browser("bob")
    page = text_of(bob.get("/acme/letters/waiting/"))
    assert "The printer is on fire" in page
    assert "It was found to be spam." in page
    answer = bob.send(f"/acme/letters/{digest(mail)}/file/", {}, follow=True)
    assert "Filed to ticket #1." in text_of(answer)
    assert "It burns since noon." in text_of(answer)
    assert "Nothing to decide" in text_of(bob.get("/acme/letters/waiting/"))


def test_a_letter_that_still_cannot_be_filed_says_why_and_stays(mail: World) -> None:
    come_in(letter(sender="nobody at all"))
    bob = mail.browser("bob")
    answer = bob.send(f"/acme/letters/{digest(mail)}/file/", {}, follow=True)
    assert "It still cannot be filed. It has no address of a sender" in text_of(answer)
    assert "nobody could be answered" in text_of(bob.get("/acme/letters/waiting/"))


def test_a_discarded_letter_is_in_the_list_of_all_letters_alone(mail: World) -> None:
    come_in(letter(), spam="FAIL")
    bob, name = mail.browser("bob"), digest(mail)
    page = text_of(bob.send(f"/acme/letters/{name}/discard/", {}, follow=True))
    assert "Nothing to decide" in page
    assert "Discarded" in text_of(bob.get("/acme/letters/"))
    assert "filed or discarded meanwhile" in text_of(bob.send(f"/acme/letters/{name}/file/", {}, follow=True))
    assert "filed or discarded meanwhile" in text_of(bob.send(f"/acme/letters/{name}/discard/", {}, follow=True))


def test_the_raw_letter_is_downloaded_and_never_shown(mail: World) -> None:
    come_in(HTML)
    answer = mail.browser("bob").get(f"/acme/letters/{digest(mail)}/raw/")
    assert answer["Content-Disposition"].startswith("attachment;")
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer.content.endswith(HTML)


def test_the_original_runs_nothing_and_loads_pictures_only_when_asked(mail: World) -> None:
    come_in(HTML)
    bob, address = mail.browser("bob"), f"/acme/letters/{digest(mail)}/original/"
    first, second = bob.get(address), bob.get(f"{address}?images=1")
    for page in (first, second):
        assert "<b>there</b>" in page.content.decode()
        assert not re.search(r"<script|<form|<input|alert\(1\)", page.content.decode())
        assert "default-src 'none'" in page["Content-Security-Policy"]
        assert "sandbox" in page["Content-Security-Policy"]
        assert page["Referrer-Policy"] == "no-referrer"
    assert 'src="https://tracker.example/p.png"' not in first.content.decode().replace('data-src="', 'data="')
    assert "https:" not in first["Content-Security-Policy"]
    assert ' src="https://tracker.example/p.png"' in second.content.decode()
    assert "https:" in second["Content-Security-Policy"]


def test_a_ticket_says_that_it_came_by_mail_and_warns_of_a_sender_who_is_not_confirmed(mail: World) -> None:
    come_in(letter(sender="Bob <bob@example.com>", body="Hi.\n\n-- \nBob"), dmarc="FAIL", spf="FAIL")
    page = text_of(mail.browser("alice", "acme").get("/acme/tickets/1/"))
    assert "The sender could not be confirmed." in page
    assert "has the address of a member of this desk" in page
    assert "Passed: DKIM, spam check, virus check · Not passed: SPF, DMARC" in page
    assert "The letter as it came" in page
    assert "The letter as it came" not in text_of(mail.browser("vera").get("/acme/tickets/1/"))


def test_older_letters_are_on_further_pages_of_the_same_desk(mail: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tickets.letters.views.PAGE_SIZE", 2)
    for number in range(3):
        come_in(letter(subject=f"Letter {number}.", sender=f"z{number}@x.example", message_id=f"<{number}@x.example>"))
    bob = mail.browser("bob")
    first = bob.get("/acme/letters/")
    cursor = re.search(r"\?after=([^\"]+)", first.content.decode())[1]
    assert "Letter 2." in text_of(first)
    assert "Letter 0." not in text_of(first)
    assert "Letter 0." in text_of(bob.get(f"/acme/letters/?after={cursor}"))
    assert bob.get("/acme/letters/?after=nonsense").status_code == 400
    assert mail.browser("charlie").get(f"/globex/letters/?after={cursor}").status_code == 400


@pytest.mark.parametrize("page", ["", "waiting/", "{id}/"])
def test_each_page_costs_one_read_beside_that_of_every_request(mail: World, page: str) -> None:
    come_in(letter(), spam="FAIL")
    bob, path = mail.browser("bob"), f"/acme/letters/{page.format(id=digest(mail))}"
    assert len(spent(bob, path).calls) == 2


# --- reconciling ---


def test_a_letter_whose_message_was_lost_is_filed_after_reconciling(mail: World) -> None:
    post(letter())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tickets.letters.arrival.ask", lambda tenant, name: None)  # the message is lost
        queue_readers.read(LETTERS_QUEUE, wait=0)
    assert rows(mail) == []
    assert len(objects(mail)) == 1
    found = reconciling.desk(mail.tenants["acme"].tenant_id, grace=timedelta(0))
    assert (found.letters, found.asked) == (1, 1)
    drain()
    assert [row.state for row in rows(mail)] == [ledger.FILED]
    assert reconciling.desk(mail.tenants["acme"].tenant_id, grace=timedelta(0)).asked == 0


def test_a_letter_whose_notification_was_lost_is_filed_and_its_sender_not_confirmed(mail: World) -> None:
    post(letter())
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(queue_readers._readers, LETTERS_QUEUE, lambda body: None)  # somebody took it and died
        queue_readers.read(LETTERS_QUEUE, wait=0)
    assert rows(mail) == []
    assert reconciling.arrived().asked == 0  # it may be on its way still
    assert reconciling.arrived(grace=timedelta(0)).asked == 1
    drain()
    (row,) = rows(mail)
    assert row.state == ledger.FILED
    page = text_of(mail.browser("bob").get(f"/acme/letters/{digest(mail)}/"))
    assert "Nothing is known of how this letter was sent." in page
    assert INCOMING not in "".join(objects(mail))
    assert work() == []


def test_an_admin_reconciles_by_the_page_and_an_agent_does_not(mail: World) -> None:
    come_in(letter())
    page = text_of(mail.browser("alice", "acme").send("/acme/letters/reconcile/", {}, follow=True))
    assert "All 1 letter in the bucket are in the list." in page
    assert mail.browser("bob").send("/acme/letters/reconcile/", {}).status_code == 403


def shown_count(page) -> str:
    found = re.search(r'class="topnav-count">([\d,]+)<', page.content.decode())
    return found[1] if found else ""


def test_each_page_shows_the_number_of_letters_that_wait_without_another_round_trip(mail: World) -> None:
    bob = mail.browser("bob")
    assert shown_count(bob.get("/acme/tickets/")) == ""
    before = spent(bob, "/acme/tickets/")
    for n in range(3):
        come_in(letter(message_id=f"<{n}@customer.example>", body=str(n)), spam="FAIL")
    come_in(letter(message_id="<filed@customer.example>"))
    assert shown_count(bob.get("/acme/tickets/")) == "3"
    assert spent(bob, "/acme/tickets/").trips == before.trips
    first, second, third = (stored.digest_of(row.pk) for row in rows(mail) if row.state == ledger.WAITING)
    bob.send(f"/acme/letters/{first}/file/", {})
    assert shown_count(bob.get("/acme/letters/")) == "2"
    bob.send(f"/acme/letters/{second}/discard/", {})
    bob.send(f"/acme/letters/{second}/discard/", {})
    assert shown_count(bob.get("/acme/letters/")) == "1"
    ledger.forget_sender(mail.context("alice", "acme").repository, third)
    assert shown_count(bob.get("/acme/letters/")) == ""
    assert shown_count(mail.browser("charlie").get("/globex/tickets/")) == ""


def test_a_letter_that_cannot_be_filed_again_is_counted_once(mail: World) -> None:
    come_in(letter(sender="nobody at all"))
    bob = mail.browser("bob")
    for _ in range(2):
        bob.send(f"/acme/letters/{digest(mail)}/file/", {})
    assert shown_count(bob.get("/acme/letters/")) == "1"


def test_letters_that_wait_are_counted_while_many_come_at_once(mail: World) -> None:
    for n in range(8):
        post(letter(message_id=f"<{n}@customer.example>", body=str(n)), spam="FAIL")
    while queue_readers.read(LETTERS_QUEUE, wait=0):
        pass
    names = [key.rpartition("/")[2] for key in objects(mail)]
    tenant_id = mail.tenants["acme"].tenant_id
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: filing.file(tenant_id, name), names))
    assert ledger.counted(mail.context("alice", "acme").repository) == len(names) == 8


def test_looking_for_letters_counts_those_that_wait_anew(mail: World) -> None:
    come_in(letter(), spam="FAIL")
    repository = mail.context("alice", "acme").repository
    repository.put(WaitingCountItem(repository.tenant_id, WAITING, total=40))
    alice = mail.browser("alice")
    assert shown_count(alice.get("/acme/letters/")) == "40"
    page = text_of(alice.send("/acme/letters/reconcile/", {}, follow=True))
    assert "The number of letters that wait was put right." in page
    assert "was put right" not in text_of(alice.send("/acme/letters/reconcile/", {}, follow=True))
    assert shown_count(alice.get("/acme/letters/")) == "1"


@pytest.mark.parametrize(
    ("raw", "verdicts", "sentence"),
    [
        (letter(sender="nobody at all"), {}, "It cannot be filed. Download it, and open a ticket by hand."),
        (letter(), {"virus": "FAIL"}, "It cannot be filed. Discard it."),
    ],
)
def test_a_letter_of_which_nothing_makes_a_ticket_says_so_and_offers_no_button(
    mail: World, raw: bytes, verdicts: dict[str, str], sentence: str
) -> None:
    come_in(raw, **verdicts)
    page = text_of(mail.browser("bob").get(f"/acme/letters/{digest(mail)}/"))
    assert sentence in page
    assert "File it" not in page
    assert "Discard it" in page


def test_a_sender_is_blocked_from_the_page_of_a_letter_with_a_row_in_the_trail(mail: World) -> None:
    come_in(letter(), spam="FAIL")
    bob, address = mail.browser("bob"), f"/acme/letters/{digest(mail)}/"
    assert "Block zoe@customer.example" in text_of(bob.get(address))
    page = text_of(bob.send(f"{address}block/", {}, follow=True))
    assert "zoe@customer.example is blocked" in page
    assert "was blocked already" in text_of(bob.send(f"{address}block/", {}, follow=True))
    come_in(letter(message_id="<2@customer.example>", body="Again."))
    assert rows(mail)[0].reason == "The desk has blocked its sender."
    assert "blocked" in text_of(mail.browser("alice").get("/acme/desk/audit/"))


def test_a_sender_is_blocked_from_their_comment_on_a_ticket(mail: World) -> None:
    come_in(letter())
    bob = mail.browser("bob")
    page = bob.get("/acme/tickets/1/").content.decode()
    (address,) = re.findall(r'form="block" formaction="([^"]+)"', page)
    answer = bob.send(address, {"from_ticket": "1"}, follow=True)
    assert answer.redirect_chain[-1][0].endswith("/acme/tickets/1/")
    assert "zoe@customer.example is blocked" in text_of(answer)
    assert "Block this sender" not in text_of(mail.browser("vera").get("/acme/tickets/1/"))


@pytest.mark.parametrize("sender", ["alice@example.com", "acme@desk.localhost"])
def test_an_address_of_a_member_or_of_the_desk_itself_is_not_blocked(mail: World, sender: str) -> None:
    come_in(letter(sender=sender, message_id="<m@example.com>"), sender=sender)
    bob, address = mail.browser("bob"), f"/acme/letters/{digest(mail)}/"
    bob.get(address)
    assert "an address of the desk or of a member" in text_of(bob.send(f"{address}block/", {}, follow=True))
    assert mail_settings.read(mail.context("bob", "acme")).blocked == ()


def test_a_full_list_of_blocked_senders_says_so(mail: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mail_settings, "LIST_LIMIT", 0)
    come_in(letter())
    bob, address = mail.browser("bob"), f"/acme/letters/{digest(mail)}/"
    bob.get(address)
    assert "Enter at most 0 addresses." in text_of(bob.send(f"{address}block/", {}, follow=True))
