"""An address without a route shows the product's own page, in development too; dates are written as elsewhere."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.conf import LazySettings
from django.utils.formats import date_format

from portal import plain_text
from tests.support.world import Browser


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("path", ["/no/such/address/", "/admin-of-nothing/x/y/"])
def test_an_address_without_a_route_shows_our_page(
    engine: None, settings: LazySettings, debug: bool, path: str
) -> None:
    settings.DEBUG = debug
    answer = Browser().get(path)
    page = answer.content.decode()
    assert answer.status_code == 404
    assert "Error 404" in page
    assert "URLconf" not in page


def test_dates_of_the_admin_are_written_as_on_the_portals_pages() -> None:
    moment = datetime(2026, 11, 2, 15, 4, tzinfo=UTC)
    assert date_format(moment, "DATETIME_FORMAT") == "2 Nov 2026, 15:04"
    assert date_format(moment, "SHORT_DATETIME_FORMAT") == "2 Nov 2026, 15:04"
    assert date_format(moment, "DATE_FORMAT") == "2 Nov 2026"


@pytest.mark.parametrize("name", ["\u0410cme", "Gl\u03bfbex", "Some P\u0430y Ltd"])
def test_a_word_of_two_alphabets_is_noticed(name: str) -> None:
    assert plain_text.mixes_scripts(name)


@pytest.mark.parametrize(
    "name", ["Acme", "\u042f\u043d\u0434\u0435\u043a\u0441 Cloud", "Müller 3M", "日本 Acme", "Ελλάδα-EU", ""]
)
def test_words_of_one_alphabet_each_are_not(name: str) -> None:
    assert not plain_text.mixes_scripts(name)
