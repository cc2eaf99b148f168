"""Read several hundred letters of our own making: none stops the reader, and each says what it should."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from portal import plain_text
from portal.mailing import letters
from tests.letters import (
    automatic_cases,
    charset_cases,
    header_cases,
    html_cases,
    packed_cases,
    quote_cases,
    structure_cases,
)
from tests.letters.cases import Case, Unsafe, seen

CASES = [
    *header_cases.CASES,
    *charset_cases.CASES,
    *quote_cases.CASES,
    *structure_cases.CASES,
    *html_cases.CASES,
    *automatic_cases.CASES,
    *packed_cases.CASES,
]
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


def test_there_are_at_least_300_letters_each_with_its_own_name() -> None:
    assert len(CASES) >= 300
    assert [name for name, count in Counter(one.name for one in CASES).items() if count > 1] == []


@pytest.mark.parametrize("one", CASES, ids=lambda one: one.name)
def test_a_letter_is_read_as_expected(one: Case) -> None:
    letter = letters.read(one.raw)
    found = seen(letter)
    expected = {name: value for name, value in one.expected.items() if value is not None or name == "date"}
    assert {name: found[name] for name in expected} == expected
    for line in (
        letter.subject,
        letter.sender.name,
        letter.sender.address,
        *(part.name for part in letter.attachments),
    ):
        assert not plain_text.has_controls(line)
    assert not CONTROLS.search(letter.text + letter.folded + letter.html)
    assert Unsafe(letter.html).found == []
