"""Definitions of a desk for tests: its custom fields and kinds of tickets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenants.audit_trail.recording import Actor
from tenants.tenancy.context import TenantContext
from tests.support.world import World
from tickets.custom_fields import defining
from tickets.custom_fields.defining import FieldWishes, KindWishes
from tickets.custom_fields.definitions import SHOWN, Definitions
from tickets.desk_setup import setup
from tickets.desk_setup.setup import Assigning
from tickets.groups import agent_changes, group_changes
from tickets.ticket.custom_values import FieldType

OWNERS = {"acme": "alice", "globex": "alice"}


def admin_of(world: World, where: str) -> tuple[TenantContext, Actor]:
    tenant = world.context(OWNERS[where], where)
    return tenant, Actor(tenant.user_id, "admin@example.com", "127.0.0.1")


def add_field(world: World, name: str, kind: FieldType = FieldType.TEXT, *, where: str = "acme", **wishes: Any) -> str:
    """Define a field that is asked for tickets without a kind, and return its id."""
    tenant, by = admin_of(world, where)
    wanted = FieldWishes(name, **{"forms": {"": SHOWN}, **wishes})
    return defining.add_field(tenant, kind, wanted, version=setup.read(tenant).version, by=by)


def change_field(world: World, field_id: str, name: str, *, where: str = "acme", **wishes: Any) -> None:
    tenant, by = admin_of(world, where)
    wanted = FieldWishes(name, **wishes)
    defining.change_field(tenant, field_id, wanted, version=setup.read(tenant).version, by=by)


def add_kind(world: World, name: str, *, where: str = "acme", asks: Sequence[str] = (), **wishes: Any) -> str:
    tenant, by = admin_of(world, where)
    wanted = KindWishes(name, fields=dict.fromkeys(asks, SHOWN), **wishes)
    return defining.add_kind(tenant, wanted, version=setup.read(tenant).version, by=by)


def add_group(
    world: World,
    name: str,
    assigns: Assigning = Assigning.HAND,
    *,
    where: str = "acme",
    members: Sequence[str] = (),
    is_default: bool = False,
) -> str:
    """Make a group of these people of the world, and return its id."""
    tenant, by = admin_of(world, where)
    version = setup.read(tenant).version
    made = group_changes.add(tenant, name, assigns, is_default=is_default, version=version, by=by)
    if members:
        agent_changes.set_members(tenant, made, [world.users[one].id for one in members], by=by)
    return made


def defined(world: World, where: str = "acme") -> Definitions:
    return defining.read(world.context(OWNERS[where], where))[0]


def one_of_each_type(world: World, where: str = "acme") -> list[str]:
    """Define a field of each type, asked in every form, and two kinds and two groups; return the ids of the fields."""
    ids = [
        add_field(world, f"Own {kind.value}", kind, where=where, choices=["Red one", "Blue one"], is_column=True)
        for kind in FieldType
    ]
    for name in ("Question", "Problem"):
        add_kind(world, name, where=where, asks=ids)
    for name in ("Billing", "Second level"):
        add_group(world, name, where=where)
    return ids
