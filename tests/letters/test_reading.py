"""Reading one letter: who wrote it, to whom, when and what."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from portal import plain_text
from portal.mailing import letters
from portal.mailing.letter_headers import Address
from portal.mailing.letters import LetterPart, Unreadable

ORDINARY = b"""Return-Path: <juergen@example.de>
Message-ID: <2@example.de>
In-Reply-To: <1@desk.example>
References: <0@desk.example>
 <1@desk.example>
From: =?utf-8?Q?J=C3=BC?= =?utf-8?Q?rgen?= <Juergen@Example.de>
To: Doe, John <john@example.com>, undisclosed:;, "Roe, Jane" <jane@example.com>
Cc: zed@example.com (Zed),
Date: Mon, 1 Jan 2024 10:00:00 +0100
Subject: Printer
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="b"

--b
Content-Type: text/plain; charset=iso-8859-1
Content-Transfer-Encoding: quoted-printable

Gr=FC=DFe
--b
Content-Type: application/pdf; name*=utf-8''%e2%82%ac.pdf
Content-Disposition: attachment
Content-Transfer-Encoding: base64

AAAA
--b--
"""


def test_a_letter_says_who_wrote_what_to_whom() -> None:
    letter = letters.read(ORDINARY)
    assert letter.sender == Address("Jürgen", "juergen@example.de")
    assert letter.to == (Address("Doe, John", "john@example.com"), Address("Roe, Jane", "jane@example.com"))
    assert letter.cc == (Address("Zed", "zed@example.com"),)
    assert (letter.message_id, letter.in_reply_to) == ("<2@example.de>", "<1@desk.example>")
    assert letter.references == ("<0@desk.example>", "<1@desk.example>")
    assert (letter.subject, letter.text) == ("Printer", "Grüße")
    assert letter.date == datetime(2024, 1, 1, 9, tzinfo=UTC)
    assert letter.attachments == (LetterPart("€.pdf", "application/pdf", 3),)


@pytest.mark.parametrize(("raw", "sentence"), [(b"", "empty"), (b"\r\n ", "empty"), (b"a" * 26_214_401, "25 MB")])
def test_a_letter_that_cannot_be_read_is_refused_with_a_sentence(raw: bytes, sentence: str) -> None:
    with pytest.raises(Unreadable, match=sentence):
        letters.read(raw)


def test_the_same_letter_on_another_way_has_the_same_digest() -> None:
    again = b"Received: from elsewhere\r\n" + ORDINARY.replace(b"\n", b"\r\n").replace(b"=FC", b"\xfc").replace(
        b"quoted-printable", b"8bit"
    ).replace(b"=DF", b"\xdf")
    assert letters.read(again).digest == letters.read(ORDINARY).digest
    assert letters.read(ORDINARY.replace(b"=FC", b"u")).digest != letters.read(ORDINARY).digest


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"<2@example.de>", b"<3@example.de>"),
        (b"Juergen@Example.de", b"joe@example.de"),
        (b"Subject: Printer", b"Subject: Scanner"),
        (b"AAAA", b"BBBB"),
    ],
)
def test_letters_that_differ_have_different_digests(old: bytes, new: bytes) -> None:
    assert letters.read(ORDINARY.replace(old, new)).digest != letters.read(ORDINARY).digest


def test_images_are_loaded_only_when_they_are_allowed() -> None:
    letter = letters.read(
        b"From: a@example.org\nContent-Type: text/html\n\n<p>x<img src='https://example.org/a.png' alt='b data-src='>"
    )
    assert letter.html == '<p>x<img alt="b data-src=" data-src="https://example.org/a.png"></p>'
    assert letters.images_allowed(letter.html) == '<p>x<img alt="b data-src=" src="https://example.org/a.png"></p>'


@pytest.mark.parametrize(
    ("sender", "is_sole"),
    [
        ("jane@example.org", True),
        ('"Doe, Jane" <jane@example.org>', True),
        ('"jane@example.org" <Jane@Example.org>', True),
        ("Jane @ Acme Inc. <jane@example.org>", True),
        ("jane@example.org (Jane (the boss) Doe)", True),
        ("jane@example.org, eve@evil.example", False),
        ("jane@example.org, eve @ evil . example", False),
        ("jane@example.org, eve@(x)evil.example", False),
        ('"jane@example.org, ' + "x" * 400 + '" <eve@evil.example>', False),
        ("(a (b) jane@example.org, c) eve@evil.example", False),
        ("(a (b) jane@example.org, c) eve@example.org", False),
        ("<=?utf-8?q?jane=40example.org?=>, eve@evil.example", False),
        ("jane@example.org\nFrom: eve@evil.example", False),
        ("jane@example.org\nno header\nno header\nFROM : eve@evil.example", False),
        ("jane@example.org\n" + "X: y\n" * 1100 + "From: eve@evil.example", False),
        ("jane@example.org\nX: " + "y" * 300_000 + "\nFrom: eve@evil.example", False),
        ("", False),
    ],
)
def test_a_letter_in_which_others_may_see_another_sender_says_so(sender: str, is_sole: bool) -> None:
    read = letters.read(f"From: {sender}\nTo: help@desk.example\nSubject: x\n\nFrom: Jane, in the text".encode())
    assert read.is_sole_sender is is_sole


def test_no_text_of_a_letter_holds_half_of_a_character() -> None:
    half, name = "=?utf-7?q?a+2AA-?=", "filename*=utf-7''a%2B2AA-"
    head = f"From: {half} <{half}@x.example>\nSubject: {half}\nCc: {half} <a{half}@x.example>\nMessage-ID: <{half}@x>\n"
    parts = ["Content-Type: text/plain; charset=utf-7\n\n+2AA-", f"Content-Disposition: attachment; {name}\n\nx"]
    body = "".join(f"--b\n{part}\n" for part in parts)
    read = letters.read(f"{head}Content-Type: multipart/mixed; boundary=b\n\n{body}--b--\n".encode())
    texts = [
        read.subject,
        read.text,
        read.message_id,
        *read.sender,
        *read.cc[0],
        *(one.name for one in read.attachments),
    ]
    assert read.attachments
    assert not any(plain_text.has_halves(text) for text in texts)
