"""Sentences that were stored in English are shown in the language of the page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from portal.web import locales
from portal.web.locales import Locale
from portal.web.stored_texts import stored_text


@pytest.fixture
def german() -> Iterator[None]:
    with locales.shown_in(Locale(language="de")):
        yield


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("A virus was found in it.", "Darin wurde ein Virus gefunden."),
        ("There is no ticket 7 any more.", "Das Ticket 7 gibt es nicht mehr."),
        (
            "The desk has blocked its sender. There is no ticket 7 any more.",
            "Der Desk hat den Absender gesperrt. Das Ticket 7 gibt es nicht mehr.",
        ),
        ("550 5.1.1 No such user", "550 5.1.1 No such user"),
        ("", ""),
    ],
)
def test_a_stored_sentence_is_shown_in_the_language_of_the_page(german: None, stored: str, shown: str) -> None:
    assert stored_text(stored) == shown


def test_an_english_page_shows_what_is_stored() -> None:
    assert stored_text("A virus was found in it.") == "A virus was found in it."
