"""Agents keep answers that they write again and again; admins keep those that all agents share."""

from __future__ import annotations

from typing import Any

import pytest

from portal.dynamo import meter
from portal.errors import Invalid, Overtaken
from tenants.audit_trail import browsing
from tenants.audit_trail.recording import SYSTEM
from tenants.tenancy.context import TenantContext
from tests.support.world import Browser, World
from tickets.desk import changing
from tickets.desk.changing import Wishes
from tickets.ready_answers import answer_changes, answer_reading, filling, inserting
from tickets.ready_answers.answer_reading import Given

PAGE = "/acme/tickets/answers/"


@pytest.fixture
def owner(world: World) -> Browser:
    return world.browser("alice", "acme")


@pytest.fixture
def bob(world: World) -> Browser:
    return world.browser("bob", "acme")


def text_of(answer: Any) -> str:
    return answer.content.decode()  # type: ignore[no-any-return]


def sent(title: str, shortcut: str, body: str = "Hello {requester}", **more: object) -> dict[str, object]:
    return {"title": title, "shortcut": shortcut, "body": body, "status": "", "tags": "", "resolver": "", **more}


def kept(
    tenant: TenantContext, title: str, shortcut: str, body: str = "Hello", *, shared: bool = True, **how: Any
) -> str:
    made = answer_changes.create(tenant, Given(title, shortcut, body, **how), shared=shared, by=SYSTEM)
    return str(made.answer_id)


def titles(tenant: TenantContext, typed: str) -> list[str]:
    return [row.title for row in answer_reading.find(tenant, typed)]


# --- the pages ---


def test_an_agent_keeps_an_answer_that_nobody_else_sees(bob: Browser, owner: Browser, world: World) -> None:
    assert "No answers yet" in text_of(bob.get(f"{PAGE}?whose=mine"))
    assert bob.send(f"{PAGE}new/", sent("How to refund", ";Refund", whose="shared"))["Location"] == f"{PAGE}?whose=mine"
    assert "How to refund" in text_of(bob.get(f"{PAGE}?whose=mine"))
    assert ";refund" in text_of(bob.get(f"{PAGE}?q=ref"))
    (row,) = answer_reading.find(world.context("bob", "acme"), "refund")
    for page in (PAGE, f"{PAGE}?whose=mine", f"{PAGE}?q=refund"):
        assert "How to refund" not in text_of(owner.get(page))
    assert owner.get(f"{PAGE}{row.answer_id}/").status_code == 404
    assert owner.send(f"{PAGE}{row.answer_id}/delete/").status_code == 404


def test_an_admin_shares_an_answer_that_agents_read_and_cannot_change(
    owner: Browser, bob: Browser, world: World
) -> None:
    owner.send(
        f"{PAGE}new/", sent("Opening hours", "hours", whose="shared", status="resolved", tags="Info", resolver="me")
    )
    (row,) = answer_reading.find(world.context("bob", "acme"), "open")
    page = text_of(bob.get(f"{PAGE}{row.answer_id}/"))
    assert "Set the status to Resolved" in page
    assert "Add the tag info" in page
    assert "Assign to me" in page
    assert '<form class="form"' not in page
    assert bob.send(f"{PAGE}{row.answer_id}/", sent("Mine now", "mine")).status_code == 403
    assert bob.send(f"{PAGE}{row.answer_id}/delete/").status_code == 403
    assert answer_reading.read(world.context("bob", "acme"), row.answer_id).title == "Opening hours"


def test_an_answer_is_changed_found_by_its_new_words_and_deleted(owner: Browser, alice: TenantContext) -> None:
    answer = kept(alice, "Opening hours", "hours")
    page = f"{PAGE}{answer}/"
    assert owner.send(page, sent("Closing time", "closing", version=1)).status_code == 302
    assert titles(alice, "hours") == titles(alice, "opening") == []
    assert titles(alice, "clos") == ["Closing time"]
    assert "Delete “" in text_of(owner.get(f"{page}delete/"))
    owner.send(f"{page}delete/")
    assert titles(alice, "clos") == []
    assert owner.get(page).status_code == 404
    assert kept(alice, "Again", "closing")  # the shortcut is free again


def test_two_who_save_at_the_same_time_lose_nothing(owner: Browser, alice: TenantContext) -> None:
    answer = kept(alice, "Opening hours", "hours")
    answer_changes.change(alice, answer, Given("Hours of the shop", "hours", "9 to 5"), version=1, by=SYSTEM)
    refused = owner.send(f"{PAGE}{answer}/", sent("My hours", "hours", "8 to 4", version=1))
    assert refused.status_code == 409
    assert "Somebody else has saved this answer meanwhile." in text_of(refused)
    assert "8 to 4" in text_of(refused)
    with pytest.raises(Overtaken):
        answer_changes.change(alice, answer, Given("Mine", "hours", "8 to 4"), version=1, by=SYSTEM)


REFUSED = [
    ({"title": ""}, "Enter a title."),
    ({"shortcut": " ; "}, "Enter a shortcut."),
    ({"shortcut": "hours"}, "Another answer has this shortcut already."),
    ({"body": ""}, "Write something first."),
    ({"body": "Dear {name}"}, "There is no placeholder {name}."),
    ({"tags": ",".join(map(str, range(13)))}, "A ticket can have at most 12 tags"),
    ({"title": "x" * 101}, "This text has 101 characters; 100 are allowed."),
]


@pytest.mark.parametrize(("wrong", "sentence"), REFUSED)
def test_a_form_that_is_refused_says_why_and_keeps_what_was_typed(
    owner: Browser, alice: TenantContext, wrong: dict[str, object], sentence: str
) -> None:
    kept(alice, "Opening hours", "hours")
    refused = owner.send(
        f"{PAGE}new/", {**sent("A title", "word", "A text", whose="shared"), "tags": "tag-typed", **wrong}
    )
    assert refused.status_code == (409 if "already" in sentence else 422)
    assert sentence in text_of(refused)
    assert "tag-typed" in text_of(refused) or "tags" in wrong
    assert len(answer_reading.find(alice, "")) == 1


def test_a_preview_stores_nothing(owner: Browser, alice: TenantContext) -> None:
    page = owner.send(f"{PAGE}new/", sent("A title", "word", "A **text**", whose="mine", then="preview"))
    assert "<strong>text</strong>" in text_of(page)
    assert answer_reading.find(alice, "") == []


def test_the_audit_trail_tells_of_shared_answers_and_not_of_anybodys_own(alice: TenantContext, world: World) -> None:
    kept(alice, "Private", "private", shared=False)
    answer = kept(alice, "Opening hours", "hours", "9 to 5")
    answer_changes.change(alice, answer, Given("Opening hours", "open", "9 to 5"), by=SYSTEM)
    answer_changes.delete(alice, answer, by=SYSTEM)
    told = [(row.action, row.entity) for row in rows_of(alice)]
    assert told == [(f"ready_answer.{verb}", "Opening hours") for verb in ("created", "changed", "deleted")]
    assert rows_of(alice)[1].after == {"shortcut": "open"}
    assert "9 to 5" not in "".join(str(row.after) + str(row.before) for row in rows_of(alice))


def rows_of(tenant: TenantContext) -> list[Any]:
    rows = browsing.everything(tenant.repository, only=browsing.filter_of())
    return sorted((row for row in rows if row.entity_type == "ready_answer"), key=lambda row: row.at)


# --- finding ---


def test_answers_are_found_by_the_beginnings_of_their_words_and_a_shortcut_comes_first(alice: TenantContext) -> None:
    kept(alice, "Wo ist Ihr Büro?", "office")
    kept(alice, "Refund for a late parcel", "late")
    kept(alice, "We answer late", "refund", shared=False)
    assert titles(alice, "buro") == ["Wo ist Ihr Büro?"]
    assert titles(alice, "refund") == ["We answer late", "Refund for a late parcel"]
    assert titles(alice, "late ref") == ["Refund for a late parcel", "We answer late"]
    assert titles(alice, "late office") == titles(alice, "efund") == titles(alice, "!?") == []
    assert len(titles(alice, "")) == 3


def test_finding_costs_the_same_however_many_answers_there_are(alice: TenantContext) -> None:
    def cost() -> tuple[int, int, float]:
        with meter.measure() as spent:
            answer_reading.find(alice, "parcel")
        return spent.trips, len(spent.calls), spent.read_units

    for number in range(50):
        kept(alice, f"Parcel {number}", f"parcel{number}")
    before = cost()
    for number in range(50, 90):
        kept(alice, f"Parcel {number}", f"parcel{number}")
    assert cost() == before
    assert before[:2] == (1, 2)


def test_a_long_list_has_pages(owner: Browser, alice: TenantContext) -> None:
    for number in range(answer_reading.PAGE + 1):
        kept(alice, f"Answer {number}", f"a{number:03}")
    first = owner.get(PAGE)
    assert "Answer 49" in text_of(first)
    assert "Answer 50<" not in text_of(first)
    (cursor,) = [text.split('"')[0] for text in text_of(first).split("?after=")[1:]]
    assert "Answer 50<" in text_of(owner.get(f"{PAGE}?after={cursor}"))
    assert owner.get(f"{PAGE}?whose=mine&after={cursor}").status_code == 400


# --- placeholders ---


PLACED = [
    ("Hello {requester}", "Hello Alice Example"),
    ("Hello {requester_first_name}", "Hello Alice"),
    ("{ticket}: {title}", "#1: Ticket 1 \\*now\\* \\[here\\](x)"),
    ("{me} of {desk}", "Alice Example of Acme"),
    ("A brace: \\{me}", "A brace: \\{me}"),
    ("{title|nothing}", "Ticket 1 \\*now\\* \\[here\\](x)"),
]


@pytest.mark.parametrize(("text", "filled"), PLACED)
def test_placeholders_become_the_tickets_values_without_markup(world: World, text: str, filled: str) -> None:
    alice = world.context("alice", "acme")
    world.tickets("acme", 1)
    changing.change(alice, 1, Wishes(title="Ticket 1 *now* [here](x)"))
    answer = kept(alice, "An answer", "answer", text)
    assert inserting.filled(alice, 1, answer).text == filled


FIRST_NAMES = [("Bob Example", "Bob"), ("Example, Bob", "Bob"), ("Dr. Bob Example", "Bob"), ("Bob", "Bob"), ("", "")]


@pytest.mark.parametrize(("name", "first"), FIRST_NAMES)
def test_people_are_greeted_by_their_first_name(name: str, first: str) -> None:
    assert filling.first_name(name) == first


def test_an_unknown_placeholder_is_refused_and_names_those_that_there_are() -> None:
    with pytest.raises(Invalid, match=r"\{requester_first_name\}, \{ticket\}"):
        filling.check("Dear {customer|you}")
