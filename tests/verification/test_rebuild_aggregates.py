"""`rebuild_aggregates`: drift goes, sums stay right at every moment, whoever writes meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings

from portal import clock
from portal.dynamo import client
from portal.dynamo.store import Transaction
from portal.streams import watermark
from proofs import cleanup
from tenants.audit_trail.recording import SYSTEM
from tenants.lifecycle import desk_settings
from tenants.tenancy.context import TenantContext
from tests.support import commands, fakes
from tests.support.folding import Follower, in_background, kept_counts, merge_all, numbers, plant, poller, recounted
from tests.support.world import World
from tickets.counting import dead_letters, stored
from tickets.counting.stored import AGGREGATES
from tickets.desk import changing, commenting, creating
from tickets.ticket import stored as ticket_keys
from tickets.ticket.fields import Status
from tickets.ticket.stored import TICKETS, CounterItem, SummaryItem
from tickets.verification import rebuild, verify
from tickets.verification.verify import Difference


@pytest.fixture(autouse=True)
def quick() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:  # who asks for `monkeypatch` has no tickets brought back
        patch.setattr(verify, "PAUSE", 0.01)
        yield


@pytest.fixture
def working() -> Iterator[None]:
    with poller():
        yield


def settled(tenant: TenantContext) -> verify.Verdict:
    return verify.verify(tenant.repository, settle=120)


def test_planted_drift_is_removed_and_reported(world: World, alice: TenantContext, working: None) -> None:
    world.tickets("acme", 5)
    assert settled(alice).state == verify.OK
    today = clock.stamp()[:10]
    plant(alice, "TOTALS", open_normal=7, mail_open=3)
    plant(alice, "DAY", today, created=-2)
    plant(alice, "DAY", "2001-01-01", resolved=1)
    done = rebuild.rebuild(alice.repository)
    assert done.removed == [
        Difference("2001-01-01", "resolved", 1, 0),
        Difference(today, "created", -2, 0),
        Difference("TOTALS", "mail.open", 3, 0),
        Difference("TOTALS", "open.normal", 7, 0),
    ]
    assert (done.epoch, done.tickets) == (1, 5)
    assert settled(alice).state == verify.OK
    assert numbers(alice)["open.normal"] == 5


def test_a_correction_whose_answer_was_lost_is_made_once(world: World, alice: TenantContext, working: None) -> None:
    world.tickets("acme", 2)
    settled(alice)
    plant(alice, "TOTALS", open_normal=7)

    lost: list[str] = []

    def done_but_lost(params: dict[str, Any]) -> None:
        if "correction" in str(params["body"]) and not lost:
            lost.append("one answer")
            client.connection("worker").client._make_api_call("UpdateItem", json.loads(params["body"]))

    with fakes.answering("worker", "UpdateItem", *[done_but_lost] * 9):
        assert rebuild.rebuild(alice.repository).removed == [Difference("TOTALS", "open.normal", 7, 0)]
    assert (lost, numbers(alice)["open.normal"]) == (["one answer"], 2)


def test_drift_goes_while_people_write(world: World, alice: TenantContext, working: None) -> None:
    world.tickets("acme", 40)
    settled(alice)
    plant(alice, "TOTALS", open_normal=7)
    bob = world.context("bob", "acme")

    def write(turn: int) -> None:
        number = creating.create(bob, title=f"New {turn}", tags=["new"])
        commenting.comment(bob, turn % 40 + 1, body="Hello.")
        commenting.comment(bob, number, body="Done.", then=Status.CLOSED)

    with in_background(write):
        done = rebuild.rebuild(alice.repository)
    assert done.removed == [Difference("TOTALS", "open.normal", 7, 0)]
    assert settled(alice).state == verify.OK


def test_sums_are_right_at_every_moment(world: World, alice: TenantContext) -> None:
    """Folded record by record, the number of tickets that a reader sees never changes."""
    world.tickets("acme", 6)
    follower = Follower()
    follower.fold()
    epoch = raise_epoch(alice)
    rebuild._look(alice.repository, epoch, "UTC", lambda numbers: None)
    for record in follower.new():
        follower.apply([record])
        assert numbers(alice)["open.normal"] == 6
    assert kept_counts(alice) == recounted(alice)
    assert {part.epoch for part in kept_counts(alice)} == {1}


def raise_epoch(tenant: TenantContext) -> int:
    item = rebuild.CounterItem(tenant.repository.key(ticket_keys.counter), ticket_keys.COUNTER_TICKET)
    return int(tenant.repository.update(item, [rebuild.CounterItem.epoch.add(1)]).epoch)


def test_an_interrupted_rebuild_leaves_right_sums_and_the_next_one_ends(
    world: World, alice: TenantContext, working: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.tickets("acme", 12)
    settled(alice)
    plant(alice, "TOTALS", open_normal=7)
    real, touched = rebuild._patiently, iter(range(100))

    def interrupted(touch: Callable[[], None]) -> None:
        if next(touched) == 5:
            raise KeyboardInterrupt
        real(touch)

    with monkeypatch.context() as patch:
        patch.setattr(rebuild, "_patiently", interrupted)
        with pytest.raises(KeyboardInterrupt):
            rebuild.rebuild(alice.repository)
    assert settled(alice).differences == [Difference("TOTALS", "open.normal", 19, 12)]
    done = rebuild.rebuild(alice.repository)
    assert (done.epoch, done.removed) == (2, [Difference("TOTALS", "open.normal", 7, 0)])
    assert settled(alice).state == verify.OK


def test_a_ticket_that_is_born_late_in_an_old_epoch_counts(world: World, alice: TenantContext) -> None:
    """An import reserved its number before the rebuild and wrote the ticket after it."""
    world.tickets("acme", 2)
    late = changing.read(alice, 1).serialize()
    with poller():
        rebuild.rebuild(alice.repository)
        number = alice.repository.increment(CounterItem, ticket_keys.counter, sort=ticket_keys.COUNTER_TICKET).last
        item = SummaryItem.from_raw_data(late)
        item.pk, item.number = alice.repository.key(ticket_keys.ticket, number), number
        transaction = Transaction()
        transaction.put(item)
        alice.repository.transact(transaction)
        assert settled(alice).state == verify.OK


def test_what_was_retired_is_not_counted_again(world: World, alice: TenantContext) -> None:
    world.tickets("acme", 3)
    follower = Follower()
    with poller():
        rebuild.rebuild(alice.repository)
    before = numbers(alice)
    assert before["open.normal"] == 3
    assert follower.apply(follower.new()).counts["applied"] == 0
    assert numbers(alice) == before


def test_old_items_that_hold_nothing_are_deleted(world: World, alice: TenantContext, working: None) -> None:
    world.tickets("acme", 1)
    settled(alice)
    merge_all(alice)
    rebuild.rebuild(alice.repository)
    left = [stored.aggregate_parts(item.sk) for item in alice.repository.query_all(AGGREGATES, stored.aggregate)]
    assert {parts[2] for parts in left if parts} == {1}


def test_a_healthy_tenant_loses_nothing_however_late_the_stream_and_early_the_watermark(
    world: World, alice: TenantContext
) -> None:
    world.tickets("acme", 5)
    late = Follower()
    late.fold()
    watermark.write(TICKETS, clock.stamp(clock.now() + timedelta(hours=1)))
    with in_background(lambda turn: turn and late.fold(), pause=1.5):
        assert rebuild.rebuild(alice.repository).removed == []
    assert numbers(alice)["open.normal"] == 5


def test_a_ticket_that_is_deleted_meanwhile_leaves_no_trace(
    world: World, alice: TenantContext, working: None, settings: LazySettings
) -> None:
    settings.DEBUG = True
    world.tickets("acme", 8)
    settled(alice)
    with in_background(lambda n: n < 4 and cleanup.delete_summary(alice.tenant_id, n + 1), pause=0.001):
        assert rebuild.rebuild(alice.repository).removed == []
    assert settled(alice).state == verify.OK


# --- dead letters ---


def break_ticket(tenant: TenantContext, number: int, status: str = "lost") -> None:
    summary = SummaryItem(tenant.repository.key(ticket_keys.ticket, number), ticket_keys.SUMMARY)
    tenant.repository.update(summary, [SummaryItem.status.set(status)])


def waiting(tenant: TenantContext) -> list[int]:
    return [dead_letters.ticket_of(one) for one in dead_letters.all_letters(tenant_id=tenant.tenant_id)]


def test_a_dead_letter_goes_when_its_ticket_is_counted(world: World, alice: TenantContext) -> None:
    world.tickets("acme", 2)
    follower = Follower()
    break_ticket(alice, 1)
    follower.fold()
    break_ticket(alice, 1, "open")
    follower.fold()
    assert waiting(alice) == [1, 1]
    with follower.following():
        done = rebuild.rebuild(alice.repository)
    assert (done.dead_letters, waiting(alice)) == (2, [])
    assert numbers(alice)["open.normal"] == 2


def test_a_rebuild_whose_own_records_fail_says_so_and_drops_nothing(world: World, alice: TenantContext) -> None:
    world.tickets("acme", 2)
    follower = Follower()
    break_ticket(alice, 1)
    follower.fold()
    with follower.following():
        ended = commands.run("rebuild_aggregates", "--tenant", "acme")
        assert (ended.status, "Not counted: ticket 1." in ended.err) == (1, True)
        assert waiting(alice) == [1, 1]
        repaired = commands.run("verify_aggregates", "--tenant", "acme", "--repair", "--settle", 120)
    assert (repaired.status, "nothing is wrong" in repaired.out + repaired.err) == (1, False)


@pytest.mark.parametrize("heard_of", [False, True], ids=["no worker ever", "a worker that stopped"])
def test_without_a_worker_it_gives_up_and_nothing_is_wrong(world: World, alice: TenantContext, heard_of: bool) -> None:
    world.tickets("acme", 2)
    follower = Follower()
    follower.fold()
    if heard_of:
        watermark.write(TICKETS, clock.stamp(clock.now() - timedelta(minutes=5)))
    before = numbers(alice)
    ended = commands.run("rebuild_aggregates", "--tenant", "acme", "--timeout", 0.3)
    assert ended.status == 1
    assert "run_stream" in ended.err
    assert numbers(alice) == before
    follower.fold()
    assert numbers(alice) == before


def test_the_command_says_what_was_wrong(world: World, alice: TenantContext, working: None) -> None:
    world.tickets("acme", 2)
    settled(alice)
    plant(alice, "TAGS", open_vpn=-3)
    ended = commands.run("rebuild_aggregates", "--all")
    assert ended.status == 0, ended.err
    assert "acme: TAGS open.vpn: 3 too few, corrected" in ended.out
    assert "acme: 2 tickets counted anew, 1 count was wrong." in ended.out
    assert "globex: 0 tickets counted anew, nothing was wrong." in ended.out


def test_a_rebuild_makes_nobodys_form_stale(world: World, alice: TenantContext, working: None) -> None:
    world.tickets("acme", 1)
    version = int(changing.read(alice, 1).version)
    rebuild.rebuild(alice.repository)
    changing.change_status(alice, 1, to=Status.CLOSED, version=version)
    assert changing.read(alice, 1).status == Status.CLOSED


def test_a_rebuild_counts_tickets_of_before_in_the_zone_that_the_desk_has_now(
    world: World, alice: TenantContext, working: None
) -> None:
    world.tickets("acme", 3)
    store, stamp = alice.repository, "2024-02-28T23:30:00.000000Z"
    item = store.get(SummaryItem, ticket_keys.ticket, 2, sort=ticket_keys.SUMMARY)
    assert item is not None
    store.update(item, [SummaryItem.created_at.set(stamp)])
    desk_settings.change_defaults(alice, values={desk_settings.ZONE: "Europe/Berlin"}, by=SYSTEM)
    assert settled(alice).state == verify.OK
    assert rebuild.rebuild(store).removed == []
    assert settled(alice).state == verify.OK
    counted = {name: n for name, n in numbers(alice).items() if name.startswith("2024-02")}
    assert counted == {"2024-02-29 created": 1}
