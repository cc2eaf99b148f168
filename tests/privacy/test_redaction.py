"""Words that are taken out of a ticket are nowhere afterwards: in no table, no object and no moment of the past."""

from __future__ import annotations

import email
import gzip
import io
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from html import unescape
from typing import Any

import pytest
from django.conf import settings

from portal import aws_session, clock
from portal.dynamo import meter
from portal.schema import registry
from tenants.audit_trail.recording import Actor, AuditAction
from tenants.tenancy.redaction import SecretWords
from tests.support import letters_in, outbox
from tests.support.api_client import api_client
from tests.support.commands import everything
from tests.support.endpoints import endpoint
from tests.support.mailing import carry
from tests.support.world import Browser, World
from tickets.attachments import attachments
from tickets.checklists import ticking
from tickets.data import redacting
from tickets.desk import changing, comment_changes, commenting, creating, timelines
from tickets.desk_export import export_job, export_requests
from tickets.linking import linking
from tickets.merging import ticket_merging
from tickets.search.stored import SEARCH
from tickets.ticket import checklists, stored
from tickets.ticket.checklists import Tick
from tickets.ticket.stored import ActivityItem, DetailItem, SummaryItem
from tickets.time_machine import past_tickets

MARKER = "Zyxomarkerü-4711"
WORDS = "zyxomarkerÜ-4711"
FOUND = "zyxomarker"


@pytest.fixture
def letters() -> Iterator[None]:
    with letters_in.mail():
        yield


def redact(browser: Browser, words: str = WORDS, number: int = 1, **more: str) -> Any:
    return browser.send(f"/tickets/{number}/redact/", {"words": words, "confirmed": "yes", **more})


def activity(world: World, number: int = 1) -> list[ActivityItem]:
    return timelines.ticket(world.context("alice", "acme"), number).activity


# --- all that is stored, opened as far as it is packed ---


def texts_in(value: Any) -> Iterator[str]:
    """Yield all texts in a stored value, unpacked."""
    if isinstance(value, dict):
        for one in value.values():
            yield from texts_in(one)
    elif isinstance(value, list | set | tuple):
        for one in value:
            yield from texts_in(one)
    elif isinstance(value, bytes | bytearray):
        yield from opened(bytes(value))
    else:
        yield str(value)


def opened(content: bytes) -> Iterator[str]:
    yield content.decode(errors="replace")
    for unpack in (zlib.decompress, gzip.decompress):
        with suppress(zlib.error, OSError, EOFError):
            yield unpack(content).decode(errors="replace")
    with suppress(zipfile.BadZipFile):
        archive = zipfile.ZipFile(io.BytesIO(content))
        for name in archive.namelist():
            yield from opened(archive.read(name))
    for part in email.message_from_bytes(content).walk():
        payload = part.get_payload(decode=True)
        yield payload.decode(errors="replace") if isinstance(payload, bytes) else ""


def places() -> set[str]:
    """Where the marker is: tables, and kinds of objects."""
    found = {
        table.name
        for table in registry.tables()
        for item in everything(table)
        if any(_has_it(text) for text in texts_in(item))
    }
    client = aws_session.client("s3", settings.AWS_REGION, settings.S3_ENDPOINT_URL, s3={"addressing_style": "path"})
    for bucket in client.list_buckets()["Buckets"]:
        for one in client.list_objects_v2(Bucket=bucket["Name"]).get("Contents", ()):
            content = client.get_object(Bucket=bucket["Name"], Key=one["Key"])["Body"].read()
            if any(map(_has_it, opened(content))):
                found.add(f"object {one['Key'].split('/')[0]}")
    return found


def _has_it(text: str) -> bool:
    # As JSON, base64 and percent encoding may have it: its beginning has ASCII characters alone.
    return FOUND in text.casefold()


def planted(world: World) -> int:
    """Bring in a letter, and write the marker in each place of its ticket where a text may be stored. Returns the
    ticket's number."""
    alice, bob = world.context("alice", "acme"), world.browser("bob")
    endpoint(
        alice, name="ours", types=("ticket.created", "ticket.changed", "ticket.commented", "ticket.comment_edited")
    )
    letters_in.come_in(letters_in.letter(subject=f"About {MARKER}", body=f"I am {MARKER}.\n\n> {MARKER} wrote"))
    number = 1
    tenant = world.context("bob", "acme")
    changing.edit(tenant, number, version=1, title=f"Not {MARKER} any more", description=f"Neither {MARKER}.")
    changing.edit(tenant, number, version=2, tags=[f"of-{MARKER}"], title=f"{MARKER} again")
    files = [attachments.store(tenant, f"{MARKER}.txt", b"nothing")]
    commenting.comment(tenant, number, body=f"Says {MARKER} and {MARKER}.", files=files, cc=[])
    commenting.comment(tenant, number, body=f"Between us: {MARKER}.", internal=True)
    note = activity(world, number)[-1]
    bob.send(
        f"/tickets/{number}/comments/{stored.entry_reference(note.sk)}/edit/",
        {"body": f"Edited, {MARKER}.", "seen": comment_changes.mark_of(note)},
    )
    client = api_client(world)
    client.send(f"/tickets/{number}/comments", {"body": f"By a key: {MARKER}"}, Idempotency_Key="one")
    exported(world)
    return number


def exported(world: World) -> None:
    alice = world.context("alice", "acme")
    export_requests.ask(alice, by=Actor(alice.user_id, "alice@example.com"))
    assert export_job.follower(parts_a_second=1000.0).turn() == 1


def test_a_marker_in_every_place_is_found_nowhere_afterwards(world: World, letters: None) -> None:
    number, alice = planted(world), world.browser("alice", "acme")
    before = clock.stamp()
    carry()
    assert places() >= {"Support.Tickets", "Events.Outbox", "Api.Answers", "Support.ExportParts", "Support.Letters"}
    assert any(place.startswith("object") for place in places())
    answer = redact(alice, number=number)
    assert answer.status_code == 302
    assert places() - {SEARCH.name} == set()
    shown = unescape(alice.get(f"/tickets/{number}/").content.decode())
    assert shown.count("[redacted]") > 8
    then = past_tickets.read(world.context("alice", "acme"), number, before)
    assert then.then is not None
    assert "[redacted]" in then.then.title
    rows = everything(next(table for table in registry.tables() if table.name == "Audit.AdminActions"))
    (row,) = [raw for raw in rows if raw["action"]["S"] == AuditAction.WORDS_REDACTED]
    assert "comments" in str(row)


# --- what is taken out, and what is not ---

# Attributes of a ticket's items that hold no words of anybody: keys, ids, names of people, moments, counts and choices.
WORDLESS = {
    "pk", "sk", "tenant_status", "resolver_updated", "number", "status", "priority", "channel", "rating", "resolver",
    "resolver_name", "requester", "requester_name", "tenant_requester", "created_at", "updated_at", "comment_count",
    "version", "erased_versions", "responded_at", "resolved_at", "reopened_at", "commented_at", "rated_at", "noted_at",
    "raised_at", "raised_status", "resolver_raised", "days", "epoch", "file_count", "file_bytes", "link_generation",
    "followers", "muted_by", "request", "message_id", "kind", "at", "author", "author_name", "delivery", "delivery_at",
    "merged", "merged_into", "links", "spam_blocks", "expires_at", "spam_at", "reopened_before", "resolved_before",
    "due", "sla", "receipt", "group", "zone", "cause", "count_form",
    "former_requester", "former_resolver", "deleted_at", "deleted_by", "deleted_by_name",
}  # fmt: skip


def test_each_attribute_of_a_ticket_is_redacted_or_has_no_words() -> None:
    for model in (SummaryItem, DetailItem, ActivityItem):
        names = set(model.get_attributes())
        assert names - WORDLESS - redacting.TEXTS.keys() == set(), model
        assert not redacting.TEXTS.keys() & WORDLESS


@pytest.fixture
def desk(world: World) -> World:
    """A ticket with a history, whose comment has a secret over two lines."""
    world.tickets("acme", 1)
    bob = world.context("bob", "acme")
    changing.edit(bob, 1, version=1, title="Open house", description="The  *open*  secret.", priority="high")
    commenting.comment(bob, 1, body="The door code\nis 4711, says <b>Bob</b>.")
    return world


@pytest.mark.parametrize(
    ("words", "body"),
    [
        ("4711", "The door code\nis [redacted], says <b>Bob</b>."),
        ("code is 4711\nsays", "The door [redacted], [redacted] <b>Bob</b>."),
        ("DOOR  CODE", "The [redacted]\nis 4711, says <b>Bob</b>."),
        (".*", "The door code\nis 4711, says <b>Bob</b>."),
        ("is\nis 4711", "The door code\n[redacted], says <b>Bob</b>."),
    ],
)
def test_phrases_go_whatever_their_case_and_line_breaks(desk: World, words: str, body: str) -> None:
    assert redact(desk.browser("alice", "acme"), words).status_code == 302
    assert next(one.body for one in activity(desk) if one.kind == "comment") == body


@pytest.mark.parametrize(
    ("text", "words", "after"),
    [
        ("Cafe\u0301.txt", "caf\u00e9", "[redacted].txt"),
        ("Caf\u00e9 bar", "cafe\u0301 bar", "[redacted]"),
        ("> The **door\n> code** is 1", "door code", "> The **[redacted]** is 1"),
        ("of \\[it\\] a\\_b", "[it] a_b", "of [redacted]"),
        ("a_b, door-code", "a b\ndoor code", "a_b, door-code"),
    ],
)
def test_words_are_found_as_a_page_shows_them(text: str, words: str, after: str) -> None:
    assert SecretWords.parse(words).without(text) == after


def test_tickets_that_were_merged_into_a_ticket_are_redacted_with_it(desk: World) -> None:
    alice, browser = desk.context("alice", "acme"), desk.browser("alice", "acme")
    creating.create(alice, title=f"Code {MARKER}", description=f"It is {MARKER}.")
    commenting.comment(alice, 2, body=f"{MARKER}, as I said.")
    comment = next(one for one in activity(desk, 2) if one.kind == "comment")
    split = linking.split(alice, 2, comment.sk, title="Of 2", request_id="a" * 32)
    ticket_merging.merge(alice, 2, into=1)
    assert "they are in 3 places" in browser.send("/tickets/1/redact/", {"words": WORDS}).content.decode()
    redact(browser)
    assert f"They are still in #{split}" in browser.get("/tickets/1/").content.decode()
    redact(browser, number=split)
    assert places() - {SEARCH.name} == set()
    ticket_merging.separate(alice, 2)
    assert timelines.ticket(alice, 2).summary.title == "Code [redacted]"


def test_a_redaction_says_in_which_ticket_that_was_split_off_the_words_are_still(desk: World) -> None:
    bob, browser = desk.context("bob", "acme"), desk.browser("alice", "acme")
    commenting.comment(bob, 1, body=f"Says {MARKER}.")
    comment = next(one for one in activity(desk) if MARKER in one.body)
    number = linking.split(bob, 1, comment.sk, title="The door", request_id="a" * 32)
    shown = browser.send("/tickets/1/redact/", {"words": WORDS}).content.decode()
    assert f'formaction="/acme/tickets/{number}/redact/"' in shown
    redact(browser)
    told = f"They are still in #{number}, where a comment was split off."
    assert told in unescape(browser.get("/tickets/1/").content.decode())
    redact(browser, number=number)
    assert "They are still in" not in browser.get("/tickets/1/").content.decode()
    assert places() - {SEARCH.name} == set()


def test_an_item_of_a_checklist_whose_end_the_history_cuts_off_goes_whole(desk: World) -> None:
    bob = desk.context("bob", "acme")
    words = f"{'a' * 70} {MARKER}"  # the history has 80 characters of it
    changing.edit(bob, 1, version=changing.read(bob, 1).version, description=f"- [ ] {words}")
    ticking.tick(bob, 1, Tick.parse(checklists.items(f"- [ ] {words}")[0].value))
    assert activity(desk)[-1].verb.endswith(f"{MARKER[:9]}…”:")
    redact(desk.browser("alice", "acme"))
    assert [entry.verb for entry in activity(desk)][-2] == "ticked “[redacted]”:"


def test_words_of_the_product_in_the_history_stay(desk: World) -> None:
    changing.assign(desk.context("alice", "acme"), 1, to=desk.users["bob"].id, version=2)
    redact(desk.browser("alice", "acme"), "open\nhigh\nBob Example\nticket")
    entries = activity(desk)
    assert [(change.before, change.after) for change in entries[1].changes if change.field == "priority"] == [
        ("normal", "high")
    ]
    assert entries[0].verb == "opened the ticket"
    assert entries[1].author_name == "Bob Example"
    assert [change.after for entry in entries for change in entry.changes if change.field == "resolver"] == [
        "Bob Example"
    ]
    assert timelines.head(desk.context("alice", "acme"), 1)[0].title == "[redacted] house"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [("", "Enter the words"), ("x", "2 characters or more"), ("\n".join("abcdefghijklmnopqrstu"), "at most 20"),
     ("redacted", "the mark that stays"), ("y" * 2001, "at most 2,000")],
)  # fmt: skip
def test_words_that_cannot_be_taken_out_are_refused_at_their_field(desk: World, words: str, sentence: str) -> None:
    answer = redact(desk.browser("alice", "acme"), words)
    assert (answer.status_code, sentence in unescape(answer.content.decode())) == (422, True)


def test_a_redaction_is_shown_before_it_is_made_and_is_for_admins(desk: World) -> None:
    alice = desk.browser("alice", "acme")
    shown = alice.send("/tickets/1/redact/", {"words": "4711"}).content.decode()
    assert "In this ticket they are in 1 place: 1 in comments." in shown
    assert 'name="confirmed"' in shown
    assert "4711</textarea>" in unescape(alice.send("/tickets/1/redact/", {"selected": "4711"}).content.decode())
    assert "4711" in unescape(alice.get("/tickets/1/").content.decode())
    assert "Redact" in alice.get("/tickets/1/").content.decode()
    for who in ("bob", "vera"):
        assert redact(desk.browser(who), "4711").status_code == 403
        assert "/redact/" not in desk.browser(who).get("/tickets/1/").content.decode()
    assert redact(alice, "4711", number=9).status_code == 404
    assert "4711" in unescape(alice.get("/tickets/1/").content.decode())


def test_a_form_from_before_a_redaction_meets_a_conflict(desk: World) -> None:
    bob = desk.browser("bob")
    comment = next(one for one in activity(desk) if one.kind == "comment")
    redact(desk.browser("alice", "acme"), "4711")
    edit = {"title": "Open house", "description": "4711", "tags": "", "priority": "high", "version": "2",
            "request_id": "a" * 32}  # fmt: skip
    assert bob.send("/tickets/1/edit/", edit).status_code == 409
    data = {"body": "4711, again", "seen": comment_changes.mark_of(comment)}
    reference = stored.entry_reference(comment.sk)
    assert bob.send(f"/tickets/1/comments/{reference}/edit/", data).status_code == 409


def test_more_entries_than_a_transaction_takes_are_redacted_in_several(desk: World) -> None:
    bob = desk.context("bob", "acme")
    for n in range(45):
        commenting.comment(bob, 1, body=f"{n}: 4711")
    redact(desk.browser("alice", "acme"), "4711")
    assert not any("4711" in entry.body for entry in activity(desk))
    assert [place for place in places() if place == "Support.Tickets"] == []


def test_receivers_are_told_that_a_ticket_was_redacted_and_not_of_what(desk: World) -> None:
    outbox.subscribe(desk, "acme", "ticket.redacted")
    redact(desk.browser("alice", "acme"), "4711")
    (told,) = outbox.told()
    assert (told["type"], told["data"]["number"], "4711" in str(told)) == ("ticket.redacted", 1, False)


def test_a_redaction_costs_its_ticket_and_a_query_of_each_holding(desk: World) -> None:
    alice = desk.context("alice", "acme")
    with meter.measure() as cost:
        redacting.redact(alice, 1, SecretWords.parse("4711"), by=Actor(alice.user_id, "alice@example.com"))
    done = Counter(call.operation for call in cost.calls)
    assert done["TransactWriteItems"] == 2  # the ticket, and the audit row
    assert done["Query"] <= 6
    assert done["UpdateItem"] == 0
