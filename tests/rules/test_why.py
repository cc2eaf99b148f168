"""The history of a ticket says why a rule changed it, and leads to the rule, its version and its undo."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tenants.audit_trail.recording import SYSTEM
from tests.desk.test_cost import IDENTITY, spent
from tests.rules.conftest import AddRule
from tests.rules.test_running_rules import opened, ticket
from tests.support.world import Browser, World
from tickets.desk import changing
from tickets.ready_answers import answer_changes
from tickets.ready_answers.answer_reading import Given
from tickets.rules import rule_changes
from tickets.ticket.fields import Priority


def text(response: Any) -> str:
    assert response.status_code == 200, response.status_code
    return str(response.content.decode())


def whys(browser: Browser, number: int) -> list[str]:
    return re.findall(r'href="([^"]+)">Why did this happen\?', text(browser.get(f"/tickets/{number}/")))


@pytest.fixture
def bob(world: World) -> Browser:
    return world.browser("bob", "acme")


def test_an_agent_learns_from_the_history_which_rule_did_it_in_which_version(
    world: World, rule: AddRule, bob: Browser
) -> None:
    rule_id = rule("created", {"priority": "urgent"}, set={"status": "pending"}, add_tags=["now"], name="Urgent ones")
    number = opened(world, priority=Priority.URGENT, title="A <b>printer</b>")
    rule_changes.change(world.context("alice", "acme"), rule_id, {"then": {"add_tags": ["later"]}}, by=SYSTEM)
    (address,) = whys(bob, number)
    page = text(bob.get(address))
    for said in ("Urgent ones", "version 1", "A ticket is created", "priority: urgent", "Add tags: now", "A &lt;b&gt;"):
        assert said in page
    assert "later" not in page
    assert "open</bdi> → <bdi>pending" in page.replace("Open", "open").replace("Pending", "pending")
    assert f"/settings/rules/{rule_id}/#version-1" not in page
    assert f"/settings/rules/{rule_id}/#version-1" in text(world.browser("alice", "acme").get(address))


def test_one_click_undoes_the_run(world: World, rule: AddRule, bob: Browser) -> None:
    rule("created", set={"priority": "high"})
    number = opened(world)
    (address,) = whys(bob, number)
    page = text(bob.send(address, {}, follow=True))
    assert f"#{number} is as it was before the rule." in page
    assert ticket(world, number).priority == "normal"
    assert "Undone" in text(bob.get(address))
    assert "This run was undone already." in text(bob.send(address, {}, follow=True))
    assert len(whys(bob, number)) == 2  # the undo leads there, too


def test_an_undo_that_is_too_late_says_so(world: World, rule: AddRule, bob: Browser) -> None:
    rule("created", set={"priority": "high"})
    number = opened(world)
    changing.edit(world.context("alice", "acme"), number, version=2, priority=Priority.LOW)
    (address,) = whys(bob, number)
    assert "has been changed again since" in text(bob.send(address, {}, follow=True))
    assert ticket(world, number).priority == "low"


def test_a_run_that_wrote_a_comment_or_could_do_nothing_says_so(world: World, rule: AddRule, bob: Browser) -> None:
    alice = world.context("alice", "acme")
    answer = answer_changes.create(alice, Given("Thanks", "thanks", "Thanks!"), shared=True, by=SYSTEM).answer_id
    rule("created", answer=answer)
    number = opened(world)
    (address,) = whys(bob, number)
    page = text(bob.get(address))
    assert "Post the ready answer “Thanks”" in page
    (comment,) = re.findall(rf"/tickets/{number}/\?entry=[^\"]+#(entry-[^\"]+)\">a comment", page)
    assert f'id="{comment}"' in text(bob.get(f"/tickets/{number}/"))
    assert "Undo</button>" not in page


def test_a_deleted_rule_still_says_why(world: World, rule: AddRule, bob: Browser) -> None:
    rule_id = rule("created", add_tags=["now"], name="Gone soon")
    number = opened(world)
    rule_changes.delete(world.context("alice", "acme"), rule_id, by=SYSTEM)
    (address,) = whys(bob, number)
    assert "Gone soon" in text(bob.get(address))


def test_viewers_and_other_desks_see_no_run(world: World, rule: AddRule, bob: Browser) -> None:
    rule("created", add_tags=["now"])
    number = opened(world)
    (address,) = whys(bob, number)
    vera = world.browser("vera", "acme")
    assert whys(vera, number) == []
    assert vera.get(address).status_code == 403
    theirs = address.replace("/acme/", "/globex/")
    assert world.browser("charlie", "globex").get(theirs).status_code == 404


def test_the_page_takes_three_round_trips(world: World, rule: AddRule, bob: Browser) -> None:
    rule("created", add_tags=["now"])
    (address,) = whys(bob, opened(world))
    bill = spent(bob, address)
    assert bill.trips == 3
    assert bill.read_units <= IDENTITY + 5
