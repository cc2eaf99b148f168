"""Two tabs with the same form: the second to save sees what the first has stored, and can replace it."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest

from tenants.api_keys import key_changes
from tenants.api_keys.key_changes import KeyChoice
from tenants.api_keys.scopes import Scope
from tenants.audit_trail.recording import SYSTEM
from tenants.membership import members
from tenants.tenancy.context import Role
from tests.support.endpoints import SETTINGS, endpoint
from tests.support.world import Browser, World
from tickets.articles import article_changes, sections
from tickets.articles.articles import Text
from tickets.ready_answers import answer_changes
from tickets.ready_answers.answer_reading import Given
from tickets.requesters import requester_changes
from tickets.requesters.requester_changes import Details
from tickets.saved_views import saved_views


class _Forms(HTMLParser):
    """Reads the forms of a page: the address and the values that a browser sends."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, list[str]]]] = []
        self._text: list[str] | None = None
        self._select = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        at = dict(attrs)
        if tag == "form":
            self.found.append((at.get("action") or "", {}))
        if not self.found:
            return
        name, value = at.get("name") or "", at.get("value") or ""
        values = self.found[-1][1]
        if tag == "input" and name and (at.get("type") not in ("checkbox", "radio") or "checked" in at):
            values.setdefault(name, []).append(value)
        elif tag == "textarea":
            self._text = values.setdefault(name, [""])
        elif tag == "select":
            self._select = name
        elif tag == "option" and self._select and ("selected" in at or self._select not in values):
            values[self._select] = [value]

    def handle_endtag(self, tag: str) -> None:
        self._text = None if tag == "textarea" else self._text
        self._select = "" if tag == "select" else self._select

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text[0] += data.lstrip("\n")


class Tab:
    """A page with a form that was opened, and what is changed in it."""

    def __init__(self, browser: Browser, path: str, name: str) -> None:
        self.browser, self.path, self.name = browser, path, name
        self.shows(browser.get(path))

    def shows(self, answer: Any) -> None:
        found = _Forms(answer.content.decode()).found
        self.action, self.values = next(form for form in found if self.name in form[1])

    def save(self, **values: str) -> Any:
        answer = self.browser.post(self.action or self.path, self.values | {name: [v] for name, v in values.items()})
        if answer.status_code != 302:
            self.shows(answer)
        return answer


def _answer(world: World) -> str:
    given = Given("Refund", "refund", "Money.", "", (), "")
    made = answer_changes.create(world.context("alice", "acme"), given, shared=True, by=SYSTEM)
    return f"/tickets/answers/{made.answer_id}/"


def _article(world: World) -> str:
    made = article_changes.create(world.context("alice", "acme"), Text("Paper", "Load it.", "", True), by=SYSTEM)
    return f"/acme/articles/{int(made.number)}/edit/"


def _section(world: World) -> str:
    return f"/acme/articles/sections/{sections.add(world.context('alice', 'acme'), 'Printers', by=SYSTEM).id}/"


def _requester(world: World) -> str:
    details = Details(name="Rita", organisation="", notes="", language="", addresses=("rita@x.example",))
    made = requester_changes.create(world.context("alice", "acme"), details, by=SYSTEM, request_id="0" * 32)
    return f"/requesters/{made.id}/edit/"


def _view(world: World) -> str:
    made = saved_views.save(world.context("alice", "acme"), "Fires", "status=open", is_desks=True, by=SYSTEM)
    return f"/tickets/views/{made.id}/"


def _key(world: World) -> str:
    choice = KeyChoice(name="Sync", scopes=frozenset(Scope))
    key, _text = key_changes.create(world.context("alice", "acme"), choice=choice, request_id="1" * 32, by=SYSTEM)
    return f"/desk/settings/api-keys/{key.api_key_prefix}/edit/"


def _endpoint(world: World) -> str:
    return f"{SETTINGS}{endpoint(world.context('alice', 'acme'), types=('ticket.created',))[0].endpoint_id}/edit/"


_FORMS: list[tuple[str | Callable[[World], str], str, str, str]] = [
    (_answer, "title", "Money back", "Return"),
    (_article, "body", "Load paper.", "Load A4."),
    (_section, "name", "Plotters", "Copiers"),
    (_requester, "notes", "Calls often.", "Writes often."),
    (_view, "name", "Flames", "Smoke"),
    (_key, "name", "Synchronise", "Sync all"),
    (_endpoint, "description", "For sales", "For support"),
    ("/account/profile/", "name", "Alice A", "Alice B"),
    ("/account/profile/", "date_form", "dots", "iso"),
    ("/account/profile/", "signature", "Yours", "Kindly"),
    ("/desk/settings/", "name", "Acme Works", "Acme Industries"),
    ("/desk/settings/", "ticket_priority", "high", "low"),
    ("/desk/settings/mail/", "acknowledgement", "We answer.", "We write."),
    ("/desk/settings/mail/", "domain_sender", "desk@a.example", "desk@b.example"),
    ("/desk/settings/public/", "next_steps", "We ring.", "We write."),
    ("/desk/settings/public/", "looks_name", "Acme Help", "Acme Care"),
]


@pytest.mark.parametrize(("page", "name", "first", "second"), _FORMS)
def test_the_second_tab_says_what_the_first_has_stored_and_replaces_it_when_saved_again(
    world: World, page: str | Callable[[World], str], name: str, first: str, second: str
) -> None:
    browser, path = world.browser("alice", "acme"), page if isinstance(page, str) else page(world)
    tabs = Tab(browser, path, name), Tab(browser, path, name)
    assert tabs[0].save(**{name: first}).status_code == 302
    refused = tabs[1].save(**{name: second})
    assert refused.status_code == 409
    shown = html.unescape(re.sub(r"<[^>]+>", " ", refused.content.decode()))
    assert shown.count("Stored now:") == 2, "in the summary and at the one field that differs"
    assert tabs[1].values[name] == [second], "what was typed is kept"
    assert tabs[1].save(**{name: second}).status_code == 302
    assert Tab(browser, path, name).values[name] == [second]


@pytest.mark.parametrize("page", ["groups/new/", "fields/new/", "fields/kinds/new/"])
def test_two_tabs_that_add_something_ask_the_second_once_more_and_compare_it_with_nothing(
    world: World, page: str
) -> None:
    browser = world.browser("alice", "acme")
    tabs = [Tab(browser, f"/desk/settings/{page}", "name") for _ in range(2)]
    assert tabs[0].save(name="Printers").status_code == 302
    refused = tabs[1].save(name="Scanners")
    assert refused.status_code == 409
    assert "Stored now:" not in refused.content.decode(), "nothing is stored of what is new"
    assert tabs[1].save(name="Scanners").status_code == 302


@pytest.mark.parametrize(
    ("page", "first", "second"),
    [
        (_section, {"name": "Plotters"}, {"about": "Large ones."}),
        ("/account/profile/", {"name": "Alice A"}, {"first_weekday": "6"}),
        ("/desk/settings/", {"ticket_priority": "high"}, {"reply_hold": "0"}),
    ],
)
def test_a_form_without_a_version_changes_only_what_was_changed_on_its_page(
    world: World, page: str | Callable[[World], str], first: dict[str, str], second: dict[str, str]
) -> None:
    browser, path = world.browser("alice", "acme"), page if isinstance(page, str) else page(world)
    tabs = [Tab(browser, path, next(iter(values))) for values in (first, second)]
    saved = [tab.save(**values).status_code for tab, values in zip(tabs, (first, second), strict=True)]
    assert saved == [302, 302]
    now = Tab(browser, path, next(iter(first))).values
    assert {name: now[name] for name in first | second} == {name: [value] for name, value in (first | second).items()}


def test_a_role_that_somebody_has_just_given_is_replaced_only_by_who_has_seen_it(world: World) -> None:
    alice, bob = world.browser("alice", "acme"), world.users["bob"].id

    def give(role: Role, seen: Role) -> str:
        answer = alice.send(f"/desk/members/{bob}/role/", {"role": role.value, "seen": seen.value}, follow=True)
        assert f'<input type="hidden" name="seen" value="{role_now().value}">' in answer.content.decode()
        return " ".join(str(message) for message in answer.context["messages"])

    def role_now() -> Role:
        found = members.member(world.context("alice", "acme").repository, bob)
        assert found is not None
        return found.role

    give(Role.ADMIN, seen=Role.AGENT)
    assert "Somebody else has just made Bob Example an admin." in give(Role.VIEWER, seen=Role.AGENT)
    assert role_now() is Role.ADMIN
    give(Role.VIEWER, seen=Role.ADMIN)
    assert role_now() is Role.VIEWER
