"""Letters that Outlook packed into a winmail.dat, and invitations of calendars."""

from __future__ import annotations

import struct

from tests.letters.cases import TEXT, Case, case, joined, letter, part

OPENED = "Outlook packed parts of the letter into a winmail.dat, which was opened."
CLOSED = "The letter came with a winmail.dat that could not be opened."
UNREADABLE = "The letter holds a calendar entry that could not be read."


# --- winmail.dat (MS-OXTNEF) ---


def attribute(name: int, value: bytes, level: int = 1) -> bytes:
    return struct.pack("<BII", level, name, len(value)) + value + struct.pack("<H", sum(value) & 0xFFFF)


def properties(*found: tuple[int, int, bytes]) -> bytes:
    """Properties of MAPI: kind, name, value."""
    made = struct.pack("<I", len(found))
    for kind, name, value in found:
        made += struct.pack("<HH", kind, name)
        if kind in (0x1E, 0x1F, 0x102, 0xD):
            made += struct.pack("<II", 1, len(value)) + value + b"\0" * (-len(value) % 4)
        else:
            made += value
    return made


def tnef(*attributes: bytes, page: int = 1252) -> bytes:
    return struct.pack("<IH", 0x223E9F78, 1) + attribute(0x9007, struct.pack("<II", page, 0)) + b"".join(attributes)


def file(name: bytes, content: bytes, *more: tuple[int, int, bytes]) -> bytes:
    found = attribute(0x9002, b"\0" * 14, 2) + attribute(0x8010, name + b"\0", 2) + attribute(0x800F, content, 2)
    return found + (attribute(0x9005, properties(*more), 2) if more else b"")


def mapi(*found: tuple[int, int, bytes]) -> bytes:
    return attribute(0x9003, properties(*found))


def packed(name: str, content: bytes, **expected: object) -> Case:
    whole = joined("mixed", TEXT, part('application/ms-tnef; name="winmail.dat"', content, encoding="base64"))
    return case(f"winmail.dat: {name}", letter(whole), **({"text": "Hello", "remarks": [OPENED]} | expected))


def alone(name: str, content: bytes, **expected: object) -> Case:
    whole = part('application/ms-tnef; name="winmail.dat"', content, encoding="base64")
    return case(f"winmail.dat: {name}", letter(whole), **({"remarks": [OPENED]} | expected))


A_FILE = file(b"a.pdf", b"%PDF")
ENDLESS = struct.pack("<IIII", 0xFFFFFFFF, 0x1E | (0x1000 << 16), 0xFFFFFFFF, 0xFFFFFFFF)


def rtf(text: bytes, *, kind: bytes = b"MELA", packed: bytes | None = None) -> bytes:
    """RTF as a property of MAPI; without `packed` it is stored as it is."""
    content = text if packed is None else packed
    return mapi((0x102, 0x1009, struct.pack("<II", len(content) + 12, len(text)) + kind + b"\0" * 4 + content))


def literals(text: bytes) -> bytes:
    """Packed RTF that refers to nothing, with the mark of its end."""
    made = b"".join(b"\0" + text[at : at + 8] for at in range(0, len(text) - len(text) % 8, 8))
    rest = text[len(text) - len(text) % 8 :]
    end = (207 + len(text)) % 4096 << 4
    return made + bytes([1 << len(rest)]) + rest + struct.pack(">H", end)


LONG_RTF = b"{\\rtf1\\ansi " + b"Hello " * 800 + b"}"
# {\\rtf1\\ansi\\ from the words that are known at the start, then "Hello}".
REFERRING = (
    bytes([0b00000001]) + struct.pack(">H", 0 << 4 | 10) + b" Hello}" + bytes([1]) + struct.pack(">H", (207 + 19) << 4)
)
ENDLESS_RTF = struct.pack(">BH", 255, 0 << 4 | 15) + struct.pack(">H", 206 << 4 | 15) * 60_000
RTF = {
    "a sentence": (rb"{\rtf1\ansi Hello\par there}", "Hello\nthere"),
    "letters of a code page": (rb"{\rtf1\ansi\ansicpg1252 Gr\'fc\'dfe}", "Grüße"),
    "letters of two bytes": (rb"{\rtf1\ansi\ansicpg932 \'93\'fa\'96\'7b}", "日本"),
    "Unicode": (rb"{\rtf1\ansi\uc1 \u8364?\u-10179?\u-8704? x}", "€😀 x"),
    "fonts and colours": (rb"{\rtf1{\fonttbl{\f0 Arial;}}{\colortbl;\red0;}{\*\generator x;}\f0 Hello}", "Hello"),
    "braces": (rb"{\rtf1 a\{b\}\\c}", "a{b}\\c"),
    "half a character": (rb"{\rtf1 a\u-10179?b}", "a\ufffdb"),
    "no braces at its end": (rb"{\rtf1 Hello", "Hello"),
    "5,000 groups in each other": (b"{\\rtf1 " + b"{" * 5_000 + b"Hello", "Hello"),
    "no RTF": (b"Hello", ""),
}

TNEF: list[Case] = [
    *(alone(f"RTF, {name}", tnef(rtf(source)), text=text) for name, (source, text) in RTF.items()),
    alone("packed RTF", tnef(rtf(LONG_RTF, kind=b"LZFu", packed=literals(LONG_RTF))), text=("Hello " * 800).strip()),
    alone("packed RTF that refers to its dictionary", tnef(rtf(b"x" * 19, kind=b"LZFu", packed=REFERRING)), text="Hello"),
    alone("packed RTF that grows", tnef(rtf(b"x" * 900_000, kind=b"LZFu", packed=ENDLESS_RTF)), text=None),
    alone("packed RTF of another kind", tnef(rtf(b"{\\rtf1 a}", kind=b"XXXX")), text=""),
    alone("packed RTF without its head", tnef(mapi((0x102, 0x1009, b"abc"))), text=""),
    packed("the text of the letter again", tnef(mapi((0x1E, 0x1000, b"Hello again\0")), A_FILE), text="Hello", files=[("a.pdf", "application/pdf")]),
    packed("a file", tnef(A_FILE), files=[("a.pdf", "application/pdf")], sizes=[4]),
    packed("two files", tnef(A_FILE, file(b"b.txt", b"b")), files=[("a.pdf", "application/pdf"), ("b.txt", "text/plain")]),
    packed("a zip file", tnef(file(b"a.zip", b"PK\3\4" + b"\0" * 1000)), files=[("a.zip", "application/zip")], sizes=[1004]),
    packed("a long name", tnef(file(b"A~1.PDF", b"%PDF", (0x1F, 0x3707, "ä.pdf".encode("utf-16-le")))), files=[("ä.pdf", "application/pdf")]),
    packed("a type", tnef(file(b"a.bin", b"x", (0x1E, 0x370E, b"image/png\0"))), files=[("a.bin", "image/png")]),
    packed("a Japanese name", tnef(file("日本.txt".encode("cp932"), b"x"), page=932), files=[("日本.txt", "text/plain")]),
    packed("an unknown page", tnef(file("ä.txt".encode("latin-1"), b"x"), page=99999), files=[("ä.txt", "text/plain")]),
    packed("a path as name", tnef(file(b"..\\..\\a.txt", b"x")), files=[(".._.._a.txt", "text/plain")]),
    packed("no name", tnef(file(b"", b"x")), files=[("file 1", "application/octet-stream")]),
    packed("a letter in it", tnef(attribute(0x9002, b"\0" * 14, 2), attribute(0x9005, properties((0xD, 0x3701, b"\0" * 16 + b"inner"), (0x1E, 0x3001, b"Old\0")), 2)), files=[("Old", "application/octet-stream")], sizes=[5]),
    packed("no files", tnef(), files=[]),
    alone("its text", tnef(attribute(0x800C, b"Gr\xfc\xdfe\0")), text="Grüße"),
    alone("its text in MAPI", tnef(mapi((0x1E, 0x1000, b"Hello\0"))), text="Hello"),
    alone("its text in Unicode", tnef(mapi((0x1F, 0x1000, "Grüße\0".encode("utf-16-le")))), text="Grüße"),
    alone("its HTML", tnef(mapi((0x102, 0x1013, b"<p>Hello <b>there</b></p>"))), text="Hello there", html="<p>Hello <b>there</b></p>"),
    alone("its HTML in UTF-8", tnef(mapi((0x3, 0x3FDE, struct.pack("<I", 65001)), (0x102, 0x1013, "<p>Grüße".encode()))), text="Grüße"),
    alone("a property with a name", tnef(attribute(0x9003, struct.pack("<I", 2) + struct.pack("<HH", 0x3, 0x8001) + b"\0" * 16 + struct.pack("<III", 0, 1, 7) + properties((0x1E, 0x1000, b"Hello\0"))[4:])), text="Hello"),
    alone("unknown attributes", tnef(attribute(0x1234, b"x"), attribute(0x800C, b"Hello\0")), text="Hello"),
    alone("properties without an end", tnef(attribute(0x9003, ENDLESS), attribute(0x800C, b"Hello\0")), text="Hello"),
    alone("properties of an unknown kind", tnef(attribute(0x9003, struct.pack("<IHH", 1, 0x99, 1)), attribute(0x800C, b"Hello\0")), text="Hello"),
    alone("an attribute longer than the file", tnef(A_FILE) + struct.pack("<BII", 1, 0x800C, 0xFFFFFFFF) + b"Hello", text="Hello", files=[("a.pdf", "application/pdf")]),
    alone("half of the file", tnef(A_FILE)[:-5], text="", files=[("a.pdf", "application/pdf")]),
    alone("200,000 attributes without content", tnef(attribute(0x800F, b"") * 200_000), text=""),
    alone("20,000 files", tnef(A_FILE * 20_000), text="", files=[("a.pdf", "application/pdf")] * 100),
    alone("a wrong signature", b"\0" * 100, text="", files=[("winmail.dat", "application/ms-tnef")], remarks=[CLOSED]),
    alone("an empty file", b"", text="", remarks=[CLOSED]),
    alone("text within text within", tnef(attribute(0x9005, properties((0xD, 0x3701, tnef(A_FILE) * 50)))), text=""),
]  # fmt: skip


# --- invitations (RFC 5545, RFC 5546) ---


def calendar(*lines: str, method: str = "REQUEST") -> str:
    told = [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:x",
        f"METHOD:{method}",
        "BEGIN:VEVENT",
        "UID:1",
        *lines,
        "END:VEVENT",
        "END:VCALENDAR",
        "",
    ]
    return "\r\n".join(told)


def invitation(name: str, source: str | bytes, text: str | None, **expected: object) -> Case:
    content = part('text/calendar; charset=utf-8; method=REQUEST; name="invite.ics"', source, encoding="base64")
    return case(
        f"invitation: {name}",
        letter(content),
        text=text,
        **({"files": [("invite.ics", "text/calendar")], "remarks": []} | expected),
    )


EVENT = ("SUMMARY:Printer day", "DTSTART:20240105T100000Z", "DTEND:20240105T110000Z")
TOLD = "Invitation: Printer day\nBegins: 2024-01-05 10:00 UTC\nEnds: 2024-01-05 11:00 UTC"
BERLIN = ("SUMMARY:Printer day", "DTSTART;TZID=Europe/Berlin:20240105T100000")

INVITATIONS: list[Case] = [
    invitation("an ordinary one", calendar(*EVENT), TOLD),
    invitation("a place and an organiser", calendar(*EVENT, "LOCATION:Hall\\, 3", "ORGANIZER;CN=Joe:mailto:joe@example.org"), f"{TOLD}\nPlace: Hall, 3\nOrganiser: Joe <joe@example.org>"),
    invitation("a description", calendar(*EVENT, "DESCRIPTION:Come\\nall"), f"{TOLD}\n\nCome\nall"),
    invitation("cancelled", calendar(*EVENT, method="CANCEL"), TOLD.replace("Invitation", "Cancelled")),
    invitation("an answer", calendar(*EVENT, "ATTENDEE;PARTSTAT=ACCEPTED:mailto:joe@example.org", method="REPLY"), f"{TOLD.replace('Invitation', 'Answer to an invitation')}\nAnswer: joe@example.org accepted"),
    invitation("a time zone", calendar(*BERLIN), "Invitation: Printer day\nBegins: 2024-01-05 10:00 Europe/Berlin"),
    invitation("an unknown time zone", calendar("SUMMARY:a", "DTSTART;TZID=Nowhere:20240105T100000"), "Invitation: a\nBegins: 2024-01-05 10:00 Nowhere"),
    invitation("a whole day", calendar("SUMMARY:a", "DTSTART;VALUE=DATE:20240105"), "Invitation: a\nBegins: 2024-01-05"),
    invitation("repeated", calendar("SUMMARY:a", "RRULE:FREQ=WEEKLY"), "Invitation: a\nRepeats: FREQ=WEEKLY"),
    invitation("no title", calendar("DTSTART:20240105T100000Z"), "Invitation: (no title)\nBegins: 2024-01-05 10:00 UTC"),
    invitation("no event", "BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n", "", remarks=[UNREADABLE]),
    invitation("nothing", "", "", remarks=[UNREADABLE]),
    invitation("rubbish", b"\xff\x00" * 100, "", remarks=[UNREADABLE]),
    invitation("a broken date", calendar("SUMMARY:a", "DTSTART:20249999T100000Z"), None, remarks=None),
    invitation("an event without an end", "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nSUMMARY:a\r\n", None, remarks=None),
    invitation("two summaries", calendar("SUMMARY:a", "SUMMARY:b"), None, remarks=None),
    invitation("1 MB", calendar("DESCRIPTION:" + "x" * 1_000_000), "", remarks=[UNREADABLE]),
    invitation("5,000 guests", calendar(*EVENT, *[f"ATTENDEE:mailto:a{n}@example.org" for n in range(5_000)]), TOLD),
    invitation("1,000 components in each other", "BEGIN:VCALENDAR\r\n" + "BEGIN:VEVENT\r\n" * 1000, None, remarks=None),
    case("invitation: beside a text", letter(joined("alternative", TEXT, part("text/calendar; method=REQUEST", calendar(*EVENT)))), text="Hello", files=[("invitation.ics", "text/calendar")]),
    case("invitation: beside an empty text", letter(joined("alternative", part("text/plain", ""), part("text/calendar; method=REQUEST", calendar(*EVENT)))), text=TOLD),
    case("invitation: as a file", letter(joined("mixed", TEXT, part("text/calendar; name=a.ics", calendar(*EVENT), disposition="attachment"))), text=f"Hello\n\n{TOLD}", files=[("a.ics", "text/calendar")]),
]  # fmt: skip

CASES: list[Case] = [*TNEF, *INVITATIONS]
