"""The files of a letter are on the ticket or the comment that it becomes."""

from __future__ import annotations

import email
import email.policy
import re

from portal.objects.object_store import ObjectStore
from tests.support.letters_in import come_in, letter, rows
from tests.support.world import World
from tickets.attachments import attachments
from tickets.attachments.stored import object_key
from tickets.desk import timelines
from tickets.replies import reply_addresses
from tickets.requesters import requesters

PNG = b"\x89PNG\r\n\x1a\n" + bytes(50)


def with_files(raw: bytes, *files: tuple[str, bytes]) -> bytes:
    message = email.message_from_bytes(raw, policy=email.policy.default)
    for name, content in files:
        message.add_attachment(content, maintype="application", subtype="octet-stream", filename=name)
    return message.as_bytes()


def test_the_files_of_a_letter_are_on_its_ticket(mail: World) -> None:
    come_in(with_files(letter(), ("photo.png", PNG), ("log.txt", b"line")))
    (row,) = rows(mail)
    alice = mail.context("alice", "acme")
    ticket = timelines.ticket(alice, int(row.number))
    assert [(file.name, file.type) for file in ticket.files] == [("photo.png", "image/png"), ("log.txt", "text/plain")]
    key = object_key(alice.tenant_id, ticket.files[0].object)
    assert ObjectStore("tenant", alice.tenant_id).get(key, most=1000) == PNG
    assert ObjectStore("tenant", alice.tenant_id).tags(key) == attachments.ATTACHED


def test_the_files_of_an_answer_are_on_its_comment(mail: World) -> None:
    come_in(letter())
    (row,) = rows(mail)
    alice = mail.context("alice", "acme")
    zoe = requesters.by_address(alice, "zoe@customer.example")
    assert zoe is not None
    to = reply_addresses.address_of(alice.tenant_id, int(row.number), zoe.id, is_agent=False)
    come_in(with_files(letter(subject="Re: it", to=to), ("photo.png", PNG)), to)
    entry = timelines.ticket(alice, int(row.number)).activity[-1]
    assert [file.name for file in entry.files or ()] == ["photo.png"]


def test_files_beyond_the_tenth_and_empty_ones_are_named(mail: World) -> None:
    many = [(f"{n}.txt", b"text") for n in range(11)]
    come_in(with_files(letter(), ("empty.txt", b""), *many))
    (row,) = rows(mail)
    ticket = timelines.ticket(mail.context("alice", "acme"), int(row.number))
    assert [file.name for file in ticket.files] == [f"{n}.txt" for n in range(10)]
    page = mail.browser("alice", "acme").get(f"/tickets/{int(row.number)}/").content.decode()
    assert re.findall(r"Only in the letter: <span[^>]*>(.*?)</span>", page) == [
        "empty.txt (0 bytes)",
        "10.txt (4 bytes)",
    ]
