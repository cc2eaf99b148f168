"""Operators see why a tenant is resharded, begin it, watch it, stop it, and find it in the history."""

from __future__ import annotations

from typing import Any

from tenants.audit_trail.recording import SYSTEM
from tenants.tenancy import tenant_directory
from tests.support.operators import IDENTITY, Operator, calls, tenant_url, text_of
from tests.support.world import World
from tickets.sharding import reshard_requests
from tickets.sharding.reshard_follower import ReshardFollower

PAGE = "/admin/shards/?tenant=acme"


def carry_out() -> None:
    ReshardFollower(hot=0, settle_seconds=0).turn()


def begin(root: Operator, **values: Any) -> Any:
    return root.post(PAGE, {"shards": "4", "reason": "A flood is coming.", **values}, follow=True)


def test_an_operator_begins_it_watches_it_and_finds_it_in_the_history(world: World, root: Operator) -> None:
    world.tickets("acme", 5)
    assert "spread over 1 shard." in root.says(PAGE)
    page = begin(root)
    said = text_of(page)
    assert "Acme gets 4 shards. A stream worker begins." in said
    assert "Now: 1 to 4 It waits for a stream worker. Step 1 of 5" in said
    assert "Reason: A flood is coming." in said
    assert page["Refresh"] == "3"
    carry_out()
    done = root.get(PAGE)
    assert "Refresh" not in done
    assert "spread over 4 shards." in text_of(done)
    assert "1 to 4 done A flood is coming. root@example.com" in text_of(done)
    assert "acme 1 to 4 done" in root.says("/admin/shards/")
    assert "asked for other shards of" in root.says(tenant_url(world, "acme", "history/"))


def test_an_operator_stops_it(world: World, root: Operator) -> None:
    begin(root)
    assert "It is being stopped: tickets stay where they are now." in text_of(
        root.post(PAGE, {"stop": "1"}, follow=True)
    )
    carry_out()
    assert "1 to 4 stopped" in root.says(PAGE)
    assert "Nothing is running that could be stopped" in text_of(root.post(PAGE, {"stop": "1"}, follow=True))
    assert "stopped the resharding of" in root.says(tenant_url(world, "acme", "history/"))


def test_what_cannot_be_is_said_beside_the_field_and_what_was_typed_stays(root: Operator) -> None:
    for shards, sentence in (("17", "Use 1-16 shards."), ("1", "Acme has 1 shard already."), ("x", "Use 1-16 shards.")):
        page = begin(root, shards=shards)
        assert sentence in text_of(page)
        assert "A flood is coming." in page.content.decode()
    assert "There is no tenant with the slug “nobody”" in root.says("/admin/shards/?tenant=nobody")


def test_two_operators_begin_one(world: World, root: Operator) -> None:
    reshard_requests.begin(world.tenants["acme"], shards=8, by=SYSTEM)
    assert "Acme is being resharded already." in text_of(begin(root))
    assert int(tenant_directory.find("acme").shards) == 1


def test_the_pages_cost_the_same_however_many_tenants_there_are(root: Operator) -> None:
    for url, wanted in (("/admin/shards/", ["Query"]), (PAGE, ["BatchGetItem", "BatchGetItem", "GetItem", "Query"])):
        with calls() as made:
            root.get(url)
        assert sorted(call.operation for call in made)[1:] == wanted, IDENTITY
