"""Pages escape what they show, and ask for nothing that a view does not give."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django import forms
from django.conf import settings
from django.template import engines
from django.template.backends.jinja2 import Jinja2
from django.test import RequestFactory
from django.utils.safestring import SafeString
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import DictLoader, Environment, UndefinedError
from markupsafe import Markup, escape

from portal.web import desk_prefix, jinja
from tenants.tenancy.template_context import MAIN_PAGES
from tickets.desk import page_texts
from tickets.desk.ticket_presenters import ShownChoice

TEMPLATES = Path(settings.BASE_DIR) / "templates"
HOSTILE = "<b a='1' b=\"2\">&"
# Where a template shows HTML as it is, or text that is no HTML.
NOT_ESCAPED = {
    "tenants/recovery_codes.html": "the text of a file to download, in an address",
    **dict.fromkeys(
        (
            *("tenants/mail/closing.txt", "tenants/mail/deletion.txt", "tenants/mail/impersonation.txt"),
            *("tenants/mail/invitation.txt", "tenants/mail/password_reset.txt"),
            *("tickets/mail/export_ready.txt", "webhooks/mail/paused.txt", "notices/mail/digest.txt"),
            "reports/mail/report.txt",
        ),
        "a mail of plain text",
    ),
}


@pytest.fixture(scope="module")
def pages() -> Environment:
    return next(engine.env for engine in engines.all() if isinstance(engine, Jinja2))


@given(st.one_of(st.text(), st.integers(), st.none(), st.text().map(Markup), st.text().map(SafeString)))
def test_values_are_escaped_as_markupsafe_does(value: Any) -> None:
    assert str(jinja.escaped(value)) == str(escape(value))


@pytest.mark.parametrize(
    "source",
    [
        *("{{ x }}", "{{ {'y': x}.y }}", "{% with z=x %}{{ z|default('') }}{% endwith %}"),
        *("{{ _('%(x)s', x=x) }}", "{% set z = _('%(x)s', x=x) %}{{ z }}", "{{ _('%(x)s', x=_('%(x)s', x=x)) }}"),
    ],
)
def test_each_template_escapes(pages: Environment, source: str) -> None:
    assert pages.from_string(source).render({"x": HOSTILE}) == str(escape(HOSTILE))


@pytest.mark.parametrize("source", ["{{ x }}", "{% if x %}{% endif %}", "{{ y.x }}", "{% if y.x %}{% endif %}"])
def test_a_value_that_a_view_forgot_is_an_error(pages: Environment, source: str) -> None:
    with pytest.raises(UndefinedError):
        pages.from_string(source).render({"y": {}})


def test_a_key_of_a_dict_comes_before_its_method(pages: Environment) -> None:
    assert pages.from_string("{{ x.items }} {{ y.items()|length }}").render({"x": {"items": 3}, "y": {}}) == "3 0"


def test_what_is_included_has_names_of_its_own() -> None:
    templates = {"page": "{% set x = 1 %}{% include 'part' %}{{ x }}", "part": "{% set x = x + 1 %}{{ x }}{{ y }}"}
    assert (
        jinja.PageEnvironment(loader=DictLoader(templates), auto_reload=False).get_template("page").render({"y": 3})
        == "231"
    )


def test_few_templates_show_what_is_not_escaped() -> None:
    found = re.compile(r"\|\s*safe\b|autoescape (?!true)|Markup")
    showing = {str(p.relative_to(TEMPLATES)) for p in TEMPLATES.rglob("*.*") if found.search(p.read_text())}
    assert showing == set(NOT_ESCAPED)


def test_each_template_that_another_one_names_exists() -> None:
    named = re.compile(r"""\{%-?\s*(?:extends|include|import|from)\s+["']([^"']+)["']""")
    found = {
        (str(p.relative_to(TEMPLATES)), name)
        for p in TEMPLATES.rglob("*.html")
        for name in named.findall(p.read_text())
    }
    assert [(by, name) for by, name in sorted(found) if not (TEMPLATES / name).exists()] == []


TEXT = st.sampled_from(["", "Ann", HOSTILE, "Ann Bo"])
CHOICE = st.builds(ShownChoice, TEXT, TEXT, TEXT, TEXT, st.booleans())
ARGUMENTS: dict[str, st.SearchStrategy[tuple[Any, ...]]] = {
    "person": st.tuples(TEXT, st.booleans(), st.booleans()),
    "priority": st.tuples(CHOICE),
    "choice": st.tuples(CHOICE),
    "status": st.tuples(TEXT, TEXT),
    "row_tags": st.tuples(st.lists(TEXT, max_size=5).map(tuple), TEXT),
    "row_count": st.tuples(st.integers(1, 3)),
    "row_begins": st.tuples(st.integers(1, 3), TEXT, st.none() | CHOICE, CHOICE),
    "row_people": st.tuples(TEXT, TEXT, st.booleans(), st.integers(0, 2)),
    "entry_begins": st.tuples(TEXT, TEXT, st.booleans(), st.booleans()),
    "entry_actions": st.tuples(TEXT, st.booleans(), TEXT),
    "shortcuts": st.tuples(st.just(MAIN_PAGES), TEXT, st.booleans()),
}


@given(st.data())
def test_what_is_kept_of_a_piece_is_what_its_arguments_make(pages: Environment, data: st.DataObject) -> None:
    kept = {name: path for library in (jinja, page_texts) for path, names in library.PIECES.items() for name in names}
    assert kept.keys() == ARGUMENTS.keys()
    name = data.draw(st.sampled_from(sorted(kept)))
    arguments = data.draw(ARGUMENTS[name])
    made = getattr(pages.get_template(kept[name]).make_module(), name)(*arguments)
    assert pages.filters[name](*arguments) == made
    assert HOSTILE not in made


@pytest.mark.parametrize("written", ["#7", "&#35;7", "&num;7", "- [ ] &num;7"])
def test_the_number_of_a_ticket_leads_to_it_however_its_sign_is_written(written: str) -> None:
    with desk_prefix.addresses_of("acme"):
        assert '<a href="/acme/tickets/7/">#7</a>' in page_texts.ticket_text(written)


def test_a_kept_form_has_its_own_mark_whatever_other_forms_are_on_the_page(pages: Environment) -> None:
    template = pages.from_string("{{ form_guard() }}|{{ form_guard('kept') }}|{{ form_guard() }}")
    first, kept, last = template.render({"request": RequestFactory().get("/")}).split("|")
    assert ('value="kept"' in first, 'value="kept"' in kept, 'value="kept"' in last) == (False, True, False)


@pytest.mark.parametrize(("sent", "shown"), [({"name": "x"}, False), ({}, True)])
def test_a_field_lists_its_errors_and_nothing_where_there_are_none(sent: dict[str, str], shown: bool) -> None:
    class Named(forms.Form):
        name = forms.CharField()

    errors = str(Named(sent)["name"].errors)
    assert ("This field is required." in errors, errors == "") == (shown, not shown)
