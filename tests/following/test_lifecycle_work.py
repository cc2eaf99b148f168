"""What operators order in the admin for whole tenants is carried out without a command, on each host."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import pytest

from tenants.audit_trail.recording import SYSTEM
from tenants.lifecycle import closing_mails, desk_closing
from tenants.tenancy import tenant_directory
from tests.support import commands
from tests.support.folding import Follower
from tests.support.operators import Operator, make_operator
from tests.support.world import World
from tickets.counting import stream_barrier
from tickets.following import lifecycle_lambda, lifecycle_work, ticket_stream
from tickets.jobs.leased_job import LeasedJob
from tickets.management.commands import run_stream
from tickets.moving import place_changes, tenant_mover
from tickets.purging import purge_requests, tenant_purge

PLACES, DELETIONS = "/admin/places/?tenant=acme", "/admin/deletions/?tenant=acme"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    """Nobody is at work whom somebody would have to wait for."""
    settings.CERTIFICATE_KEY = "11" * 32
    for module in (tenant_mover, tenant_purge):
        monkeypatch.setattr(module, "SETTLE_SECONDS", 0)
    monkeypatch.setattr(tenant_purge, "_LOOK_SECONDS", 0)


@pytest.fixture
def root(world: World, monkeypatch: pytest.MonkeyPatch) -> Operator:
    fold = Follower(handler=ticket_stream.handle).fold
    monkeypatch.setattr(stream_barrier, "wait_until_applied", lambda repository, **how: fold())
    make_operator()
    return Operator.signed_in()


def carry_out() -> str:
    return commands.run("run_lifecycle", "--once").out


def test_an_ordered_purge_can_be_taken_back_for_ten_minutes_and_is_certified_then(
    world: World, root: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk_closing.close(world.tenants["acme"].tenant_id, by=SYSTEM, write=closing_mails.to_owners, days=0)
    root.post(DELETIONS, {"reason": "They left.", "slug": "acme"})
    assert "It can be taken back until it begins" in root.says(DELETIONS)
    assert carry_out() == "0 jobs have ended.\n"
    assert tenant_directory.find("acme").status == "closing"
    monkeypatch.setattr(purge_requests, "TAKEN_BACK_MINUTES", 0)
    assert carry_out() == "1 job has ended.\n"
    assert "Download certificate 1 Acme (acme)" in root.says("/admin/deletions/")
    assert carry_out() == "0 jobs have ended.\n"


def test_an_order_for_a_desk_that_was_reopened_is_dropped(
    world: World, root: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    acme = world.tenants["acme"].tenant_id
    monkeypatch.setattr(purge_requests, "TAKEN_BACK_MINUTES", 0)
    desk_closing.close(acme, by=SYSTEM, write=closing_mails.to_owners, days=0)
    root.post(DELETIONS, {"reason": "They left.", "slug": "acme"})
    desk_closing.reopen(acme, by=SYSTEM, write=closing_mails.to_owners)
    assert carry_out() == "0 jobs have ended.\n"
    assert tenant_directory.get(acme).status == "active"
    assert "was ordered by" not in root.says(DELETIONS)


def test_the_function_moves_a_desk_until_its_time_is_up_and_the_next_call_goes_on(
    world: World, root: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.tickets("acme", 1)
    root.post(PLACES, {"to": "bridge", "grace": "1", "reason": ""})
    monkeypatch.setattr(lifecycle_lambda, "_followers", lifecycle_work.followers())
    looks = iter([True, True, True])
    follower = lifecycle_work.followers()[0]
    assert follower.turn(lambda: next(looks, False)) == 0
    assert "Its content lies in the pool." in root.says(PLACES)
    assert lifecycle_lambda.schedule_handler({"source": "aws.events"}, None) == {"ended": 1}
    assert "Its content lies in tables of its own." in root.says(PLACES)


def test_the_command_lets_a_move_go_when_it_is_stopped_and_the_next_one_ends_it(
    world: World, root: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.tickets("acme", 1)
    root.post(PLACES, {"to": "bridge", "grace": "1", "reason": ""})
    rest = LeasedJob._rest

    def stopped_in_the_midst(job: LeasedJob[Any], seconds: float) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        rest(job, 3600)

    monkeypatch.setattr(LeasedJob, "_rest", stopped_in_the_midst)
    assert commands.run("run_lifecycle").status == 0
    monkeypatch.setattr(LeasedJob, "_rest", rest)
    (move,) = place_changes.MOVES.all_last()
    assert (move.holder, move.state in place_changes.MOVES.unfinished) == ("", True)
    assert carry_out() == "1 job has ended.\n", "nobody waits until a lease is over"


@pytest.mark.parametrize("role", ["", "arn:aws:iam::123456789012:role/tenant"])
def test_a_stream_worker_takes_up_whole_tenants_only_where_processes_have_no_roles_of_their_own(
    engine: None, settings: Any, role: str
) -> None:
    settings.TENANT_ROLE_ARN = role
    with run_stream.Command().background_work():
        at_work = {thread.name for thread in threading.enumerate()}
    assert at_work & {"move", "purge"} == (set() if role else {"move", "purge"})
    assert "resharding" in at_work
