"""`verify_aggregates` and the rule behind it: drift is named, lag and concurrent writing are never taken for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest

from portal import clock
from portal.dynamo.store import Transaction
from portal.errors import Conflict
from tenants.tenancy.context import TenantContext
from tests.support import commands
from tests.support.folding import Follower, in_background, merge_all, plant, poller, recent, store_of
from tests.support.world import World
from tickets.counting import stored
from tickets.counting.stored import CountsItem, OutsideAttribute
from tickets.desk import changing, commenting, creating
from tickets.ticket import stored as ticket_keys
from tickets.ticket.fields import Status
from tickets.ticket.stored import CounterItem, SummaryItem
from tickets.verification import rebuild, verify
from tickets.verification.verify import Difference


@pytest.fixture(autouse=True)
def quick() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:  # who asks for `monkeypatch` has no tickets brought back
        patch.setattr(verify, "PAUSE", 0.01)
        yield


@pytest.fixture
def follower(world: World) -> Iterator[Follower]:
    """A worker that applies what comes while the test lasts."""
    follower = Follower()
    with follower.following():
        yield follower


def test_counted_tickets_are_right(world: World, alice: TenantContext, follower: Follower) -> None:
    world.tickets("acme", 3)
    commenting.comment(alice, 2, body="Done.", then=Status.RESOLVED)
    creating.create(alice, title="For Bob", resolver=world.users["bob"].id)
    follower.fold()
    ended = commands.run("verify_aggregates", "--settle", 120)
    assert ended.status == 0, ended.err
    assert "2 tenants, 4 tickets: nothing is wrong" in ended.out


def test_drift_names_tenant_item_and_count(world: World, alice: TenantContext, follower: Follower) -> None:
    world.tickets("acme", 2)
    follower.fold()
    today = clock.stamp()[:10]
    plant(alice, "TOTALS", open_normal=5)
    plant(alice, "DAY", today, created=-1)
    ended = commands.run("verify_aggregates", "--all", "--settle", 120)
    assert ended.status == 1
    assert "acme: TOTALS open.normal: stored 7, recounted 2" in ended.out
    assert f"acme: {today} created: stored 1, recounted 2" in ended.out
    assert "globex" not in ended.out
    assert "acme" in ended.err


def test_counts_without_tickets_are_drift_too(alice: TenantContext, follower: Follower) -> None:
    plant(alice, "TAGS", epoch=3, open_vpn=1)
    assert verify.verify(alice.repository, settle=120).differences == [Difference("TAGS", "open.vpn", 1, 0)]


def test_a_worker_that_makes_no_progress_is_no_drift(world: World, alice: TenantContext) -> None:
    world.tickets("acme", 1)
    ended = commands.run("verify_aggregates", "--tenant", "acme", "--settle", 0.2)
    assert ended.status == 3
    assert "cannot be verified now, because the stream worker makes no progress" in ended.out


def test_a_stream_that_is_late_is_no_drift_however_late_and_whatever_clocks_say(
    world: World, alice: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker answers only after a while, and its clock is an hour ahead."""
    world.tickets("acme", 5)
    late = Follower()
    real = clock.now
    monkeypatch.setattr(clock, "now", lambda: real() + timedelta(hours=1))
    with in_background(lambda turn: turn and late.fold(), pause=0.5):
        assert verify.verify(alice.repository, settle=120).state == verify.OK


def test_a_write_in_the_middle_of_the_recount_is_no_drift(
    world: World, alice: TenantContext, follower: Follower
) -> None:
    world.tickets("acme", 3)
    follower.fold()
    rounds = 0

    def meanwhile(numbers: int) -> None:
        nonlocal rounds
        rounds += 1
        if rounds == 1:  # the tickets have been read, the aggregates are read next
            changing.change_status(alice, 1, to=Status.CLOSED, version=1)
            creating.create(alice, title="One more")
            follower.fold()

    assert verify.verify(alice.repository, settle=120, advance=meanwhile).state == verify.OK


def test_numbers_that_never_stand_still_cannot_be_told(world: World, alice: TenantContext, follower: Follower) -> None:
    world.tickets("acme", 1)
    follower.fold()
    plant(alice, "TOTALS", open_normal=1)

    def meanwhile(numbers: int) -> None:
        creating.create(alice, title="One more")
        follower.fold()

    verdict = verify.verify(alice.repository, settle=120, advance=meanwhile)
    assert (verdict.state, verdict.differences) == (verify.UNKNOWN, [])
    assert "kept changing" in verdict.why


def test_what_is_wrong_and_stands_still_is_found_while_the_rest_moves(
    world: World, alice: TenantContext, follower: Follower
) -> None:
    world.tickets("acme", 1)
    follower.fold()
    plant(alice, "DAY", "2020-01-01", created=4)

    def meanwhile(numbers: int) -> None:
        creating.create(alice, title="One more")
        follower.fold()

    verdict = verify.verify(alice.repository, settle=120, advance=meanwhile)
    assert verdict.differences == [Difference("2020-01-01", "created", 4, 0)]


def test_writers_and_a_worker_at_work_are_never_drift(world: World, alice: TenantContext) -> None:
    world.tickets("acme", 12)
    bob = world.context("bob", "acme")
    with poller(), in_background(lambda n: commenting.comment(bob, n % 12 + 1, body="Hello.")):
        states = {verify.verify(alice.repository, settle=1).state for _ in range(2)}
    assert verify.DRIFT not in states


def test_a_gap_in_the_numbers_is_no_ticket(world: World, alice: TenantContext, follower: Follower) -> None:
    world.tickets("acme", 1)
    alice.repository.increment(CounterItem, ticket_keys.counter, sort=ticket_keys.COUNTER_TICKET, by=250)
    world.tickets("acme", 1)
    follower.fold()
    verdict = verify.verify(alice.repository, settle=120)
    assert (verdict.state, verdict.tickets) == (verify.OK, 2)


def test_a_ticket_that_nobody_can_count_is_named(world: World, alice: TenantContext, follower: Follower) -> None:
    world.tickets("acme", 2)
    follower.fold()
    break_ticket(alice, 2)
    verdict = verify.verify(alice.repository, settle=120)
    assert verdict.uncountable == [2]
    assert Difference("TOTALS", "open.normal", 2, 1) in verdict.differences
    assert "ticket 2 holds what cannot be counted" in commands.run("verify_aggregates", "--settle", 120).out


def break_ticket(tenant: TenantContext, number: int) -> None:
    transaction = Transaction()
    pk = tenant.repository.key(ticket_keys.ticket, number)
    transaction.update(SummaryItem(pk, ticket_keys.SUMMARY), [SummaryItem.status.set("lost")])
    tenant.repository.transact(transaction)


def test_repair_rebuilds_what_drifts(world: World, alice: TenantContext) -> None:
    world.tickets("acme", 3)
    with poller():
        assert verify.verify(alice.repository, settle=120).state == verify.OK
        plant(alice, "TOTALS", open_normal=5)
        ended = commands.run("verify_aggregates", "--repair", "--settle", 120)
        assert ended.status == 0, ended.err
        assert "TOTALS open.normal: 5 too many, corrected" in ended.out
        assert "acme had drifted and are right now" in ended.out
        assert verify.verify(alice.repository, settle=120).state == verify.OK


def test_the_result_for_machines_has_everything(world: World, alice: TenantContext, follower: Follower) -> None:
    plant(alice, "TOTALS", open_normal=5)
    ended = commands.run("verify_aggregates", "--json", "--settle", 120)
    (acme, globex) = json.loads(ended.out)
    assert ended.status == 1
    assert (acme["tenant"], acme["state"], globex["state"]) == ("acme", "drift", "ok")
    assert acme["differences"] == [{"item": "TOTALS", "count": "open.normal", "stored": 5, "recounted": 0}]


def test_an_unknown_tenant_is_said_to_be_one(world: World) -> None:
    ended = commands.run("verify_aggregates", "--tenant", "nobody")
    assert (ended.status, "no tenant" in ended.err) == (1, True)


# --- one at a time ---


def test_who_comes_second_is_told_who_verifies_and_reads_nothing(world: World, alice: TenantContext) -> None:
    with verify.held(alice.repository, by="Alice"):
        ended = commands.run("verify_aggregates", "--tenant", "acme", "--settle", 120)
    assert ended.status == 3
    assert "acme: cannot be verified now, because the numbers are being verified already, by Alice." in ended.out


def test_a_verification_that_died_is_taken_over_when_somebody_knows_that_it_did(
    world: World, alice: TenantContext, follower: Follower
) -> None:
    world.tickets("acme", 2)
    follower.fold()
    with verify.held(alice.repository, by="Alice"):
        ended = commands.run("verify_aggregates", "--tenant", "acme", "--settle", 120, "--take-over")
        assert (ended.status, "nothing is wrong" in ended.out) == (0, True)


def test_who_was_taken_over_ends_and_takes_nothing_away(alice: TenantContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "_RENEW_AFTER", timedelta(0))
    with (
        verify.held(alice.repository, by="Alice") as renew,
        verify.held(alice.repository, by="Bob", take_over=True) as renew_too,
    ):
        with pytest.raises(Conflict, match="Somebody else has begun"):
            renew()
        renew_too()


def many_tags(alice: TenantContext) -> None:
    """More tags than a dashboard lists, so that some are others."""
    for n in range(6):
        creating.create(alice, title="Tagged", tags=[f"tag-{n}-{i}" for i in range(12)])
        Follower().fold()
    merge_all(alice)


def counts(alice: TenantContext, sort_key: str) -> CountsItem:
    key = alice.repository.key(stored.aggregate)
    return alice.repository.get(CountsItem, stored.aggregate, sort=sort_key) or CountsItem(key, sort_key)


def test_what_leaders_have_too_much_and_the_others_too_little_is_drift_and_a_rebuild_mends_it(
    alice: TenantContext, follower: Follower
) -> None:
    many_tags(alice)
    assert verify.verify(alice.repository, settle=120).state == verify.OK
    leaders, worker = counts(alice, stored.LEADERS), store_of(alice)
    run = counts(alice, stored.run(recent(alice).merges))
    code = next(name for name in leaders.counts if name.startswith("G"))
    worker.put(leaders.changed(counts=leaders.counts | {code: 8}))
    worker.put(run.changed(counts={**run.counts, code: -7}))
    verdict = verify.verify(alice.repository, settle=120)
    tag = code.removeprefix("G0::").removesuffix(".o")
    assert Difference("TAGS", f"open.{tag} as listed", 8, 1) in verdict.differences
    rebuild.rebuild(alice.repository, timeout=120)
    assert verify.verify(alice.repository, settle=120).state == verify.OK


@pytest.mark.parametrize(
    ("at", "wrong", "named"),
    [
        (0, "0", "unresolved of each of the others, at most"),
        (2, "3", "number of the others"),
        (4, "999", "open of the others"),
    ],
)
def test_what_is_said_wrongly_of_the_others_is_drift(
    alice: TenantContext, follower: Follower, at: int, wrong: str, named: str
) -> None:
    many_tags(alice)
    follower.fold()  # so that it has nothing left to tidy up
    stood = recent(alice)
    said = OutsideAttribute().serialize(stood.outside("G")).split()
    said[at] = wrong
    store_of(alice).put(stood.changed(tags=OutsideAttribute().deserialize(" ".join(said))))
    verdict = verify.verify(alice.repository, settle=120)
    assert verdict.state == verify.DRIFT
    assert named in {one.count for one in verdict.differences}
