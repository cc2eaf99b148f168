"""A verification that was killed or stopped is gone on with: for less, and exactly, though tickets change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from portal.dynamo import meter
from portal.dynamo.store import Store
from tenants.tenancy.context import TenantContext
from tests.support import commands, engine_memory
from tests.support.folding import Follower, contribution, plant
from tests.support.world import World
from tickets.counting import contributions
from tickets.counting.contributions import Part
from tickets.desk import changing, creating
from tickets.ticket import stored as ticket_keys
from tickets.ticket.fields import Status
from tickets.ticket.stored import CounterItem
from tickets.verification import recount, verify
from tickets.verification.recount import GROUP
from tickets.verification.verify import Difference, Verdict

GROUPS = 4
TICKETS = 3 * GROUPS


class Killed(BaseException):
    """Nothing catches it, as nothing catches SIGKILL."""


@pytest.fixture(autouse=True)
def quick() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:  # who asks for `monkeypatch` has no tickets brought back
        patch.setattr(verify, "PAUSE", 0.01)
        yield


@pytest.fixture
def acme(world: World) -> TenantContext:
    """Alice's tenant has three tickets in each of several groups of numbers, and the rest of the numbers are gaps."""
    alice = world.context("alice", "acme")

    def make() -> int:
        for _ in range(GROUPS):
            world.tickets("acme", 3)
            last = alice.repository.increment(
                CounterItem, ticket_keys.counter, sort=ticket_keys.COUNTER_TICKET, by=GROUP - 3
            )
        return int(last.last)

    assert engine_memory.continued("tickets-in-groups", make) == GROUPS * GROUP
    return alice


@pytest.fixture
def follower(acme: TenantContext) -> Iterator[Follower]:
    follower = Follower()
    follower.fold()
    with follower.following():
        yield follower


@pytest.fixture
def alice(acme: TenantContext, follower: Follower) -> TenantContext:
    """She, when all that is there is counted."""
    return acme


def killed_behind(tenant: TenantContext, groups: int) -> None:
    """A verification that dies when it has read so many groups."""
    left = groups

    def advance(numbers: int) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise Killed

    with pytest.raises(Killed):
        verify.verify(tenant.repository, settle=120, advance=advance)


def gone_on(tenant: TenantContext) -> tuple[Verdict, list[int]]:
    """The next verification, and behind which numbers its recounts have begun."""
    began: list[int] = []
    return verify.verify(tenant.repository, settle=120, begun=began.append), began


def test_the_next_run_goes_on_where_a_killed_one_was_and_says_so(alice: TenantContext) -> None:
    killed_behind(alice, 2)
    ended = commands.run("verify_aggregates", "--tenant", "acme", "--settle", 120)
    assert ended.status == 0, ended.err
    assert f"acme: goes on behind ticket {2 * GROUP:,}" in ended.out
    assert f"{TICKETS} tickets: nothing is wrong" in ended.out


def test_what_a_killed_run_has_read_is_not_read_again(alice: TenantContext) -> None:
    killed_behind(alice, 3)
    with meter.measure() as bill:
        verdict, began = gone_on(alice)
    assert (verdict.state, verdict.tickets, began) == (verify.OK, TICKETS, [3 * GROUP])
    batches = [call for call in bill.calls if call.operation == "BatchGetItem"]
    assert len(batches) == recount.AT_ONCE
    assert bill.read_units <= GROUP + 30  # the aggregates and three sums


def test_what_is_kept_costs_little_beside_what_is_read(alice: TenantContext) -> None:
    with meter.measure() as bill:
        assert verify.verify(alice.repository, settle=120).state == verify.OK
    assert bill.read_units >= GROUPS * GROUP
    assert bill.write_units <= 0.01 * GROUPS * GROUP


def test_a_small_tenant_keeps_nothing(world: World, alice: TenantContext) -> None:
    globex = world.context("charlie", "globex")
    with meter.measure() as bill:
        assert verify.verify(globex.repository, settle=120).state == verify.OK
    assert bill.write_units == 0


def test_a_verification_that_has_ended_is_begun_anew(alice: TenantContext) -> None:
    killed_behind(alice, 2)
    assert [gone_on(alice)[1] for _ in range(2)] == [[2 * GROUP], [0]]


def test_tickets_that_change_during_the_break_are_no_drift(world: World, alice: TenantContext) -> None:
    killed_behind(alice, 2)
    changing.change_status(alice, 1, to=Status.CLOSED, version=1)
    changing.change_status(alice, 3 * GROUP + 1, to=Status.CLOSED, version=1)
    creating.create(alice, title="One more")
    verdict, began = gone_on(alice)
    assert (verdict.state, verdict.differences, verdict.tickets) == (verify.OK, [], TICKETS + 1)
    assert began == [2 * GROUP, 0]


def test_what_was_wrong_before_the_break_is_found_after_it(alice: TenantContext) -> None:
    plant(alice, "DAY", "2020-01-01", created=4)
    killed_behind(alice, 2)
    changing.change_status(alice, 1, to=Status.CLOSED, version=1)
    verdict, began = gone_on(alice)
    assert verdict.differences == [Difference("2020-01-01", "created", 4, 0)]
    assert began == [2 * GROUP]


def test_drift_that_a_change_in_the_break_makes_up_for_is_found(alice: TenantContext, follower: Follower) -> None:
    """Before the break ticket 1 was open, and is closed in it; the numbers that are wrong look as if it were open."""
    killed_behind(alice, 2)
    before = contribution(changing.read(alice, 1).serialize())
    changing.change_status(alice, 1, to=Status.CLOSED, version=1)
    after = contribution(changing.read(alice, 1).serialize())
    follower.fold()
    undone = contributions.difference(before, after)[Part("TOTALS", "", 0)]
    plant(alice, "TOTALS", **{name.replace(".", "_"): n for name, n in undone.items()})
    verdict, _ = gone_on(alice)
    assert verdict.state == verify.DRIFT
    assert {one.item for one in verdict.differences} == {"TOTALS"}


@contextmanager
def dying(monkeypatch: pytest.MonkeyPatch, at: int) -> Iterator[list[int]]:
    """The process dies ahead of its request of this number, counted from 1."""
    real, sent = Store._connection, [0]

    @contextmanager
    def connection(self: Store, *placement: Any) -> Iterator[Any]:
        sent[0] += self.role == "tenant"  # those of the stream's worker are another process's
        if sent[0] >= at and self.role == "tenant":
            raise Killed
        with real(self, *placement) as found:
            yield found

    with monkeypatch.context() as patch:
        patch.setattr(Store, "_connection", connection)
        yield sent


def test_it_may_be_killed_between_any_two_requests(alice: TenantContext, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(alice, "TOTALS", open_normal=2)
    deaths, at = 0, 2
    while True:
        try:
            with dying(monkeypatch, at):
                verdict = verify.verify(alice.repository, settle=120)
        except Killed:
            deaths += 1
            at = at + 3 if at < 40 else at + 20
            continue
        break
    assert verdict.differences == [Difference("TOTALS", "open.normal", TICKETS + 2, TICKETS)]
    assert deaths > 5
