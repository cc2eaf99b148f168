"""Pieces of pages are kept by their arguments: what is safe HTML in one place is a person's text in another."""

from __future__ import annotations

from django.template import engines
from markupsafe import Markup


def test_a_kept_piece_of_safe_html_does_not_stand_for_the_same_text() -> None:
    person = engines["jinja2"].env.filters["person"]
    assert "<b>Bob</b>" in person(Markup("<b>Bob</b>"), False)
    assert "<b>Bob</b>" not in person("<b>Bob</b>", False)
    assert "&lt;b&gt;Bob&lt;/b&gt;" in person("<b>Bob</b>", False)
