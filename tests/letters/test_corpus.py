"""Read several hundred letters of our own making: none stops the reader, and each says what it should."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

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
from tests.letters.cases import Unsafe, seen

OF = (header_cases, charset_cases, quote_cases, structure_cases, html_cases, automatic_cases, packed_cases)
CASES = [one for module in OF for one in module.CASES]
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


def test_there_are_at_least_300_letters_each_with_its_own_name() -> None:
    assert len(CASES) >= 300
    assert [name for name, count in Counter(one.name for one in CASES).items() if count > 1] == []


@pytest.mark.parametrize("module", OF, ids=lambda module: module.__name__.rpartition(".")[2])
def test_letters_are_read_as_expected(module: Any) -> None:
    for one in module.CASES:
        letter = letters.read(one.raw)
        found = seen(letter)
        expected = {name: value for name, value in one.expected.items() if value is not None or name == "date"}
        assert {name: found[name] for name in expected} == expected, one.name
        lines = (letter.subject, letter.sender.name, letter.sender.address, *(part.name for part in letter.attachments))
        assert not any(map(plain_text.has_controls, lines)), one.name
        assert not CONTROLS.search(letter.text + letter.folded + letter.html), one.name
        assert Unsafe(letter.html).found == [], one.name
