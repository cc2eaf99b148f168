"""Dead letters of a tenant that has tables of its own: kept at home, counted where its aggregates lie, once."""

from __future__ import annotations

from typing import Any

import pytest

from portal.dynamo import provisioning
from portal.dynamo.placement import POOL
from portal.errors import Conflict, NotFound
from portal.streams.batch import batch_of
from portal.streams.stream_source import StreamSource
from tenants.audit_trail import recording
from tenants.audit_trail.recording import SYSTEM
from tests.support import folding, placed
from tests.support.folding import ARN, created, numbers
from tests.support.world import World
from tickets.counting import dead_letters
from tickets.counting.stored import DeadLetterItem
from tickets.counting.stream_handler import handle


@pytest.fixture(params=[placed.BRIDGE, placed.SILO], ids=["bridge", "silo"])
def source(world: World, request: pytest.FixtureRequest, settings: Any) -> StreamSource:
    settings.SILOS = placed.sites()
    return StreamSource(placed.lay(world, "acme", request.param), request.param)


@pytest.fixture
def letter(source: StreamSource) -> DeadLetterItem:
    """Of two tickets in the tenant's own stream one has a status that the worker does not know yet."""
    fold(source)
    (kept,) = dead_letters.all_letters()
    return kept


def fold(source: StreamSource) -> None:
    records = created(source.tenant_id, range(1, 2)) + created(source.tenant_id, range(2, 3), status="escalated")
    with source.entered():
        handle(batch_of(ARN, "shard", records))


def counted(world: World) -> tuple[int, int]:
    found = numbers(world.context("alice", "acme"))
    return found.get("open.normal", 0), found.get("resolved.normal", 0)


def test_it_is_counted_in_the_tenants_own_aggregates_once(
    world: World, letter: DeadLetterItem, knows_escalated: None
) -> None:
    assert counted(world) == (1, 0)
    dead_letters.replay(letter, by=SYSTEM)
    with pytest.raises(NotFound):
        dead_letters.replay(letter, by=SYSTEM)
    assert counted(world) == (1, 1)
    assert list(dead_letters.all_letters()) == []


def test_a_replay_that_came_half_way_counts_once_and_cannot_be_dropped(
    world: World, letter: DeadLetterItem, knows_escalated: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(recording, "commit", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            dead_letters.replay(letter, by=SYSTEM)
    half = counted(world)
    if half == (1, 1):  # in a silo, whose aggregates no transaction holds together with what is at home
        with pytest.raises(Conflict, match="counted already"):
            dead_letters.drop(letter, by=SYSTEM)
    dead_letters.replay(letter, by=SYSTEM)
    assert counted(world) == (1, 1)
    assert list(dead_letters.all_letters()) == []


def test_the_same_records_again_leave_what_was_dropped_dropped(
    world: World, source: StreamSource, letter: DeadLetterItem
) -> None:
    dead_letters.drop(letter, by=SYSTEM)
    folding.remember_nothing()
    fold(source)
    assert list(dead_letters.all_letters()) == []
    assert counted(world) == (1, 0)


def test_one_of_a_place_where_the_desk_does_not_lie_is_refused(
    world: World, letter: DeadLetterItem, knows_escalated: None
) -> None:
    placed.say(letter.tenant_id, POOL)
    with pytest.raises(Conflict, match="The desk lies elsewhere now"):
        dead_letters.replay(letter, by=SYSTEM)
    dead_letters.drop(letter, by=SYSTEM)
    assert list(dead_letters.all_letters()) == []


def test_one_of_a_copy_that_is_no_more_can_be_dropped(source: StreamSource, letter: DeadLetterItem) -> None:
    placed.say(letter.tenant_id, POOL)
    provisioning.delete_placed(letter.tenant_id, source.placement)
    dead_letters.drop(letter, by=SYSTEM)
    assert list(dead_letters.all_letters()) == []
