"""Hostile letters cost time in proportion to their size: eight times the letter, at most about eight times the work.

The processor's time of this process is compared with itself, so a busy machine changes nothing.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import pytest

from portal.mailing import letters
from tests.letters.cases import head, joined, letter, part, plain
from tests.letters.packed_cases import attribute, calendar, properties, tnef
from tests.letters.packed_cases import rtf as packed_rtf

SIZE, FACTOR = 4_000, 8
RATIO = 28  # work that grows with the square of the size would be 64 times as much
SHORT = 0.012  # seconds of work, at eight times the size, that need no comparison


def text(unit: str) -> Callable[[int], bytes]:
    return lambda size: plain(unit * (size // len(unit))).encode()


def html(unit: str, begin: str = "", end: str = "") -> Callable[[int], bytes]:
    return lambda size: letter(part("text/html", begin + unit * (size // len(unit)) + end))


def header(name: str, unit: str) -> Callable[[int], bytes]:
    return lambda size: plain(**{name: unit * (min(size, 160_000) // len(unit))}).encode()


def nested(depth: int) -> Callable[[int], bytes]:
    def made(size: int) -> bytes:
        content = part("text/plain", "a\n" * (size // 2))
        for number in range(depth):
            content = joined("mixed", content, boundary=f"n{number}")
        return letter(content)

    return made


def winmail(content: Callable[[int], bytes]) -> Callable[[int], bytes]:
    return lambda size: letter(part("application/ms-tnef", content(size)))


LETTERS: dict[str, Callable[[int], bytes]] = {
    **{
        f"text of {unit!r}": text(unit)
        for unit in ("On ", "Am ", "On \n", "On x wrote\n", "From: x\n", "Von: x\nGesendet: y\n", "> x\n", ">\nx\n", "-", "--\n")
    },
    **{f"text of {unit!r}": text(unit) for unit in ("wrote:\n", "\n", ">" * 50, "_" * 40 + "\n", " ", "\r", "\x00", "a" * 299 + ":\n", "=?")},
    **{
        f"HTML of {unit!r}": html(unit)
        for unit in ("<", "<p>", "<b><p>", "<a href=x>", "<!--", "<style>", "<p a='", "</p>", "<table><tr><td>", "<p ", "&", "&#9")
    },
    **{f"HTML of {unit!r}": html(unit) for unit in ("<br>", "<blockquote>", "<li>", "<o:p>", "<img src=//a>", "<p a=1 ", "x ", "\n", "<pre>\n", "<![", "<a '\"")},
    "HTML of closed tags in a deep place": html("</b></i>", "<div>" * 200 + "<i><table><td>"),
    "HTML of tags in quotes before a quote without an end": html('<p a=">"', end=" b='"),
    "HTML of formats": html("<p>", "".join(f"<font color=c{n}>" for n in range(500))),
    **{
        f"{name} of {unit!r}": header(name, unit)
        for name in ("From", "To", "Subject", "References", "Content_Type", "Content_Disposition", "Date")
        for unit in ('"', '\\"', '"\\', "(", "(\\", "<", ",", ":", "a@b,", "=?utf-8?q?a?= ", "=?", ";a=", ';a="', "<a>", ";a*0=b", "\n a")
    },
    "headers": lambda size: ("X: y\n" * (size // 5) + plain()).encode(),
    "folded lines": lambda size: plain(Subject="x" + "\n y" * (size // 3)).encode(),
    "a head without an end": lambda size: head().encode() + b"X" * size,
    "lines that are no headers": lambda size: head().encode() + b"x\ny: z\n" * (size // 7),
    "parts": lambda size: letter(joined("mixed", *[part("text/plain", "a")] * (size // 30))),
    "nearly boundaries": lambda size: letter(joined("mixed", part("text/plain", "--b1x\n" * (size // 6)))),
    "the boundary -": lambda size: letter(joined("mixed", part("text/plain", "-" * size), boundary="-")),
    "19 containers": nested(19),
    "300 containers": nested(300),
    "base64": lambda size: plain("!A" * (size // 2), Content_Transfer_Encoding="base64").encode(),
    "quoted-printable": lambda size: plain("=" * size, Content_Transfer_Encoding="quoted-printable").encode(),
    "uuencode": lambda size: plain("begin 644 a\n" + "M\n" * (size // 2), Content_Transfer_Encoding="x-uuencode").encode(),
    "flowed": lambda size: letter(part("text/plain; format=flowed", "> a \n" * (size // 5))),
    "ISO-2022-JP": lambda size: letter(part("text/plain; charset=iso-2022-jp", b"\x1b$B\x1b(B" * (size // 6))),
    "winmail.dat of attributes": winmail(lambda size: tnef(attribute(0x800F, b"") * (size // 11))),
    "winmail.dat of properties": winmail(lambda size: tnef(attribute(0x9003, properties((0x1E, 0x1000, b"")) * (size // 16)))),
    "winmail.dat of many values": winmail(lambda size: tnef(attribute(0x9003, b"\1\0\0\0\x02\x11\0\x10\xff\xff\xff\xff" + b"\0" * size))),
    "winmail.dat of packed RTF": winmail(lambda size: tnef(packed_rtf(b"{\\rtf1 " + b"{a}" * (size // 3), kind=b"MELA"))),
    "winmail.dat of RTF that grows": winmail(
        lambda size: tnef(packed_rtf(b"x" * size, kind=b"LZFu", packed=b"\xff\0\x0f" + b"\x0c\xef" * (size // 20)))
    ),
    "an invitation": lambda size: letter(part("text/calendar", calendar(*["ATTENDEE:a"] * (min(size, 250_000) // 12)))),
    "a calendar of events": lambda size: letter(part("text/calendar", "BEGIN:VEVENT\r\n" * (min(size, 250_000) // 14))),
    "a delivery report": lambda size: letter(joined("report", part("message/delivery-status", "\n" * size))),
}  # fmt: skip


def work(raw: bytes) -> float:
    begun = time.process_time()
    letters.read(raw)
    return time.process_time() - begun


@pytest.mark.parametrize("name", LETTERS)
def test_the_work_grows_with_the_size_and_not_with_its_square(name: str) -> None:
    make = LETTERS[name]
    small, large = make(SIZE), make(SIZE * FACTOR)
    for _ in range(4):  # the least of several: other programs on this processor only add to it
        much = work(large)
        if much < SHORT or much < RATIO * min(work(small) for _ in range(3)):
            return
    pytest.fail(f"{much:.2f} s for {len(large)} bytes")


GROWING = [
    "uuencode",
    "base64",
    "300 containers",
    "winmail.dat of RTF that grows",
    "text of '\\n'",
    "a delivery report",
]


@pytest.mark.parametrize("name", GROWING)
def test_a_letter_takes_memory_in_proportion_to_its_size(name: str) -> None:
    raw = LETTERS[name](500_000)
    tracemalloc.start()
    try:
        letters.read(raw)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 25 * len(raw)
