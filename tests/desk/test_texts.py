"""Texts have one stored form, whichever way they come in: form, filter or import."""

from __future__ import annotations

import pytest

from portal.errors import Invalid
from tickets.desk.filters import TicketFilter
from tickets.importing import archive_texts
from tickets.ticket import fields, texts


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
        assert TicketFilter.parse({"tag": typed}).tag == "api"
        assert archive_texts.tag(typed) == "api"


def test_joiners_that_shape_a_word_or_an_emoji_stay() -> None:
    assert texts.word("\u0645\u06cc\u200c\u062e\u0648") == "\u0645\u06cc\u200c\u062e\u0648"
    assert texts.word("\U0001f469\u200d\U0001f4bb") == "\U0001f469\u200d\U0001f4bb"


def test_what_is_stored_as_a_tag_can_be_filtered_by() -> None:
    for damaged in ("a\x01b", "a\ufffdb"):
        with pytest.raises(Invalid):
            fields.tag_list(damaged)
        with pytest.raises(Invalid):
            TicketFilter.parse({"tag": damaged})
