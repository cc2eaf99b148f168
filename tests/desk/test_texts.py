"""Texts have one stored form, whichever way they come in: form, filter or import."""

from __future__ import annotations

import pytest

from portal import plain_text
from portal.errors import Invalid
from tickets.data import import_rows
from tickets.desk.filters import TicketFilter
from tickets.ticket import fields


@pytest.mark.parametrize("nothing", ["", " \n\t", "\u200b", "\u2060\ufeff", "\u3164\u2800", "\u202e\u00ad"])
def test_a_title_or_comment_that_nobody_could_see_is_refused(nothing: str) -> None:
    for stored in (fields.title, fields.comment):
        with pytest.raises(Invalid):
            stored(nothing)


def test_a_character_that_cannot_be_stored_is_replaced_where_it_can_be_seen() -> None:
    assert fields.comment("a\x1b[31mb\ud800c") == "a\ufffd[31mb\ufffdc"
    assert fields.description(" a\r\nb\rc\tend ") == "a\nb\nc\tend"


def test_a_tag_is_found_by_whatever_looks_like_it() -> None:
    for typed in ("api", "\u200bAPI", "\uff41\uff50\uff49", "a\u200dpi", " api "):
        assert fields.tag_list(typed) == ["api"]
        assert TicketFilter.parse({"tag": typed}).get("tag") == "api"
        assert import_rows.tag(typed) == "api"


SHAPED = {
    "Persian": "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
    "Malayalam, with a joiner at its end": "\u0d05\u0d35\u0d28\u0d4d\u200d",
    "Sinhala": "\u0dc1\u0dca\u200d\u0dbb\u0dd3",
    "an emoji of two": "\U0001f469\u200d\U0001f4bb",
    "an emoji in colour": "\u2764\ufe0f\u200d\U0001f525",
    "the flag of Scotland": "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
    "the Arabic sign of a number": "\u0600\u0661",
}


@pytest.mark.parametrize("text", SHAPED.values(), ids=SHAPED.keys())
def test_what_shapes_a_word_or_an_emoji_stays(text: str) -> None:
    assert plain_text.word(text) == fields.title(text) == text


HIDING = {
    "an override of the direction": ("invoice\u202egpj.exe", "invoicegpj.exe"),
    "isolates": ("a\u2066b\u2069c", "abc"),
    "marks of direction": ("a\u200eb\u200fc\u061cd", "abcd"),
    "no width": ("a\u200bb\ufeffc\u2060d", "abcd"),
    "a soft hyphen": ("pass\u00adword", "password"),
    "a joiner in an English word": ("pay\u200dpal", "paypal"),
    "joiners beyond the one that shapes": ("\u0645\u200c\u200c\u0645", "\u0645\u0645"),
    "letters that show nothing": ("a\u3164b", "ab"),
    "a hidden message in the characters of tags": ("a\U000e0068\U000e0069\U000e007fb", "ab"),
    "a blank of Braille": ("\u2801\u2800\u2803", "\u2801 \u2803"),
}


@pytest.mark.parametrize(("typed", "stored"), HIDING.values(), ids=HIDING.keys())
def test_nothing_invisible_is_stored_in_a_line(typed: str, stored: str) -> None:
    assert fields.title(typed) == plain_text.line(typed) == stored


@pytest.mark.parametrize("nothing", ["\u200b", "\u2060\ufeff", "\u3164", "\u202e", "\u200d", "a,\u200b"])
def test_a_tag_of_invisible_characters_is_refused(nothing: str) -> None:
    with pytest.raises(Invalid, match="A tag needs characters that can be seen"):
        fields.tag_list(nothing)


def test_what_is_stored_as_a_tag_can_be_filtered_by() -> None:
    for damaged in ("a\x01b", "a\ufffdb"):
        with pytest.raises(Invalid):
            fields.tag_list(damaged)
        with pytest.raises(Invalid):
            TicketFilter.parse({"tag": damaged})
