"""The page of a requester's ticket: what it shows and keeps, what can be done there, its language and its cost."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from typing import Any

import pytest

from tenants.audit_trail.recording import SYSTEM
from tests.desk.test_cost import spent
from tests.requester_pages.conftest import Guest, link_of
from tests.support import mailing
from tests.support.mail_receiver import MailReceiver, parts
from tests.support.world import World
from tickets.attachments import attachments
from tickets.desk import changing, commenting, creating, timelines
from tickets.desk.changing import Wishes
from tickets.outside import looks
from tickets.replies import reply_mails
from tickets.replies.mail_settings import MailSettings
from tickets.requester_pages import requester_page
from tickets.requesters import requester_changes, requesters
from tickets.requesters.requester_changes import Details
from tickets.requesters.requesters import Requester
from tickets.ticket.fields import Status

ONCE = "1" * 32


def comments(world: World, number: int) -> list[tuple[str, str]]:
    activity = timelines.ticket(world.context("bob", "acme"), number).activity
    return [(entry.author_name, entry.body) for entry in activity if entry.kind == "comment"]


def status(world: World, number: int) -> str:
    return str(changing.read(world.context("bob", "acme"), number).status)


def plain(page: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())


def test_the_page_shows_the_ticket_with_its_public_messages(world: World, number: int, guest: Guest) -> None:
    commenting.comment(world.context("bob", "acme"), number, body="Try it at *one*.")
    page = guest.text()
    for shown in ("The engine stops", "We have your request", "It stops at **noon**.", "Bob Example"):
        assert shown in page
    assert "Try it at <em>one</em>." in page
    assert page.index("noon") < page.index("Try it at"), "as a conversation, oldest first"


def test_items_of_checklists_have_boxes_here_and_in_letters(world: World, number: int, guest: Guest) -> None:
    commenting.comment(world.context("bob", "acme"), number, body="- [ ] Pay\n- [x] Send")
    written = MailSettings(acknowledgement="- [ ] Pay\n- [x] Send")
    letter = reply_mails.acknowledgement(desk="Acme", settings=written, number=number, title="The engine stops")
    for shown in (guest.text(), letter.html):
        assert re.findall(r"<li[^>]*>\s*(.*?)</li>", shown) == ["☐ Pay", "☑ Send"]


def test_the_page_names_no_address_but_what_people_wrote(
    world: World, number: int, guest: Guest, ada: Requester
) -> None:
    bob = world.context("bob", "acme")
    commenting.comment(bob, number, body="To both of you.", cc=["grace@example.org"])
    grace = requesters.ensure(bob, "grace@example.org")  # of whom nothing but the address is known
    commenting.comment(replace(bob, user_id=grace.id, user_name=grace.label), number, body="I read along.")
    commenting.comment(replace(bob, user_name="bob@example.com"), number, body="Thanks.")
    page = guest.text()
    assert "I read along." in page
    assert "Somebody else" in page
    assert re.findall(r"[\w.+-]+@[\w.-]+", page) == []


def test_who_gets_the_ticket_of_another_person_is_not_said_to_have_written_it(
    world: World, number: int, guest: Guest
) -> None:
    bob = world.context("bob", "acme")
    eve = requesters.ensure(bob, "eve@example.org", name="Eve Other")
    changing.change(bob, number, Wishes(requester=eve))
    page = plain(Guest(link_of(world, number, eve).token).text())
    assert re.search(r"Ada Lovelace [^:]+:\d\d UTC It stops at \*\*noon", page), page
    assert "You" not in page.partition("noon")[0]


def test_an_answer_is_a_comment_that_opens_the_ticket_again(world: World, resolved: int, guest: Guest) -> None:
    answer = guest.send("answer", body="It stops **again**.", request_id=ONCE, follow=True)
    assert "Your answer has arrived." in answer.content.decode()
    assert "It stops **again**." in answer.content.decode(), "people outside have no Markdown in mind"
    assert comments(world, resolved) == [("Ada Lovelace", "It stops **again**.")]
    assert status(world, resolved) == "open"


def test_what_a_member_wrote_for_the_requester_is_the_members(
    world: World, ada: Requester, inbox: MailReceiver
) -> None:
    bob = world.context("bob", "acme")
    number = creating.create(bob, title="A call", description="Ada **phoned**.", requester=ada)
    shown = plain(world.browser("bob").get(f"/tickets/{number}/").content.decode())
    assert "Requested by Ada Lovelace" in shown
    assert "Opened by" not in shown
    page = Guest(link_of(world, number, ada).token).text()
    assert "<strong>phoned</strong>" in page
    assert ">You<" not in page
    commenting.comment(bob, number, body="We look into it.")
    mailing.carry()
    assert f"{bob.user_name} wrote:" in parts(inbox.letters[0])[0]


def test_the_desk_sees_an_answer_as_it_was_written(world: World, number: int, guest: Guest) -> None:
    """In Markdown, somebody could hide where a link leads."""
    guest.send("answer", body="[https://bank.example](https://evil.example)", request_id=ONCE)
    page = world.browser("bob").get(f"/tickets/{number}/").content.decode()
    assert "[https://bank.example](https://evil.example)" in page
    assert 'href="https://evil.example"' not in page


def test_the_same_answer_sent_again_is_added_once(world: World, resolved: int, guest: Guest) -> None:
    for _ in range(2):
        assert guest.send("answer", body="Again.", request_id=ONCE).status_code == 302
    assert len(comments(world, resolved)) == 1


def test_a_text_that_going_back_has_brought_again_is_added_once_until_somebody_else_has_written_or_done_something(
    world: World, number: int, guest: Guest
) -> None:
    bob, sent = world.context("bob", "acme"), iter(range(9))

    def say(body: str) -> int:
        answer = guest.send("answer", body=body, request_id=f"{next(sent):032x}", follow=True)
        assert "Your answer has arrived." in answer.content.decode()
        return len(comments(world, number))

    assert [say("Yes."), say("Yes.\r\n"), say("Yes!")] == [1, 1, 2]
    commenting.comment(bob, number, body="Really?")
    assert [say("Yes!"), say("Yes!")] == [4, 4]
    changing.change(bob, number, Wishes(status=Status.RESOLVED))
    assert (say("Yes!"), status(world, number)) == (5, "open")


@pytest.mark.parametrize(
    ("body", "sentence"),
    [("", "Write something first."), ("\u200b", "Write something first."), ("x" * 20_001, "20000")],
)
def test_an_answer_that_is_refused_says_why_and_is_kept(
    world: World, number: int, guest: Guest, body: str, sentence: str
) -> None:
    answer = guest.send("answer", body=body, request_id=ONCE)
    assert answer.status_code == 422
    page = answer.content.decode()
    assert sentence in page
    assert body in page
    assert f'value="{ONCE}"' in page
    assert 'href="#id_body"' in page
    assert comments(world, number) == []


def test_whoever_has_a_link_writes_only_so_much(
    world: World, resolved: int, guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requester_page, "WRITTEN", 2)
    for n in range(4):
        answer = guest.send("answer", body=f"No. {n}.", request_id=f"{n:032x}")
    assert (answer.status_code, "No. 3." in answer.content.decode()) == (422, True)
    assert "Nothing was lost" in answer.content.decode()
    assert [body for _, body in comments(world, resolved)] == ["No. 0.", "No. 1."]
    changing.change(world.context("bob", "acme"), resolved, Wishes(status=Status.RESOLVED))
    rated = guest.send("rate", rating="bad", words="Too slow.", request_id=ONCE)
    assert (rated.status_code, "Too slow." in rated.content.decode()) == (422, True)


def test_an_answer_that_meets_many_changes_is_kept(
    world: World, number: int, guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*args: Any, **how: Any) -> None:
        raise commenting.CommentNotAdded

    monkeypatch.setattr(commenting, "comment", busy)
    answer = guest.send("answer", body="Long and dear.", request_id=ONCE)
    assert answer.status_code == 422
    assert "Nothing was lost" in answer.content.decode()
    assert "Long and dear." in answer.content.decode()


def test_an_answer_by_a_link_that_has_ended_meanwhile_is_shown_again(
    world: World, number: int, guest: Guest, ada: Requester
) -> None:
    requester_changes.revoke_links(world.context("bob", "acme"), ada.id, by=SYSTEM)
    answer = guest.send("answer", body="Long and <b>dear</b>.", request_id=ONCE)
    assert answer.status_code == 404
    assert "Long and &lt;b&gt;dear&lt;/b&gt;." in answer.content.decode()
    assert comments(world, number) == []


def test_a_requester_closes_the_ticket(world: World, number: int, guest: Guest) -> None:
    assert "This request is closed." in guest.send("close", follow=True).content.decode()
    assert status(world, number) == "closed"
    assert "Close this request" not in guest.text()
    guest.send("close")
    guest.send("answer", body="One thing more.", request_id=ONCE)
    assert status(world, number) == "open"


def test_a_rating_is_offered_once_the_ticket_is_resolved(world: World, number: int, guest: Guest) -> None:
    assert 'id="rating"' not in guest.text()
    assert guest.send("rate", rating="good", request_id=ONCE).status_code == 422
    changing.change_status(world.context("bob", "acme"), number, to=Status.RESOLVED, version=1)
    answer = guest.send("rate", rating="bad", words="Too slow.", request_id=ONCE, follow=True)
    page = answer.content.decode()
    assert "Your rating is stored." in page
    assert "You have rated this request: Bad." in page
    assert "Too slow." in page
    assert changing.read(world.context("bob", "acme"), number).rating == "bad"


def test_the_link_in_a_letter_chooses_a_rating_and_stores_none(world: World, resolved: int, guest: Guest) -> None:
    page = guest.text("?rating=bad")
    assert re.search(r'value="bad"[^>]*checked', page)
    for address in ("?rating=bad", "rate/?rating=bad", "answer/?body=x", "close/"):
        assert guest.get(address).status_code in (200, 302)
    summary = changing.read(world.context("bob", "acme"), resolved)
    assert (summary.rating, summary.status, summary.comment_count) == ("", "resolved", 0)


def test_a_rating_without_a_choice_is_refused_and_its_words_are_kept(world: World, resolved: int, guest: Guest) -> None:
    answer = guest.send("rate", words="Both good and bad.", request_id=ONCE)
    assert answer.status_code == 422
    assert "Choose good or bad." in answer.content.decode()
    assert "Both good and bad." in answer.content.decode()


def test_files_of_public_messages_are_downloaded_and_those_of_notes_are_not(
    world: World, number: int, guest: Guest
) -> None:
    bob = world.context("bob", "acme")
    public, hidden = (attachments.store(bob, name, b"text") for name in ("plan.txt", "secret.txt"))
    commenting.comment(bob, number, body="See the plan.", files=[public])
    commenting.comment(bob, number, body="Keep it.", internal=True, files=[hidden])
    files = [one for entry in timelines.ticket(bob, number).activity for one in entry.files or ()]
    by_name = {one.name: one.id for one in files}
    page = guest.text()
    assert "plan.txt" in page
    assert "secret.txt" not in page
    assert guest.get(f"files/{by_name['plan.txt']}/").status_code == 302
    for other in (by_name["secret.txt"], "0" * 32, "x"):
        assert guest.get(f"files/{other}/").status_code == 404


def test_a_file_is_sent_with_an_answer(world: World, number: int, guest: Guest) -> None:
    begun = guest.client.post(f"{guest.address}files/?form={ONCE}", {"name": "log.txt", "size": "4"})
    assert begun.status_code == 200, begun.content
    assert begun.json()["name"] == "log.txt"
    assert guest.client.post(f"{guest.address}files/?form={ONCE}", {"name": "x", "size": "99999999"}).status_code == 422


def test_the_page_speaks_the_requesters_language(world: World, resolved: int, guest: Guest, ada: Requester) -> None:
    bob = world.context("bob", "acme")
    german = Details(name=ada.name, addresses=ada.addresses, language="de-AT")
    requester_changes.change(bob, ada.id, lambda before: german, version=None, by=SYSTEM)
    page = guest.text()
    assert '<html lang="de">' in page
    assert re.search(r">\d\d?\. \w+ 20\d\d, \d\d:\d\d UTC<", page)
    assert "Send the rating" not in page
    for shown in ("Gelöst", "Konnten wir Ihnen helfen?", "Antwort senden", "Sie"):
        assert shown in page
    refused = guest.send("answer", body="", request_id=ONCE).content.decode()
    assert "Schreiben Sie zuerst etwas." in refused


def test_a_refused_file_is_told_of_in_the_requesters_language(world: World, guest: Guest, ada: Requester) -> None:
    german = Details(name=ada.name, addresses=ada.addresses, language="de")
    requester_changes.change(world.context("bob", "acme"), ada.id, lambda before: german, version=None, by=SYSTEM)
    begun = guest.client.post(f"{guest.address}files/?form={ONCE}", {"name": "x", "size": "99999999"})
    assert begun.json()["problem"] == "x ist größer als 10 MB."
    refused = guest.send("answer", body="Hier.", request_id=ONCE, files="0" * 32).content.decode()
    assert "Eine dieser Dateien ist nicht Ihre" in refused


def test_the_page_has_the_looks_of_the_desk(world: World, number: int, guest: Guest) -> None:
    values = {"name": "Acme & Sons", "colour": "#aa0000", "language": "en"}
    looks.change(world.context("alice", "acme"), values=values, version=0, by=SYSTEM)
    page = guest.text()
    assert "Acme &amp; Sons" in page
    assert "--accent:" in page


def test_the_page_is_kept_by_nobody_and_tells_its_address_to_nobody(guest: Guest, number: int) -> None:
    answer = guest.get()
    assert answer["Cache-Control"] == "private, no-store"
    assert answer["Referrer-Policy"] == "no-referrer"
    assert answer["X-Robots-Tag"] == "noindex"
    assert "frame-ancestors 'none'" in answer["Content-Security-Policy"]
    assert not answer.cookies


def test_an_address_that_only_takes_a_form_has_a_page_for_guests(guest: Guest) -> None:
    answer = guest.get("files/")
    assert (answer.status_code, answer["Allow"], answer["Referrer-Policy"]) == (405, "POST", "same-origin")
    assert ("outside-main" in answer.content.decode(), "queue" in answer.content.decode()) == (True, False)


def test_a_link_signs_nobody_in(world: World, number: int, guest: Guest) -> None:
    guest.get()
    guest.send("answer", body="Here.", request_id=ONCE)
    assert guest.client.get("/acme/tickets/").status_code == 302
    browser = world.browser("bob", "acme")
    browser.post(f"{guest.address}answer/", {"body": "By a member's browser.", "request_id": "2" * 32})
    assert {name for name, _ in comments(world, number)} == {"Ada Lovelace"}, "who holds the link is the requester"


def test_a_long_conversation_has_pages(world: World, number: int, guest: Guest) -> None:
    bob = world.context("bob", "acme")
    for n in range(55):
        commenting.comment(bob, number, body=f"Message {n:02}.")
    page = guest.text()
    assert "Message 54." in page
    assert "Message 00." not in page
    (before,) = re.findall(r'href="[^"]*\?before=([^"]+)"', page)
    earlier = guest.text(f"?before={unescape(before)}")
    assert "Message 00." in earlier
    assert "noon" in earlier
    assert guest.get("?before=nonsense").status_code == 400


@pytest.mark.parametrize("many", [0, 40])
def test_the_page_takes_two_round_trips(world: World, number: int, guest: Guest, many: int) -> None:
    bob = world.context("bob", "acme")
    for n in range(many):
        commenting.comment(bob, number, body=f"Message {n}.", internal=n % 2 == 0)
    bill = spent(guest.client, guest.address)  # type: ignore[arg-type]  # a browser of nobody
    assert bill.trips == 2
