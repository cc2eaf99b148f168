"""Markdown becomes HTML that cannot hurt, by two layers of which each one alone would do."""

from __future__ import annotations

import re

import pytest

from portal.web import markdown


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
