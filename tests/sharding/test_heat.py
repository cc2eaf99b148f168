"""A partition that is written too much is found among many, and its tenant gets more shards by itself."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from portal.heat_sketch import COUNTERS, HeatSketch
from portal.streams.batch import Batch, Record, parse
from tenants.audit_trail.recording import SYSTEM
from tests.support.world import World
from tickets.sharding import hot_partitions, reshard_job, reshard_requests
from tickets.sharding.hot_partitions import HeatWatch
from tickets.sharding.reshard_follower import ReshardFollower
from tickets.ticket import stored

ACME = "ac" * 16


def written(tenant_id: str, at: int, *, number: int = 1, shard: int = 0, size: int = 1024) -> Record:
    """A comment on a ticket: its row leaves one place of the partition and comes back at another."""
    image = {"tenant_status": {"S": stored.tenant_status(tenant_id, "OPEN", shard)}}
    raw = {
        "eventName": "MODIFY",
        "dynamodb": {
            "ApproximateCreationDateTime": 1_780_000_000 + at,
            "Keys": {"pk": {"S": stored.ticket(tenant_id, number)}, "sk": {"S": stored.SUMMARY}},
            "OldImage": image, "NewImage": image, "SequenceNumber": "1", "SizeBytes": 2 * size,
        },
    }  # fmt: skip
    return parse(raw)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_heaviest_of_ten_thousand_tenants_are_found_with_bounded_memory(seed: int) -> None:
    rng, sketch, true = random.Random(seed), HeatSketch(), Counter[str]()  # noqa: S311  # it has to be repeatable
    names = [f"tenant {n}" for n in range(10_000)]
    rng.shuffle(names)
    for name in rng.choices(names, [1 / (n + 1) for n in range(10_000)], k=60_000):
        sketch.add(name, 1)
        true[name] += 1
    assert len(sketch) == COUNTERS
    top = {name for name, _ in true.most_common(10)}
    assert len(top & set(sketch.top(10))) / 10 >= 0.95
    sure = sketch.at_least(60_000 / COUNTERS)
    assert all(count <= true[name] for name, count in sure.items()), "somebody is called hotter than they are"


def heated(watches: list[HeatWatch], *, seconds: int, each: int, size: int = 1024, shard: int = 0) -> list[Any]:
    """So many changes a second of Acme's open tickets, spread over these workers."""
    for at in range(seconds):
        for n in range(each):
            watches[n % len(watches)].add([written(ACME, at, shard=shard, size=size)])
    return [heat for watch in watches for heat in watch.hot()]


@pytest.mark.parametrize(
    ("hot", "seconds", "units"), [(20, 70, {30.0}), (31, 70, set()), (20, 35, set())], ids=["hot", "below", "a peak"]
)
def test_a_partition_is_hot_after_three_windows_over_the_bound(
    engine: None, hot: int, seconds: int, units: set[float]
) -> None:
    found = heated([HeatWatch(hot=hot)], seconds=seconds, each=15)
    assert {heat.units for heat in found} == units
    assert {(heat.tenant_id, heat.status, heat.shard) for heat in found} == ({(ACME, "OPEN", 0)} if units else set())


def test_what_several_workers_see_is_added_up(engine: None) -> None:
    found = heated([HeatWatch(hot=20) for _ in range(3)], seconds=70, each=15)
    assert max(heat.units for heat in found) == 30.0


def test_what_is_not_warm_costs_nothing(engine: None, bill: Any) -> None:
    assert heated([HeatWatch(hot=1000)], seconds=60, each=3) == []
    assert bill.calls == []


@pytest.mark.parametrize(
    ("shards", "units", "wanted"),
    [(1, 500, 2), (1, 600, 4), (1, 4000, 16), (2, 510, 8), (8, 600, 16), (16, 800, 16), (1, 1000, 16)],
)
def test_so_many_shards_are_asked_for_that_each_has_room(shards: int, units: float, wanted: int) -> None:
    assert hot_partitions.wanted_shards(shards, units, 500) == wanted


def test_a_hot_tenant_is_resharded_by_itself_once_and_the_reason_is_kept(world: World) -> None:
    tenant_id = world.tenants["acme"].tenant_id
    world.tickets("acme", 6)
    follower = ReshardFollower(hot=20, settle_seconds=0)
    for start in (0, 100):
        for at in range(start, start + 70):
            follower.look(Batch("arn", "1", tuple(written(tenant_id, at) for _ in range(15))))
        assert follower.turn() == (not start)
    assert reshard_job.read(tenant_id).readers == 4
    (item,) = reshard_requests.RESHARDINGS.history(tenant_id)
    assert item.reason == "Partition 0 of open tickets took 30 write units a second, and 20 count as hot."
    assert (item.by, item.state) == ("", "done")


def test_who_is_being_resharded_is_not_asked_again(world: World) -> None:
    tenant = world.tenants["acme"]
    reshard_requests.begin(tenant, shards=2, by=SYSTEM)
    heat = hot_partitions.Heat(tenant.tenant_id, "OPEN", 0, 900)
    assert hot_partitions.ask([heat], reshard_requests.RESHARDINGS.all_last(), hot=500) == []
    assert hot_partitions.ask([heat], [], hot=500) == []
