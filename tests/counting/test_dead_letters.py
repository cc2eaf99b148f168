"""Dead letters: what could not be counted is kept, counted once when it can be, or thrown away."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from portal.dynamo import client, meter
from portal.errors import Conflict, NotFound, Throttled
from tenants.audit_trail import recording
from tenants.audit_trail.recording import SYSTEM
from tenants.operators.facades import AuditRow
from tests.support.commands import run
from tests.support.fakes import answering, refusal
from tests.support.folding import Follower, numbers
from tests.support.world import World
from tickets.counting import contributions, dead_letters
from tickets.counting.stored import DeadLetterItem
from tickets.ticket import stored as ticket_keys
from tickets.ticket.fields import Status
from tickets.ticket.stored import TICKETS, CounterItem


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
            "TableName": TICKETS.full_name,
            "Key": {
                "pk": {"S": ticket_keys.ticket(world.tenants["acme"].tenant_id, number)},
                "sk": {"S": ticket_keys.SUMMARY},
            },
            "UpdateExpression": "SET " + ", ".join(f"#{name} = :{name}" for name in attributes),
            "ExpressionAttributeNames": {f"#{name}": name for name in attributes},
            "ExpressionAttributeValues": {f":{name}": value for name, value in attributes.items()},
        },
    )


def only() -> DeadLetterItem:
    (dead_letter,) = dead_letters.all_letters()
    return dead_letter


@pytest.fixture
def follower(acme: World) -> Follower:
    """What has put the second ticket's record aside."""
    follower = Follower()
    assert follower.fold().counts["dead"] == 1
    return follower


@pytest.fixture
def letter(follower: Follower) -> DeadLetterItem:
    return only()


def opened(world: World) -> int:
    return numbers(world.context("alice", "acme")).get("open.normal", 0)


# --- the rules ---


def test_a_dead_letter_is_counted_once_when_it_is_understood(acme: World, knows_escalated: None) -> None:
    dead_letter = only()
    assert opened(acme) == 2
    dead_letters.replay(dead_letter, by=SYSTEM)
    assert opened(acme) == 1
    assert numbers(acme.context("alice", "acme"))["resolved.normal"] == 1
    with pytest.raises(NotFound):
        dead_letters.replay(dead_letter, by=SYSTEM)
    assert opened(acme) == 1
    assert list(dead_letters.all_letters()) == []


def test_a_dead_letter_whose_write_is_refused_makes_its_tenant_wait(acme: World) -> None:
    follower = Follower()
    records = follower.batch().records
    reasons = [{"Code": "None"}, {"Code": "TransactionConflict", "Message": "made up"}]
    refused = refusal("TransactionCanceledException", CancellationReasons=reasons)
    with answering("worker", "TransactWriteItems", refused), pytest.raises(Throttled):
        follower.apply(records)
    assert list(dead_letters.all_letters()) == []
    assert follower.apply(records).counts["dead"] == 1


def test_a_dead_letter_that_still_cannot_be_counted_stays_and_the_trail_says_why(
    acme: World, letter: DeadLetterItem
) -> None:
    with pytest.raises(Conflict, match="still cannot be counted: ValueError: 'escalated' is not a valid Status"):
        dead_letters.replay(letter, by=SYSTEM)
    assert opened(acme) == 2
    assert only()
    ((action, why),) = rows(acme)
    assert action == "dead_letter.refused"
    assert "It still cannot be counted: ValueError: 'escalated'" in why


def raise_epoch(world: World) -> None:
    acme = world.context("alice", "acme")
    acme.repository.update(
        CounterItem(acme.repository.key(ticket_keys.counter), ticket_keys.COUNTER_TICKET), [CounterItem.epoch.add(1)]
    )


def test_after_a_rebuild_a_dead_letter_of_before_is_refused(acme: World, knows_escalated: None) -> None:
    raise_epoch(acme)
    with pytest.raises(Conflict, match="The aggregates were rebuilt since; drop it"):
        dead_letters.replay(only(), by=SYSTEM)
    assert opened(acme) == 2


def test_of_a_ticket_that_a_rebuild_has_moved_only_the_new_epoch_is_counted(
    acme: World, follower: Follower, knows_escalated: None
) -> None:
    with pytest.MonkeyPatch.context() as before:
        before.setattr(contributions, "Status", Status)
        dead_letters.drop(only(), by=SYSTEM)
        raise_epoch(acme)
        rewrite(acme, 2, epoch={"N": "1"})
        follower.fold()
    dead_letters.replay(only(), by=SYSTEM)
    assert numbers(acme.context("alice", "acme"))["resolved.normal"] == 1
    assert opened(acme) == 2


@pytest.mark.parametrize("settle", [dead_letters.drop, dead_letters.replay])
def test_a_settled_dead_letter_does_not_come_back_with_a_redelivery(
    acme: World, follower: Follower, knows_escalated: None, settle: Callable[..., None]
) -> None:
    settle(only(), by=SYSTEM)
    counted = numbers(acme.context("alice", "acme"))
    with pytest.MonkeyPatch.context() as before:
        before.setattr(contributions, "Status", Status)
        follower.apply(follower.all)
    assert list(dead_letters.all_letters()) == []
    assert numbers(acme.context("alice", "acme")) == counted


def rows(world: World) -> list[tuple[str, str]]:
    """What the tenant's trail says of dead letters, newest first: action, and why not."""
    found = AuditRow.objects.filter(tenant_id=world.tenants["acme"].tenant_id)[:50]
    return [(row.action, row.after) for row in found if row.entity_type == "dead_letter"]


def test_of_many_who_settle_a_dead_letter_at_the_same_moment_one_does_and_the_trail_says_so(
    acme: World, knows_escalated: None
) -> None:
    dead_letter = only()

    def attempt(settle: Callable[..., None]) -> bool:
        try:
            settle(dead_letter, by=SYSTEM)
        except NotFound:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        settled = list(pool.map(attempt, [dead_letters.replay, dead_letters.drop] * 3))
    assert sum(settled) == 1
    done = [action for action, _ in rows(acme) if action != "dead_letter.refused"]
    assert done == [["dead_letter.replayed", "dead_letter.dropped"][settled.index(True) % 2]]
    assert opened(acme) == (1 if done == ["dead_letter.replayed"] else 2)


@pytest.mark.parametrize("settle", [dead_letters.drop, dead_letters.replay])
def test_a_dead_letter_stays_and_nothing_is_counted_where_the_row_cannot_be_written(
    acme: World, knows_escalated: None, settle: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "_add_rows", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        settle(only(), by=SYSTEM)
    assert only()
    assert opened(acme) == 2


@pytest.mark.parametrize(
    ("settle", "action"),
    [(dead_letters.drop, "dead_letter.dropped"), (dead_letters.replay, "dead_letter.replayed")],
)
def test_a_dead_letter_is_settled_with_its_row_in_one_transaction(
    acme: World, knows_escalated: None, settle: Callable[..., None], action: str, bill: meter.Meter
) -> None:
    dead_letter, before_that = only(), len(bill.calls)
    settle(dead_letter, by=SYSTEM)
    assert [c.operation for c in bill.calls[before_that:]].count("TransactWriteItems") == 1
    assert rows(acme) == [(action, "")]


# --- the command ---


def test_list_shows_a_line_for_each_dead_letter(acme: World, letter: DeadLetterItem) -> None:
    ended = run("dead_letters", "list")
    assert ended.status == 0
    assert ended.out.split("  ") == [
        dead_letters.id_of(letter),
        "acme",
        letter.at,
        "ValueError: 'escalated' is not a valid Status\n",
    ]
    assert run("dead_letters", "list", "--tenant", "globex").out == "There are no dead letters.\n"


def test_list_for_machines_holds_the_record(acme: World, letter: DeadLetterItem) -> None:
    (found,) = json.loads(run("dead_letters", "list", "--json").out)
    assert (found["tenant"], found["id"]) == ("acme", dead_letters.id_of(letter))
    assert found["record"]["dynamodb"]["NewImage"]["status"] == {"S": "escalated"}


def test_replay_says_what_stays_and_why(acme: World, letter: DeadLetterItem) -> None:
    ended = run("dead_letters", "replay", "--all")
    assert ended.status == 1
    assert f"{dead_letters.id_of(letter)} of acme stays: It still cannot be counted" in ended.err
    assert "1 of 1 were not counted." in ended.err


def test_replay_counts_the_dead_letter_that_is_named(
    acme: World, letter: DeadLetterItem, knows_escalated: None
) -> None:
    ended = run("dead_letters", "replay", "--id", dead_letters.id_of(letter))
    assert ended.status == 0
    assert "of acme counted." in ended.out
    assert opened(acme) == 1


def test_drop_removes_and_says_what(acme: World, letter: DeadLetterItem) -> None:
    ended = run("dead_letters", "drop", "--tenant", "acme", "--all")
    assert ended.status == 0
    assert "of acme dropped: ValueError" in ended.out
    assert list(dead_letters.all_letters()) == []
    assert opened(acme) == 2


@pytest.mark.parametrize("action", ["replay", "drop"])
def test_nothing_is_done_to_dead_letters_that_nobody_has_named(letter: DeadLetterItem, action: str) -> None:
    ended = run("dead_letters", action)
    assert (ended.status, ended.err) == (2, "Say which: --id ID or --all.")
    assert only()


def test_a_dead_letter_that_is_not_there_is_named(engine: None) -> None:
    ended = run("dead_letters", "drop", "--id", "123")
    assert (ended.status, ended.err) == (1, "There is no dead letter 123.")
