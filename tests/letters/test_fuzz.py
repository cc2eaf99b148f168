"""Nothing that arrives stops the reader: arbitrary bytes, and letters of the corpus with parts changed."""

from __future__ import annotations

import struct
from collections import Counter

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from portal.mailing import letters, tnef
from portal.mailing.charsets import decode
from portal.mailing.letter_headers import addresses, date, message_ids, readable
from portal.mailing.letter_html import images_allowed, read_html
from portal.mailing.letters import Letter, Unreadable
from portal.mailing.quotes import fold
from tests.letters.cases import Unsafe
from tests.letters.test_corpus import CASES, CONTROLS

SMALL = [one.raw for one in CASES if len(one.raw) < 20_000]
LINES = sorted({line for raw in SMALL for line in raw.split(b"\n") if len(line) < 300})
TEXTS = sorted({line.decode("utf-8", "replace") for line in LINES})
TAGS = ["<p>", "</p>", "<b>", "</b>", "<a href=x>", "</a>", "<table>", "<td>", "</table>", "<li>", "<ul>", "<blockquote>", "</blockquote>"]  # fmt: skip
PIECES = [*TAGS, "<!--", "-->", "<script>", "</script>", "<img src='https://a.example/b' alt=\"", '"', "'", "<", ">", "&#", "&lt;", "x", " ", "\n", "<style>", "<svg>", "<math>", "<p title=", "onclick=x", "data-src=", "\x00"]  # fmt: skip
unhurried = settings(deadline=None, suppress_health_check=list(HealthCheck))
thorough = settings(unhurried, max_examples=200)  # a few lists of lines are mostly alike


def is_sound(letter: Letter) -> None:
    assert not CONTROLS.search(letter.text + letter.folded + letter.html + letter.subject + letter.sender.name)
    assert Unsafe(letter.html).found == []
    assert len(letter.references) <= 50
    assert len(letter.to) <= 200
    assert bool(letter.automatic) == bool(letter.automatic_kind)
    assert letter.sender.address == letter.sender.address.lower()


def read(raw: bytes) -> None:
    try:
        letter = letters.read(raw)
    except Unreadable:
        return
    is_sound(letter)
    assert letters.read(raw).digest == letter.digest


@unhurried
@given(st.binary(max_size=2000))
def test_arbitrary_bytes_are_read_or_refused(raw: bytes) -> None:
    read(raw)


@unhurried
@given(st.data())
def test_changed_letters_are_read(data: st.DataObject) -> None:
    raw = bytearray(data.draw(st.sampled_from(SMALL)))
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, max(0, len(raw))))
        end = at + data.draw(st.sampled_from([0, 0, 1, 2, 10, 200]))
        raw[at:end] = data.draw(st.binary(max_size=6) | st.sampled_from(LINES) | st.just(bytes(raw[end : end + 500])))
    read(bytes(raw))


@thorough
@given(st.lists(st.sampled_from(LINES), max_size=40))
def test_lines_of_many_letters_in_one_are_read(lines: list[bytes]) -> None:
    read(b"\n".join(lines))


@thorough
@given(
    st.lists(st.sampled_from(TEXTS) | st.text(max_size=30).filter(lambda text: "\n" not in text), max_size=40),
    st.booleans(),
)
def test_folding_drops_no_line_and_tells_none_twice(lines: list[str], is_forwarded: bool) -> None:
    text = "\n".join(lines)
    folded = fold(text, is_forwarded=is_forwarded)

    def told(*texts: str) -> Counter[str]:
        return Counter(line.strip() for text in texts for line in text.split("\n") if line.strip())

    assert told(folded.text, folded.folded) == told(text)
    assert bool(folded.text.strip()) == bool(text.strip())


@thorough
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=5), min_size=10, max_size=60))
def test_html_becomes_safe_html(pieces: list[str]) -> None:
    shown = read_html("".join(pieces))
    assert Unsafe(shown.html).found == []
    loaded = set(Unsafe(images_allowed(shown.html)).found)
    assert loaded == ({"img src"} if shown.has_remote_images else set())


@unhurried
@given(st.binary(max_size=500), st.booleans())
def test_a_winmail_dat_of_any_bytes_is_opened_or_not(content: bytes, is_signed: bool) -> None:
    found = tnef.read(b"\x78\x9f\x3e\x22\x01\x00" + content if is_signed else content)
    assert found is None or sum(len(data) for _, _, data in found.files) <= len(content)


@unhurried
@given(st.binary(max_size=300), st.sampled_from([0x75465A4C, 0x414C454D]))
def test_packed_rtf_of_any_bytes_is_text(content: bytes, kind: int) -> None:
    packed = struct.pack("<IIII", len(content), 1000, kind, 0) + content
    plain = struct.pack("<IIII", 0, 2000, 0x414C454D, 0) + b"{\\rtf1 " + content
    for text in (tnef.text_of_rtf(packed), tnef.text_of_rtf(plain)):
        assert text.encode().decode() == text


@unhurried
@given(st.text(max_size=200), st.text(alphabet='"\\(),:;<>@ ab=?q\n', max_size=200))
def test_headers_of_any_text_are_read(one: str, other: str) -> None:
    for text in (one, other):
        assert all("@" in found.address for found in addresses(text))
        assert all(found.startswith("<") and found.endswith(">") for found in message_ids(text))
        assert "\n" not in readable(text)
        date(text)


@unhurried
@given(st.binary(max_size=200), st.text(max_size=20))
def test_bytes_of_any_character_set_are_text(content: bytes, charset: str) -> None:
    assert isinstance(decode(content, charset).text, str)
