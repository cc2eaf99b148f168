"""An admin sets targets, hours and holidays on a page; each change is a version that stays as it was."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.world import Browser, World
from tickets.sla import policy_versions
from tickets.sla.policy import SlaPolicy, TargetRule
from tickets.ticket.due_marks import TARGETS

PAGE = "/acme/desk/settings/targets/"
OFFICE = {f"hours_{day}": "9-12, 13.00-17:00" if day < 5 else "" for day in range(7)}
TWO_RULES = {
    "rule_0_priority": "urgent",
    "rule_0_group": "",
    "rule_0_kind": "",
    "rule_0_first": "30 min",
    "rule_0_next": "1 h",
    "rule_0_solution": "8 h",
    "rule_1_priority": "",
    "rule_1_first": "1 h 30 min",
}
SENT: dict[str, Any] = {**OFFICE, **TWO_RULES, "warning": "25", "country": "DE", "region": "BE", "version": "0"}


@pytest.fixture
def alice(world: World) -> Browser:
    return world.browser("alice", "acme")


def stored(world: World) -> SlaPolicy:
    return policy_versions.read(world.context("alice", "acme"))


def test_targets_are_saved_as_a_version_with_the_holidays_of_the_region(world: World, alice: Browser) -> None:
    assert alice.send(PAGE, SENT).status_code == 302
    policy = stored(world)
    assert policy.version > 0
    assert policy.rules == (TargetRule("urgent", "", "", 1800, 3600, 28800), TargetRule(first=5400))
    assert policy.calendar.hours[:1] == (((540, 720), (780, 1020)),)
    assert any(day.endswith("-03-08") for day in policy.calendar.days_off), "Berlin's own holiday is missing"
    policy_versions._kept.clear()  # as in another process, which reads the version for this page
    page = alice.get(PAGE).content.decode()
    assert "1 h 30 min" in page
    assert "09:00\u201312:00, 13:00\u201317:00" in page
    assert "These hold since" in page


def test_each_country_is_offered_once_and_a_region_is_found_in_any_case(world: World, alice: Browser) -> None:
    page = alice.get(PAGE).content.decode()
    assert (page.count(">Germany<"), page.count('value="DEU"')) == (1, 0)
    assert alice.send(PAGE, SENT | {"region": "augsburg"}).status_code == 302
    assert stored(world).region == "Augsburg"


def test_a_change_is_another_version_and_the_former_one_stays(world: World, alice: Browser) -> None:
    alice.send(PAGE, SENT)
    before = stored(world).version
    changed = alice.send(PAGE, SENT | {"version": str(stored(world).version), "rule_1_first": "2 h"})
    assert changed.status_code == 302
    tenant, now = world.context("alice", "acme"), stored(world).version
    assert [policy_versions.version(tenant, number).rules[1].first for number in (before, now)] == [5400, 7200]
    assert policy_versions.current(tenant) == now > before


def test_what_is_saved_again_unchanged_is_no_new_version(world: World, alice: Browser) -> None:
    alice.send(PAGE, SENT)
    before = stored(world).version
    alice.send(PAGE, SENT | {"version": str(before)})
    assert stored(world).version == before


def test_without_rows_nothing_is_counted_any_more(world: World, alice: Browser) -> None:
    alice.send(PAGE, SENT)
    alice.send(
        PAGE,
        SENT | {"version": str(stored(world).version)} | {f"rule_{n}_{name}": "" for n in (0, 1) for name in TARGETS},
    )
    assert policy_versions.current(world.context("alice", "acme")) == 0
    assert stored(world).rules == ()


def test_who_saves_over_the_change_of_somebody_else_keeps_what_was_typed(world: World, alice: Browser) -> None:
    alice.send(PAGE, SENT)
    late = alice.send(PAGE, SENT | {"rule_1_first": "7 h"})
    assert late.status_code == 409
    assert "7 h" in late.content.decode()
    assert stored(world).rules[1].first == 5400


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"rule_0_first": "soon"}, "Write a time as 4 h, 30 min or 1 h 30 min."),
        ({"rule_0_first": "501 h"}, "at most 500 h"),
        ({"hours_0": "nine to five"}, "Write hours as 09:00\u201312:00, 13:00\u201317:00."),
        ({"hours_0": "17:00-09:00"}, "ends before it begins"),
        ({"hours_0": "09:00-12:00, 11:00-13:00"}, "Two of these hours overlap."),
        ({f"hours_{day}": "" for day in range(7)}, "open for an hour of the week"),
        ({"region": "XX"}, "Its regions are: BB, BE"),
        ({"country": "DEU"}, "Select a valid choice"),
        ({"country": "XX"}, "Select a valid choice"),
        ({"rule_0_group": "group_9"}, "Select a valid choice"),
    ],
)
def test_a_wrong_entry_gets_a_sentence_and_loses_nothing(
    world: World, alice: Browser, wrong: dict[str, str], sentence: str
) -> None:
    answer = alice.send(PAGE, SENT | wrong)
    page = answer.content.decode()
    assert answer.status_code == 422
    assert sentence in page
    assert 'value="1 h 30 min"' in page
    assert stored(world).version == 0
