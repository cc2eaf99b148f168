"""The setup of a desk is one small item, which each page reads with the desk itself."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import pytest

from portal.dynamo import meter
from portal.errors import Conflict, Invalid
from tenants.audit_trail import browsing
from tenants.audit_trail.recording import Actor
from tenants.tenancy.context import Role
from tests.desk.test_cost import IDENTITY, VIEWS, spent
from tests.support.world import World
from tickets.desk_setup import setup
from tickets.desk_setup.setup import DeskSetup
from tickets.desk_setup.stored import PARTS, ROOM, pack, unpack

PART = PARTS[0]
NOTHING: dict[str, str] = {}


def change(world: World, text: str, *, where: str = "acme", seen: DeskSetup | None = None) -> None:
    tenant = world.context("alice", where)
    by = Actor(tenant.user_id, "alice@example.com", "127.0.0.1")
    told = ({"fields": ""}, {"fields": "one"})
    setup.change(tenant, PART, text, seen=seen or setup.read(tenant), by=by, told=told)


def incompressible(size: int) -> str:
    """A text that takes at most so many bytes in a part."""
    text = "".join(hashlib.sha256(str(turn).encode()).hexdigest() for turn in range(size // 20))
    while len(pack(text)) > size:
        text = text[:-10]
    return text


def test_a_desk_that_has_changed_nothing_has_an_empty_setup(world: World) -> None:
    assert setup.of(world.context("bob", "acme")) == DeskSetup()


def test_a_change_is_read_by_each_page_of_this_desk_and_by_none_of_another(world: World) -> None:
    change(world, "what is new")
    found = setup.of(world.context("bob", "acme"))
    assert (found.version, found.part(PART)) == (1, "what is new")
    assert setup.of(world.context("alice", "globex")) == DeskSetup()


def test_a_page_has_the_setup_without_a_read_and_a_worker_with_one_of_half_a_unit(world: World) -> None:
    change(world, "what is new")
    person = world.context("bob", "acme")
    with meter.measure() as bill:
        assert setup.of(person).part(PART)
        assert bill.calls == []
        worker = replace(person, items={})
        assert setup.of(worker) == setup.of(worker) == setup.of(person)
    assert [(call.operation, call.read_units) for call in bill.calls] == [("GetItem", 0.5)]


def test_a_full_setup_costs_a_page_half_a_unit_like_an_empty_one(world: World) -> None:
    text = incompressible(ROOM - 60)
    change(world, json.dumps({"of a later version": text}))
    bill = spent(world.browser("bob"), "/tickets/")
    assert (bill.trips, bill.calls[0].read_units) == (2, IDENTITY + VIEWS)
    with pytest.raises(Invalid, match="bytes"):
        change(world, json.dumps([text, incompressible(400)[::-1]]))


def test_of_two_who_change_the_same_version_the_second_is_told(world: World) -> None:
    seen = setup.read(world.context("alice", "acme"))
    change(world, "first", seen=seen)
    with pytest.raises(Conflict):
        change(world, "second", seen=seen)
    assert setup.of(world.context("alice", "acme")).part(PART) == "first"


def test_each_change_has_its_row_in_the_audit_trail(world: World) -> None:
    change(world, "what is new")
    row = browsing.page(world.context("alice", "acme").repository, only=browsing.TrailFilter()).rows[0]
    assert (row.action, row.after) == ("tenant.setup_changed", {"fields": "one"})


def test_a_role_that_ended_meanwhile_changes_nothing(world: World) -> None:
    tenant = replace(world.context("bob", "acme"), role=Role.ADMIN)
    by = Actor(tenant.user_id, "bob@example.com", "127.0.0.1")
    with pytest.raises(Conflict):
        setup.change(tenant, PART, "mine", seen=setup.read(tenant), by=by, told=(NOTHING, NOTHING))


@pytest.mark.parametrize("stored", [b"no packed text", pack("cut off")[:-4], pack("x" * 300_000)])
def test_what_is_no_packed_text_or_a_huge_one_is_refused(stored: bytes) -> None:
    with pytest.raises(ValueError, match="text"):
        unpack(stored)
