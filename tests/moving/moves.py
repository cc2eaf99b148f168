"""Moves in the hands of a test: begun, carried out without a wait, and looked at afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from portal.dynamo.placement import Placement
from portal.dynamo.store import Store
from portal.errors import PortalError
from tenants.audit_trail.recording import SYSTEM
from tenants.tenancy import tenant_directory
from tests.support.world import World
from tickets.moving import copy_check, move_requests, place_changes
from tickets.moving.stored import MoveItem
from tickets.moving.tenant_mover import TenantMover
from tickets.moving.ticket_copies import Raw, raw_collection
from tickets.ticket import stored

BRIDGE = Placement("bridge")
POOL = Placement()


def id_of(world: World, slug: str = "acme") -> str:
    return world.tenants[slug].tenant_id


def last(world: World, slug: str = "acme") -> MoveItem:
    item = place_changes.MOVES.last(id_of(world, slug))
    assert item is not None
    return item


def begin(world: World, to: Placement, slug: str = "acme", *, grace_days: int = move_requests.GRACE_DAYS) -> None:
    move_requests.begin(tenant_directory.get(id_of(world, slug)), to=to, grace_days=grace_days, by=SYSTEM)


def mover(world: World, say: Callable[[str], object] = lambda phase: None, **how: Any) -> TenantMover:
    """Whoever carries the move out, without a wait: nobody else is at work, and nobody follows the stream."""
    waits = {"settle_seconds": 0, "rate": 1e6, "caught_up": lambda repository: None}
    return TenantMover(last(world), say=say, **{**waits, **how})


def move(
    world: World,
    to: Placement,
    say: Callable[[str], object] = lambda phase: None,
    grace_days: int = move_requests.GRACE_DAYS,
    **how: Any,
) -> MoveItem:
    begin(world, to, grace_days=grace_days)
    assert mover(world, say, **how).run()
    return last(world)


def ticket(world: World, number: int, placement: Placement, slug: str = "acme") -> list[Raw]:
    """A ticket's items as they are stored at a placement."""
    return raw_collection(Store("lifecycle", id_of(world, slug), placement), stored.ticket(id_of(world, slug), number))


def bodies(world: World, numbers: Iterable[int]) -> list[str]:
    """What was said in these tickets, where the desk lies now."""
    where = world.context("alice", "acme").placement
    every = (raw.get("body", {}).get("S", "") for number in numbers for raw in ticket(world, number, where))
    return [body for body in every if body]


def is_equal(world: World, here: Placement, there: Placement, *, tickets: int) -> bool:
    every = range(1, tickets + 1)
    digests = [[copy_check.digest_of(ticket(world, number, place)) for number in every] for place in (here, there)]
    return digests[0] == digests[1] and all(ticket(world, number, there) for number in every)


def tried(write: Callable[[], object]) -> bool:
    """Tell whether a write was acknowledged."""
    try:
        write()
    except PortalError:
        return False
    return True
