"""Sentences that were stored in English are shown in the language of the page."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.urls import get_resolver

from portal.web import locales
from portal.web.locales import Locale, stored_text


@pytest.fixture
def german() -> Iterator[None]:
    assert get_resolver().url_patterns  # with them come the modules that declare messages
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
        ("removed the link “a. b: c”", "entfernte die Verknüpfung „a. b: c“"),
        (
            "No delivery was answered since 1 Nov 2026. The last: Answered 500.",
            "Seit 1 Nov 2026 wurde keine Zustellung beantwortet. Die letzte: Antwort: 500.",
        ),
        ("550 5.1.1 No such user", "550 5.1.1 No such user"),
        ("", ""),
    ],
)
def test_a_stored_sentence_is_shown_in_the_language_of_the_page(german: None, stored: str, shown: str) -> None:
    assert stored_text(stored) == shown


def test_an_english_page_shows_what_is_stored() -> None:
    assert stored_text("A virus was found in it.") == "A virus was found in it."


def test_every_process_of_pages_knows_the_messages_that_have_values() -> None:
    root = Path(settings.BASE_DIR)
    declaring = {
        str(path.relative_to(root).with_suffix("")).replace("/", ".")
        for app in ("portal", "tenants", "tickets", "delivery", "api")
        for path in (root / app).rglob("*.py")
        if re.search(r"^from portal\.web\.locales import .*\bdeclare_stored\b", path.read_text(), re.MULTILINE)
    }
    code = "import sys, portal.wsgi; from django.urls import get_resolver as r; r().reverse_dict; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert declaring - set(done.stdout.split()) == set()
