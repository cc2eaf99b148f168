"""Pages, letters and mails are complete in each language."""

from __future__ import annotations

import html
import json
import os
import re

from portal.web import jinja, locales
from tests.support import translations

_PLACES = re.compile(r"%\(\w+\)s|%s|%d|\{\w+\}")


def test_every_text_is_translated() -> None:
    if os.environ.get("WRITE_DOCS"):
        translations.write()
    known = translations.stored()
    wanted = {message.id for message in translations.marked() if message.id}
    assert wanted == {message.id for message in known if message.id}
    for message in filter(lambda one: one.id, known):
        strings = message.string if isinstance(message.string, tuple) else (message.string,)
        assert all(strings), message.id
        assert not message.fuzzy, message.id


def test_a_translation_has_the_values_of_its_text() -> None:
    for message in translations.stored():
        ids, strings = ((one if isinstance(one, tuple) else (one,)) for one in (message.id, message.string))
        wanted = {place for text in ids for place in _PLACES.findall(text)}
        assert {place for text in strings for place in _PLACES.findall(text)} == wanted, message.id


def test_the_compiled_catalogue_is_that_of_the_translations() -> None:
    assert translations.COMPILED.read_bytes() == translations.compiled(translations.stored())


def test_no_sentence_that_pages_show_is_left_unmarked() -> None:
    speaking = translations.speaking_modules()
    assert {path: left for path in speaking if (left := [*translations.unmarked_sentences(path)])} == {}


def test_no_text_of_a_page_is_left_unmarked() -> None:
    assert {str(p): words for p in translations.translated_templates() if (words := [*translations.unmarked(p)])} == {}


def test_a_template_marks_literals_alone() -> None:
    """A marked text is safe HTML: no value may be one."""
    given = {str(path): re.findall(r"\b_\(\s*(?![\"'\s])[^)]*", path.read_text()) for path in translations.templates()}
    assert {path: found for path, found in given.items() if found} == {}


def test_a_page_has_the_texts_of_its_scripts_in_its_language() -> None:
    with locales.in_language("de"):
        given = json.loads(html.unescape(re.sub(r"<[^>]*>", "", jinja.script_words())))
    assert {one for one, _ in jinja.marked()} == set(given)
    assert given["Show"] == "Anzeigen"


def test_a_script_marks_literals_alone() -> None:
    """Others would not be in the catalogue."""
    scripts = {path.name: path.read_text() for path in jinja.SCRIPTS.glob("*.js") if path.name != "words.js"}
    calls = {name: (len(re.findall(r"\bn?gettext\(", text)), text) for name, text in scripts.items()}
    marked = {name: len(jinja.MARKED.findall(text)) for name, (_, text) in calls.items()}
    assert {name: count for name, (count, _) in calls.items()} == marked
