"""Admins keep the rules of a desk: each version stays, each change is audited, and none is of no use."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from portal.dynamo import meter
from portal.errors import Forbidden, Invalid, NotFound, Overtaken
from portal.web.locales import Locale, shown_in
from tenants.audit_trail import browsing
from tenants.audit_trail.recording import SYSTEM
from tenants.membership import member_changes
from tenants.tenancy.context import Role, TenantContext
from tests.support.world import World
from tickets.rules import (
    definition,
    presenters,  # noqa: F401  # says how values are shown
    rule_changes,
)
from tickets.rules.stored import RuleItem

URGENT = {"when": {"event": "created"}, "if": {"priority": "urgent"}, "then": {"add_tags": ["now"]}}


def kept(tenant: TenantContext, name: str = "Urgent ones", **given: Any) -> RuleItem:
    how = {name: given.pop(name) for name in ("is_on",) if name in given}
    return rule_changes.create(tenant, name, URGENT | given, by=SYSTEM, **how)


def test_a_rule_is_read_as_it_was_given(alice: TenantContext) -> None:
    made = kept(alice)
    (rule,) = map(rule_changes.of_item, rule_changes.listed(alice))
    assert (rule.id, rule.name, rule.version, rule.is_on) == (made.rule_id, "Urgent ones", 1, False)
    shown = definition.shown(rule)
    assert shown["if"] == {"priority": "urgent"}
    assert shown["then"]["add_tags"] == ["now"]
    assert definition.loaded(definition.dumped(rule)).then == rule.then
    assert rule_changes.active(alice) == []


def test_each_change_of_a_rule_keeps_the_version_before(alice: TenantContext) -> None:
    made = kept(alice)
    changed = rule_changes.change(alice, made.rule_id, {"if": {"priority": "high"}}, revision=1, by=SYSTEM)
    assert (changed.version, changed.revision) == (2, 2)
    on = rule_changes.change(alice, made.rule_id, {}, is_on=True, revision=2, by=SYSTEM)
    assert (on.version, on.revision, on.is_on) == (2, 3, True)  # to be on is no version
    assert [int(one.version) for one in rule_changes.versions(alice, made.rule_id)] == [2, 1]
    first = rule_changes.of_item(rule_changes.find_version(alice, made.rule_id, 1))
    assert first.only.params == {"priority": "urgent"}


def test_a_deleted_rule_leaves_its_versions_to_which_histories_lead(alice: TenantContext) -> None:
    made = kept(alice, is_on=True)
    rule_changes.delete(alice, made.rule_id, by=SYSTEM)
    assert rule_changes.listed(alice) == []
    assert rule_changes.find_version(alice, made.rule_id, 1).name == "Urgent ones"
    with pytest.raises(NotFound):
        rule_changes.find(alice, made.rule_id)
    with pytest.raises(NotFound):
        rule_changes.change(alice, made.rule_id, {}, is_on=True, by=SYSTEM)


def test_the_desk_says_for_which_events_its_rules_that_are_on_are(alice: TenantContext, world: World) -> None:
    def listens() -> set[str]:
        return {kind for kind, to in world.context("alice", "acme").subscriptions.items() if "rules" in to}

    one = kept(alice)
    assert listens() == set()
    rule_changes.change(alice, one.rule_id, {}, is_on=True, by=SYSTEM)
    kept(alice, "Answered", when={"event": "answered"}, is_on=True)
    assert listens() == {"ticket.created", "ticket.commented"}
    rule_changes.change(alice, one.rule_id, {"when": {"event": "changed", "what": "status"}}, by=SYSTEM)
    assert listens() == {"ticket.changed", "ticket.status_changed", "ticket.assigned", "ticket.commented"}
    rule_changes.delete(alice, one.rule_id, by=SYSTEM)
    assert listens() == {"ticket.commented"}
    assert world.context("charlie", "globex").subscriptions == {}


def test_two_rules_that_are_made_at_the_same_moment_both_hear_of_their_events(
    alice: TenantContext, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = rule_changes._listen

    def meanwhile(*args: Any) -> None:
        monkeypatch.setattr(rule_changes, "_listen", whole)
        kept(alice, "Answered", when={"event": "answered"}, is_on=True)
        whole(*args)

    monkeypatch.setattr(rule_changes, "_listen", meanwhile)
    kept(alice, is_on=True)
    assert {*world.context("alice", "acme").subscriptions} == {"ticket.created", "ticket.commented"}


def test_a_rule_whose_assignee_has_left_can_be_renamed_and_switched_off(alice: TenantContext, world: World) -> None:
    bob = world.users["bob"].id
    made = kept(alice, then={"set": {"resolver": bob}}, is_on=True)
    member_changes.remove(user_id=bob, tenant_id=alice.tenant_id, by=SYSTEM)
    changed = rule_changes.change(alice, made.rule_id, {}, name="To nobody", is_on=False, by=SYSTEM)
    assert (changed.name, changed.is_on) == ("To nobody", False)
    with pytest.raises(Invalid):
        rule_changes.change(alice, made.rule_id, {"then": {"set": {"resolver": bob}, "add_tags": ["a"]}}, by=SYSTEM)


def test_a_form_that_somebody_else_overtook_changes_nothing(alice: TenantContext) -> None:
    made = kept(alice)
    rule_changes.change(alice, made.rule_id, {}, name="Other name", revision=1, by=SYSTEM)
    with pytest.raises(Overtaken):
        rule_changes.change(alice, made.rule_id, {}, name="Third name", revision=1, by=SYSTEM)
    assert rule_changes.find(alice, made.rule_id).name == "Other name"


def test_only_admins_change_rules(alice: TenantContext, world: World) -> None:
    bob = world.context("bob", "acme")
    made = kept(alice)
    with pytest.raises(Forbidden):
        kept(bob, "Bob's")
    with pytest.raises(Forbidden):
        rule_changes.change(bob, made.rule_id, {}, is_on=True, by=SYSTEM)
    with pytest.raises(Forbidden):
        rule_changes.delete(bob, made.rule_id, by=SYSTEM)
    was_owner = replace(bob, role=Role.OWNER)  # as the request read them
    with pytest.raises(Overtaken):
        rule_changes.delete(was_owner, made.rule_id, by=SYSTEM)


REFUSED = [
    ({"when": {"event": "opened"}}, "event"),
    ({"when": {"event": "changed", "what": "colour"}}, "what"),
    ({"when": {"event": "created", "what": "status"}}, "what"),
    ({"when": {"event": "created", "by": "nobody"}}, "by"),
    ({"if": {"priority": "enormous"}}, "priority"),
    ({"if": {"status": "lost"}}, "status"),
    ({"if": {"resolver": "me"}}, "resolver"),
    ({"then": {}}, "then"),
    ({"then": {"set": {"title": "New"}}}, "set"),
    ({"then": {"set": {"priority": "enormous"}}}, "priority"),
    ({"then": {"set": {"resolver": "me"}}}, "resolver"),
    ({"then": {"set": {"resolver": "0" * 32}}}, "resolver"),
    ({"then": {"set": {"kind": "kind_9"}}}, "kind"),
    ({"then": {"add_tags": ["a", "b"], "remove_tags": ["b"]}}, "remove_tags"),
    ({"then": {"answer": "ra_" + "0" * 32}}, "answer"),
    ({"then": {"webhook": "ep_unknown"}}, "webhook"),
    ({"then": {"mail": {"to": "assignee", "text": " "}}}, "mail"),
    ({"then": {"mail": {"to": "assignee", "text": "See {nothing}"}}}, "mail"),
    ({"then": {"mail": {"to": "0" * 32, "text": "See {ticket}"}}}, "mail"),
]


@pytest.mark.parametrize(("given", "field"), REFUSED)
def test_a_rule_that_makes_no_sense_is_refused_at_its_field(
    alice: TenantContext, given: dict[str, Any], field: str
) -> None:
    with pytest.raises(Invalid) as refused:
        kept(alice, **given)
    assert refused.value.field == field
    assert rule_changes.listed(alice) == []


def test_names_of_rules_differ_and_their_number_is_limited(
    alice: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(alice, "One")
    with pytest.raises(Invalid, match="name already"):
        kept(alice, "one")
    monkeypatch.setattr(rule_changes, "MOST", 1)
    with pytest.raises(Invalid, match="up to 1 rules"):
        kept(alice, "Two")


def test_each_change_of_a_rule_is_in_the_audit_trail(alice: TenantContext) -> None:
    made = kept(alice)
    rule_changes.change(alice, made.rule_id, {}, is_on=True, by=SYSTEM)
    rule_changes.delete(alice, made.rule_id, by=SYSTEM)
    found = browsing.everything(alice.repository, only=browsing.filter_of())
    rows = [row for row in found if row.entity_type == "rule"]
    assert [row.action for row in rows] == ["rule.deleted", "rule.changed", "rule.created"]


def test_the_audit_trail_says_a_rule_in_words_and_one_that_was_cut_as_it_is(alice: TenantContext) -> None:
    given = {"if": {"status": "open"}, "then": {"set": {"priority": "urgent"}, "add_tags": ["vip", "loud"]}}
    rule_changes.create(alice, "Loud", given | {"when": {"event": "created", "by": "outside"}}, is_on=True, by=SYSTEM)
    (row, *_) = browsing.everything(alice.repository, only=browsing.filter_of())
    told = {name: after for name, _, after in row.changes}
    assert told["when"] == "A ticket is created, by somebody outside"
    assert told["if"] == "status: open"
    assert told["then"] == "priority: urgent; add tags: vip, loud"
    with shown_in(Locale(language="de")):
        assert {name: after for name, _, after in row.changes}["dann"] == "Priorität: dringend; Tags dazu: vip, loud"
    for odd in ('{"set": {"prio', "3", '{"event": "due", "by": "outside", "what": {}}', '{"a":' * 9_999):
        changes = replace(row, before={}, after={"when": odd, "then": odd}).changes
        assert changes[0][2] == odd, "an imported archive may have any text"


def test_rules_are_read_by_one_query(alice: TenantContext) -> None:
    kept(alice, is_on=True)
    with meter.measure() as bill:
        assert len(rule_changes.active(alice)) == 1
    assert [call.operation for call in bill.calls] == ["Query"]
