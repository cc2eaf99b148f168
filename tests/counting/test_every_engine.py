"""The numbers are right on every engine that the README names: stream, kills, redelivery, rebuild and verify."""

from __future__ import annotations

import pytest

from tests.support import folding
from tests.support.folding import kept_counts, poller, recounted
from tests.support.world import World
from tickets.counting import dead_letters
from tickets.desk import commenting
from tickets.ticket.fields import Status
from tickets.verification import rebuild, verify

pytest_plugins = ["tests.support.engines"]
# moto is a second opinion on requests, not an engine that anybody runs on.
pytestmark = pytest.mark.parametrize("chosen", ["ministack", "dynamodb-local"], indirect=True, scope="module")


@pytest.fixture
def acme(any_world: World) -> World:
    folding.remember_nothing()
    return any_world


def test_what_people_do_is_counted_rebuilt_and_verified(acme: World) -> None:
    alice, bob = acme.context("alice", "acme"), acme.context("bob", "acme")
    acme.tickets("acme", 12)
    commenting.comment(bob, 3, body="Done.", then=Status.RESOLVED)
    with poller():
        assert verify.verify(alice.repository, settle=120).state == verify.OK
        done = rebuild.rebuild(alice.repository, timeout=120)
        assert (done.tickets, done.removed) == (12, [])
        assert verify.verify(alice.repository, settle=120).state == verify.OK
    assert kept_counts(alice) == recounted(alice)
    assert list(dead_letters.all_letters(tenant_id=alice.tenant_id)) == []
