"""Dead letters: what could not be counted is kept, counted once when it can be, or thrown away."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from portal.dynamo import client, keys, tables
from portal.errors import Conflict, NotFound
from tests.commands import run
from tests.fakes import answering, refusal
from tests.folding import Follower, numbers
from tests.world import World
from tickets import aggregates, dead_letters
from tickets.fields import Status
from tickets.items import CounterItem, DeadLetterItem


@pytest.fixture
def acme(world: World) -> World:
    """Two tickets in Acme, of which the second was written with a status that the worker does not know yet."""
    world.tickets("acme", 2)
    rewrite(world, 2, status={"S": "escalated"})
    return world


def rewrite(world: World, number: int, **attributes: dict[str, Any]) -> None:
    """Write into a ticket's summary past all rules."""
    client.connection("platform").dispatch(
        "UpdateItem",
        {
            "TableName": tables.TICKETS.full_name,
            "Key": {"pk": {"S": keys.ticket(world.tenants["acme"].tenant_id, number)}, "sk": {"S": keys.SUMMARY}},
            "UpdateExpression": "SET " + ", ".join(f"#{name} = :{name}" for name in attributes),
            "ExpressionAttributeNames": {f"#{name}": name for name in attributes},
            "ExpressionAttributeValues": {f":{name}": value for name, value in attributes.items()},
        },
    )


def only() -> DeadLetterItem:
    (letter,) = dead_letters.letters()
    return letter


def opened(world: World) -> int:
    return numbers(world.context("alice", "acme")).get("open.normal", 0)


@pytest.fixture
def knows_escalated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker of tomorrow takes the new status for a resolved one."""
    real = Status
    monkeypatch.setattr(aggregates, "Status", lambda text: real("resolved" if text == "escalated" else text))


# --- the rules ---


def test_a_letter_is_counted_once_when_it_is_understood(acme: World, knows_escalated: None) -> None:
    # Buried by a worker that does not know the status, replayed by one that does.
    with pytest.MonkeyPatch.context() as before:
        before.setattr(aggregates, "Status", Status)
        assert Follower().fold().dead == 1
    letter = only()
    assert opened(acme) == 2
    dead_letters.replay(letter)
    assert opened(acme) == 1
    assert numbers(acme.context("alice", "acme"))["resolved.normal"] == 1
    with pytest.raises(NotFound):
        dead_letters.replay(letter)
    assert opened(acme) == 1
    assert list(dead_letters.letters()) == []


def test_a_letter_that_still_cannot_be_folded_stays(acme: World) -> None:
    Follower().fold()
    with pytest.raises(Conflict, match="still cannot be counted: ValueError: 'escalated' is not a valid Status"):
        dead_letters.replay(only())
    assert opened(acme) == 2
    assert only()


def test_what_an_aggregate_did_not_take_is_added_to_that_one_only(world: World) -> None:
    acme = world.context("alice", "acme")
    world.tickets("acme", 1)
    too_large = refusal("ValidationException")
    with answering("worker", "UpdateItem", *[too_large] * 2):
        assert Follower().fold().dead == 1
    letter = only()
    before = numbers(acme)
    dead_letters.replay(letter)
    after = numbers(acme)
    assert letter.aggregate != ""
    kind = (keys.aggregate_parts(letter.aggregate) or ("",))[0]
    assert {name for name in after if after[name] != before.get(name)} == {
        "DAY": {name for name in after if name.endswith(" created")},
        "TOTALS": {name for name in after if not name.endswith(" created")},
    }[kind]
    assert all(n == 1 for n in after.values())


def raise_epoch(world: World) -> None:
    acme = world.context("alice", "acme")
    acme.repository.update(
        CounterItem(acme.repository.key(keys.counter), keys.COUNTER_TICKET), [CounterItem.epoch.add(1)]
    )


def test_after_a_rebuild_a_letter_of_before_is_refused(acme: World, knows_escalated: None) -> None:
    with pytest.MonkeyPatch.context() as before:
        before.setattr(aggregates, "Status", Status)
        Follower().fold()
    raise_epoch(acme)
    with pytest.raises(Conflict, match="The aggregates were rebuilt since; drop it"):
        dead_letters.replay(only())
    assert opened(acme) == 2


def test_of_a_ticket_that_a_rebuild_has_moved_only_the_new_epoch_is_counted(acme: World, knows_escalated: None) -> None:
    with pytest.MonkeyPatch.context() as before:
        before.setattr(aggregates, "Status", Status)
        follower = Follower()
        follower.fold()
        dead_letters.drop(only())
        raise_epoch(acme)
        rewrite(acme, 2, epoch={"N": "1"})
        follower.fold()
    dead_letters.replay(only())
    assert numbers(acme.context("alice", "acme"))["resolved.normal"] == 1
    assert opened(acme) == 2


@pytest.mark.parametrize("settle", [dead_letters.drop, dead_letters.replay])
def test_a_settled_letter_does_not_come_back_with_a_redelivery(
    acme: World, knows_escalated: None, settle: Callable[[DeadLetterItem], None]
) -> None:
    follower = Follower()
    with pytest.MonkeyPatch.context() as before:
        before.setattr(aggregates, "Status", Status)
        follower.fold()
    settle(only())
    counted = numbers(acme.context("alice", "acme"))
    with pytest.MonkeyPatch.context() as before:
        before.setattr(aggregates, "Status", Status)
        follower.apply(follower.all)
    assert list(dead_letters.letters()) == []
    assert numbers(acme.context("alice", "acme")) == counted


def test_letters_of_one_tenant_are_found(acme: World) -> None:
    Follower().fold()
    assert len(list(dead_letters.letters(tenant_id=acme.tenants["acme"].tenant_id))) == 1
    assert list(dead_letters.letters(tenant_id=acme.tenants["globex"].tenant_id)) == []


# --- the command ---


def test_list_shows_a_line_for_each_letter(acme: World) -> None:
    Follower().fold()
    letter = only()
    ended = run("dead_letters", "list")
    assert ended.status == 0
    assert ended.out.split("  ") == [
        dead_letters.id_of(letter),
        "acme",
        letter.at,
        "ValueError: 'escalated' is not a valid Status\n",
    ]
    assert run("dead_letters", "list", "--tenant", "globex").out == "There are no dead letters.\n"


def test_list_for_machines_holds_the_record(acme: World) -> None:
    Follower().fold()
    (found,) = json.loads(run("dead_letters", "list", "--json").out)
    assert (found["tenant"], found["id"]) == ("acme", dead_letters.id_of(only()))
    assert found["record"]["dynamodb"]["NewImage"]["status"] == {"S": "escalated"}


def test_replay_says_what_stays_and_why(acme: World) -> None:
    Follower().fold()
    ended = run("dead_letters", "replay", "--all")
    assert ended.status == 1
    assert f"{dead_letters.id_of(only())} of acme stays: It still cannot be counted" in ended.err
    assert "1 of 1 were not counted." in ended.err


def test_replay_counts_the_letter_that_is_named(acme: World, knows_escalated: None) -> None:
    with pytest.MonkeyPatch.context() as before:
        before.setattr(aggregates, "Status", Status)
        Follower().fold()
    ended = run("dead_letters", "replay", "--id", dead_letters.id_of(only()))
    assert ended.status == 0
    assert "of acme counted." in ended.out
    assert opened(acme) == 1


def test_drop_removes_and_says_what(acme: World) -> None:
    Follower().fold()
    ended = run("dead_letters", "drop", "--tenant", "acme", "--all")
    assert ended.status == 0
    assert "of acme dropped: ValueError" in ended.out
    assert list(dead_letters.letters()) == []
    assert opened(acme) == 2


@pytest.mark.parametrize("action", ["replay", "drop"])
def test_nothing_is_done_to_letters_that_nobody_has_named(acme: World, action: str) -> None:
    Follower().fold()
    ended = run("dead_letters", action)
    assert (ended.status, ended.err) == (2, "Say which: --id ID or --all.")
    assert only()


def test_a_letter_that_is_not_there_is_named(engine: None) -> None:
    ended = run("dead_letters", "drop", "--id", "123")
    assert (ended.status, ended.err) == (1, "There is no dead letter 123.")
