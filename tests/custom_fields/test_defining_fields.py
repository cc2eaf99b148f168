"""Admins define fields and kinds of tickets; what they define is asked, shown and checked at once."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from typing import Any

import pytest

from portal.dynamo import meter
from portal.errors import Invalid
from tenants.audit_trail import browsing
from tests.desk.test_cost import IDENTITY, VIEWS, spent
from tests.support import defined
from tests.support.world import Browser, World
from tickets.custom_fields import defining
from tickets.custom_fields.definitions import CHOICES_LIMIT, COLUMNS_LIMIT, FIELDS_LIMIT, REQUIRED, SHOWN
from tickets.desk import changing, creating
from tickets.desk.changing import Wishes
from tickets.ticket.custom_values import FieldType

PAGE = "/desk/settings/fields/"


def text_of(page: Any) -> str:
    return html.unescape(re.sub(r"<[^>]+>", " ", page.content.decode()))


def inputs(page: Any) -> dict[str, str]:
    tags = re.findall(r"<(?:input|select|textarea)\b[^>]*>", page.content.decode())
    told = ({name: html.unescape(value) for name, value in re.findall(r'(\w+)="([^"]*)"', tag)} for tag in tags)
    found = {tag["name"]: tag.get("value", "") for tag in told if "name" in tag}
    for name, options in re.findall(r'(?s)<select\b[^>]*name="([^"]*)"[^>]*>(.*?)</select>', page.content.decode()):
        chosen = re.search(r'<option value="([^"]*)"[^>]* selected', options) or re.search(r'value="([^"]*)"', options)
        found[name] = html.unescape(chosen[1]) if chosen else ""
    return found


def send(browser: Browser, path: str, **data: Any) -> Any:
    return browser.send(path, data)


def new_field(browser: Browser, **data: Any) -> Any:
    """Send the form of a new field as it is, with these values."""
    form = {name: value for name, value in inputs(browser.get(f"{PAGE}new/")).items() if not name.startswith("is_")}
    uses = {name: str(SHOWN) for name in form if name.startswith("in_")}
    return browser.send(f"{PAGE}new/", {**form, **uses, "type": "text", **data})


def test_an_admin_adds_a_field_and_the_next_ticket_asks_it(world: World) -> None:
    browser = world.browser("alice", "acme")
    assert "No custom fields yet" in text_of(browser.get(PAGE))
    assert new_field(browser, name="Order number", help="As on the invoice").status_code == 302
    form = browser.get("/tickets/new/")
    assert "Order number" in text_of(form)
    assert "As on the invoice" in text_of(form)
    made = browser.send("/tickets/new/", {**inputs(form), "title": "Lost", "text_1": "  A-1042 "})
    assert made.status_code == 302
    assert "A-1042" in text_of(browser.get("/tickets/1/"))


def test_marks_of_html_in_what_admins_define_are_text_on_each_page(world: World) -> None:
    mark = "<img src=x>"
    defined.add_kind(world, mark)
    forms = {"": SHOWN, "kind_1": SHOWN}
    for kind in (FieldType.TEXT, FieldType.CHECKBOX, FieldType.CHOICE):
        defined.add_field(world, f"{kind} {mark}", kind, help=mark, choices=[mark], forms=forms, is_column=True)
    values = {"text_1": mark, "checkbox_2": "yes", "choice_3": mark}
    creating.create(world.context("bob", "acme"), title="x", kind="kind_1", custom=values)
    browser = world.browser("alice", "acme")
    own = (PAGE, f"{PAGE}new/", f"{PAGE}choice_3/", f"{PAGE}kinds/kind_1/")
    for path in (
        *own,
        "/tickets/new/",
        "/tickets/",
        "/tickets/1/",
        "/tickets/1/edit/",
        "/tickets/bulk/edit/?status=open",
    ):
        page = browser.get(path).content.decode()
        assert mark not in page, path
        assert html.escape(mark) in page, path


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"name": "   "}, "This field is required"),
        ({"name": "…"}, "A field needs a name with letters or digits."),
        ({"name": "x" * 41}, "40 are allowed"),
        ({"name": "Priority"}, "is a field that every ticket has"),
        ({"name": "order NUMBER"}, "Another field has this name."),
        ({"name": "Product", "type": "choice", "choices": " \n"}, "Enter at least one choice"),
        ({"name": "Product", "type": "choice", "choices": "\n".join(map(str, range(CHOICES_LIMIT + 1)))}, "at most 50"),
        ({"name": "Product", "help": "x" * 201}, "200 are allowed"),
    ],
)
def test_a_definition_that_cannot_be_is_refused_at_its_field_and_keeps_what_was_typed(
    world: World, data: dict[str, str], says: str
) -> None:
    defined.add_field(world, "Order number")
    page = new_field(world.browser("alice", "acme"), **data)
    assert page.status_code == 422
    assert says in text_of(page)
    typed = data.get("choices") or data["name"]
    assert typed.strip() in html.unescape(page.content.decode())
    assert len(defined.defined(world).fields) == 1


def test_a_desk_uses_thirty_fields_and_shows_five_as_columns(world: World) -> None:
    for number in range(FIELDS_LIMIT):
        defined.add_field(world, f"Field {number}", is_column=number < COLUMNS_LIMIT)
    with pytest.raises(Invalid, match="at most 30 fields"):
        defined.add_field(world, "One more")
    with pytest.raises(Invalid, match="columns"):
        defined.change_field(world, "text_30", "Field 29", is_column=True)
    defined.change_field(world, "text_30", "Field 29", is_archived=True)
    assert defined.add_field(world, "One more") == "text_31"


def test_of_two_admins_at_once_the_second_keeps_what_they_typed_and_can_save_it(world: World) -> None:
    browser = world.browser("alice", "acme")
    form = {name: value for name, value in inputs(browser.get(f"{PAGE}new/")).items() if not name.startswith("is_")}
    defined.add_field(world, "Faster")
    sent = {**form, "type": "text", "name": "Slower", "in_": "1"}
    page = browser.send(f"{PAGE}new/", sent)
    assert page.status_code == 409  # type: ignore[attr-defined]
    assert "Somebody else has just changed these settings" in text_of(page)
    again = inputs(page)
    assert again["name"] == "Slower"
    browser.send(f"{PAGE}new/", {**sent, "version": again["version"]})
    assert [one.name for one in defined.defined(world).fields] == ["Faster", "Slower"]


def test_fields_go_up_and_down(world: World) -> None:
    for name in ("First", "Second"):
        defined.add_field(world, name)
    browser = world.browser("alice", "acme")
    version = inputs(browser.get(PAGE))["version"]
    send(browser, f"{PAGE}move/", id="text_2", by_places="-1", version=version)
    assert [one.name for one in defined.defined(world).in_use] == ["Second", "First"]


def test_each_change_is_told_by_the_audit_trail(world: World) -> None:
    field_id = defined.add_field(world, "Product", FieldType.CHOICE, choices=["Desk"])
    defined.change_field(world, field_id, "Product", choices=["Desk", "Lamp"])
    row = browsing.page(world.context("alice", "acme").repository, only=browsing.TrailFilter()).rows[0]
    assert row.action == "tenant.setup_changed"
    assert "Desk, Lamp" in str(row.after)
    assert "Lamp" not in str(row.before)


def test_the_audit_trail_tells_of_forms_what_changes_in_them_and_nothing_else(world: World) -> None:
    fields = [defined.add_field(world, name) for name in ("Order", "Place", "Phone")]
    defined.add_kind(world, "Problem", asks=fields[:2])
    defined.change_field(world, fields[2], "Phone", forms={"": REQUIRED, "kind_1": SHOWN})
    rows = browsing.page(world.context("alice", "acme").repository, only=browsing.TrailFilter()).rows
    told = [{name: (before, after) for name, before, after in row.changes if "form" in name} for row in rows[:2]]
    assert told == [
        {"forms of Phone": ("no kind: asked; Problem: not asked", "no kind: required; Problem: asked")},
        {"form of Problem": ("Order: not asked; Place: not asked", "Order: asked; Place: asked")},
    ]


def test_definitions_of_one_desk_are_on_no_page_of_another(world: World) -> None:
    defined.add_field(world, "Secret of Acme", is_column=True)
    defined.add_kind(world, "Kind of Acme")
    browser = world.browser("alice", "globex")
    for page in ("/tickets/", "/tickets/new/", PAGE, "/search/"):
        text = browser.get(page).content.decode()
        assert "Secret of Acme" not in text, page
        assert "Kind of Acme" not in text, page
    with pytest.raises(Invalid, match="no such field"):
        creating.create(world.context("alice", "globex"), title="x", custom={"text_1": "x"})


# --- values ---


@pytest.mark.parametrize(
    ("kind", "typed", "stored"),
    [
        (FieldType.NUMBER, " 012.50 ", "12.5"),
        (FieldType.NUMBER, "-0", "0"),
        (FieldType.NUMBER, "\u22123", "-3"),
        (FieldType.TEXT, "a\u200b  b", "a b"),
        (FieldType.DATE, "2026-02-28", "2026-02-28"),
        (FieldType.CHECKBOX, "on", "yes"),
    ],
)
def test_a_value_is_stored_in_one_form(world: World, kind: FieldType, typed: str, stored: str) -> None:
    field_id = defined.add_field(world, "Own", kind)
    bob = world.context("bob", "acme")
    number = creating.create(bob, title="x", custom={field_id: typed})
    assert changing.read(bob, number).custom == {field_id: stored}


@pytest.mark.parametrize(
    ("kind", "typed"),
    [
        (FieldType.NUMBER, "twelve"),
        (FieldType.NUMBER, "1" * 16),
        (FieldType.NUMBER, "1e5"),
        (FieldType.NUMBER, "1.2.3"),
        (FieldType.DATE, "2026-02-30"),
        (FieldType.DATE, "tomorrow"),
        (FieldType.TEXT, "x" * 201),
        (FieldType.CHOICE, "Chair"),
    ],
)
def test_a_value_that_cannot_be_gets_a_sentence_at_its_field(world: World, kind: FieldType, typed: str) -> None:
    field_id = defined.add_field(world, "Own", kind, choices=["Desk"])
    browser = world.browser("bob")
    page = browser.send("/tickets/new/", {**inputs(browser.get("/tickets/new/")), "title": "Kept", field_id: typed})
    assert page.status_code == 422  # type: ignore[attr-defined]
    assert page.context["form"].errors.keys() == {field_id}  # type: ignore[attr-defined]
    assert 'value="Kept"' in page.content.decode()  # type: ignore[attr-defined]


def test_values_are_written_and_shown_as_in_the_language_of_the_person(world: World) -> None:
    german = {"HTTP_ACCEPT_LANGUAGE": "de"}
    weight = defined.add_field(world, "Weight", FieldType.NUMBER)
    paid = defined.add_field(world, "Paid", FieldType.CHECKBOX)
    browser = world.browser("bob")
    form = {**inputs(browser.get("/tickets/new/")), "title": "Box", weight: "12,5", paid: "yes"}
    assert browser.send("/tickets/new/", form).status_code == 422  # type: ignore[attr-defined]
    assert browser.send("/tickets/new/", form, **german).status_code == 302  # type: ignore[attr-defined]
    assert changing.read(world.context("bob", "acme"), 1).custom == {weight: "12.5", paid: "yes"}
    page = text_of(browser.get("/tickets/1/", **german))
    assert ("12,5" in page, "Ja" in page, "12.5" in page) == (True, True, False)


def test_a_choice_that_was_removed_is_shown_and_stays_when_something_else_is_edited(world: World) -> None:
    product = defined.add_field(world, "Product", FieldType.CHOICE, choices=["Desk", "Lamp"])
    note = defined.add_field(world, "Remark")
    bob = world.context("bob", "acme")
    number = creating.create(bob, title="Old", custom={product: "Lamp", note: "as ever"})
    defined.change_field(world, product, "Product", choices=["Desk"], forms={"": SHOWN})
    defined.change_field(world, note, "Remark", is_archived=True)
    browser = world.browser("bob")
    page = text_of(browser.get(f"/tickets/{number}/"))
    assert "Lamp (no longer offered)" in re.sub(r"\s+", " ", page)
    assert "as ever" in page
    form = browser.get(f"/tickets/{number}/edit/")
    assert "as ever" in text_of(form)
    sent = {**inputs(form), "title": "New", product: "Lamp"}
    assert browser.send(f"/tickets/{number}/edit/", sent).status_code == 302  # type: ignore[attr-defined]
    assert changing.read(bob, number).custom == {product: "Lamp", note: "as ever"}
    fresh = world.context("bob", "acme")
    with pytest.raises(Invalid, match="does not offer"):
        changing.change(fresh, creating.create(fresh, title="x"), Wishes(custom={product: "Lamp"}))


def test_two_who_change_different_fields_both_win(world: World) -> None:
    one, other = (defined.add_field(world, name) for name in ("One", "Other"))
    bob = world.context("bob", "acme")
    number = creating.create(bob, title="x")
    changing.change(bob, number, Wishes(custom={one: "1"}), version=1)
    changing.change(bob, number, Wishes(custom={other: "2"}), version=1)
    assert changing.read(bob, number).custom == {one: "1", other: "2"}


# --- kinds ---


def test_a_kind_has_its_own_form_and_template(world: World) -> None:
    machine = defined.add_field(world, "Machine", forms={})
    problem = defined.add_kind(world, "Problem", template="What happened?", asks=[machine])
    defined.add_kind(world, "Question", is_default=True)
    browser = world.browser("bob")
    plain = browser.get("/tickets/new/")
    assert "Machine" not in text_of(plain)
    assert '<button class="button without-js" type="submit" name="switch" value="kind"' in plain.content.decode()
    typed = {**inputs(plain), "title": "Typed already", "kind": problem, "switch": "kind"}
    switched = browser.send("/tickets/new/", typed)
    page = switched.content.decode()  # type: ignore[attr-defined]
    assert "Machine" in text_of(switched)
    assert "What happened?" in page
    assert 'value="Typed already"' in page
    done = {**inputs(switched), "description": "It burns.", "kind": problem, machine: "M 7"}
    assert browser.send("/tickets/new/", done).status_code == 302  # type: ignore[attr-defined]
    summary = changing.read(world.context("bob", "acme"), 1)
    assert (summary.kind, summary.custom) == (problem, {machine: "M 7"})


def test_switching_there_and_back_keeps_what_was_typed_for_each_kind(world: World) -> None:
    machine = defined.add_field(world, "Machine", forms={})
    problem, question = defined.add_kind(world, "Problem", asks=[machine]), defined.add_kind(world, "Question")
    browser = world.browser("bob")
    form = inputs(browser.get("/tickets/new/"))
    for kind in (problem, question, problem):
        value = {machine: "M 7"} if machine in form else {}
        form = inputs(browser.send("/tickets/new/", {**form, **value, "kind": kind, "switch": "kind"}))
    assert form[machine] == "M 7"


@pytest.mark.parametrize("path", ["/tickets/new/", "/tickets/1/edit/"])
def test_a_value_for_a_field_that_was_archived_meanwhile_is_told_before_it_is_left_out(world: World, path: str) -> None:
    machine, place = defined.add_field(world, "Machine"), defined.add_field(world, "Place")
    browser = world.browser("bob")
    browser.send("/tickets/new/", {**inputs(browser.get("/tickets/new/")), "title": "x", place: "Here"})
    form = {**inputs(browser.get(path)), "title": "Broken", machine: "M 7"}
    defined.change_field(world, machine, "Machine", is_archived=True)
    defined.change_field(world, place, "Place", is_archived=True)
    told = browser.send(path, form)
    assert told.status_code == 422  # type: ignore[attr-defined]
    assert "no longer asks “Machine”, where you entered “M 7”" in text_of(told)
    assert "“Place”, where" not in text_of(told)
    assert browser.send(path, inputs(told)).status_code == 302  # type: ignore[attr-defined]


def test_a_required_field_is_asked_for_by_the_form_of_its_kind_alone(world: World) -> None:
    defined.add_kind(world, "Problem")
    machine = defined.add_field(world, "Machine", forms={"kind_1": REQUIRED})
    browser = world.browser("bob")
    form = {**inputs(browser.get("/tickets/new/")), "title": "x"}
    page = browser.send("/tickets/new/", {**form, "kind": "kind_1"})
    assert page.status_code == 422  # type: ignore[attr-defined]
    assert "Enter a value for “Machine”." in text_of(page)
    assert machine in inputs(page)
    assert browser.send("/tickets/new/", {**form, "kind": ""}).status_code == 302  # type: ignore[attr-defined]


def test_a_ticket_of_which_nobody_says_the_kind_has_the_default_one(world: World) -> None:
    kind = defined.add_kind(world, "Question", is_default=True)
    bob = world.context("bob", "acme")
    assert changing.read(bob, creating.create(bob, title="x")).kind == kind
    tenant, by = defined.admin_of(world, "acme")
    version = defined.defined(world).version
    defining.change_kind(tenant, kind, defining.KindWishes("Question", is_archived=True), version=version, by=by)
    fresh = world.context("bob", "acme")
    assert changing.read(fresh, creating.create(fresh, title="x")).kind == ""
    assert "Question" in text_of(world.browser("bob").get("/tickets/1/"))


# --- costs ---


def test_definitions_cost_queue_and_ticket_no_trip_and_nothing_beside_the_setup(world: World) -> None:
    ids = defined.one_of_each_type(world)
    bob = world.context("bob", "acme")
    number = creating.create(bob, title="x", custom={ids[0]: "here"})
    browser = world.browser("bob")
    for page, views in (
        ("/tickets/", VIEWS),
        (f"/tickets/{number}/", 0),
        ("/tickets/?text_1=here&number_2=1..2", VIEWS),
    ):
        bill = spent(browser, page)
        assert bill.trips == 2, page
        assert bill.calls[0].read_units == IDENTITY + views
    assert [call.operation for call in spent(browser, "/tickets/new/").calls] == ["BatchGetItem", "Query"]


def test_a_ticket_without_a_page_reads_the_setup_beside_the_number(world: World) -> None:
    bob = replace(world.context("bob", "acme"), items={})
    with meter.measure() as bill:
        creating.create(bob, title="x")
    assert sorted(call.operation for call in bill.calls) == ["GetItem", "TransactWriteItems", "UpdateItem"]
    assert bill.trips == 2
