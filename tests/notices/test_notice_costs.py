"""The cost of telling members, as counts: nothing where nobody hears of a ticket, and little where somebody does."""

from __future__ import annotations

from collections import Counter

import pytest

from portal.dynamo import meter
from tests.desk.test_cost import IDENTITY, spent
from tests.notices.test_telling import say
from tests.support import mailing
from tests.support.outbox import rows
from tests.support.world import World
from tickets.desk import changing
from tickets.notices import following


def calls(bill: meter.Meter) -> dict[str, int]:
    return dict(Counter(call.operation for call in bill.calls))


@pytest.mark.parametrize("who", ["nobody", "the author", "a follower who muted it", "an assignee who muted it"])
def test_a_comment_that_nobody_hears_of_writes_no_row_and_costs_what_it_did(world: World, who: str) -> None:
    world.tickets("acme", 2)
    alice, bob = world.context("alice", "acme"), world.context("bob", "acme")
    with meter.measure() as usual:
        say(world, "alice", "Write to bob@example.com.", number=2)
    if who == "the author":
        changing.assign(alice, 1, to=alice.user_id, version=1)
        following.follow(alice, 1, alice.user_id)
    elif who != "nobody":
        following.follow(bob, 1, bob.user_id)
        if who.startswith("an assignee"):
            changing.assign(bob, 1, to=bob.user_id, version=1)
        following.mute(bob, 1, bob.user_id)
    before = len(rows())
    with meter.measure() as bill:
        say(world, "alice", "Write to bob@example.com.")
    assert (calls(bill), bill.write_units) == (calls(usual), usual.write_units)
    assert len(rows()) == before


def test_a_comment_that_somebody_hears_of_writes_one_row_more_in_its_transaction(desk: World) -> None:
    with meter.measure() as bill:
        say(desk, "alice", "Look.")
    with meter.measure() as of_oneself:
        say(desk, "bob", "Look.")
    assert calls(bill) == calls(of_oneself)
    assert bill.write_units - of_oneself.write_units == 4  # a row of up to 1 KB in a transaction, and two indexes


def test_deciding_reads_desk_ticket_and_members_and_writes_once_for_each_who_is_told(desk: World) -> None:
    say(desk, "alice", "Look.")
    with meter.measure() as bill:
        assert mailing.carry() == ["answered"]
    done = {name: many for name, many in calls(bill).items() if name != "Query"}  # of holds, once for many messages
    # The row; desk, ticket and its members in batches; the inbox; the row of the mail; the note that the first is done.
    assert done == {"GetItem": 1, "BatchGetItem": 3, "PutItem": 1, "UpdateItem": 1, "TransactWriteItems": 1}


def test_sending_a_mail_costs_the_same_for_one_event_and_for_many(desk: World) -> None:
    bills = []
    for many in (1, 10):
        for number in range(many):
            say(desk, "alice", f"News {number}.")
        mailing.carry()
        with meter.measure() as bill:
            assert mailing.carry() == ["answered"]
        bills.append(calls(bill))
    assert bills[0] == bills[1]


def test_the_ticket_page_with_followers_takes_its_two_round_trips(desk: World) -> None:
    bob = desk.context("bob", "acme")
    following.follow(bob, 1, bob.user_id)
    bill = spent(desk.browser("bob"), "/tickets/1/")
    assert (bill.trips, bill.read_units) == (2, IDENTITY + 0.5)


def test_following_is_one_write(desk: World) -> None:
    bob = desk.context("bob", "acme")
    with meter.measure() as bill:
        following.follow(bob, 1, bob.user_id)
    assert calls(bill) == {"UpdateItem": 1}
