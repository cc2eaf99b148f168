"""Comments that are edited and deleted: by whom, for how long, what is left, and what follows everywhere else."""

from __future__ import annotations

from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.core import mail

from portal import clock
from portal.dynamo import meter
from tenants.api_keys.scopes import Scope
from tests.desk.test_cost import spent
from tests.support import outbox
from tests.support.api_client import api_client
from tests.support.mailing import carry
from tests.support.world import Browser, World, captured
from tickets.attachments import attachments
from tickets.data import exporting
from tickets.desk import changing, comment_changes, commenting, creating, timelines
from tickets.desk.changing import Wishes
from tickets.replies.public_entries import all_public
from tickets.requesters import requesters
from tickets.ticket import stored
from tickets.ticket.stored import ActivityItem
from tickets.time_machine import past_tickets


@pytest.fixture
def desk(world: World) -> World:
    """A ticket on which Bob, an agent, has commented."""
    world.tickets("acme", 1)
    say(world)
    return world


def say(world: World, body: str = "The *first* text.", who: str = "bob", **how: Any) -> None:
    commenting.comment(world.context(who, "acme"), 1, body=body, **how)


def latest(world: World, kinds: tuple[str, ...] = ("comment", "note")) -> ActivityItem:
    entries = timelines.ticket(world.context("alice", "acme"), 1).activity
    return [entry for entry in entries if entry.kind in kinds][-1]


def at(entry: ActivityItem, what: str) -> str:
    return f"/tickets/1/comments/{stored.entry_reference(entry.sk)}/{what}/"


def edit(browser: Browser, entry: ActivityItem, body: str, seen: str | None = None) -> Any:
    seen = comment_changes.mark_of(entry) if seen is None else seen
    return browser.send(at(entry, "edit"), {"body": body, "seen": seen})


def page(browser: Browser) -> str:
    return unescape(browser.get("/tickets/1/").content.decode())


def later(monkeypatch: pytest.MonkeyPatch, by: timedelta = timedelta(minutes=16)) -> None:
    real = clock.now
    monkeypatch.setattr(clock, "now", lambda: real() + by)


@pytest.mark.parametrize("what", ["edit", "delete", "split"])
def test_whoever_changes_their_mind_is_back_at_the_comment(desk: World, what: str) -> None:
    bob, entry = desk.browser("bob"), latest(desk)
    back = captured(r'href="([^"]+)">Cancel<', unescape(bob.get(at(entry, what)).content.decode()))
    assert back.endswith(f"#entry-{stored.entry_id(entry.sk)}")
    assert bob.get(back.partition("#")[0]).context["wanted"] == stored.entry_id(entry.sk)


# --- editing ---


def test_an_author_edits_a_comment_and_agents_read_the_earlier_text(desk: World) -> None:
    answer = edit(desk.browser("bob"), latest(desk), "The second text.")
    assert answer["Location"].endswith(f"#entry-{stored.entry_id(latest(desk).sk)}")
    for who, reads in (("bob", True), ("vera", False)):
        shown = page(desk.browser(who))
        assert "The second text." in shown
        assert "Edited" in shown
        assert ("The <em>first</em> text." in shown) is reads


def test_a_text_that_is_the_same_is_no_edit(desk: World) -> None:
    edit(desk.browser("bob"), latest(desk), "The *first* text.")
    assert latest(desk).former_texts is None


@pytest.mark.parametrize("what", ["edit", "delete"])
def test_an_author_has_fifteen_minutes_and_an_owner_all_time(
    desk: World, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = latest(desk)
    say(desk, "By Alice.", who="alice")
    of_alice = latest(desk)
    bob, alice = desk.browser("bob"), desk.browser("alice", "acme")
    assert (bob.get(at(entry, what)).status_code, bob.get(at(of_alice, what)).status_code) == (200, 403)
    assert page(bob).count(">Edit<span") == 1
    assert page(alice).count(">Edit<span") == 2
    later(monkeypatch)
    data = {"body": "Late.", "seen": comment_changes.mark_of(entry)}
    assert (bob.get(at(entry, what)).status_code, bob.send(at(entry, what), data).status_code) == (403, 403)
    assert latest(desk).body == "By Alice."
    assert "first" in page(bob)
    assert alice.send(at(entry, what), data).status_code == 302
    assert "first* text" not in page(desk.browser("vera"))


def test_of_two_edits_of_one_text_the_second_meets_a_conflict_with_its_text_kept(desk: World) -> None:
    entry, alice = latest(desk), desk.browser("alice", "acme")
    edit(desk.browser("bob"), entry, "By Bob.")
    answer = edit(alice, entry, "By Alice.")
    assert answer.status_code == 409
    shown = unescape(answer.content.decode())
    assert "By Bob." in shown
    assert "By Alice." in shown
    assert latest(desk).body == "By Bob."
    seen = shown.split('name="seen" value="')[1].split('"')[0]
    assert edit(alice, entry, "By Alice.", seen).status_code == 302
    assert latest(desk).body == "By Alice."


@pytest.mark.parametrize(("body", "sentence"), [(" ", "Write something"), ("x" * 20_001, "20,000")])
def test_a_text_that_no_comment_can_have_is_refused_at_its_field(desk: World, body: str, sentence: str) -> None:
    answer = edit(desk.browser("bob"), latest(desk), body)
    assert answer.status_code == 422
    assert sentence in answer.content.decode()
    assert latest(desk).former_texts is None


def test_versions_without_room_are_refused_and_none_is_lost(desk: World) -> None:
    alice = desk.context("alice", "acme")
    sort, said = latest(desk).sk, "\U0001f600" * 19_000
    for n in range(5):
        comment_changes.edit(alice, 1, sort, body=f"{n}{said}")
    answer = edit(desk.browser("alice", "acme"), latest(desk), f"9{said}")
    assert answer.status_code == 422
    assert "edited so often" in answer.content.decode()
    assert [text.body[0] for text in latest(desk).former_texts or ()] == ["T", "0", "1", "2", "3"]


# --- deleting ---


def test_a_deleted_comment_leaves_who_and_when_and_no_text(desk: World) -> None:
    bob = desk.browser("bob")
    edit(bob, latest(desk), "The second text.")
    assert "cannot be restored" in bob.get(at(latest(desk), "delete")).content.decode()
    assert bob.send(at(latest(desk), "delete")).status_code == 302
    assert bob.send(at(latest(desk), "delete")).status_code == 302  # sent twice
    entry = latest(desk)
    assert (entry.body, entry.former_texts, entry.deleted_by_name) == ("", None, "Bob Example")
    for who in ("alice", "vera"):
        shown = page(desk.browser(who, "acme"))
        assert "Deleted by <b" in shown
        assert "text." not in shown
    assert all_public([entry], before="Z") == []


def test_a_deleted_comments_files_are_removed_with_their_content(desk: World) -> None:
    bob = desk.context("bob", "acme")
    file = attachments.store(bob, "secret.txt", b"between us")
    say(desk, "With a file.", files=[file])
    assert latest(desk).files
    entry = latest(desk)
    (listed,) = entry.files or ()
    desk.browser("bob").send(at(entry, "delete"))
    assert desk.browser("bob").get(f"/tickets/1/files/{listed.id}/").status_code == 400
    assert "secret.txt" not in page(desk.browser("bob"))
    assert int(timelines.ticket(bob, 1).summary.file_count or 0) == 0


def test_nobody_else_finds_a_note_or_changes_a_comment(desk: World) -> None:
    say(desk, "Between us.", internal=True)
    entry, vera = latest(desk), desk.browser("vera")
    assert [vera.get(at(entry, what)).status_code for what in ("edit", "delete")] == [403, 403]
    charlie = desk.browser("charlie")
    assert charlie.get(f"/acme{at(entry, 'edit')}").status_code == 404
    event = timelines.ticket(desk.context("bob", "acme"), 1).activity[0]
    for wrong in (at(event, "edit"), "/tickets/1/comments/x/edit/", at(entry, "edit").replace("/1/", "/9/")):
        assert desk.browser("bob").get(wrong).status_code == 404, wrong


# --- letters and mails ---


def test_the_button_says_what_becomes_of_a_letter(world: World) -> None:
    bob = world.context("bob", "acme")
    ada = requesters.ensure(world.context("alice", "acme"), "ada@example.org", name="Ada")
    world.tickets("acme", 1)

    changing.change(bob, 1, Wishes(requester=ada))
    say(world)
    entry, browser = latest(world), world.browser("bob")
    assert "has not left as a letter yet" in browser.get(at(entry, "delete")).content.decode()
    carry()
    for what in ("edit", "delete"):
        assert "cannot be unsent" in browser.get(at(entry, what)).content.decode()
    say(world, "Never to be sent.")
    assert comment_changes.delete(bob, 1, latest(world).sk).delivery is None
    mail.outbox.clear()
    carry()
    assert mail.outbox == []


def test_an_edit_tells_those_alone_whom_it_mentions_newly(desk: World) -> None:
    desk.context("alice", "acme")
    say(desk, "For @Vera Example.")
    carry()
    carry()
    mail.outbox.clear()
    comment_changes.edit(desk.context("bob", "acme"), 1, latest(desk).sk, body="For @Vera Example and @Alice Example.")
    carry()
    carry()
    assert [message.to for message in mail.outbox] == [["alice@example.com"]]


def test_a_comment_that_was_deleted_meanwhile_is_in_no_mail(desk: World) -> None:
    say(desk, "For @Alice Example.")
    carry()
    desk.browser("bob").send(at(latest(desk), "delete"))
    carry()
    assert mail.outbox == []


# --- the API, events, exports, the time machine ---


def test_a_key_edits_and_deletes_its_own_comments_of_the_last_minutes(
    desk: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox.subscribe(desk, "acme", "ticket.comment_edited", "ticket.comment_deleted", "ticket.note_deleted")
    client, of_bob = api_client(desk), stored.entry_id(latest(desk).sk)
    first = client.send("/tickets/1/comments", {"body": "one"}).json()["id"]
    note = client.send("/tickets/1/notes", {"body": "two"}).json()["id"]
    told = client.call("PATCH", f"/tickets/1/comments/{first}", {"body": "One."}).json()
    assert (told["body"], [text["body"] for text in told["former_texts"]]) == ("One.", ["one"])
    assert told["edited_at"] == told["former_texts"][0]["at"]
    deleted = client.call("DELETE", f"/tickets/1/notes/{note}").json()
    assert (deleted["body"], bool(deleted["deleted"]["by"]["id"])) == ("", True)
    refused = [("comments", of_bob, 403), ("comments", note, 404), ("notes", first, 404), ("comments", "x" * 12, 404)]
    for kind, entry, status in refused:
        answer = client.call("PATCH", f"/tickets/1/{kind}/{entry}", {"body": "New."})
        assert answer.status_code == status, (kind, entry)
    assert [one["type"] for one in outbox.told()] == ["ticket.comment_edited", "ticket.note_deleted"]
    later(monkeypatch)
    assert client.call("DELETE", f"/tickets/1/comments/{first}").status_code == 404


def test_a_key_that_may_read_no_notes_cannot_tell_one_from_nothing(world: World) -> None:
    alice = world.context("alice", "acme")
    number = creating.create(alice, title="Paper")
    commenting.comment(alice, number, body="Hidden.", internal=True)
    (note,) = [stored.entry_id(one.sk) for one in timelines.ticket(alice, number).activity if one.kind == "note"]
    client = api_client(world, Scope.COMMENTS_WRITE)
    answers = [client.call("DELETE", f"/tickets/{number}/comments/{entry}").json() for entry in (note, "0" * 12)]
    assert len({(one["status"], one["detail"]) for one in answers}) == 1


def test_an_export_has_earlier_texts_and_who_deleted_a_comment(desk: World) -> None:
    bob = desk.context("bob", "acme")
    comment_changes.edit(bob, 1, latest(desk).sk, body="Second.")
    told = exporting.entry(latest(desk))
    assert (told["body"], [text["body"] for text in told["former_texts"]]) == ("Second.", ["The *first* text."])
    comment_changes.delete(bob, 1, latest(desk).sk)
    told = exporting.entry(latest(desk))
    assert (told["body"], told["deleted"]["by"]) == ("", {"id": bob.user_id, "name": "Bob Example"})


def test_the_time_machine_shows_the_text_of_then_and_nothing_of_what_was_deleted(desk: World) -> None:
    bob, alice = desk.context("bob", "acme"), desk.context("alice", "acme")
    before = clock.stamp()
    comment_changes.edit(bob, 1, latest(desk).sk, body="Second.")

    def then() -> str:
        return past_tickets.read(alice, 1, before).until[-1].body

    assert then() == "The *first* text."
    comment_changes.delete(bob, 1, latest(desk).sk)
    assert then() == ""


def test_an_edit_costs_one_read_and_one_transaction(desk: World) -> None:
    bob, sort = desk.context("bob", "acme"), latest(desk).sk
    with meter.measure() as cost:
        comment_changes.edit(bob, 1, sort, body="Second.")
    assert [one.operation for one in cost.calls] == ["BatchGetItem", "TransactWriteItems"]
    assert cost.trips == 2


def test_the_ticket_page_reads_nothing_more_for_edited_comments(desk: World) -> None:
    browser = desk.browser("bob")
    plain = spent(browser, "/tickets/1/")
    edit(browser, latest(desk), "Second.")
    edited = spent(browser, "/tickets/1/")
    assert [one.operation for one in edited.calls] == [one.operation for one in plain.calls]
    assert edited.trips == 2
