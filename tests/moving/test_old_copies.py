"""What a move has left is kept, compared, gone back to or discarded; what was written there late is told."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from delivery.outbox import stored as outbox_keys
from delivery.outbox.stored import OUTBOX, OutboxItem
from portal import clock
from portal.dynamo import fencing
from portal.dynamo.placement import at
from portal.dynamo.store import Store
from portal.errors import Conflict, PortalError
from portal.isolation import guard
from portal.schema import registry
from tenants.audit_trail import browsing
from tenants.audit_trail.recording import SYSTEM, Actor
from tenants.membership import member_changes
from tenants.tenancy import placements, tenant_directory
from tests.moving.moves import BRIDGE, POOL, begin, id_of, is_equal, last, move, mover, ticket
from tests.sharding.test_resharding import reshard
from tests.support import commands
from tests.support.api_client import api_client
from tests.support.commands import in_pool, run
from tests.support.endpoints import endpoint, rows
from tests.support.folding import Follower, numbers
from tests.support.operators import Operator, make_operator
from tests.support.stored import put_all
from tests.support.world import World
from tickets.counting import stream_barrier
from tickets.counting.stored import VERIFIED, VERIFYING, VerifiedItem, VerifyLeaseItem, aggregate
from tickets.desk import bulk, changing, commenting, creating
from tickets.moving import copy_check, move_requests, place_changes
from tickets.moving.discarding import CopyDiscard
from tickets.moving.ticket_copies import raw_collection
from tickets.ticket import stored
from tickets.ticket.fields import Status
from tickets.ticket.stored import TICKETS, ActivityItem, DetailItem, SummaryItem


def discard(world: World, caught_up: Callable[[Store], object] = lambda repository: None) -> None:
    move_requests.discard(tenant_directory.get(id_of(world)), early=True, by=SYSTEM)
    CopyDiscard(last(world), caught_up=caught_up).run()


def test_a_late_write_into_the_old_copy_is_told_and_nothing_is_discarded_nor_gone_back_over(world: World) -> None:
    world.tickets("acme", 3)
    stale = world.context("alice", "acme")
    move(world, BRIDGE)
    commenting.comment(stale, 2, body="I stood still for a minute.")
    with pytest.raises(Conflict, match="in tickets: 2"):
        discard(world)
    assert last(world).state == "kept"
    begin(world, POOL)
    with pytest.raises(Conflict, match="in tickets: 2"):
        mover(world).run()
    assert last(world).state == "cancelled"
    assert len(ticket(world, 2, POOL)) == 4


def test_an_old_copy_with_something_more_is_deleted_in_spite_of_it_for_a_reason(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_barrier, "wait_until_applied", lambda repository, **how: None)
    world.tickets("acme", 3)
    stale = world.context("alice", "acme")
    move(world, BRIDGE, grace_days=0)
    commenting.comment(stale, 2, body="I stood still for a minute.")
    refused = commands.run("place_tenant", "acme", "--discard")
    assert (refused.status, "place_tenant acme --discard --unchecked" in refused.err) == (1, True)
    for none in ((), ("--reason", " \u200b")):
        assert "need --reason" in commands.run("place_tenant", "acme", "--discard", "--unchecked", *none).err
    ended = commands.run("place_tenant", "acme", "--discard", "--unchecked", "--reason", "It was a test.")
    assert (ended.status, last(world).state, ticket(world, 2, POOL)) == (0, "done", []), ended
    rows = browsing.page(world.context("alice", "acme").repository, only=browsing.TrailFilter()).rows
    (told,) = [row.after for row in rows if row.action == "tenant.discard_ordered" and row.after]
    assert told == {"given_up": "what it alone has", "reason": "It was a test."}


def test_when_the_way_back_was_called_off_the_old_copy_is_still_gone_back_to_or_discarded(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_barrier, "wait_until_applied", lambda repository, **how: None)
    make_operator()
    root = Operator.signed_in()
    world.tickets("acme", 2)
    first = move(world, BRIDGE)
    for _ in range(2):
        for _ in ("it is asked for", "and called off"):
            move_requests.roll_back(tenant_directory.get(id_of(world)), by=SYSTEM)
        mover(world).run()
        assert last(world).state == "cancelled"
    until = clock.parse(first.kept_until)
    assert f"An old copy is kept in the pool until {until.day} {until:%b %Y}." in root.says(
        "/admin/places/?tenant=acme"
    )
    assert "is kept until" in commands.run("place_tenant", "acme", "--discard").err
    ended = commands.run("place_tenant", "acme", "--discard", "--now")
    assert (ended.status, last(world).state) == (0, "done"), ended
    assert ticket(world, 1, POOL) == []
    assert len(place_changes.MOVES.history(id_of(world))) == 3


def test_nobody_opens_a_ticket_in_an_old_copy_however_long_they_stood_still(world: World) -> None:
    world.tickets("acme", 1)
    stale = world.context("alice", "acme")
    move(world, BRIDGE)
    assert creating.create(stale, title="Late") == 2
    assert (ticket(world, 2, POOL), len(ticket(world, 2, BRIDGE))) == ([], 3)


def test_of_an_old_copy_in_the_tables_of_all_nothing_is_left(world: World) -> None:
    world.tickets("acme", 3)
    world.tickets("globex", 2)
    pool = Follower()
    pool.fold()
    move(world, BRIDGE)
    changing.change_status(world.context("alice", "acme"), 1, to=Status.PENDING, version=1)
    discard(world, lambda repository: pool.fold())
    store = Store("lifecycle", id_of(world), POOL)
    partitions = [stored.ticket(id_of(world), 1), stored.counter(id_of(world)), fencing.move_key(id_of(world))]
    assert [raw_collection(store, partition) for partition in partitions] == [[], [], []]
    left = [raw for raw in commands.in_pool(TICKETS) if id_of(world) in raw["pk"]["S"]]
    assert left == []
    assert len(ticket(world, 1, POOL, "globex")) == 3
    tenant = tenant_directory.get(id_of(world))
    assert (tenant.placement, tenant.former_placement, last(world).state) == ("bridge", None, "done")


def test_of_an_old_copy_in_the_tables_of_all_a_scan_finds_mail_and_answers_about_webhooks_alone(world: World) -> None:
    endpoint(world.context("alice", "acme"), types=("ticket.created", "ticket.status_changed"))
    tenant_id, alice = id_of(world), world.context("alice", "acme")
    two = [creating.create(alice, title="One of several") for _ in "ab"]
    bulk.change_status(alice, bulk.states(alice, dict.fromkeys(two, 1)), to=Status.PENDING)
    client = api_client(world)
    assert client.send("/tickets", {"title": "Once"}, Idempotency_Key="a").status_code == 201
    hook = {"url": "https://hooks.example.com/x", "event_types": ["ticket.created"]}
    assert client.send("/webhooks", hook, Idempotency_Key="b").status_code == 201
    pool = Follower()
    pool.fold()
    told = {"tenant_id": tenant_id, "tenant": "{}", "subject": "desk/x", "sent_until": "", "expires_at": 2**40}
    mail = OutboxItem(outbox_keys.outbox_row(tenant_id, "a" * 32), clock.stamp(), **told)
    for row in (mail, *rows()):
        row.pending = row.open = row.due_at = None
        put_all([row])
    assert (traces(tenant_id)["Api.Answers"], traces(tenant_id)["Events.Outbox"]) == (2, 5)
    move(world, BRIDGE)
    discard(world, lambda repository: pool.fold())
    assert traces(tenant_id) == {"Api.Answers": 1, "Events.Outbox": 1}
    assert [raw["subject"]["S"] for raw in commands.in_pool(OUTBOX)] == ["desk/x"]


def traces(tenant_id: str) -> dict[str, int]:
    """How many items in the tables of all name the desk, by each table that can be placed."""
    found = {table.name: commands.in_pool(table) for table in registry.tables() if table.placed}
    named = {name: sum(tenant_id in repr(raw) for raw in raws) for name, raws in found.items()}
    return {name: many for name, many in named.items() if many}


def test_an_old_copy_in_tables_of_its_own_goes_with_them_and_is_followed_no_more(world: World) -> None:
    world.tickets("acme", 1)
    move(world, BRIDGE)
    move(world, POOL)
    assert [placed.tenant_id for placed in placements.listed()] == [id_of(world)]
    discard(world)
    assert placements.listed() == []
    with pytest.raises(PortalError):
        ticket(world, 1, BRIDGE)
    move(world, BRIDGE)
    assert is_equal(world, POOL, BRIDGE, tickets=1)


def test_the_new_place_counts_what_was_copied_as_the_old_one_did(world: World) -> None:
    world.tickets("acme", 3)
    changing.change_status(world.context("alice", "acme"), 2, to=Status.PENDING, version=1)
    Follower().fold()
    before = numbers(world.context("alice", "acme"))
    begin(world, BRIDGE)

    def follow(repository: object) -> None:
        with guard.acting_for(id_of(world)), at(BRIDGE):
            Follower().fold()

    mover(world, caught_up=follow).run()
    assert before["open.normal"] == 2
    with guard.acting_for(id_of(world)), at(BRIDGE):
        assert numbers(world.context("alice", "acme")) == before


# --- changed since ---


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
