"""Markdown becomes HTML that cannot hurt, at a cost with a bound, and is cached within a number of bytes."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from typing import Any

import pytest

from portal.web import markdown
from portal.web.markdown import TextCache


def test_html_that_somebody_types_is_shown_as_it_was_typed() -> None:
    assert markdown.render('Write <b>bold</b> & "so"') == '<p>Write &lt;b&gt;bold&lt;/b&gt; &amp; "so"</p>\n'


def test_what_the_renderer_lets_through_is_cleaned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(markdown._markdown.options, "html", True)
    typed = (
        '<script>a()</script><p style="x" onclick="b()">c</p><a href="javascript:d()">e</a><iframe src="/"></iframe>'
    )
    html = markdown.render(f"{typed}\n")
    assert "c</p>" in html, "HTML did get past the renderer"
    assert not re.search(r"script|style|onclick|iframe|a\(\)", html)


def test_a_link_tells_the_other_site_nothing_and_search_engines_to_stay_away() -> None:
    assert 'rel="nofollow noopener noreferrer"' in markdown.render("[a](https://example.com/)")


def test_headings_stand_below_those_of_the_page() -> None:
    assert markdown.render("# One\n\n## Two") == "<h3>One</h3>\n<h4>Two</h4>\n"


def test_an_image_is_a_link_whose_text_is_shown_as_it_was_typed() -> None:
    html = markdown.render("![<i>x</i>](https://example.com/y.png)")
    assert ">&lt;i&gt;x&lt;/i&gt;</a>" in html
    assert 'href="https://example.com/y.png"' in html


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


def test_long_texts_push_out_what_was_not_asked_for_longest() -> None:
    page = "x" * 1000
    cache = TextCache(4 * (sys.getsizeof("a") + sys.getsizeof(page)))
    for key in "abcd":
        cache.put(key, page)
    cache.get("a")
    cache.put("e", page)
    assert [key for key in "abcde" if cache.get(key)] == ["a", "c", "d", "e"]
    assert cache.size <= cache.limit


def test_a_text_beyond_the_bound_is_not_kept() -> None:
    cache = TextCache(1000)
    cache.put("a", "x" * 1000)
    assert (cache.get("a"), cache.size) == (None, 0)


def test_the_same_text_counts_once() -> None:
    cache = TextCache(10_000)
    for _ in range(3):
        cache.put("a", "x")
    assert cache.size == sys.getsizeof("a") + sys.getsizeof("x")
