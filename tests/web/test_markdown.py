"""Markdown: what text of the longest kind costs to turn into HTML."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from portal.web import markdown


class CountingPattern:
    """A pattern that adds up how many characters it has searched."""

    def __init__(self, pattern: Any) -> None:
        self.pattern, self.characters = pattern, 0

    def search(self, text: str) -> Any:
        self.characters += len(text)
        return self.pattern.search(text)


@pytest.mark.parametrize("address", ["http://a.", "http://a", "x://"])
def test_a_text_full_of_addresses_is_not_searched_once_for_each(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    linkify = import_module("markdown_it.rules_inline.linkify")
    pattern = CountingPattern(linkify.SCHEME_RE)
    monkeypatch.setattr(linkify, "SCHEME_RE", pattern)
    text = (address * 50_000)[:50_000]
    markdown.render(text)
    assert pattern.characters <= 100 * len(text)


def test_in_a_text_full_of_addresses_each_is_a_link() -> None:
    html = markdown.render("See https://example.com/a_b_c today.\n" * 300)
    assert html.count('<a href="https://example.com/a_b_c"') == 300


@pytest.mark.parametrize("end", ["", "/", "/path"])
@pytest.mark.parametrize("beginning", ["", "www.", "http://", "//"])
def test_no_text_is_hidden_because_it_looks_like_an_address(beginning: str, end: str) -> None:
    text = beginning + "a." * 300 + "com" + end
    assert text in markdown.render(f"before {text} after")
