"""People in rules and their versions are found, and taken out of them by an erasure."""

from __future__ import annotations

from tenants.audit_trail.recording import SYSTEM
from tenants.membership import member_changes
from tests.rules.conftest import AddRule
from tests.support.commands import run
from tests.support.world import World
from tickets.rules import definition, rule_changes

BOB = "bob@example.com"


def test_an_erasure_takes_a_person_out_of_actions_and_texts_of_rules_and_their_versions(
    world: World, rule: AddRule
) -> None:
    alice, bob = world.context("alice", "acme"), world.users["bob"].id
    mail = {"to": alice.user_id, "text": f"Write to {BOB}."}
    ours = rule("created", set={"resolver": bob, "priority": "high"}, mail=mail, name="To Bob")
    theirs = rule("changed", mail={"to": bob, "text": "Look"}, name="Tell Bob")
    rule_changes.change(alice, theirs, {"then": {"add_tags": ["late"]}}, by=SYSTEM)
    page = world.browser("alice", "acme").send("/desk/settings/person/", {"address": BOB}).content.decode().lower()
    assert "rule that assigns tickets to them, or writes to them" in page
    assert "rule, its texts" in page
    member_changes.remove(user_id=bob, tenant_id=alice.tenant_id, by=SYSTEM)
    assert run("erase_person", "acme", BOB, "--texts").status == 0
    stored = [*rule_changes.listed(alice), *(one for of in (ours, theirs) for one in rule_changes.versions(alice, of))]
    assert len(stored) == 5
    assert all(text not in item.definition for item in stored for text in (BOB, bob))
    then = definition.shown(rule_changes.of_item(rule_changes.find(alice, ours)))["then"]
    assert then["set"] == {"priority": "high"}
    assert then["mail"]["to"] == alice.user_id


def test_a_rule_for_tickets_of_a_person_names_them_no_more_and_is_for_no_others(world: World, rule: AddRule) -> None:
    alice, bob = world.context("alice", "acme"), world.users["bob"].id
    ours = rule("changed", {"resolver": bob}, add_tags=["his"], name="Of Bob")
    page = world.browser("alice", "acme").send("/desk/settings/person/", {"address": BOB}).content.decode().lower()
    assert "rule for tickets that they have" in page
    member_changes.remove(user_id=bob, tenant_id=alice.tenant_id, by=SYSTEM)
    assert run("erase_person", "acme", BOB, "--texts").status == 0
    (item,) = [one for one in rule_changes.listed(alice) if one.rule_id == ours]
    assert bob not in item.definition
    assert set(rule_changes.of_item(item).only.params) == {"resolver"}
