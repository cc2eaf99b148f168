"""Nothing is counted twice or lost: the real stream of real tickets, delivered again, in parts, by two at a time."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from portal.dynamo import client
from portal.errors import Throttled, Unavailable
from portal.isolation import guard
from portal.streams.batch import Batch, BatchResult
from proofs.scenarios.hostile_poller import Hostile
from tenants.tenancy.context import TenantContext
from tests.support import engine_memory, fakes, folding
from tests.support.folding import Follower, kept_counts, recounted
from tests.support.world import World
from tickets.counting import exactly_once, merge, stream_handler
from tickets.counting.stored import Recent
from tickets.desk import bulk, changing, commenting, creating
from tickets.desk.changing import TicketState
from tickets.ticket.fields import Status
from tickets.ticket.stored import owner_of


@pytest.fixture
def alice(world: World) -> TenantContext:
    """Her tickets have been opened, answered, closed together and reopened."""
    alice, bob = world.context("alice", "acme"), world.context("bob", "acme")

    def make() -> None:
        for n in range(8):
            creating.create(alice, title=f"Ticket {n}", tags=["vpn"] if n % 2 else ["mail", "wifi"])
        commenting.comment(bob, 1, body="Done.", then=Status.RESOLVED)
        bulk.change_status(bob, [TicketState(n, 1, Status.OPEN, "") for n in range(2, 6)], to=Status.CLOSED)
        changing.change_status(bob, 2, to=Status.OPEN, version=2)
        changing.assign(bob, 3, to=bob.user_id, version=2)

    engine_memory.continued("tickets-with-a-history", make)
    return alice


@pytest.fixture
def patch() -> Iterator[pytest.MonkeyPatch]:
    """`monkeypatch` by another name, for tests that change nothing before the tickets are made or brought back."""
    with pytest.MonkeyPatch.context() as patch:
        yield patch


class Killed(BaseException):
    """Nothing catches it, as nothing catches SIGKILL."""


@contextmanager
def failing(patch: pytest.MonkeyPatch, at: int, error: BaseException, *, done: bool) -> Iterator[None]:
    """The given request for aggregates, counted from 1, fails: after it was done, or before it is sent."""
    calls = 0

    def send(real: Callable[[], Any]) -> Any:
        nonlocal calls
        calls += 1
        if calls == at and not done:
            raise error
        answer = real()
        if calls == at:
            raise error
        return answer

    with patch.context() as for_now:
        intercept(for_now, send)
        yield


def intercept(patch: pytest.MonkeyPatch, send: Callable[[Callable[[], Any]], Any]) -> None:
    """Let `send` have each request for a tenant's aggregates, and send it."""
    connection = client.connection("worker")
    real = connection.dispatch

    def dispatch(*request: Any) -> Any:
        return send(lambda: real(*request)) if guard.acted_for() else real(*request)

    patch.setattr(connection, "dispatch", dispatch)


def test_a_batch_that_comes_again_changes_nothing(alice: TenantContext) -> None:
    follower = Follower()
    records = follower.new()
    first, again = follower.apply(records), follower.apply(records)
    assert first.counts["applied"] > 0
    assert (again.counts["events"], again.counts["applied"]) == (first.counts["events"], 0)
    assert kept_counts(alice) == recounted(alice)


@pytest.mark.parametrize("done", [True, False], ids=["after the request", "before it"])
@pytest.mark.parametrize("at", range(1, 6))
def test_a_worker_that_dies_between_two_requests_leaves_the_rest_to_the_next(
    alice: TenantContext, patch: pytest.MonkeyPatch, at: int, done: bool
) -> None:
    patch.setattr(stream_handler, "_ATTRIBUTES", 8)
    patch.setattr(merge, "is_full", lambda state: True)
    follower = Follower()
    records = follower.new()
    with failing(patch, at, Killed(), done=done), pytest.raises(Killed):
        follower.apply(records)
    folding.remember_nothing()
    follower.apply(records)
    assert kept_counts(alice) == recounted(alice)


@pytest.mark.parametrize("error", [Unavailable("away"), Throttled("busy")], ids=["away", "busy"])
def test_a_batch_that_could_not_be_applied_can_be_sent_again(
    alice: TenantContext, patch: pytest.MonkeyPatch, error: Exception
) -> None:
    follower = Follower()
    records = follower.new()
    with failing(patch, 1, error, done=True), pytest.raises(type(error)):
        follower.apply(records)
    follower.apply(records)
    assert kept_counts(alice) == recounted(alice)


def test_a_throttled_tenant_is_deferred_and_the_others_are_done_and_pay_once(
    world: World, alice: TenantContext, patch: pytest.MonkeyPatch
) -> None:
    charlie = world.context("charlie", "globex")
    world.tickets("globex", 3)
    follower = Follower()
    records = follower.new()

    def throttling(real: Callable[[], Any]) -> Any:
        if guard.acted_for() == alice.tenant_id:
            raise Throttled("busy")
        return real()

    with patch.context() as for_now:
        intercept(for_now, throttling)
        first = follower.apply(records)
    assert {owner_of(record.keys["pk"])[0] for record in first.deferred} == {alice.tenant_id}  # type: ignore[index]
    assert kept_counts(charlie) == recounted(charlie)
    again = follower.apply(records)
    assert (again.deferred, kept_counts(alice)) == ((), recounted(alice))
    assert again.counts["applied"] == len(first.deferred)
    spent = again.counts["updates"]
    assert follower.apply(records).counts["updates"] == 0 < spent


def test_a_lost_answer_that_the_client_repeats_counts_once(alice: TenantContext) -> None:
    """The engine did it, the answer was lost, and botocore sends the same update once more."""
    follower = Follower()
    records = follower.new()

    def done_but_lost(params: dict[str, Any]) -> None:
        client.connection("worker").client._make_api_call("UpdateItem", json.loads(params["body"]))

    with fakes.answering("worker", "UpdateItem", done_but_lost):
        follower.apply(records)
    assert kept_counts(alice) == recounted(alice)


def test_two_workers_on_the_same_shard_count_once(alice: TenantContext) -> None:
    follower = Follower()
    records = follower.new()
    errors: list[BaseException] = []

    def work(seed: int) -> None:
        rng, at = random.Random(seed), 0  # noqa: S311  # repeatable
        try:
            while at < len(records):
                step = rng.randint(1, 4)
                follower.apply(records[max(0, at - rng.randrange(3)) : at + step])
                at += step
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert kept_counts(alice) == recounted(alice)


# --- the torture's own poller, and what it is for ---


class Quiet:
    def write(self, **what: Any) -> None:
        pass


def tortured(alice: TenantContext, handle: Callable[[Batch], BatchResult]) -> bool:
    """Whether the numbers are right after hostile deliveries to this handler."""
    follower, rng = Follower(), random.Random(7)  # noqa: S311  # repeatable
    hostile = Hostile(rng, 1.0, Quiet(), handle=handle)  # type: ignore[arg-type]
    records = follower.new()
    for start in range(0, len(records), 7):
        hostile.handle(Batch(follower.arn, follower.shard_id, tuple(records[start : start + 7])))
    return kept_counts(alice) == recounted(alice)


def test_hostile_deliveries_do_no_harm(alice: TenantContext) -> None:
    assert tortured(alice, stream_handler.handle)


def test_the_torture_notices_an_update_without_its_condition(alice: TenantContext, patch: pytest.MonkeyPatch) -> None:
    real = exactly_once.addition

    def careless(*args: Any, **kwargs: Any) -> Any:
        return real(*args, **kwargs)[0], None

    patch.setattr(exactly_once, "addition", careless)
    patch.setattr(Recent, "floor", lambda self, mark: "")
    assert not tortured(alice, stream_handler.handle)
