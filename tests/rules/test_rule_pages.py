"""The pages of rules: a form that loses nothing, one rule with its versions, and its rehearsal."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tenants.audit_trail.recording import Actor
from tenants.tenancy.context import TenantContext
from tests.desk.test_cost import IDENTITY, spent
from tests.rules.test_rehearsal import URGENT, ask, work
from tests.rules.test_running_rules import carry
from tests.support.world import World
from tickets.custom_fields import defining
from tickets.custom_fields.defining import KindWishes
from tickets.desk import changing, creating
from tickets.rules import definition, rule_changes
from tickets.rules.stored import RuleItem
from tickets.ticket.fields import Priority

RULES = "/desk/settings/rules/"
TYPED = {"name": "Urgent ones", "event": "created", "if_status": "any", "if_priority": "urgent", "add_tags": "wave"}


@pytest.fixture
def urgent(alice: TenantContext) -> RuleItem:
    return rule_changes.create(alice, "Urgent ones", URGENT, by=Actor(alice.user_id))


def text(response: Any) -> str:
    return str(response.content.decode())


def only(tenant: TenantContext) -> tuple[RuleItem, dict[str, Any]]:
    (item,) = rule_changes.listed(tenant)
    return item, definition.shown(rule_changes.of_item(item))


def test_a_rule_is_written_listed_changed_switched_and_deleted_without_javascript(
    world: World, alice: TenantContext
) -> None:
    browser = world.browser("alice", "acme")
    assert "No rules yet" in text(browser.get(RULES))
    page = browser.send(f"{RULES}new/", TYPED, follow=True)
    item, shown = only(alice)
    assert (item.name, item.is_on) == ("Urgent ones", False)
    assert shown["if"] == {"priority": "urgent"}
    assert shown["then"]["add_tags"] == ["wave"]
    assert "It is off: rehearse it, then switch it on." in text(page)
    for said in ("A ticket is created", "priority: urgent", "Add tags: wave"):
        assert said in text(page)
        assert said in text(browser.get(RULES))
    own = f"{RULES}{item.rule_id}/"
    browser.send(f"{own}switch/", {"on": "yes", "revision": "1"})
    assert only(alice)[0].is_on
    form = text(browser.get(f"{own}edit/"))
    assert 'value="wave"' in form
    assert '<option value="urgent" selected>' in form
    saved = browser.send(f"{own}edit/", TYPED | {"revision": "2", "add_tags": "other"}, follow=True)
    assert only(alice)[1]["then"]["add_tags"] == ["other"]
    assert "Version 2" in text(saved)
    assert 'id="version-1"' in text(saved)
    browser.send(f"{own}switch/", {"on": "no", "revision": "3"})
    assert not only(alice)[0].is_on
    browser.send(f"{own}delete/")
    assert rule_changes.listed(alice) == []


@pytest.mark.parametrize(
    ("typed", "field", "sentence"),
    [
        ({"name": ""}, "name", "Enter a name."),
        ({"add_tags": ""}, "", "Choose what the rule is to do."),
        ({"add_tags": "a|b"}, "add_tags", "contains one of"),
        ({"remove_tags": "wave"}, "remove_tags", "Add the tag “wave” or remove it, not both."),
        ({"if_tag": "a, b"}, "if_tag", "Filter by one tag at a time."),
        ({"if_priority": "huge"}, "if_priority", "Select a valid choice"),
        ({"event": "created", "what": "priority"}, "what", "Choose any: only for a change"),
        ({"event": "changed", "what": "due_soon"}, "what", "Choose a field that can be changed"),
        ({"event": "due", "what": "title"}, "what", "Choose a moment"),
        ({"mail_text": "Hello"}, "mail_text", "Choose who gets this mail"),
        ({"mail_to": "assignee"}, "mail_text", "Write what the mail says."),
        ({"mail_to": "assignee", "mail_text": "{nobody}"}, "mail_text", "There is no placeholder"),
    ],
)
def test_bad_input_gets_a_sentence_at_its_field_and_loses_nothing(
    world: World, typed: dict[str, str], field: str, sentence: str
) -> None:
    page = world.browser("alice", "acme").send(f"{RULES}new/", TYPED | {"if_channel": "mail"} | typed)
    assert page.status_code == 422
    errors = page.context["form"].errors if page.context else None
    assert sentence in text(page)
    assert '<option value="mail" selected>' in text(page)
    if field:
        assert f'id="id_{field}_error"' in text(page)
    assert errors is None or errors


def test_a_save_on_an_older_revision_keeps_what_was_typed(world: World, alice: TenantContext, urgent: RuleItem) -> None:
    browser, edit = world.browser("alice", "acme"), f"{RULES}{urgent.rule_id}/edit/"
    rule_changes.change(alice, urgent.rule_id, {}, name="Another name", by=Actor(alice.user_id))
    refused = browser.send(edit, TYPED | {"revision": "1", "add_tags": "mine"})
    assert refused.status_code == 409
    assert 'value="mine"' in text(refused)
    assert browser.send(edit, TYPED | {"revision": "2", "add_tags": "mine"}).status_code == 302


def test_a_rule_that_somebody_has_changed_is_not_switched_on_unseen(
    world: World, alice: TenantContext, urgent: RuleItem
) -> None:
    rule_changes.change(alice, urgent.rule_id, {"then": {"add_tags": ["other"]}}, by=Actor(alice.user_id))
    switch = f"{RULES}{urgent.rule_id}/switch/"
    page = world.browser("alice", "acme").send(switch, {"on": "yes", "revision": "1"}, follow=True)
    assert "Somebody else has just changed the rules" in text(page)
    assert not only(alice)[0].is_on


def test_a_condition_that_the_form_does_not_ask_stays(world: World, alice: TenantContext) -> None:
    given = URGENT | {"if": {"created": "2026-11-01.."}}
    item = rule_changes.create(alice, "By day", given, by=Actor(alice.user_id))
    typed = TYPED | {"revision": "1", "if_priority": "low"}
    world.browser("alice", "acme").send(f"{RULES}{item.rule_id}/edit/", typed)
    assert only(alice)[1]["if"] == {"priority": "low", "created": "2026-11-01.."}


def test_kinds_of_tickets_are_conditions_and_values(world: World, alice: TenantContext) -> None:
    defining.add_kind(alice, KindWishes(name="Problem"), version=0, by=Actor(alice.user_id))
    typed = TYPED | {"if_kind": "kind_1", "kind": "none"}
    page = world.browser("alice", "acme").send(f"{RULES}new/", typed, follow=True)
    assert (only(alice)[1]["if"]["kind"], only(alice)[1]["then"]["set"]) == ("kind_1", {"kind": ""})
    assert "kind: Problem" in text(page)


def test_a_rehearsal_is_told_beforehand_shows_its_progress_and_leads_to_each_ticket(
    world: World, alice: TenantContext, urgent: RuleItem
) -> None:
    creating.create(alice, title="One", priority=Priority.URGENT)
    creating.create(alice, title="Two")
    browser, address = world.browser("alice", "acme"), f"{RULES}{urgent.rule_id}/rehearsal/"
    assert "2 tickets changed in this time" in text(browser.get(address))
    running = text(browser.send(address, follow=True))
    assert "The rehearsal is running" in running
    assert 'hx-trigger="load delay:2s"' in running
    work()
    page = text(browser.get(address))
    assert "The rule would have acted 1 time on 1 ticket" in page
    assert "2 events · the rule would have acted 1 time · 0 refused" in page
    assert "Add the tag wave" in page
    assert re.search(r'href="/acme/tickets/1/"', page)
    then = re.search(r'href="(/acme/tickets/1/past/\?at=[^"]+)"', page)
    assert then
    assert browser.get(then[1]).status_code == 200
    assert 'hx-trigger="load delay' not in page
    assert "2 tickets changed" in text(browser.get(f"{address}?again=yes"))
    assert "acted 1 time on 1 ticket" in text(browser.get(f"{RULES}{urgent.rule_id}/"))
    assert changing.read(alice, 1).tags == []


def test_a_rehearsal_of_an_older_version_says_so(world: World, alice: TenantContext, urgent: RuleItem) -> None:
    ask(alice, urgent)
    work()
    rule_changes.change(alice, urgent.rule_id, {}, name="Renamed", by=Actor(alice.user_id))
    page = text(world.browser("alice", "acme").get(f"{RULES}{urgent.rule_id}/rehearsal/"))
    assert "This was version 1; the rule is now version 2." in page


def test_a_running_rehearsal_can_be_cancelled_and_a_second_one_is_refused(
    world: World, alice: TenantContext, urgent: RuleItem
) -> None:
    browser, address = world.browser("alice", "acme"), f"{RULES}{urgent.rule_id}/rehearsal/"
    browser.send(address)
    assert "Another rehearsal of this desk is running." in text(browser.send(address, follow=True))
    browser.send(f"{address}cancel/")
    assert "is being cancelled" in text(browser.get(address))
    work()
    assert "The rehearsal was cancelled" in text(browser.get(address))


def test_a_rule_of_deadlines_cannot_be_rehearsed_and_the_page_says_why(world: World, alice: TenantContext) -> None:
    item = rule_changes.create(alice, "Late", URGENT | {"when": {"event": "due"}}, by=Actor(alice.user_id))
    browser, address = world.browser("alice", "acme"), f"{RULES}{item.rule_id}/rehearsal/"
    for page in (browser.get(address), browser.send(address, follow=True)):
        assert "does not tell when a deadline came" in text(page)
        assert "Begin the rehearsal" not in text(page)


def test_the_runs_of_a_rule_are_listed_and_one_is_undone(world: World, alice: TenantContext) -> None:
    item = rule_changes.create(alice, "Urgent ones", URGENT, by=Actor(alice.user_id), is_on=True)
    number = creating.create(world.context("alice", "acme"), title="One", priority=Priority.URGENT)
    carry()
    assert changing.read(alice, number).tags == ["wave"]
    browser, own = world.browser("alice", "acme"), f"{RULES}{item.rule_id}/"
    undo = re.search(r'action="(/acme[^"]+/runs/[^"]+)"', text(browser.get(own)))
    assert undo
    assert f"#{number} is as it was before the rule." in text(browser.send(undo[1], follow=True))
    assert changing.read(alice, number).tags == []
    assert "was undone already" in text(browser.send(undo[1], follow=True))
    assert "Undone" in text(browser.get(f"{own}runs/"))


def test_what_the_pages_cost(world: World, alice: TenantContext, urgent: RuleItem) -> None:
    creating.create(alice, title="One", priority=Priority.URGENT)
    ask(alice, urgent)
    work()
    browser = world.browser("alice", "acme")
    own = f"{RULES}{urgent.rule_id}/"
    pages = {"list": RULES, "form": f"{own}edit/", "rule": own, "rehearsal": f"{own}rehearsal/"}
    costs = {name: spent(browser, address) for name, address in pages.items()}
    assert {name: (bill.trips, len(bill.calls)) for name, bill in costs.items()} == {
        "list": (2, 5),  # the identity; then members, answers, endpoints and rules together
        "form": (2, 6),
        "rule": (2, 9),
        "rehearsal": (3, 8),  # and what was found
    }
    assert max(bill.read_units for bill in costs.values()) <= IDENTITY + 8


def test_a_run_that_only_told_somebody_says_that_it_changed_no_field(world: World, alice: TenantContext) -> None:
    mail = {"then": {"mail": {"to": alice.user_id, "text": "Look at {ticket}."}}}
    item = rule_changes.create(alice, "Tell me", URGENT | mail, by=Actor(alice.user_id), is_on=True)
    creating.create(world.context("alice", "acme"), title="One", priority=Priority.URGENT)
    carry()
    page = text(world.browser("alice", "acme").get(f"{RULES}{item.rule_id}/runs/"))
    assert "It changed no field." in page
    assert "Undo<" not in page
