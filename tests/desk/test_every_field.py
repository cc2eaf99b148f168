"""A ticket with another than the usual value in every declared field goes through all that handles tickets, and comes
out equal. A field that one of these places leaves out fails here."""

from __future__ import annotations

import copy
import csv
import html
import io
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from api.v1.bulk_routes import BulkEdit
from api.v1.ticket_schemas import (
    TicketInFull,
    TicketInList,
    TicketListQuery,
    TicketSearchQuery,
    TicketToChange,
    TicketToCreate,
)
from portal import clock
from portal.dynamo.store import RawItems
from portal.schema import holdings, row_forms
from tenants.audit_trail.recording import Actor
from tenants.tenancy import context, tenant_directory
from tenants.tenancy.context import TenantContext
from tests.moving.moves import BRIDGE, move
from tests.support import defined, outbox
from tests.support.api_client import api_client
from tests.support.commands import run
from tests.support.operators import Operator, make_operator
from tests.support.searching import index_all
from tests.support.world import Browser, World
from tickets.data import import_rows
from tickets.data.archive_reader import RawRow
from tickets.data.import_rows import ExportedTicket
from tickets.desk import changing, creating, lists, timelines
from tickets.desk.changing import EditConflict, TicketState, Wishes
from tickets.desk.filters import TicketFilter
from tickets.moving import copy_check
from tickets.ticket import stored
from tickets.ticket.fields import (
    ASSIGNEE,
    CHANGED,
    CHANNEL,
    CHOICES,
    CUSTOM,
    DEFINED,
    DESCRIPTION,
    EDITED,
    FIELDS,
    FILTERS,
    FIXED,
    GROUP,
    KIND,
    LATER,
    MOVES,
    OPTIONAL,
    PLAIN,
    STATUS,
    TAGS,
    Channel,
    ChoiceField,
    CustomFields,
    DefinedField,
    PersonField,
    Status,
    TagsField,
    TicketField,
)
from tickets.ticket.stored import TICKETS, SummaryItem
from tickets.time_machine import past_tickets, restoring
from tickets.time_machine.past_tickets import PastTicket

NAMES = [field.name for field in FIELDS]
LISTED = [field for field in FIELDS if field.is_listed]
Values = dict[str, Any]


# By the turn of a sample; the desks define these fields in this order.
OWN = (
    {"text_1": "A first text", "number_2": "12.5", "choice_3": "Red one", "date_4": "2026-11-20", "checkbox_5": "yes"},
    {"text_1": "A second text", "number_2": "-7", "choice_3": "Blue one", "date_4": "2025-01-02", "checkbox_5": "yes"},
)


@pytest.fixture
def alice(world: World) -> TenantContext:
    for where in ("acme", "globex"):
        assert defined.one_of_each_type(world, where) == [*OWN[0]]
    return world.context("alice", "acme")


def sample(world: World, field: TicketField, turn: int) -> Any:
    """A value of this field that no new ticket has by itself, another one for each turn (0 or 1)."""
    if isinstance(field, ChoiceField):
        return [word.value for word in field.words if word != field.initial][turn]
    if isinstance(field, TagsField):
        return [f"{field.name}-{turn}", "vip"]
    if isinstance(field, DefinedField):
        return f"{field.name}_{turn + 1}"
    if isinstance(field, CustomFields):
        return dict(OWN[turn])
    if isinstance(field, PersonField):
        return world.users[("bob", "alice")[turn]].id
    return f"Sample {field.name}, {'first' if turn == 0 else 'second'}"


def samples(world: World, turn: int) -> Values:
    return {field.name: sample(world, field, turn) for field in FIELDS}


def fixed(world: World, turn: int) -> Values:
    return {field.name: sample(world, field, turn) for field in FIXED}


def initial() -> Values:
    return {field.name: field.initial for field in FIXED}


def changes(world: World, turn: int) -> Values:
    """Samples of all fields that can be changed."""
    return {name: value for name, value in samples(world, turn).items() if name not in fixed(world, turn)}


def read(tenant: TenantContext, number: int) -> Values:
    return dict(PastTicket.of(*timelines.head(tenant, number)).values)


def made(world: World, tenant: TenantContext) -> int:
    """A ticket with the first sample of each field, beside one that has none."""
    creating.create(tenant, title="Plain")
    values = samples(world, 0)
    number = creating.create(tenant, **{name: value for name, value in values.items() if name != STATUS.name})
    changing.change(tenant, number, Wishes(status=values[STATUS.name]))
    assert read(tenant, number) == values
    return number


def typed(world: World, turn: int, *fields: TicketField) -> dict[str, Any]:
    """What a form sends of these fields: of a box that is not ticked nothing."""
    values = {field.name: sample(world, field, turn) for field in fields}
    own = values.pop(CUSTOM.name, {})
    return {field.name: field.typed(values[field.name]) for field in fields if field.name in values} | own


def inputs_of(fields: Iterable[TicketField]) -> set[str]:
    """The names of the inputs that a form has for these fields."""
    names = {field.name for field in fields}
    return (names - {CUSTOM.name}) | (OWN[0].keys() if CUSTOM.name in names else set())


def inputs(page: Any) -> dict[str, str]:
    """The names of the inputs on a page, with their values where these are in the tag."""
    tags = re.findall(r"<(?:input|select|textarea)\b[^>]*>", page.content.decode())
    told = ({name: html.unescape(value) for name, value in re.findall(r'(\w+)="([^"]*)"', tag)} for tag in tags)
    return {tag["name"]: tag.get("value", "") for tag in told if "name" in tag}


def row_of(browser: Browser, number: int) -> str:
    """The text of a ticket's row in the queue."""
    page = browser.get("/tickets/?status=any").content.decode()
    (row,) = [row for row in re.findall(r'<tr class="row".*?</tr>', page, re.DOTALL) if f"/tickets/{number}/" in row]
    return html.unescape(re.sub(r"<[^>]+>", " ", row))


def _third(field: TicketField) -> Any:
    third = {"title": "Third", "description": "Third", "tags": ["third"], "custom": {"text_1": "Third"}}
    return third.get(field.name, field.initial)


def shown(world: World, field: TicketField, turn: int) -> str:
    value = sample(world, field, turn)
    if field in DEFINED:
        return (("Question", "Problem"), ("Billing", "Second level"))[DEFINED.index(field)][turn]
    if field is CUSTOM:
        return ", ".join(text.capitalize() if text == "yes" else text for text in value.values())
    return {user.id: user.name for user in world.users.values()}[value] if field is ASSIGNEE else field.shown(value)


def test_a_form_creates_and_edits_every_field_and_each_one_makes_it_another_form(world: World, alice: Any) -> None:
    browser = world.browser("alice", "acme")
    form = inputs(browser.get("/tickets/new/"))
    assert form.keys() >= inputs_of((*EDITED, ASSIGNEE))
    data: dict[str, object] = {**form, **typed(world, 0, *EDITED), ASSIGNEE.name: world.users["bob"].id}
    for _ in range(2):
        assert browser.send("/tickets/new/", data).status_code == 302  # type: ignore[attr-defined]
    assert read(alice, 1) == samples(world, 0) | {STATUS.name: Status.OPEN} | initial()
    for field in (*EDITED, ASSIGNEE):
        other = sample(world, field, 1)
        sent = {field.name: other} if field is ASSIGNEE else typed(world, 1, field)
        browser.send("/tickets/new/", data | sent)
        newest = lists.page(alice, status=Status.OPEN).rows[0].number
        assert read(alice, newest)[field.name] == other, f"a form that differs in {field.name} was taken for the same"
    page = browser.get("/tickets/1/edit/")
    assert inputs(page).keys() >= inputs_of(EDITED)
    assert {name: page.context["form"][name].value() for name in typed(world, 0, *EDITED)} == typed(world, 0, *EDITED)
    version = inputs(page)["version"]
    browser.send("/tickets/1/edit/", {**typed(world, 1, *EDITED), "version": version, "request_id": form["request_id"]})
    kept = {STATUS.name: Status.OPEN, ASSIGNEE.name: world.users["bob"].id} | initial()
    assert read(alice, 1) == samples(world, 1) | kept


def test_the_page_of_a_ticket_shows_every_field_and_changes_those_with_a_few_values(world: World, alice: Any) -> None:
    number = made(world, alice)
    browser = world.browser("alice", "acme")
    page = browser.get(f"/tickets/{number}/")
    article = page.content.decode().split('id="ticket"')[1]
    for field in FIELDS:
        texts = shown(world, field, 0).split(", ") if field is not DESCRIPTION else [sample(world, field, 0)]
        # Without the forms: not all who read a ticket may change it.
        assert all(text in html.unescape(re.sub(r"(?s)<form.*?</form>", "", article)) for text in texts), field.name
    for choice in CHANGED:
        if choice is not STATUS:
            assert re.search(rf'<option value="{sample(world, choice, 0)}" selected', article), choice.name
    for field in (*CHANGED, GROUP):
        wish = sample(world, field, 1)
        version = str(timelines.head(alice, number)[0].version)
        assert f'name="{field.name}"' in article
        browser.send(f"/tickets/{number}/change/", {"version": version, field.name: wish})
        assert read(alice, number)[field.name] == wish
    for name in OPTIONAL - fixed(world, 0).keys() - {KIND.name}:
        version = str(timelines.head(alice, number)[0].version)
        browser.send(f"/tickets/{number}/change/", {"version": version, name: ""})
        assert read(alice, number)[name] == ""


def test_nobody_of_the_desk_changes_what_is_given_when_a_ticket_is_made_or_by_its_requester(
    world: World, alice: Any
) -> None:
    number = made(world, alice)
    browser = world.browser("alice", "acme")
    for name, value in fixed(world, 1).items():
        sent = {"version": "3", name: value}
        assert browser.send(f"/tickets/{number}/change/", sent).status_code < 500  # type: ignore[attr-defined]
        with pytest.raises(TypeError):
            changing.change(alice, number, Wishes(**{name: value}))
    assert read(alice, number) == samples(world, 0)
    by_key = api_client(world).send("/tickets", {"title": "By a program"}, Idempotency_Key="once").json()["number"]
    assert read(alice, by_key)[CHANNEL.name] == Channel.API


def test_a_ticket_of_before_a_field_has_its_initial_value(world: World, alice: Any, tmp_path: Path) -> None:
    number, path = made(world, alice), tmp_path / "acme.jsonl"
    for name, value in LATER.items():
        summary = SummaryItem(stored.ticket(alice.tenant_id, number), stored.SUMMARY)
        alice.repository.update(summary, [getattr(SummaryItem, name).remove()])
        assert name not in summary_of(alice, number)
        assert read(alice, number)[name] == value
        only = TicketFilter.parse({name: value, "tag": "vip"})
        assert [one.number for one in lists.page(alice, status=list(Status), only=only).rows] == [number]
        assert run("export_tickets", "--tenant", "acme", "--output", path).status == 0
        assert [json.loads(line)[name] or "" for line in path.read_text().splitlines()] == [value, value]
        assert (api_client(world).ask(f"/tickets/{number}").json()[name] or "") == value


def test_lists_show_every_listed_field_and_filter_by_those_with_a_few_values(world: World, alice: Any) -> None:
    number = made(world, alice)
    browser = world.browser("alice", "acme")
    row = row_of(browser, number)
    for field in LISTED:
        assert all(text in row for text in shown(world, field, 0).split(", ")), field.name
    queue = browser.get("/tickets/?status=any")
    heads, form = re.findall(r'role="columnheader"[^>]*>(.*?)</th>', queue.content.decode()), inputs(queue)
    assert {choice.label for choice in CHOICES} <= set(map(plain, heads))
    index_all()
    help_text = browser.get("/search/").content.decode()
    for name, choice in FILTERS.items():
        value = sample(world, choice, 0)
        only = TicketFilter.parse({name: value})
        assert [one.number for one in lists.page(alice, status=list(Status), only=only).rows] == [number]
        assert name in form
        assert (
            f"{choice.label.lower()}: {value}" in browser.get(f"/tickets/?status=any&{name}={value}").content.decode()
        )
        for typed_text, count in ((f"sample {name}:{value}", 1), (f"sample {name}:{sample(world, choice, 1)}", 0)):
            found = browser.get("/search/", {"q": typed_text})
            assert found.content.decode().count('class="row-link"') == count, typed_text
        assert f"<code>{name}:" in help_text
    found = browser.get("/search/", {"q": f"status:{sample(world, STATUS, 0)} sample"}).content.decode()
    assert_table_shows(found, world, [field for field in LISTED if field not in (*DEFINED, CUSTOM)])


def test_every_field_with_a_few_values_is_a_column_that_people_can_hide(world: World, alice: Any) -> None:
    made(world, alice)
    browser = world.browser("alice", "acme")
    page = browser.get("/tickets/?status=any").content.decode()
    browser.send("/tickets/display/", {"density": "compact"})
    hidden = browser.get("/tickets/?status=any").content.decode()
    styles = Path(settings.BASE_DIR, "static/css/queue.css").read_text()
    for name in FILTERS:
        assert f'name="column" value="{name}"' in page, f"the menu does not offer the column {name}"
        assert {f"col-{name}", f"cell-{name}"} <= set(re.findall(r"[\w-]+", page)), name
        rule = f".without-{name} :is(.col-{name}, .cell-{name})"
        assert f"cell-{name}" not in hidden or rule in styles, f"the column {name} is shown when hidden"


def assert_table_shows(page: str, world: World, fields: list[TicketField]) -> None:
    """The table has a head for each field with a few values, as many cells as heads, and the first samples."""
    (head,) = re.findall(r"(?s)<thead.*?</thead>", page)
    heads = [plain(cell) for cell in head.split("</th>")[:-1]]
    assert {field.label for field in fields if field in CHOICES} <= set(heads)
    (row,) = [one for one in re.findall(r"(?s)<tr.*?</tr>", page.split("<tbody")[1]) if "Sample title" in plain(one)]
    assert len(re.findall(r"</t[hd]>", row)) == len(heads)
    for field in fields:
        assert all(text in plain(row) for text in shown(world, field, 0).split(", ")), field.name


def plain(page: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", page)).strip()


def test_two_who_change_the_same_field_are_told_and_two_who_change_others_are_not(world: World, alice: Any) -> None:
    for field in (*EDITED, ASSIGNEE):
        number = made(world, alice)
        seen = int(timelines.head(alice, number)[0].version)
        changing.change(alice, number, Wishes(**{field.name: sample(world, field, 1)}), version=seen)
        with pytest.raises(EditConflict):
            changing.change(alice, number, Wishes(**{field.name: _third(field)}), version=seen)
        changing.change(alice, number, Wishes(status=MOVES[Status.PENDING][1]), version=seen)
    number = creating.create(alice, title="Plain")
    browser = world.browser("alice", "acme")
    left = {field.name: field.typed(field.initial) for field in EDITED if field is not CUSTOM}  # as it was
    left |= dict.fromkeys(OWN[0], "")
    changing.edit(alice, number, version=1, **{field.name: sample(world, field, 0) for field in EDITED})
    sent = {"version": "1", "request_id": "0" * 32, "title": "Mine"}
    form = browser.send(f"/tickets/{number}/edit/", left | sent).context["form"]  # type: ignore[attr-defined]
    for name, text in typed(world, 0, *EDITED[1:]).items():
        assert form[name].value() in (text, text == "yes"), "what others changed would be undone"
    page: Any = browser.send(f"/tickets/{number}/edit/", typed(world, 1, *EDITED) | sent)
    text = html.unescape(page.content.decode())
    for field in EDITED:
        theirs, mine = (shown(world, field, turn).split(", ") for turn in (0, 1))
        assert all(one in text for one in theirs), f"of {field.name} the stored version is not shown"
        mine = ["Mine"] if field is EDITED[0] else mine
        assert all(one in text for one in mine), f"of {field.name} one's own version is not shown"


def test_events_tell_every_field(world: World) -> None:
    defined.one_of_each_type(world)
    outbox.subscribe(world, "acme")
    alice = world.context("alice", "acme")
    number = made(world, alice)
    changing.edit(alice, number, version=3, **{field.name: sample(world, field, 1) for field in EDITED})
    events = [event for event in outbox.told() if event["data"]["number"] == number]
    (opened,) = [event["data"] for event in events if event["type"] == "ticket.created"]
    assert {name: opened[name] for name in NAMES if name != ASSIGNEE.name} == {
        name: value for name, value in (samples(world, 0) | {STATUS.name: "open"}).items() if name != ASSIGNEE.name
    }
    (changed,) = [event["data"]["changes"] for event in events if event["type"] == "ticket.changed"]
    own = {f"custom.{one}": text for one, text in OWN[1].items() if text != OWN[0][one]}
    assert {change["field"]: change["after"] for change in changed} == own | {
        field.name: sample(world, field, 1) for field in EDITED if field is not CUSTOM
    }
    assert {event["type"] for event in events} >= {"ticket.status_changed", "ticket.assigned"}


def test_an_export_takes_every_field_along_and_an_import_brings_it_back(
    world: World, alice: Any, tmp_path: Path
) -> None:
    number, path = made(world, alice), tmp_path / "acme.jsonl"
    assert run("export_tickets", "--tenant", "acme", "--output", path).status == 0
    assert run("import_archive", "--tenant", "globex", path).status == 0
    there = world.context("alice", "globex")
    expected = samples(world, 0)
    found = read(there, number)
    assert found | {ASSIGNEE.name: "", TAGS.name: []} == expected | {ASSIGNEE.name: "", TAGS.name: []}
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for name, value in LATER.items():  # an export of before the field was there
        before = read_line(lines[-1] | {name: None})
        assert before.told.values[name] == value
        assert before.digest == read_line({n: v for n, v in lines[-1].items() if n != name}).digest


def test_a_tenants_file_takes_every_field_along_and_is_checked(world: World, alice: Any, tmp_path: Path) -> None:
    number, path = made(world, alice), tmp_path / "acme.zip"
    assert run("export_tenant", "acme", path).status == 0
    assert run("import_tenant", path, "--as", "copy", "--new-id").status == 0
    copied = context.enter(world.users["alice"], tenant_directory.find("copy").tenant_id)
    assert copied is not None
    assert read(copied, number) == samples(world, 0)
    (forms,) = [holding.forms() for holding in holdings.holdings() if holding.name == "tickets" and holding.forms]
    raw = summary_of(alice, number)
    assert row_forms.fault(forms, TICKETS, alice.tenant_id, raw) == ""
    for field in LISTED:
        wrong = {"S": "no such word"} if isinstance(field, ChoiceField | DefinedField) else {"N": "1"}
        wrong = {"M": {"no such field": {"S": "x"}}} if field is CUSTOM else wrong
        assert field.name in row_forms.fault(forms, TICKETS, alice.tenant_id, {**raw, field.name: wrong})


def test_a_move_takes_every_field_along_and_its_check_misses_none(world: World, alice: Any) -> None:
    number = made(world, alice)
    left = collection_of(alice, number)
    move(world, BRIDGE)
    assert read(world.context("alice", "acme"), number) == samples(world, 0)
    for field in FIELDS:
        present = copy.deepcopy(left)
        held_by = stored.DETAIL if field is DESCRIPTION else stored.SUMMARY
        summary, holder = (next(raw for raw in present if raw["sk"]["S"] == sort) for sort in (stored.SUMMARY, held_by))
        summary["comment_count"] = {"N": "9"}  # commented on since, which changes no field
        assert copy_check.is_later(left, present)
        holder[field.name] = {"S": "lost"}
        assert not copy_check.is_later(left, present), field.name


def test_the_past_has_every_field_and_gives_it_back(world: World, alice: Any) -> None:
    number, then = made(world, alice), clock.stamp()
    changing.change(alice, number, Wishes(**changes(world, 1)))
    found = past_tickets.read(alice, number, then)
    assert found.then is not None
    assert dict(found.then.values) == samples(world, 0)
    assert found.differing == changes(world, 1).keys()
    page = world.browser("alice", "acme").get(f"/tickets/{number}/past/", {"at": then})
    text = html.unescape(page.content.decode())
    assert all(one in text for field in FIELDS for one in shown(world, field, 0).split(", "))
    assert all(one in text for field in FIELDS if not field.is_fixed for one in shown(world, field, 1).split(", "))
    past = world.browser("alice", "acme").get("/tickets/past/", {"at": then}).content.decode()
    assert_table_shows(past, world, [field for field in LISTED if field not in (TAGS, *DEFINED, CUSTOM)])
    state = TicketState.of(timelines.head(alice, number)[0])
    assert [one.is_whole for one in restoring.restore(alice, [state], then, by=Actor(alice.user_id, "Alice"))] == [True]
    assert read(alice, number) == samples(world, 0)


def test_a_table_of_tickets_has_every_listed_field(world: World, alice: Any) -> None:
    made(world, alice)
    answer: Any = world.browser("alice", "acme").send("/tickets/export/", {"status": "any"})
    rows = list(csv.DictReader(io.StringIO(b"".join(answer.streaming_content).decode("utf-8-sig"))))
    assert [rows[0][f"Own {one.partition('_')[0]}"] for one in OWN[0]] == [*OWN[0].values()]
    assert (rows[0]["kind"], rows[0]["group"]) == ("Question", "Billing")
    for field in (field for field in LISTED if field not in (*DEFINED, CUSTOM)):
        column = "assignee" if field is ASSIGNEE else field.name
        assert rows[0][column] == ("Bob Example" if field is ASSIGNEE else field.text(sample(world, field, 0)))


def test_the_api_takes_and_gives_every_field(world: World, alice: Any) -> None:
    api, names = api_client(world), {name: f"{name}_id" if name == ASSIGNEE.name else name for name in NAMES}
    assert TicketToCreate.model_fields.keys() >= {names[name] for name in changes(world, 0) if name != STATUS.name}
    assert TicketToChange.model_fields.keys() >= {names[name] for name in changes(world, 0)}
    assert TicketInFull.model_fields.keys() >= set(NAMES)
    assert TicketInList.model_fields.keys() >= {field.name for field in LISTED}
    for field in (*CHANGED, GROUP, ASSIGNEE):
        asked = {field.name: sample(world, field, 1)}
        assert BulkEdit.model_validate(asked).edit().values == asked
        if field.name in {*OPTIONAL, ASSIGNEE.name}:
            assert BulkEdit.model_validate({field.name: "none"}).edit().values == {field.name: ""}
    for query in (TicketListQuery, TicketSearchQuery):
        assert query.model_fields.keys() >= FILTERS.keys()
    first, second = ({names[name]: value for name, value in changes(world, turn).items()} for turn in (0, 1))
    body = {name: value for name, value in first.items() if name != STATUS.name}
    number = api.send("/tickets", body, Idempotency_Key="once").json()["number"]
    given = {field.name: read(alice, number)[field.name] for field in FIXED}
    assert read(alice, number) == samples(world, 0) | {STATUS.name: Status.OPEN} | given
    for name, value in fixed(world, 0).items():
        assert api.send("/tickets", body | {name: value}, Idempotency_Key="other").status_code == 422
        assert api.call("PATCH", f"/tickets/{number}", {name: value}).status_code == 422
    answer = api.call("PATCH", f"/tickets/{number}", second)
    assert answer.status_code == 200, answer.content
    assert read(alice, number) == samples(world, 1) | given
    (listed,) = api.ask("/tickets?status=any").json()["data"]
    for told, fields in ((api.ask(f"/tickets/{number}").json(), FIELDS), (listed, LISTED)):
        found = told | {ASSIGNEE.name: told[ASSIGNEE.name]["id"]} | {name: told[name] or "" for name in OPTIONAL}
        assert {field.name: found[field.name] for field in fields} == {
            field.name: (samples(world, 1) | given)[field.name] for field in fields
        }
    for name, choice in FILTERS.items():
        there = (samples(world, 1) | given)[name]
        for word in choice.words:
            found = api.ask(f"/tickets?status=any&{name}={word}").json()["data"]
            assert len(found) == (word == there), (name, word)
    assert api.call("PATCH", f"/tickets/{number}", {"custom": {"text_1": None}}).json()["custom"] == {
        name: text for name, text in OWN[1].items() if name != "text_1"
    }
    for name in OPTIONAL - fixed(world, 0).keys():
        assert api.call("PATCH", f"/tickets/{number}", {name: None}).json()[name] is None


def test_the_document_of_a_person_and_the_admin_have_every_field(world: World, alice: Any, tmp_path: Path) -> None:
    number, path = made(world, alice), tmp_path / "person.json"
    assert run("export_person", "acme", "alice@example.com", path).status == 0
    told: Values = {}
    for one in json.loads(path.read_text())["tickets"]:
        for item in one["items"] if one["number"] == number else ():
            told = item | told if item["of"] == "ticket" else told
    for field in (field for field in LISTED if field is not ASSIGNEE):
        assert told[field.name] == sample(world, field, 0), field.name
    make_operator()
    root = Operator.signed_in().open("acme")
    page = root.says(f"/admin/tickets/ticket/{alice.tenant_id}_2F{number}/change/")
    rows = root.says(f"/admin/tickets/ticket/?tenant_id={alice.tenant_id}&status__exact={Status.PENDING}")
    for field in (field for field in LISTED if field not in (TAGS, CUSTOM)):
        text = sample(world, field, 0) if field in DEFINED else shown(world, field, 0)
        assert text in page, field.name
        assert text in rows or field in (*PLAIN, *DEFINED), field.name  # the list has no width for these


def summary_of(tenant: TenantContext, number: int) -> dict[str, Any]:
    return next(raw for raw in collection_of(tenant, number) if raw["sk"]["S"] == stored.SUMMARY)


def collection_of(tenant: TenantContext, number: int) -> list[dict[str, Any]]:
    return [*tenant.repository.query_all(RawItems(TICKETS), stored.ticket, number)]


def read_line(line: dict[str, Any]) -> ExportedTicket:
    return import_rows.read_exported(RawRow("ticket", 1, line), clock.now())
