"""Pieces of pages are kept by their arguments: what is safe HTML in one place is a person's text in another."""

from __future__ import annotations

from django.template import engines
from markupsafe import Markup

from portal.web import locales


def test_a_kept_piece_of_safe_html_does_not_stand_for_the_same_text() -> None:
    person = engines["jinja2"].env.filters["person"]
    assert "<b>Bob</b>" in person(Markup("<b>Bob</b>"), False)
    assert "<b>Bob</b>" not in person("<b>Bob</b>", False)
    assert "&lt;b&gt;Bob&lt;/b&gt;" in person("<b>Bob</b>", False)


def test_a_piece_of_constants_is_in_the_language_of_each_page() -> None:
    template = engines["jinja2"].env.from_string('{{ ""|person(false) }}')

    def shown(language: str) -> str:
        with locales.in_language(language):
            return str(template.render({}))

    assert ("Unassigned" in shown("en"), "Unassigned" in shown("de"), shown("en") == shown("en")) == (True, False, True)
