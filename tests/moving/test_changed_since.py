"""What was changed at the new place is told from what is in the old copy alone."""

from __future__ import annotations

import pytest

from portal import clock
from portal.dynamo.store import Store
from portal.errors import Conflict
from tenants.audit_trail.recording import Actor
from tenants.membership import member_changes
from tests.moving.moves import BRIDGE, POOL, id_of, is_equal, move, ticket
from tests.moving.test_old_copies import discard
from tests.sharding.test_resharding import reshard
from tests.support.commands import in_pool, run
from tests.support.world import World
from tickets.counting.stored import VERIFIED, VERIFYING, VerifiedItem, VerifyLeaseItem, aggregate
from tickets.desk import commenting, creating
from tickets.moving import copy_check
from tickets.ticket import stored
from tickets.ticket.stored import TICKETS, ActivityItem, DetailItem, SummaryItem

ANNA = "anna@example.net"
NAME = "Bob Example"


def known(world: World) -> None:
    """One ticket has the address in its description, one in a comment."""
    alice = world.context("alice", "acme")
    creating.create(alice, title="The door", description=f"Of {ANNA}")
    commenting.comment(alice, creating.create(alice, title="The lift"), body=f"Ask {ANNA}.")


def known_to(world: World, text: str) -> int:
    """In how many items of the tickets' table that all share the desk has this text."""
    return sum(text in repr(raw) for raw in in_pool(TICKETS) if id_of(world) in raw["pk"]["S"])


def late(world: World, sort: str, name: str) -> None:
    """Somebody writes into the old copy of the second ticket, where no later version tells of it."""
    store = Store("lifecycle", id_of(world), POOL)
    model = {stored.SUMMARY: SummaryItem, stored.DETAIL: DetailItem}.get(sort, ActivityItem)
    store.update(model(store.key(stored.ticket, 2), sort), [getattr(model, name).set("late")])


def wrong(world: World) -> list[int]:
    return copy_check.check(id_of(world), left=POOL, present=BRIDGE).wrong


def test_an_erasure_at_the_new_place_lets_the_old_copy_be_discarded(world: World) -> None:
    known(world)
    move(world, BRIDGE)
    assert run("erase_person", "acme", ANNA, "--texts").status == 0
    assert ANNA not in repr(ticket(world, 2, BRIDGE))
    discard(world)
    assert [ticket(world, number, POOL) for number in (1, 2)] == [[], []]


def test_a_desk_that_goes_back_does_not_bring_the_name_of_somebody_erased_with_it(world: World) -> None:
    bob = world.context("bob", "acme")
    creating.create(bob, title="The door")
    bob.repository.put_all(
        [
            VerifiedItem(bob.repository.key(aggregate), VERIFIED, state="ok", started_at=clock.stamp(), by_name=NAME),
            VerifyLeaseItem(bob.repository.key(aggregate), VERIFYING, by=NAME),
        ]
    )
    assert known_to(world, NAME) == 4  # the two rows, the ticket, and the event of its creation
    move(world, BRIDGE)
    alice = world.users["alice"].id
    member_changes.remove(user_id=bob.user_id, tenant_id=bob.tenant_id, by=Actor(alice, "alice@example.com"))
    assert run("erase_person", "acme", "bob@example.com").status == 0
    move(world, POOL)
    assert known_to(world, NAME) == 0


def test_a_resharding_at_the_new_place_lets_the_desk_go_back(world: World) -> None:
    world.tickets("acme", 6)
    move(world, BRIDGE)
    reshard(world, 4)
    assert not is_equal(world, POOL, BRIDGE, tickets=6)
    move(world, POOL)
    assert is_equal(world, POOL, BRIDGE, tickets=6)


def test_what_was_written_late_is_told_after_a_resharding_as_well(world: World) -> None:
    world.tickets("acme", 6)
    move(world, BRIDGE)
    late(world, stored.DETAIL, "description")
    reshard(world, 4)
    with pytest.raises(Conflict, match=r"in tickets: 2\."):
        discard(world)


@pytest.mark.parametrize(("sort", "name"), [(stored.DETAIL, "description"), (stored.SUMMARY, "title")])
def test_what_was_written_late_is_told_although_somebody_has_commented_since(
    world: World, sort: str, name: str
) -> None:
    world.tickets("acme", 2)
    move(world, BRIDGE)
    commenting.comment(world.context("alice", "acme"), 2, body="Later.")
    assert wrong(world) == []
    late(world, sort, name)
    assert wrong(world) == [2]


def test_entries_of_the_history_are_the_same_unless_somebody_was_erased(world: World) -> None:
    known(world)
    move(world, BRIDGE)
    (comment,) = [raw["sk"]["S"] for raw in ticket(world, 2, POOL) if raw.get("body", {}).get("S")]
    late(world, comment, "body")
    commenting.comment(world.context("alice", "acme"), 2, body="Later.")
    assert wrong(world) == [2]
    assert run("erase_person", "acme", ANNA, "--texts").status == 0
    assert wrong(world) == []
    late(world, comment, "verb")
    assert wrong(world) == [2]
