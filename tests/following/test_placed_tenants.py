"""A tenant that has tables of its own is counted, indexed and verified as one of the pool is, by the same workers."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from django.conf import settings

from portal import clock
from portal.dynamo.placement import Placement
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Transaction
from portal.dynamo.tenant_reader import TenantReader
from portal.errors import Invalid
from portal.schema import holdings
from portal.streams import poller_fleet, stream_source, watermark
from portal.streams.batch import batch_of
from portal.streams.poller import Poller
from portal.streams.poller_fleet import PollerFleet
from portal.streams.shard_reader import Metrics, ShardReader
from portal.streams.stored import WATERMARK, ShardItem
from portal.streams.stream_source import POOLED, StreamSource
from tenants.tenancy import placements
from tests.support import folding, placed
from tests.support.commands import run
from tests.support.folding import Follower, in_background, numbers
from tests.support.waiting import wait_until
from tests.support.world import World
from tickets.counting import stream_barrier
from tickets.dashboards import dashboard
from tickets.desk import creating
from tickets.following.lambda_entry import stream_handler
from tickets.following.ticket_stream import handle
from tickets.search import ticket_search
from tickets.ticket.stored import TICKETS


@pytest.fixture(autouse=True)
def sites(settings: Any) -> None:
    settings.SILOS = placed.sites()


@pytest.fixture(params=[placed.BRIDGE, placed.SILO], ids=["bridge", "silo"])
def where(request: pytest.FixtureRequest) -> Placement:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def source(world: World, where: Placement) -> StreamSource:
    """Acme lies there, and Globex in the pool."""
    return StreamSource(placed.lay(world, "acme", where), where)


def opened(world: World, slug: str) -> int:
    return numbers(world.context("alice", slug)).get("open.normal", 0)


def test_one_worker_counts_and_indexes_the_placed_and_the_pooled(world: World, source: StreamSource) -> None:
    creating.create(world.context("alice", "acme"), title="Printer")
    world.tickets("globex", 2)
    ended = run("run_stream", "--once")
    assert ended.status == 0, ended.err
    assert (opened(world, "acme"), opened(world, "globex")) == (1, 2)
    assert [hit.summary.title for hit in ticket_search.find(world.context("alice", "acme"), "printer").hits] == [
        "Printer"
    ]


# --- what belongs to which placement ---


def follow(source: StreamSource, **more: Any) -> Poller:
    """A poller of the tickets' stream of a source, which has taken its shard."""
    with source.entered():
        one = Poller(TICKETS, handle, **more)
        one.step()
    return one


def step(source: StreamSource, one: Poller, times: int = 2) -> None:
    with source.entered():
        for _ in range(times):
            one.step()


def release(source: StreamSource, *pollers: Poller) -> None:
    with source.entered():
        for one in pollers:
            one.release()


def test_verification_and_rebuild_wait_for_the_tenants_own_stream(world: World, source: StreamSource) -> None:
    world.tickets("acme", 2)
    one = follow(source)
    with in_background(lambda _: step(source, one, 1), pause=0.03):
        for command in ("verify_aggregates", "rebuild_aggregates", "rebuild_search", "verify_search"):
            ended = run(command, "--tenant", "acme")
            assert ended.status == 0, ended.err
    release(source, one)
    assert opened(world, "acme") == 2


def test_the_index_can_be_made_anew_so_that_nothing_of_before_is_left(world: World, source: StreamSource) -> None:
    world.tickets("acme", 1)
    one = follow(source, lease_seconds=1)
    with in_background(lambda _: step(source, one, 1), pause=0.03):
        ended = run("rebuild_search", "--tenant", "acme", "--erase")
    release(source, one)
    assert ended.status == 0, ended.err


def test_pages_say_how_old_the_numbers_of_the_tenants_own_stream_are(world: World, source: StreamSource) -> None:
    with source.entered():
        watermark.write(TICKETS, "2026-11-20T10:00:00.000000Z")
    watermark.write(TICKETS, clock.stamp())
    own, pooled = (dashboard.share(world.context("alice", slug)).freshness for slug in ("acme", "globex"))
    assert (own.state, pooled.state) == ("behind", "current")


def test_of_two_workers_one_goes_on_with_the_own_stream_where_the_other_ended(
    world: World, source: StreamSource
) -> None:
    first, second = follow(source), follow(source)
    world.tickets("acme", 1)
    step(source, first)
    step(source, second)
    assert (first.held, second.held, opened(world, "acme")) == (1, 0, 1)
    release(source, first)
    world.tickets("acme", 1)
    with source.entered():
        wait_until(lambda: opened(world, "acme") == 2, working=second.step)
    release(source, second)


def test_a_record_of_another_tenant_in_an_own_stream_is_passed_over(
    world: World, source: StreamSource, caplog: pytest.LogCaptureFixture
) -> None:
    globex = world.tenants["globex"].tenant_id
    with source.entered():
        reader = ShardReader(TICKETS, ShardItem("arn", "shard"), "me", handle, Metrics())
        reader._handle(batch_of("arn", "shard", folding.created(globex, range(1, 3))).records)
    assert "2 records in the stream" in caplog.text
    assert opened(world, "globex") == 0


# --- which placements are followed ---


def kept_of(source: StreamSource) -> list[str]:
    """What stands under the ARNs of the source's streams, and the notes of those."""
    (followed,) = (holding for holding in holdings.holdings() if holding.name == "followed streams")
    shards = [one.item["shard"]["S"] for one in followed.find(TenantReader(source.tenant_id))]
    return [shard for shard in shards if shard != WATERMARK]


def test_a_placement_is_followed_from_when_it_is_listed_until_it_is_not(world: World, where: Placement) -> None:
    fleet = PollerFleet(TICKETS, partial(Poller, TICKETS, handle, threads=poller_fleet.THREADS), look_seconds=0.05)
    with fleet.running():
        tenant_id = placed.lay(world, "acme", where)
        world.tickets("acme", 1)
        wait_until(lambda: opened(world, "acme") == 1)
        source = StreamSource(tenant_id, where)
        assert kept_of(source)
        placed.unlist(tenant_id, where)
        wait_until(lambda: not fleet.reports())
        world.tickets("acme", 1)
    assert opened(world, "acme") == 1, "nobody counts what nobody follows"
    assert kept_of(source) == []


def test_a_site_that_is_away_keeps_nobody_waiting(world: World, settings: Any) -> None:
    settings.SILOS = placed.sites() | {"gone": {"endpoint_url": "http://127.0.0.1:9", "prefix": "Gone"}}
    placed.lay(world, "acme", placed.BRIDGE)
    listing = Transaction()
    placements.list_it(listing, world.tenants["globex"].tenant_id, Placement("silo", "gone"))
    PLATFORM.transact(listing)
    fleet = PollerFleet(TICKETS, partial(Poller, TICKETS, handle))
    with fleet.running():
        world.tickets("acme", 1)
        wait_until(lambda: opened(world, "acme") == 1)
        assert not fleet.caught_up(0.0)


# --- the function ---


def event(source: StreamSource) -> dict[str, Any]:
    """What Lambda brings of a source's stream."""
    with source.entered():
        follower = Follower()
        records = [dict(record.raw) for record in follower.new()]
        return {"Records": records, "shardId": follower.shard_id, "eventSourceARN": follower.arn}


def test_the_function_counts_an_own_stream_by_the_name_in_its_arn(world: World, source: StreamSource) -> None:
    world.tickets("acme", 2)
    sent = event(source)
    for _ in range(2):
        assert stream_handler(sent, None) == {"state": {}, "batchItemFailures": []}
    assert opened(world, "acme") == 2


def test_the_schedule_says_of_each_own_stream_up_to_when_it_is_applied(world: World, source: StreamSource) -> None:
    stream_handler({"source": "aws.events"}, None)
    assert watermark.read(TICKETS, world.context("alice", "acme").repository) is not None


ARN = "arn:aws:dynamodb:{region}:111111111111:table/{prefix}.{tenant}.Support.Tickets/stream/1"
TENANT = "a" * 32


def of_arn(**named: str) -> StreamSource:
    return stream_source.of_arn(
        ARN.format(
            **{"region": settings.AWS_REGION, "prefix": settings.DYNAMODB_TABLE_PREFIX, "tenant": TENANT} | named
        )
    )


def test_an_arn_says_whose_stream_it_is(settings: Any) -> None:
    settings.SILOS = {"paris": {"region": "eu-west-3"}, "own": {"prefix": "Own"}}
    assert of_arn() == StreamSource(TENANT, placed.BRIDGE)
    assert of_arn(region="eu-west-3") == StreamSource(TENANT, Placement("silo", "paris"))
    assert of_arn(prefix="Own") == StreamSource(TENANT, Placement("silo", "own"))
    assert of_arn(tenant="shared") == POOLED


@pytest.mark.parametrize("named", [{"region": "eu-west-9"}, {"prefix": "Strange"}])
def test_the_stream_of_an_own_table_at_no_site_of_the_settings_is_refused(named: dict[str, str]) -> None:
    with pytest.raises(Invalid, match="0 sites"):
        of_arn(**named)


def test_of_two_sites_in_one_region_the_account_of_the_role_decides(settings: Any) -> None:
    settings.SILOS = {"own": {"tenant_role_arn": "arn:aws:iam::111111111111:role/Tenants"}}
    settings.TENANT_ROLE_ARN = "arn:aws:iam::222222222222:role/Tenants"
    assert of_arn() == StreamSource(TENANT, Placement("silo", "own"))


def test_a_barrier_waits_until_the_position_in_the_own_stream_is_noted(world: World, source: StreamSource) -> None:
    world.tickets("acme", 1)
    one = follow(source)
    with in_background(lambda _: step(source, one, 1), pause=0.03):
        stream_barrier.wait_until_applied(world.context("alice", "acme").repository, timeout=60, for_good=True)
    release(source, one)
    assert opened(world, "acme") == 1
