"""A tenant's tickets are spread over another number of partitions while people work, and nobody notices."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from portal.dynamo import client, meter
from portal.dynamo.placement import Placement
from portal.errors import Conflict
from portal.streams.stream_source import StreamSource
from tenants.audit_trail.recording import SYSTEM
from tenants.tenancy import placements, tenant_directory
from tenants.tenancy.context import TenantContext
from tenants.tenancy.placements import ShardLayout
from tests.support import placed
from tests.support.commands import run
from tests.support.folding import Follower
from tests.support.kills import Killed, killed_at, one_by_one
from tests.support.world import World
from tickets.desk import changing, lists
from tickets.jobs.leased_job import LeaseWatch
from tickets.sharding import reshard_job, reshard_requests, shard_rows
from tickets.sharding.reshard_follower import ReshardFollower
from tickets.sharding.reshard_job import Mover
from tickets.sharding.shard_rows import Shelf
from tickets.sharding.stored import ReshardItem
from tickets.ticket import stored
from tickets.ticket.fields import Status

SOME = [Status.OPEN, Status.PENDING]


def last(tenant_id: str) -> ReshardItem:
    item = reshard_requests.RESHARDINGS.last(tenant_id)
    assert item is not None
    return item


def reshard(world: World, shards: int, **how: Any) -> Mover:
    """Ask for it and carry it out, without a wait: nobody else is at work."""
    tenant = tenant_directory.get(world.tenants["acme"].tenant_id)
    reshard_requests.begin(tenant, shards=shards, by=SYSTEM)
    mover = Mover(last(tenant.tenant_id), settle_seconds=0, rate=1e6, **how)
    mover.run()
    return mover


def numbers(tenant: TenantContext, statuses: Sequence[Status] = (Status.OPEN,), *, size: int = 50) -> list[int]:
    """The tickets of a list, page by page."""
    found, after = [], None
    while True:
        page = lists.page(tenant, status=statuses, after=after, size=size)
        found += [row.number for row in page.rows]
        after = page.next
        if after is None:
            return found


def shelves(world: World, shards: int = 16) -> dict[int, list[int]]:
    """Which tickets stand in which partition, whatever their status."""
    tenant_id = world.tenants["acme"].tenant_id
    found: dict[int, list[int]] = {}
    every = [Shelf(status, shard) for status in Status for shard in range(shards)]
    for shelf in shard_rows.occupied(tenant_id, every):
        rows, _ = shard_rows.look(tenant_id, shelf, limit=1000)
        found.setdefault(shelf.shard, []).extend(row.number for row in rows)
    return found


def spread(count: int, shards: int) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for number in range(1, count + 1):
        found.setdefault(stored.status_shard(number, shards), []).append(number)
    return found


def layout_of(world: World) -> ShardLayout:
    return reshard_job.read(world.tenants["acme"].tenant_id)


def sorted_shelves(found: dict[int, list[int]]) -> dict[int, list[int]]:
    return {shard: sorted(some) for shard, some in sorted(found.items())}


def test_tickets_are_spread_over_more_partitions_and_back_and_lists_keep_their_order(world: World) -> None:
    world.tickets("acme", 20)
    changing.change_status(world.context("alice", "acme"), 3, to=Status.PENDING, version=1)
    before = numbers(world.context("alice", "acme"), SOME)
    for shards in (16, 4, 3, 1):
        moved = reshard(world, shards).item
        assert sorted_shelves(shelves(world)) == sorted_shelves(spread(20, shards))
        assert layout_of(world).rests
        assert layout_of(world).readers == shards
        assert numbers(world.context("alice", "acme"), SOME, size=9) == before
        assert (moved.state, int(moved.moved) > 0) == ("done", True)


def test_a_move_changes_no_number_no_version_and_tells_nobody(world: World) -> None:
    world.tickets("acme", 12)
    stream = Follower()
    stream.fold()
    state = {row.number: (row.version, row.updated_at) for row in page_of(world).rows}
    reshard(world, 8)
    assert {row.number: (row.version, row.updated_at) for row in page_of(world).rows} == state
    result = stream.fold()
    assert (result.counts["events"] > 0, result.counts["applied"], result.counts["updates"]) == (True, 0, 0)


def page_of(world: World) -> Any:
    return lists.page(world.context("alice", "acme"), status=SOME)


def test_after_a_kill_at_any_call_lists_are_whole_and_another_process_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.tickets("acme", 12)
    rng, kills = random.Random(1), 0  # noqa: S311  # it has to be repeatable
    tenant_id = world.tenants["acme"].tenant_id
    monkeypatch.setattr(client, "fan_out", one_by_one)
    monkeypatch.setattr(shard_rows, "fan_out", one_by_one)
    for shards in (4, 2):
        reshard_requests.begin(tenant_directory.get(tenant_id), shards=shards, by=SYSTEM)
        while last(tenant_id).state == "running":
            try:
                with killed_at(monkeypatch, rng.randint(2, 25), sent=rng.random() < 0.5):
                    Mover(last(tenant_id), settle_seconds=0, rate=1e6).run()
            except Killed:
                kills += 1
            assert sorted(numbers(world.context("alice", "acme"))) == list(range(1, 13))
        assert sorted_shelves(shelves(world)) == sorted_shelves(spread(12, shards))
    assert kills > 4
    assert [int(item.to_shards) for item in reshard_requests.RESHARDINGS.history(tenant_id)] == [2, 4]


def test_a_stop_leaves_a_layout_in_which_lists_are_whole_and_a_later_one_goes_on(world: World) -> None:
    world.tickets("acme", 12)
    tenant = world.tenants["acme"]
    seen = []

    def stop(phase: str) -> None:
        seen.append(phase)
        if phase == "moving":
            reshard_requests.stop(tenant, by=SYSTEM)

    assert reshard(world, 8, say=stop).item.state == "stopped"
    assert seen == ["widening", "switching", "moving"]
    assert (layout_of(world).readers, layout_of(world).writers, layout_of(world).moving_to) == (8, 8, 0)
    assert sorted(numbers(world.context("alice", "acme"))) == list(range(1, 13))
    assert reshard(world, 1).item.state == "done"
    assert sorted_shelves(shelves(world)) == spread(12, 1)


def test_what_comes_late_is_moved_before_lists_leave_its_partition_and_after(world: World) -> None:
    world.tickets("acme", 12)
    reshard(world, 8)
    stale, (first, second) = world.context("alice", "acme"), [n for n in range(1, 13) if stored.status_shard(n, 8)][:2]
    whole = []

    def late(phase: str) -> None:
        if phase == "narrowing":
            changing.change_status(stale, first, to=Status.PENDING, version=1)
        if phase == "sweeping":
            whole.append(len(numbers(world.context("alice", "acme"), SOME)))
            changing.change_status(stale, second, to=Status.PENDING, version=1)

    reshard(world, 1, say=late)
    assert whole == [12]
    assert sorted_shelves(shelves(world)) == spread(12, 1)


def test_a_process_that_ends_leaves_it_to_others_at_once(world: World) -> None:
    world.tickets("acme", 5)
    going = iter([True, True, False])
    mover = reshard(world, 4, again=lambda: next(going))
    assert (mover.item.state, mover.item.holder) == ("running", "")
    assert ReshardFollower(hot=0, settle_seconds=0).turn() == 1
    assert sorted_shelves(shelves(world)) == sorted_shelves(spread(5, 4))


def test_only_one_runs_at_a_time_and_not_for_nothing(world: World) -> None:
    tenant = world.tenants["acme"]
    with pytest.raises(Conflict, match="1 shard already"):
        reshard_requests.begin(tenant, shards=1, by=SYSTEM)
    reshard_requests.begin(tenant, shards=4, by=SYSTEM)
    with pytest.raises(Conflict, match="being resharded already"):
        reshard_requests.begin(tenant, shards=8, by=SYSTEM)


def test_who_slept_through_a_takeover_changes_no_layout_any_more(world: World) -> None:
    tenant = world.tenants["acme"]
    seen = layout_of(world)
    reshard(world, 4)
    with pytest.raises(Conflict):
        reshard_job.change(tenant.tenant_id, seen, readers=2)
    reshard_requests.begin(tenant_directory.get(tenant.tenant_id), shards=2, by=SYSTEM)
    first = Mover(last(tenant.tenant_id), settle_seconds=0)
    item = reshard_requests.RESHARDINGS.take(last(tenant.tenant_id), me="another")
    assert item.holder == "another"
    with pytest.raises(Conflict):
        first.run()


def test_a_context_that_has_been_used_for_long_reads_the_layout_anew(
    world: World, monkeypatch: pytest.MonkeyPatch, bill: meter.Meter
) -> None:
    alice = world.context("alice", "acme")
    reshard(world, 4)
    before = len(bill.calls)
    assert alice.layout.readers == 1
    assert len(bill.calls) == before
    monkeypatch.setattr(placements, "CONTEXT_SECONDS", -1.0)
    assert (alice.layout.readers, alice.layout.epoch) == (4, layout_of(world).epoch)


def test_a_ticket_written_beyond_the_partitions_by_who_had_stood_still_is_put_right_from_its_record(
    world: World,
) -> None:
    world.tickets("acme", 6)
    reshard(world, 8)
    stale = world.context("alice", "acme")
    reshard(world, 1)
    stream, follower = Follower(), ReshardFollower(hot=0, settle_seconds=0)
    stream.new()
    changing.change_status(stale, 1, to=Status.PENDING, version=1)
    fresh = world.context("alice", "acme")
    assert 1 not in numbers(fresh, SOME)
    follower.turn()
    batch = stream.batch()
    stream.apply(batch.records)
    follower.look(batch)
    assert sorted(numbers(fresh, SOME)) == list(range(1, 7))


def test_the_command_reshards_and_says_so(world: World) -> None:
    world.tickets("acme", 9)
    ended = run("reshard_tenant", "acme", "--shards", "4", "--settle", "0", "--reason", "it is hot")
    moved = sum(len(some) for shard, some in spread(9, 4).items() if shard)
    assert (ended.status, ended.out) == (0, f"acme: 4 shards now, {moved} tickets were moved.\n")
    again = run("reshard_tenant", "acme", "--shards", "4", "--settle", "0")
    assert (again.status, again.out) == (0, "acme has 4 shards already.\n")
    (item,) = reshard_requests.RESHARDINGS.history(world.tenants["acme"].tenant_id)
    assert (item.reason, int(item.from_shards), int(item.to_shards), item.state) == ("it is hot", 1, 4, "done")


def test_the_command_goes_on_with_what_a_killed_one_has_begun(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.tickets("acme", 9)
    with killed_at(monkeypatch, 12, sent=True), pytest.raises(Killed):
        run("reshard_tenant", "acme", "--shards", "4", "--settle", "0")
    monkeypatch.setattr(LeaseWatch, "is_free", lambda self, item: True)
    refused = run("reshard_tenant", "acme", "--shards", "8", "--settle", "0")
    assert (refused.status, "being resharded to 4 shards" in refused.err) == (1, True)
    assert run("reshard_tenant", "acme", "--shards", "4", "--settle", "0").status == 0
    assert sorted_shelves(shelves(world)) == sorted_shelves(spread(9, 4))


def test_the_command_stops_what_runs(world: World) -> None:
    reshard_requests.begin(world.tenants["acme"], shards=4, by=SYSTEM)
    assert run("reshard_tenant", "acme", "--stop").status == 0
    assert last(world.tenants["acme"].tenant_id).state == "stopping"
    ReshardFollower(hot=0, settle_seconds=0).turn()
    assert (last(world.tenants["acme"].tenant_id).state, layout_of(world).rests) == ("stopped", True)
    assert run("reshard_tenant", "acme", "--stop").status == 1


@pytest.mark.parametrize("where", [placed.BRIDGE, placed.SILO], ids=["bridge", "silo"])
def test_tickets_in_a_tenants_own_table_are_spread_there(world: World, where: Placement, settings: Any) -> None:
    settings.SILOS = placed.sites()
    source = StreamSource(placed.lay(world, "acme", where), where)
    world.tickets("acme", 8)
    assert reshard(world, 4).item.state == "done"
    with source.entered():
        assert sorted_shelves(shelves(world)) == sorted_shelves(spread(8, 4))
    assert numbers(world.context("alice", "acme")) == list(range(8, 0, -1))
