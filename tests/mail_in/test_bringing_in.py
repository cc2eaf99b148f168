"""Letters come in by SMTP and by `deliver_mail`, and reading one has its limits."""

from __future__ import annotations

import smtplib
import threading
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest
from django.test import override_settings

from delivery.queues import queue_readers
from delivery.queues.queue_transport import LONGEST_DELAY
from portal import clock
from portal.engines.endpoint import LOOPBACK, free_port
from portal.errors import Invalid
from portal.mailing import letter_process
from portal.mailing.letters import Unreadable
from tests.support.commands import run
from tests.support.letters_in import DOMAIN, drain, incoming, letter, post, rows, unclaimed, work
from tests.support.waiting import PATIENCE
from tests.support.world import World
from tickets.letters import arrival, envelope, ledger, reconciling, smtp_receiver
from tickets.letters.stored import LETTERS_QUEUE, digest_of


def test_a_letter_sent_by_smtp_becomes_a_ticket_and_one_to_no_desk_is_refused_at_once(mail: World) -> None:
    port = free_port()
    server = smtp_receiver.controller(LOOPBACK, port)
    server.start()
    try:
        with smtplib.SMTP(LOOPBACK, port) as client:
            client.sendmail("zoe@customer.example", [f"acme@{DOMAIN}"], letter())
            with pytest.raises(smtplib.SMTPRecipientsRefused):
                client.sendmail("zoe@customer.example", [f"nobody@{DOMAIN}"], letter())
    finally:
        server.stop()
    drain()
    assert [row.state for row in rows(mail)] == [ledger.FILED]


def test_deliver_mail_brings_a_file_in(mail: World, tmp_path: Path) -> None:
    file = tmp_path / "letter.eml"
    file.write_bytes(letter())
    assert "The letter came in as" in run("deliver_mail", str(file), "--to", f"acme@{DOMAIN}").out
    drain()
    assert [(row.state, row.sender) for row in rows(mail)] == [(ledger.FILED, "zoe@customer.example")]


@pytest.mark.parametrize(
    ("content", "options", "said"),
    [
        (b"", ["--to", f"acme@{DOMAIN}"], "is empty"),
        (None, ["--to", f"acme@{DOMAIN}"], "cannot be read"),
        (b"Subject: x", ["--to", f"nobody@{DOMAIN}"], "No desk takes letters at nobody@"),
        (b"Subject: x", ["--to", "acme"], "No desk takes letters at acme"),
    ],
)
def test_deliver_mail_says_what_is_wrong(
    mail: World, tmp_path: Path, content: bytes | None, options: list[str], said: str
) -> None:
    file = tmp_path / "letter.eml"
    if content is not None:
        file.write_bytes(content)
    ended = run("deliver_mail", str(file), *options)
    assert ended.status == 1
    assert said in ended.err


def test_receive_mail_is_for_development_alone(mail: World) -> None:
    assert "It runs with DEBUG alone." in run("receive_mail").err


def test_reconcile_mail_says_what_was_left_behind(mail: World) -> None:
    post(letter())
    drain()
    out = run("reconcile_mail").out
    assert "0 letters that no desk had: none of them left behind." in out
    assert "1 letter in the bucket, of 2 desks: none of them left behind." in out
    assert "acme: 1 letter in its bucket: none of them left behind." in run("reconcile_mail", "--tenant", "acme").out


def test_reading_a_letter_ends_when_its_time_is_up_and_the_next_is_read() -> None:
    with pytest.raises(Unreadable, match="longer than 0 seconds"):
        letter_process.read(letter(), seconds=0)
    assert letter_process.read(letter()).sender.address == "zoe@customer.example"


@pytest.mark.parametrize("raw", [b"x" * (25 * 1024 * 1024 + 1), b" \r\n"])
def test_a_letter_that_is_too_large_or_empty_is_refused_with_a_sentence(raw: bytes) -> None:
    with pytest.raises(Unreadable, match=r"larger than 25 MB|empty"):
        letter_process.read(raw)


def test_a_letter_that_is_too_large_is_put_before_people(mail: World) -> None:
    raw = letter(subject="Größe", body="x" * 80) + b"\r\n" + b"y" * 26 * 1024 * 1024
    post(raw, sender="bounces@customer.example")
    drain()
    (row,) = rows(mail)
    assert (row.state, row.reason) == (ledger.REFUSED, "The letter is larger than 25 MB.")
    assert (row.sender, row.subject) == ("zoe@customer.example", "Größe")
    page = mail.browser("alice", "acme").get(f"/acme/letters/{digest_of(row.pk)}/").content.decode()
    assert "Download it, and open a ticket by hand." in page
    assert "File it" not in page, "which would be refused"


# --- envelopes ---


def test_small_letters_are_handed_on_at_the_same_time_and_large_ones_one_after_the_other(
    mail: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    together, large, most_large = threading.Barrier(3, timeout=PATIENCE), [], []
    hand_on = arrival._hand_on

    def watched(found: envelope.Envelope, key: str, *, most: int) -> int:
        if most < arrival.MOST_BYTES:
            together.wait()  # breaks where they come one by one
            return hand_on(found, key, most=100)
        large.append(key)
        most_large.append(len(large))
        time.sleep(0.05)
        try:
            return hand_on(found, key, most=most)
        finally:
            large.remove(key)

    monkeypatch.setattr(arrival, "_hand_on", watched)
    for number in range(3):
        post(letter(subject=f"Large {number}"))
    assert queue_readers.read(LETTERS_QUEUE)["read"] == 3
    assert most_large == [1, 1, 1]
    assert incoming() == []


def test_a_flood_to_one_desk_is_put_off_and_the_letters_of_others_are_not(
    mail: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrival, "AT_ONCE", 2)
    for number in range(6):
        name = ("acme", "ACME+sales", "acme+more")[number % 3]
        post(letter(subject=f"Flood {number}", message_id=f"<{number}@x.example>"), f"{name}@{DOMAIN}")
    post(letter(subject="Help"), f"globex@{DOMAIN}")
    first = queue_readers.read(LETTERS_QUEUE, wait=0)
    assert (first["read"], first["put off"]) == (3, 4)
    work()
    assert (len(rows(mail)), len(rows(mail, "globex"))) == (2, 1)
    again = Counter[str]()
    while again.total() < 4:  # as many seconds as the engine takes
        again += queue_readers.read(LETTERS_QUEUE)
    assert again == {"read": 4}
    work()
    assert len(rows(mail)) == 6


@pytest.mark.parametrize("letters", [5, 50])
def test_the_turns_of_a_desk_come_one_after_the_other_and_none_is_taken_that_is_too_far_away(letters: int) -> None:
    now = [1000.0]
    turns = arrival._Turns(lambda: now[0])
    waits = [turns.seconds("acme") for _ in range(arrival.AT_ONCE + letters)]
    assert waits[: arrival.AT_ONCE] == [0.0] * arrival.AT_ONCE
    assert waits[arrival.AT_ONCE :] == pytest.approx([n / arrival.PER_SECOND for n in range(1, letters + 1)])
    assert turns.seconds("globex") == 0.0
    for _ in range(10_000):
        last = turns.seconds("acme")
    assert last == LONGEST_DELAY
    now[0] += 2 * LONGEST_DELAY
    assert turns.seconds("acme") == 0.0


def test_an_envelope_is_what_it_was_after_its_notification_and_beside_its_object() -> None:
    sent = envelope.Envelope("n1", "z@x.example", ("a@b.example",), "2026-01-31T12:00:00.000000Z", {"dmarc": "PASS"})
    assert envelope.read(sent.notification(bucket="b", key="incoming/n1")) == (sent, "incoming/n1")
    assert envelope.read_about("n1", sent.about()) == sent


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"notificationType": "Bounce", "mail": {}, "receipt": {}}'])
def test_what_is_no_notification_of_a_letter_is_invalid(text: str) -> None:
    with pytest.raises(Invalid):
        envelope.read(text)


@pytest.mark.parametrize(
    ("verdicts", "sender", "is_confirmed"),
    [
        ({"dmarc": "PASS"}, "z@other.example", True),
        ({"dmarc": "GRAY", "spf": "PASS"}, "z@x.example", True),
        ({"dmarc": "GRAY", "spf": "PASS"}, "z@other.example", False),
        ({"dmarc": "GRAY", "spf": "FAIL", "dkim": "PASS"}, "z@x.example", False),
        ({"dmarc": "FAIL", "spf": "PASS", "dkim": "PASS"}, "z@x.example", False),
        ({"spf": "PASS", "dkim": "PASS"}, "z@x.example", False),
        ({}, "z@x.example", False),
    ],
)
def test_a_sender_is_confirmed_by_the_receiving_servers_verdicts_alone(
    verdicts: dict[str, str], sender: str, is_confirmed: bool
) -> None:
    came = envelope.Envelope("n1", sender, (), "2026-01-31T12:00:00.000000Z", verdicts)
    assert came.is_from("zoe@x.example") is is_confirmed


def test_the_envelope_kept_beside_an_object_fits_there() -> None:
    many = tuple(f"{'a' * 60}{n}@{'b' * 200}.example" for n in range(50))
    came = envelope.Envelope("n1", "z" * 300, many, "2026-01-31T12:00:00.000000Z", {})
    assert len(came.about()["envelope"]) <= 1900


def test_debug_server_knows_no_desk_without_a_domain(mail: World) -> None:
    with override_settings(MAIL_DOMAIN=""):
        assert run("deliver_mail", "-", "--to", f"acme@{DOMAIN}").status == 1


def test_a_letter_of_which_no_recipient_is_known_is_kept_for_the_operators(mail: World) -> None:
    name = post(letter(), f"acme@{DOMAIN}", f"globex@{DOMAIN}")  # the first Received header names nobody then
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(queue_readers._readers, LETTERS_QUEUE, lambda body: None)  # somebody took it and died
        queue_readers.read(LETTERS_QUEUE, wait=0)
    assert reconciling.arrived(grace=timedelta(0)).asked == 1
    drain()
    assert incoming() == []
    assert unclaimed() == [f"unclaimed/{name}"]


def test_what_is_kept_beside_a_letter_has_room_there_however_long_its_addresses_are() -> None:
    came = envelope.Envelope("a", "\U0001f600" * 320, (f"acme@{DOMAIN}",), clock.stamp())
    assert len(came.about()["envelope"]) <= 1800
