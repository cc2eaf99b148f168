"""One change of all tickets of a list, by a job that survives its workers and can be undone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from portal.errors import Conflict, Forbidden, NotFound
from tenants.audit_trail.recording import Actor
from tenants.tenancy.context import Role, TenantContext
from tests.support.folding import Follower, kept_counts, numbers, recounted
from tests.support.world import World
from tickets.bulk_jobs import bulk_job, bulk_requests
from tickets.bulk_jobs.bulk_job import BulkJob
from tickets.bulk_jobs.bulk_requests import Job
from tickets.desk import changing, creating, many
from tickets.desk.changing import Wishes
from tickets.desk.many import TicketEdit
from tickets.ticket.fields import Priority, Status

URGENT = TicketEdit.of({"priority": "urgent"}, add_tags=["wave"])
OPEN = {"status": "open"}


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_requests, "PART", 2)


def ask(tenant: TenantContext, edit: TicketEdit = URGENT, **how: Any) -> str:
    return bulk_requests.ask(tenant, edit, by=Actor(tenant.user_id), **(how or {"params": OPEN}))


def work(**how: Any) -> int:
    return bulk_job.follower(per_second=1e6, **how).turn()


def job(tenant: TenantContext, job_id: str) -> Job:
    return bulk_requests.find(tenant, job_id)


def done(tenant: TenantContext, job_id: str) -> tuple[str, int, int, int]:
    found = job(tenant, job_id)
    return found.state, int(found.changed), int(found.unchanged), int(found.refused)


def counted(tenant: TenantContext) -> dict[str, int]:
    """The numbers that readers see, which are those of a recount as well."""
    Follower().fold()
    assert kept_counts(tenant) == recounted(tenant)
    return {name: count for name, count in numbers(tenant).items() if count}


def reasons(tenant: TenantContext, job_id: str) -> dict[int, str]:
    return {n: why for one in bulk_requests.outcomes(tenant, job(tenant, job_id)) for n, why in one.refused}


def killed_at(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, when: Callable[[Any], bool]) -> None:
    """Let the process die once, behind the first call of this function for which `when` holds."""
    inner, left = getattr(module, name), [1]

    def dying(*args: Any, **kwargs: Any) -> Any:
        result = inner(*args, **kwargs)
        if left and when(result):
            left.pop()
            raise KeyboardInterrupt
        return result

    monkeypatch.setattr(module, name, dying)


# --- what it does ---


def test_a_job_changes_all_tickets_of_a_list_and_no_other(world: World, alice: TenantContext) -> None:
    world.tickets("acme", 5)
    changing.change(alice, 2, Wishes(status=Status.PENDING))
    changing.change(alice, 3, Wishes(priority=Priority.URGENT, tags=["wave"]))
    job_id = ask(alice)
    assert work() == 1
    assert done(alice, job_id) == ("done", 3, 1, 0)
    assert [changing.read(alice, n).priority for n in range(1, 6)] == ["urgent", "normal", "urgent", "urgent", "urgent"]
    assert changing.read(alice, 1).tags == ["wave"]
    assert counted(alice)["tag open.wave"] == 4


def test_named_tickets_are_changed_unless_the_same_field_was_changed_since_they_were_seen(
    world: World, alice: TenantContext, bob: TenantContext
) -> None:
    world.tickets("acme", 3)
    changing.change(bob, 1, Wishes(priority=Priority.LOW))
    job_id = ask(alice, numbers={1: 1, 2: 1, 9: None})
    work()
    assert done(alice, job_id) == ("done", 1, 0, 2)
    assert reasons(alice, job_id) == {1: "was changed meanwhile: priority", 9: "does not exist"}


def test_a_ticket_that_has_left_the_list_when_its_turn_comes_is_refused(
    world: World, alice: TenantContext, bob: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.tickets("acme", 3)
    inner = BulkJob._changing

    def late(self: BulkJob) -> None:
        changing.change(bob, 2, Wishes(status=Status.CLOSED))
        inner(self)

    monkeypatch.setattr(BulkJob, "_changing", late)
    job_id = ask(alice)
    work()
    assert done(alice, job_id) == ("done", 2, 0, 1)
    assert reasons(alice, job_id) == {2: "is no longer in this list"}


def test_each_refusal_says_why(world: World, alice: TenantContext) -> None:
    world.tickets("acme", 2)
    changing.change(alice, 1, Wishes(status=Status.CLOSED))
    job_id = ask(alice, TicketEdit.of({"status": "pending"}), params={"status": "any"})
    work()
    assert done(alice, job_id) == ("done", 1, 0, 1)
    assert reasons(alice, job_id) == {1: "was refused: A closed ticket cannot become pending"}


def test_a_whole_job_is_undone_but_for_what_was_changed_again(
    world: World, alice: TenantContext, bob: TenantContext
) -> None:
    world.tickets("acme", 5)
    before = counted(alice)
    job_id = ask(alice, TicketEdit.of({"status": "resolved", "resolver": bob.user_id}))
    work()
    changing.change(bob, 4, Wishes(resolver=""))
    undo = bulk_requests.undo(alice, job_id, by=Actor(alice.user_id))
    work()
    assert done(alice, undo) == ("done", 4, 0, 1)
    assert reasons(alice, undo) == {4: "has been changed again since and stays as it is"}
    assert [changing.read(alice, n).status for n in range(1, 6)] == ["open", "open", "open", "resolved", "open"]
    changing.change(bob, 4, Wishes(priority=Priority.NORMAL))
    changing.change(bob, 4, Wishes(status=Status.OPEN, resolver=""))
    after = counted(alice)
    assert {n: c for n, c in after.items() if "reopened" not in n and "resolved" not in n} == before
    with pytest.raises(Conflict, match="undo itself"):
        bulk_requests.undo(alice, undo, by=Actor(alice.user_id))


def test_a_cancelled_job_keeps_what_it_has_done_and_that_can_be_undone(
    world: World, alice: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.tickets("acme", 6)
    job_id = ask(alice)
    edited = many.edit

    def cancelling(*args: Any, **kwargs: Any) -> Any:
        result = edited(*args, **kwargs)
        bulk_requests.cancel(alice, job_id, by=Actor(alice.user_id))
        return result

    monkeypatch.setattr(many, "edit", cancelling)
    monkeypatch.setattr("tickets.jobs.leased_job._HEARTBEAT_SECONDS", 0)
    assert work() == 1
    assert done(alice, job_id) == ("cancelled", 2, 0, 0)
    monkeypatch.undo()
    bulk_requests.undo(alice, job_id, by=Actor(alice.user_id))
    work()
    assert {changing.read(alice, n).priority for n in range(1, 7)} == {"normal"}


def test_a_job_that_was_cancelled_before_it_had_listed_its_tickets_has_nothing_to_undo(
    world: World, alice: TenantContext
) -> None:
    world.tickets("acme", 1)
    job_id = ask(alice)
    bulk_requests.cancel(alice, job_id, by=Actor(alice.user_id))
    assert work() == 1
    with pytest.raises(Conflict, match="changed no ticket"):
        bulk_requests.undo(alice, job_id, by=Actor(alice.user_id))
    ask(alice)
    assert work() == 1


# --- who may ---


def test_a_desk_has_one_job_at_a_time(world: World, alice: TenantContext, bob: TenantContext) -> None:
    world.tickets("acme", 1)
    job_id = ask(alice)
    for how in ({"params": OPEN}, {"numbers": {1: None}}):
        with pytest.raises(Conflict, match="Another bulk change"):
            ask(bob, **how)
    work()
    ask(bob)
    work()
    assert job(alice, job_id).state == "done"
    assert [one.job_id for one in bulk_requests.history(alice)][1] == job_id


def test_only_admins_and_who_asked_may_cancel_or_undo_it(world: World, alice: TenantContext) -> None:
    world.tickets("acme", 1)
    world.add_user("rita")
    world.join("rita", "acme", Role.AGENT)
    job_id = ask(alice)
    with pytest.raises(Forbidden):
        bulk_requests.cancel(world.context("rita", "acme"), job_id, by=Actor("x"))
    work()
    with pytest.raises(Forbidden):
        bulk_requests.undo(world.context("rita", "acme"), job_id, by=Actor("x"))
    with pytest.raises(NotFound):
        bulk_requests.undo(world.context("alice", "globex"), job_id, by=Actor("x"))


def test_a_job_ends_when_who_asked_for_it_may_change_tickets_no_more(
    world: World, alice: TenantContext, bob: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.tickets("acme", 2)
    job_id = ask(bob)
    monkeypatch.setattr("tickets.bulk_jobs.bulk_job.members.member", lambda repository, who: None)
    assert work() == 1
    assert job(alice, job_id).state == "failed"
    assert "may no longer change tickets" in job(alice, job_id).why
    assert changing.read(alice, 1).priority == "normal"


# --- whoever is killed ---


@pytest.mark.parametrize("place", ["put_part", "edit", "part"])
def test_a_worker_that_is_killed_leaves_a_job_that_another_ends_exactly(
    world: World, alice: TenantContext, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    world.tickets("acme", 5)
    job_id = ask(alice)
    module = many if place == "edit" else bulk_requests
    killed_at(monkeypatch, module, place, lambda result: True)
    with pytest.raises(KeyboardInterrupt):
        work()
    assert work() == 1
    assert done(alice, job_id) == ("done", 5, 0, 0)
    assert {int(changing.read(alice, n).version) for n in range(1, 6)} == {2}
    bulk_requests.undo(alice, job_id, by=Actor(alice.user_id))
    work()
    assert {changing.read(alice, n).priority for n in range(1, 6)} == {"normal"}


def test_a_job_that_is_cancelled_behind_a_killed_worker_says_and_undoes_what_that_one_changed(
    world: World, alice: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.tickets("acme", 6)
    job_id = ask(alice)
    edited, calls = many.edit, list[int]()

    def stopping(*args: Any, **kwargs: Any) -> Any:
        """Stand still before the third part; meanwhile others end the job, and undo it."""
        calls.append(1)
        if len(calls) == 3:
            bulk_requests.cancel(alice, job_id, by=Actor(alice.user_id))
            other = bulk_requests.BULKS.under_way(alice.tenant_id)
            assert other is not None
            BulkJob(other).run()
            assert done(alice, job_id) == ("cancelled", 4, 0, 0)
            with monkeypatch.context() as meanwhile:
                meanwhile.setattr(many, "edit", edited)
                bulk_requests.undo(alice, job_id, by=Actor(alice.user_id))
                work()
        return edited(*args, **kwargs)

    monkeypatch.setattr(many, "edit", stopping)
    monkeypatch.setattr("tickets.jobs.leased_job._HEARTBEAT_SECONDS", 1e6)
    work()
    assert {changing.read(alice, n).priority for n in range(1, 7)} == {"normal"}
    assert done(alice, job_id) == ("cancelled", 4, 0, 0)


def test_two_workers_that_hold_a_job_for_a_moment_change_each_ticket_once(
    world: World, alice: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.tickets("acme", 5)
    job_id = ask(alice)
    edited, inside = many.edit, list[int]()

    def meanwhile(*args: Any, **kwargs: Any) -> Any:
        if not inside:
            inside.append(1)
            with monkeypatch.context() as other:
                other.setattr(many, "edit", edited)
                stolen = bulk_requests.BULKS.under_way(alice.tenant_id)
                assert stolen is not None
                BulkJob(stolen, per_second=1e6).run()
        return edited(*args, **kwargs)

    monkeypatch.setattr(many, "edit", meanwhile)
    work()
    assert done(alice, job_id) == ("done", 5, 0, 0)
    assert {int(changing.read(alice, n).version) for n in range(1, 6)} == {2}


def test_long_jobs_of_two_desks_go_by_turns(
    world: World, alice: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.tickets("acme", 4)
    world.tickets("globex", 4)
    theirs = world.context("alice", "globex")
    jobs, met, edited = [ask(alice), ask(theirs)], list[str](), many.edit

    def noted(tenant: TenantContext, *args: Any, **kwargs: Any) -> Any:
        met.append(tenant.slug)
        return edited(tenant, *args, **kwargs)

    monkeypatch.setattr(many, "edit", noted)
    assert work(slice_seconds=0) == 2
    assert [done(*both)[:2] for both in zip((alice, theirs), jobs, strict=True)] == [("done", 4)] * 2
    assert met in (["acme", "globex"] * 2, ["globex", "acme"] * 2)


# --- whatever happens meanwhile ---

EDITS = (
    *(TicketEdit.of({"status": status}) for status in Status),
    TicketEdit.of({"priority": "low"}),
    TicketEdit.of({}, add_tags=["x"], remove_tags=["y"]),
    TicketEdit.of({}, add_tags=["y"], remove_tags=["x"]),
)


@given(
    change=st.sampled_from(range(len(EDITS))),
    others=st.lists(st.tuples(st.integers(1, 5), st.sampled_from(range(len(EDITS)))), max_size=4),
    kills=st.sets(st.integers(0, 6), max_size=3),
    undo=st.booleans(),
)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_each_ticket_is_changed_once_and_the_numbers_are_right_whatever_happens_meanwhile(
    world: World, alice: TenantContext, bob: TenantContext, change: int, others: Any, kills: set[int], undo: bool
) -> None:
    first = creating.create(alice, title="1")
    mine = [first, *(creating.create(alice, title="T") for _ in range(4))]
    calls, queued = [0], list(others)
    with pytest.MonkeyPatch.context() as patch:
        transact = many._write_each

        def troubled(*args: Any, **kwargs: Any) -> Any:
            calls[0] += 1
            if queued:
                which, what = queued.pop()
                patch.setattr(many, "_write_each", transact)
                many.edit(bob, {mine[which - 1]: None}, EDITS[what])
                patch.setattr(many, "_write_each", troubled)
            result = transact(*args, **kwargs)
            if calls[0] in kills:
                raise KeyboardInterrupt
            return result

        patch.setattr(many, "_write_each", troubled)
        before = {n: int(changing.read(alice, n).version) for n in mine}
        job_ids = [ask(alice, EDITS[change], numbers=dict.fromkeys(mine))]
        finish()
        if undo:
            job_ids.append(bulk_requests.undo(alice, job_ids[0], by=Actor(alice.user_id)))
            finish()
    outcomes = [one for job_id in job_ids for one in bulk_requests.outcomes(alice, job(alice, job_id))]
    told = [entry.number for one in outcomes for entry in one.entries]
    theirs = sum(int(changing.read(alice, n).version) - before[n] for n in mine) - len(told)
    assert 0 <= theirs <= len(others)
    assert sum(len(one.entries) + len(one.unchanged) + len(one.refused) for one in outcomes) >= len(mine)
    counted(alice)


def finish() -> None:
    for _ in range(12):
        try:
            if work():
                return
        except KeyboardInterrupt:
            continue
    raise AssertionError("the job does not end")
