"""`place_tenant` and the operators' page move a desk, say how far it is, go back, and discard what is left."""

from __future__ import annotations

from typing import Any

import pytest

from portal.management import command
from tenants.tenancy import tenant_directory
from tests.moving.moves import BRIDGE, POOL, begin, id_of, is_equal, last, move, mover
from tests.support import commands
from tests.support.kills import Killed, killed_at
from tests.support.operators import Operator, tenant_url, text_of
from tests.support.world import World
from tickets.counting import stream_barrier
from tickets.desk import commenting
from tickets.jobs import leased_job
from tickets.jobs.job_follower import JobFollower
from tickets.moving import tenant_mover
from tickets.moving.stored import MoveItem
from tickets.sharding import reshard_job

PAGE = "/admin/places/?tenant=acme"


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody follows each stream."""
    monkeypatch.setattr(stream_barrier, "wait_until_applied", lambda repository, **how: None)


def worker() -> JobFollower[MoveItem]:
    """What a stream worker does beside the stream, without a wait."""
    return tenant_mover.follower(mover={"settle_seconds": 0, "rate": 1e6})


def place(*options: str) -> commands.Ended:
    return commands.run("place_tenant", "acme", "--settle=0", *options)


def test_the_command_moves_a_desk_says_how_far_it_is_goes_back_and_discards(
    world: World, followed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.tickets("acme", 3)
    monkeypatch.setattr(command, "REPORT_SECONDS", 0)
    there = place("--on=bridge", "--grace=3", "--reason=It grows.")
    assert (there.status, "acme lies in tables of its own now. 3 ticket numbers and 0 later changes" in there.out) == (
        0,
        True,
    )
    assert "acme: tickets are copied, up to number 3\n" in there.err
    again = place("--on=bridge", "--grace=3", "--reason=It grows.")
    assert (again.status, again.out) == (0, "acme lies in tables of its own already.\n")
    assert "The old copy in the pool is kept until you delete it with --discard, from " in there.out
    assert is_equal(world, POOL, BRIDGE, tickets=3)
    early = place("--discard")
    assert (early.status, "is kept until" in early.err, "--discard --now" in early.err) == (1, True, True)
    back = place("--roll-back")
    assert (back.status, "acme lies in the pool now." in back.out) == (0, True)
    assert place("--discard", "--now").out == "acme: the old copy in tables of its own is gone.\n"
    assert "There is no old copy of Acme" in place("--roll-back").err


def test_the_command_goes_on_with_what_another_one_has_left(world: World, followed: None) -> None:
    world.tickets("acme", 2)
    going = iter([True] * 3)
    begin(world, BRIDGE)
    assert mover(world, again=lambda: next(going, False)).run() is False
    assert last(world).holder == ""
    assert "is on its way to bridge" in place("--on=silo/nowhere").err
    assert place("--on=bridge").status == 0
    assert is_equal(world, POOL, BRIDGE, tickets=2)


def test_what_cannot_be_is_refused_with_a_sentence_and_at_its_field(world: World, root: Operator) -> None:
    for options, why in (
        ("--on=silo/nowhere", "The settings (SILOS) have no site with the name nowhere."),
        ("--roll-back", "There is no old copy of Acme to go back to."),
        ("--discard", "There is no old copy of Acme."),
    ):
        ended = place(options)
        assert (ended.status, why in ended.err) == (1, True), options
    assert "Acme lies there already." in text_of(root.post(PAGE, {"to": "pool", "grace": "3", "reason": ""}))
    assert "There is no tenant with the slug “nobody”." in root.says("/admin/places/?tenant=nobody")
    assert world.browser("alice", "acme").get(PAGE).status_code in (302, 403, 404)


def test_an_operator_asks_for_a_move_watches_it_and_finds_it_in_the_trail(world: World, root: Operator) -> None:
    world.tickets("acme", 2)
    assert "Its content lies in the pool." in root.says(PAGE)
    assert 'value="" selected' in root.get(PAGE).content.decode()
    asked = root.post(PAGE, {"to": "bridge", "grace": "3", "reason": "It grows."}, follow=True)
    said = text_of(asked)
    assert "The move of Acme is ordered: it is to lie in tables of its own." in said
    assert "Now: pool to bridge, running Step 1 of 6" in said
    assert "Nobody is at work on it yet." in said
    assert "Writes will wait once, some tenths of a second" in said
    assert asked["Refresh"] == "3"
    assert "acme move running preparing waits for a worker" in root.says("/admin/jobs/")
    mover(world).run()
    assert "acme move kept verifying" in root.says("/admin/jobs/")
    done = root.get(PAGE)
    assert "Refresh" not in done
    assert "Its content lies in tables of its own. An old copy is kept in the pool until" in text_of(done)
    assert "Writes waited for at most 0." in text_of(done)
    assert "acme pool to bridge moved It grows. root@example.com" in root.says("/admin/places/")
    assert f'"{PAGE}"' in root.get(tenant_url(world, "acme")).content.decode()
    history = root.says(tenant_url(world, "acme", "history/"))
    assert ("asked for another place of" in history, "moved the content of" in history) == (True, True)


def test_a_stream_worker_carries_out_what_an_operator_has_ordered_and_goes_on_where_another_was_killed(
    world: World, root: Operator, followed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.tickets("acme", 2)
    root.post(PAGE, {"to": "bridge", "grace": "0", "reason": ""})
    first, second = worker(), worker()
    with killed_at(monkeypatch, 40, sent=True), pytest.raises(Killed):
        first.turn()
    assert "It waits" not in root.says(PAGE)
    assert second.turn() == 0, "the dead one may be alive"
    monkeypatch.setattr(leased_job, "LEASE_SECONDS", 0)
    assert worker().turn() == 1
    assert "Its content lies in tables of its own." in root.says(PAGE)
    assert is_equal(world, POOL, BRIDGE, tickets=2)
    assert worker().turn() == 0


def test_a_move_that_cannot_go_on_says_why_rests_and_keeps_no_other_one_waiting(
    world: World, root: Operator, followed: None
) -> None:
    begin(world, BRIDGE, "globex")
    root.post(PAGE, {"to": "bridge", "grace": "0", "reason": ""})
    spread = reshard_job.change(id_of(world), reshard_job.read(id_of(world)), moving_to=4)
    first = worker()
    assert first.turn() == 1
    assert last(world, "globex").state == "kept"
    assert "The desk is being resharded" in root.says(PAGE)
    reshard_job.change(id_of(world), spread, moving_to=0)
    assert first.turn() == 0, "it is tried again too soon"
    assert worker().turn() == 1
    assert "The desk is being resharded" not in root.says(PAGE)


def test_an_operator_has_an_old_copy_discarded_when_its_grace_is_over_and_says_so_twice(
    world: World, root: Operator, followed: None
) -> None:
    world.tickets("acme", 1)
    move(world, BRIDGE)
    page = root.get(PAGE)
    assert "any more, although its grace has not ended" in text_of(page)
    assert 'name="to"' not in page.content.decode(), "it moves nowhere else before"
    move(world, POOL, grace_days=0)
    assert "although its grace" not in root.says(PAGE)
    assert "Tick that you understand the old copy cannot be restored." in text_of(
        root.post(PAGE, {"discard": "1"}, follow=True)
    )
    assert worker().turn() == 0
    asked = text_of(root.post(PAGE, {"discard": "1", "sure": "on"}, follow=True))
    assert "the old copy is being discarded Step 1 of 2: both copies are compared." in asked
    assert worker().turn() == 1
    assert "done, the old copy is gone" in root.says(PAGE)
    assert tenant_directory.get(id_of(world)).former_placement is None
    history = root.says(tenant_url(world, "acme", "history/"))
    assert ("asked to discard the old copy of" in history, "discarded the old copy of" in history) == (True, True)


def test_a_copy_that_has_something_more_is_not_discarded_and_the_page_says_why(
    world: World, root: Operator, followed: None
) -> None:
    world.tickets("acme", 1)
    stale = world.context("alice", "acme")
    move(world, BRIDGE, grace_days=0)
    commenting.comment(stale, 1, body="I stood still for a minute.")
    root.post(PAGE, {"discard": "1", "sure": "on"})
    assert worker().turn() == 0
    assert "The old copy has something that the new place has not, in tickets: 1." in root.says(PAGE)
    assert "Move back to the old copy" in root.get(PAGE).content.decode()


def test_an_operator_ends_a_move_and_goes_back_after_one(world: World, root: Operator) -> None:
    order = {"to": "bridge", "grace": "3", "reason": ""}
    root.post(PAGE, order)
    assert "The move is being called off; the desk stays." in text_of(root.post(PAGE, {"back": "1"}, follow=True))
    mover(world).run()
    assert "The last: pool to bridge, ended before its switch." in root.says(PAGE)
    root.post(PAGE, order)
    mover(world).run()
    assert "The way back to its old copy is ordered." in text_of(root.post(PAGE, {"back": "1"}, follow=True))
    mover(world).run()
    assert "Its content lies in the pool. An old copy is kept in tables of its own" in root.says(PAGE)
    assert tenant_directory.get(id_of(world)).former_placement == "bridge"


def test_the_page_names_the_command_that_goes_on_with_what_stands(world: World, root: Operator) -> None:
    root.post(PAGE, {"to": "bridge", "grace": "3", "reason": ""})
    assert "manage.py place_tenant acme --on bridge" in root.says(PAGE)
    root.post(PAGE, {"back": "1"})
    assert "manage.py place_tenant acme --roll-back" in root.says(PAGE)
    assert place("--roll-back").status == 0


def test_a_copy_without_a_grace_may_go_at_any_time(world: World, followed: None) -> None:
    moved = place("--on=bridge", "--grace=0")
    assert "is kept until you delete it with --discard, at any time." in moved.out
    assert place("--discard").status == 0


def test_the_page_shows_the_tables_of_each_account_and_refuses_a_place_without_room(
    world: World, root: Operator, settings: Any
) -> None:
    accounts = {row["site"]: row["use"] for row in root.get("/admin/places/").context["accounts"]}
    assert accounts.keys() == {"", *settings.SILOS}
    used = accounts[""].used
    assert f"{used} of 2,500 tables a key that AWS owns" in root.says("/admin/places/")
    assert "Encrypted with a key that AWS owns." in root.says(PAGE)
    settings.DYNAMODB_TABLE_QUOTA = used + 1
    assert "soon no desk can get tables of its own" in root.says("/admin/places/")
    assert f"The account has {used} of {used + 1} tables." in root.says("/admin/")
    page = root.post(PAGE, {"to": "bridge", "grace": "3", "reason": ""})
    assert f"the account has {used} of {used + 1} tables in this region" in text_of(page)
    assert "Its content lies in the pool." in root.says(PAGE)
