"""Rules run when something happens to a ticket: through the outbox and the worker's handler, up to the history."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.core import mail

from delivery.outbox import outbox_rows
from delivery.outbox.publisher import Event, EventField, EventType, publish
from portal import clock
from portal.dynamo.store import Transaction
from portal.errors import Conflict
from tenants.audit_trail.recording import SYSTEM
from tenants.membership import member_changes
from tests.rules.conftest import AddRule
from tests.support import defined, deliveries, mailing
from tests.support.endpoints import endpoint
from tests.support.outbox import rows
from tests.support.world import World
from tickets.desk import changing, commenting, creating, many, rating, timelines
from tickets.desk_setup.setup import Assigning
from tickets.merging import ticket_merging
from tickets.ready_answers import answer_changes
from tickets.ready_answers.answer_reading import Given
from tickets.requesters import requesters
from tickets.rules import definition, engine, rule_changes, runs, stored
from tickets.rules.stored import RunCountItem
from tickets.spam import spam_marking
from tickets.ticket.causes import Cause
from tickets.ticket.fields import Channel, Priority, Rating, Status
from tickets.ticket.stored import ActivityItem, SummaryItem


def opened(world: World, **values: Any) -> int:
    number = creating.create(world.context("alice", "acme"), **({"title": "The printer"} | values))
    carry()
    return number


def carry() -> None:
    """Let the worker deliver until nothing is left."""
    for _ in range(12):
        if not mailing.carry():
            return
    raise AssertionError("deliveries go on and on")


def ticket(world: World, number: int) -> SummaryItem:
    return changing.read(world.context("alice", "acme"), number)


def history(world: World, number: int) -> list[ActivityItem]:
    return timelines.ticket(world.context("alice", "acme"), number).activity


def ran(world: World, rule_id: str) -> int:
    return len(runs.listed(world.context("alice", "acme"), rule_id)[0])


# --- when ---


def test_a_rule_changes_a_ticket_that_is_created(world: World, rule: AddRule) -> None:
    bob = world.users["bob"].id
    rule_id = rule("created", {"priority": "urgent"}, set={"resolver": bob, "status": "pending"}, add_tags=["now"])
    number, other = opened(world, priority=Priority.URGENT), opened(world)
    found = ticket(world, number)
    assert (found.resolver, found.status, list(found.tags), found.version) == (bob, "pending", ["now"], 2)
    assert ticket(world, other).version == 1
    assert ran(world, rule_id) == 1


def test_a_change_by_a_rule_says_by_which_rule_and_version_it_was_made(world: World, rule: AddRule) -> None:
    rule_id = rule("created", set={"priority": "high"}, name="All of them")
    number = opened(world)
    entry = history(world, number)[-1]
    assert (entry.author, entry.author_name) == ("", "Rule “All of them”")
    cause = Cause.parse(entry.cause)
    assert cause is not None
    assert (cause.rule_id, cause.version, cause.depth) == (rule_id, 1, 1)
    (run,) = runs.listed(world.context("alice", "acme"), rule_id)[0]
    assert runs.find(world.context("alice", "acme"), rule_id, f"{cause.event}-{number}").entry == run.entry != ""


EVENTS: list[tuple[dict[str, str], str, bool]] = [
    ({"event": "changed"}, "status", True),
    ({"event": "changed"}, "assignee", True),
    ({"event": "changed"}, "title", True),
    ({"event": "changed", "what": "status"}, "status", True),
    ({"event": "changed", "what": "status"}, "title", False),
    ({"event": "changed", "by": "desk"}, "title", True),
    ({"event": "changed", "by": "outside"}, "title", False),
    ({"event": "changed"}, "comment", False),
    ({"event": "changed"}, "created", False),
    ({"event": "answered"}, "comment", True),
    ({"event": "answered"}, "note", False),
    ({"event": "answered", "by": "outside"}, "comment", False),
    ({"event": "created"}, "title", False),
    ({"event": "rated"}, "rating", True),
    ({"event": "rated"}, "title", False),
    ({"event": "changed"}, "rating", False),
]


@pytest.mark.parametrize(("when", "what", "runs_then"), EVENTS)
def test_a_rule_runs_for_its_kind_of_event_alone(
    world: World, rule: AddRule, when: dict[str, str], what: str, runs_then: bool
) -> None:
    alice = world.context("alice", "acme")
    number = creating.create(alice, title="The printer", resolver=alice.user_id)
    if what == "rating":
        changing.change_status(alice, number, to=Status.RESOLVED, version=2)
    carry()
    rule_id = rule(when, add_tags=["seen"])
    alice = world.context("alice", "acme")
    match what:
        case "status":
            changing.change_status(alice, number, to=Status.PENDING, version=2)
        case "assignee":
            changing.assign(alice, number, to="", version=2)
        case "title":
            changing.edit(alice, number, version=2, title="Another")
        case "comment" | "note":
            commenting.comment(alice, number, body="Hello", internal=what == "note")
        case "rating":
            rating.rate(alice, number, Rating.GOOD, request_id="one")
        case "created":
            number = creating.create(alice, title="Another", resolver=alice.user_id)
    carry()
    assert ran(world, rule_id) == runs_then
    assert ("seen" in ticket(world, number).tags) == runs_then


def test_rules_run_for_a_ticket_and_an_answer_of_which_mail_goes_to_the_requester(world: World, rule: AddRule) -> None:
    created, answered = rule("created", add_tags=["new"]), rule("answered", add_tags=["answered"])
    alice = world.context("alice", "acme")
    ada = requesters.ensure(alice, "ada@example.org")
    number = creating.create(alice, title="The printer", requester=ada, acknowledge=True)
    carry()
    commenting.comment(world.context("alice", "acme"), number, body="Hello")
    carry()
    assert (ran(world, created), ran(world, answered)) == (1, 1)
    assert sorted(ticket(world, number).tags) == ["answered", "new"]


def test_one_change_of_several_fields_is_one_event(world: World, rule: AddRule) -> None:
    rule_id = rule("changed", add_tags=["seen"])
    number = opened(world)
    change = changing.Wishes(priority=Priority.HIGH, status=Status.PENDING, resolver=world.users["bob"].id)
    changing.change(world.context("alice", "acme"), number, change)
    carry()
    assert ran(world, rule_id) == 1
    assert ticket(world, number).version == 3


def test_each_ticket_of_a_change_of_many_is_an_event_of_its_own(world: World, rule: AddRule) -> None:
    rule_id = rule("changed", {"priority": "high"}, add_tags=["seen"])
    world.tickets("acme", 3)
    edit = many.TicketEdit.of({"priority": "high", "status": "pending"})
    many.edit(world.context("alice", "acme"), {1: None, 2: None, 3: None}, edit)
    carry()
    assert ran(world, rule_id) == 3
    assert all("seen" in ticket(world, number).tags for number in (1, 2, 3))


@pytest.mark.parametrize("moment", definition.DUE)
def test_a_rule_runs_when_a_moment_of_a_ticket_has_come(world: World, rule: AddRule, moment: str) -> None:
    soon = rule({"event": "due", "what": "due_soon"}, set={"priority": "high"})
    either = rule("due", add_tags=["late"])
    number = opened(world)
    kind = EventType(definition.DUE[moment], 1, "A moment has come.", (EventField("number", "number", "which", 1),))
    transaction, tenant = Transaction(), world.context("alice", "acme")
    publish(tenant, transaction, Event(kind, {"number": number}, 1), subject=f"ticket/{number}")
    tenant.repository.transact(transaction)
    carry()
    assert (ran(world, soon), ran(world, either)) == (moment == "due_soon", 1)


def test_a_ticket_that_a_rule_puts_into_a_group_goes_to_one_of_its_members(world: World, rule: AddRule) -> None:
    group = defined.add_group(world, "Billing", Assigning.TURN, members=["bob"])
    rule("created", {"priority": "high"}, set={"group": group})
    found = ticket(world, opened(world, priority=Priority.HIGH))
    assert (found.group, found.resolver) == (group, world.users["bob"].id)


# --- in which order, and not in circles ---


def test_each_rule_sees_the_ticket_as_the_one_before_has_left_it(world: World, rule: AddRule) -> None:
    rule("created", set={"priority": "high"})
    rule("created", {"priority": "high"}, add_tags=["second"])
    rule("created", {"tag": "second"}, set={"status": "pending"})
    found = ticket(world, opened(world))
    assert (found.priority, list(found.tags), found.status) == ("high", ["second"], "pending")


def test_two_rules_that_undo_each_other_end(world: World, rule: AddRule) -> None:
    first = rule("changed", {"priority": "high"}, set={"priority": "low"})
    second = rule("changed", {"priority": "low"}, set={"priority": "high"})
    number = opened(world)
    changing.edit(world.context("alice", "acme"), number, version=1, priority=Priority.HIGH)
    carry()
    assert (ran(world, first), ran(world, second)) == (1, 1)
    assert ticket(world, number).version == 4


def test_what_follows_from_one_event_ends_after_a_few_rules(
    world: World, rule: AddRule, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tickets.rules.definition.MOST_DEPTH", 2)
    for place in range(4):
        # The later one first, so that each needs an event of its own.
        rule("changed", {"tag": f"t{3 - place}"}, add_tags=[f"t{4 - place}"])
    number = opened(world)
    changing.edit(world.context("alice", "acme"), number, version=1, tags=["t0"])
    carry()
    assert list(ticket(world, number).tags) == ["t0", "t1", "t2"]


# --- exactly once ---


def test_an_event_that_is_delivered_again_does_nothing_twice(world: World, rule: AddRule) -> None:
    rule("changed", set={"priority": "urgent"}, mail={"to": world.users["bob"].id, "text": "See {ticket}"})
    alice = world.context("alice", "acme")
    number = opened(world)
    changing.edit(alice, number, version=1, title="Another")
    (row,) = [row for row in rows() if "0/rules" in (row.open or ())]
    work = deliveries.work(deliveries.message(row, "rules"), row)
    assert engine.deliver(work).note == "1 did something."
    changing.edit(alice, number, version=3, priority=Priority.LOW)  # so that the rule has something to do again
    assert engine.deliver(work).note == "No rule had anything to do."
    assert ticket(world, number).priority == "low"


def test_a_rule_that_is_killed_before_its_transaction_runs_with_the_next_delivery(
    world: World, rule: AddRule, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule("created", set={"priority": "urgent"})
    rule("created", add_tags=["seen"])
    number = creating.create(world.context("alice", "acme"), title="The printer")
    (row,) = [row for row in rows() if "0/rules" in (row.open or ())]
    work = deliveries.work(deliveries.message(row, "rules"), row)
    whole, left = engine._Run.carry_out, [1]

    def killed(run: Any, summary: Any) -> Any:
        if not left.pop():
            raise KeyboardInterrupt
        left.append(0)
        return whole(run, summary)

    with monkeypatch.context() as patched:
        patched.setattr(engine._Run, "carry_out", killed)
        with pytest.raises(KeyboardInterrupt):
            engine.deliver(work)
    assert (ticket(world, number).priority, list(ticket(world, number).tags)) == ("urgent", [])
    engine.deliver(work)
    assert (ticket(world, number).version, list(ticket(world, number).tags)) == (3, ["seen"])


@pytest.mark.parametrize(("change", "runs_then"), [({"priority": Priority.LOW}, 0), ({"title": "Another"}, 1)])
def test_a_ticket_that_somebody_changes_meanwhile_is_asked_for_again_and_its_run_counted_once(
    world: World, rule: AddRule, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], runs_then: int
) -> None:
    rule_id = rule("created", {"priority": "normal"}, add_tags=["seen"])
    alice = world.context("alice", "acme")
    number = creating.create(alice, title="The printer")
    whole = definition.planned

    def planned(*args: Any) -> Any:
        if ticket(world, number).version == 1:
            changing.edit(alice, number, version=1, **change)
        return whole(*args)

    monkeypatch.setattr(definition, "planned", planned)
    carry()
    assert ran(world, rule_id) == runs_then
    assert list(ticket(world, number).tags) == ["seen"] * runs_then
    counted = alice.repository.query_all(RunCountItem, stored.runs, begins_with="HOUR")
    assert [int(one.runs) for one in counted] == [1, 1]  # of the desk, and of the rule on this ticket


@pytest.mark.parametrize("how", ["spam", "merged"])
def test_a_ticket_that_was_set_aside_meanwhile_is_left_alone(world: World, rule: AddRule, how: str) -> None:
    rule_id, (first,) = rule("created", {"priority": "urgent"}, add_tags=["seen"]), world.tickets("acme", 1)
    alice = world.context("alice", "acme")
    number = creating.create(alice, title="The printer", priority=Priority.URGENT)
    if how == "spam":
        spam_marking.mark(alice, number, by=SYSTEM, block=False)
    else:
        ticket_merging.merge(alice, number, into=first)
    carry()
    assert ran(world, rule_id) == 0


# --- what cannot be done ---


def test_a_rule_that_cannot_do_its_work_says_why(world: World, rule: AddRule) -> None:
    moved = rule("created", {"status": "closed"}, set={"status": "pending"})
    gone = rule("created", {"status": "closed"}, set={"resolver": world.users["bob"].id})
    member_changes.remove(user_id=world.users["bob"].id, tenant_id=world.tenants["acme"].tenant_id, by=SYSTEM)
    alice = world.context("alice", "acme")
    number = creating.create(alice, title="The printer")
    changing.change_status(alice, number, to=Status.CLOSED, version=1)
    carry()
    alice = world.context("alice", "acme")
    ((first,), _), ((second,), _) = runs.listed(alice, moved), runs.listed(alice, gone)
    assert first.why == "A closed ticket cannot become pending."
    assert second.why == "Only agents, admins and owners of this desk can be assigned."
    assert ticket(world, number).version == 2


def test_a_rule_with_nothing_to_change_leaves_no_run(world: World, rule: AddRule) -> None:
    rule_id = rule("created", set={"priority": "normal"})
    assert ticket(world, opened(world)).version == 1
    assert ran(world, rule_id) == 0


def test_runs_above_the_limit_of_a_desk_wait_for_the_next_hour(
    world: World, rule: AddRule, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "RUNS_PER_HOUR", 1)
    rule_id = rule("created", add_tags=["seen"])
    for _ in range(2):
        creating.create(world.context("alice", "acme"), title="The printer")
    mailing.carry()
    assert ran(world, rule_id) == 1
    (waiting,) = [row for row in rows() if "0/rules" in (row.open or ())]
    assert outbox_rows.due_at(waiting, "0/rules") > clock.stamp()


def test_a_rule_that_another_system_answers_in_a_circle_rests_on_that_ticket_alone(
    world: World, rule: AddRule, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "RUNS_ON_TICKET", 2)
    monkeypatch.setattr(engine, "RUNS_PER_HOUR", 4)
    rule_id = rule({"event": "changed", "what": "priority"}, set={"priority": "low"})
    number, other = opened(world), opened(world)
    alice = world.context("alice", "acme")
    for _ in range(4):  # each answer begins anew, as by the API after a webhook
        changing.change(alice, number, changing.Wishes(priority=Priority.HIGH))
        carry()
    assert ticket(world, number).priority == "high"
    changing.change(alice, other, changing.Wishes(priority=Priority.HIGH))
    carry()
    assert ticket(world, other).priority == "low"
    told = [(run.number, "in a circle" in run.why) for run in runs.listed(alice, rule_id)[0]]
    assert sorted(told) == [(number, False), (number, False), (number, True), (other, False)]


# --- answer, webhook, mail ---


@pytest.fixture
def answer(world: World) -> str:
    given = Given("Thanks", "thanks", "Hello {requester}, we have **{title}**. {me}")
    return str(answer_changes.create(world.context("alice", "acme"), given, shared=True, by=SYSTEM).answer_id)


def test_a_rule_answers_with_a_ready_answer_in_the_name_of_the_desk(world: World, rule: AddRule, answer: str) -> None:
    rule("created", answer=answer)
    alice = world.context("alice", "acme")
    ada = requesters.ensure(alice, "ada@example.org", name="Ada *L*")
    number = creating.create(alice, title="The printer", requester=ada)
    carry()
    (comment,) = [entry for entry in history(world, number) if entry.kind == "comment"]
    assert comment.body == "Hello Ada \\*L\\*, we have **The printer**. Acme"
    assert (comment.author, comment.author_name) == ("", "Acme")
    assert Cause.parse(comment.cause)
    assert mail.outbox[-1].to == ["Ada *L* <ada@example.org>"]
    assert ticket(world, number).responded_at is None  # a person still has to answer


@pytest.mark.parametrize("channel", [Channel.FORM, Channel.MAIL])
def test_an_answer_of_a_rule_carries_no_words_of_a_stranger_to_anybody(
    world: World, rule: AddRule, answer: str, channel: Channel
) -> None:
    rule("created", answer=answer)
    alice = world.context("alice", "acme")
    forged = requesters.ensure(alice, "victim@example.org", name="Buy at spam.example")
    title, said = "Visit evil.example", "Cheap pills"
    creating.create(alice, title=title, description=said, requester=forged, channel=channel)
    carry()
    letter = next(one for one in mail.outbox if "Hello" in one.body)
    assert letter.extra_headers["Auto-Submitted"] == "auto-replied", "no program answers it"
    everything = f"{letter.subject} {letter.body} {letter.alternatives}"
    assert said not in everything
    assert not {"evil.example", "spam.example"} & {*re.split(r"[^\w.]+", everything)}
    assert ("Visit" in everything) == (channel == Channel.MAIL), "nobody has proved the address that a form gives"


def test_an_answer_that_is_delivered_again_is_written_once(world: World, rule: AddRule, answer: str) -> None:
    from tickets.rules import answering

    rule("created", answer=answer)
    number = creating.create(world.context("alice", "acme"), title="The printer")
    mailing.carry()
    (row,) = [row for row in rows() if any("rule_answer" in one for one in row.open or ())]
    work = deliveries.work(deliveries.message(row, "rule_answer"), row)
    for note in ("The comment was written.", "There is nothing to do any more."):
        assert answering.answer(work).note == note
    assert ticket(world, number).comment_count == 1


def test_a_comment_of_a_rule_does_not_bring_the_rule_back(world: World, rule: AddRule, answer: str) -> None:
    rule_id = rule("answered", answer=answer)
    number = opened(world)
    commenting.comment(world.context("alice", "acme"), number, body="Hello")
    carry()
    assert ticket(world, number).comment_count == 2
    assert ran(world, rule_id) == 1


def test_a_rule_writes_to_the_assignee(world: World, rule: AddRule) -> None:
    rule("answered", mail={"to": "assignee", "text": "Look at {ticket}, <{title}>."}, name="Tell them")
    number = opened(world, resolver=world.users["bob"].id, title="A & B")
    mail.outbox.clear()
    commenting.comment(world.context("bob", "acme"), number, body="Hello")
    carry()
    (message,) = mail.outbox
    assert (message.to, message.subject) == (["bob@example.com"], f"[Acme] #{number} A & B")
    assert f"Look at #{number}, <A & B>." in message.body
    assert f"/tickets/{number}/" in message.body
    assert "Tell them" in message.body


def test_a_rule_writes_to_the_assignee_that_it_chooses(world: World, rule: AddRule) -> None:
    rule("created", set={"resolver": world.users["bob"].id}, mail={"to": "assignee", "text": "This one is yours."})
    opened(world)
    assert [one.to for one in mail.outbox if "This one is yours." in one.body] == [["bob@example.com"]]


def test_a_rule_writes_to_the_member_whom_its_group_assigns(world: World, rule: AddRule) -> None:
    group = defined.add_group(world, "Billing", assigns=Assigning.TURN, members=("bob",))
    rule("created", set={"group": group}, mail={"to": "assignee", "text": "This one is yours."})
    opened(world)
    assert [one.to for one in mail.outbox if "This one is yours." in one.body] == [["bob@example.com"]]


def test_a_rule_tells_the_endpoint_that_it_names(world: World, rule: AddRule) -> None:
    made, _ = endpoint(world.context("alice", "acme"), types=("ticket.unlinked",))
    rule_id = rule("created", {"priority": "urgent"}, webhook=made.endpoint_id, set={"status": "pending"})
    creating.create(world.context("alice", "acme"), title="The printer", priority=Priority.URGENT)
    mailing.carry()
    (row,) = [row for row in rows() if any(made.endpoint_id in one for one in row.open or ())]
    event = next(text for text in row.events if "ticket.rule_ran" in text)
    assert f'"id":"{rule_id}"' in event
    assert '"status":"pending"' in event


# --- undo ---


def test_one_run_is_undone(world: World, rule: AddRule) -> None:
    rule_id = rule("created", set={"priority": "high"}, add_tags=["seen"])
    number = opened(world)
    alice = world.context("alice", "acme")
    (run,), _ = runs.listed(alice, rule_id)
    runs.undo(alice, run)
    carry()
    found = ticket(world, number)
    assert (found.priority, list(found.tags)) == ("normal", [])
    assert runs.find(alice, rule_id, run.run_id).undone_at
    assert history(world, number)[-1].author == alice.user_id
    with pytest.raises(Conflict, match="already"):
        runs.undo(alice, run)


def test_the_undo_of_a_run_does_not_bring_the_rule_back(world: World, rule: AddRule) -> None:
    rule_id = rule("changed", {"status": "pending"}, set={"priority": "high"})
    number = opened(world)
    alice = world.context("alice", "acme")
    changing.change_status(alice, number, to=Status.PENDING, version=1)
    carry()
    (run,), _ = runs.listed(alice, rule_id)
    runs.undo(alice, run)
    carry()
    assert ticket(world, number).priority == "normal"
    assert ran(world, rule_id) == 1


def test_a_run_is_undone_although_somebody_changed_other_fields_since(world: World, rule: AddRule) -> None:
    rule_id = rule("created", set={"priority": "high"})
    number = opened(world)
    alice = world.context("alice", "acme")
    changing.edit(alice, number, version=2, title="Another")
    (run,), _ = runs.listed(alice, rule_id)
    runs.undo(alice, run)
    assert (ticket(world, number).priority, ticket(world, number).title) == ("normal", "Another")


def test_a_run_whose_field_somebody_changed_since_stays(world: World, rule: AddRule) -> None:
    rule_id = rule("created", set={"priority": "high"})
    number = opened(world)
    alice = world.context("alice", "acme")
    changing.edit(alice, number, version=2, priority=Priority.LOW)
    (run,), _ = runs.listed(alice, rule_id)
    with pytest.raises(Conflict, match="changed again"):
        runs.undo(alice, run)
    assert ticket(world, number).priority == "low"
    assert not runs.find(alice, rule_id, run.run_id).undone_at


def test_a_run_stays_where_more_was_changed_since_than_is_read(
    world: World, rule: AddRule, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule_id = rule("created", set={"priority": "high"})
    number = opened(world)
    alice = world.context("alice", "acme")
    for version, title in ((2, "Another"), (3, "A third")):
        changing.edit(alice, number, version=version, title=title)
    (run,), _ = runs.listed(alice, rule_id)
    monkeypatch.setattr(timelines, "CHANGES_READ", 2)
    with pytest.raises(Conflict, match="changed again"):
        runs.undo(alice, run)
    assert ticket(world, number).priority == "high"


# --- whose ---


def test_the_rules_of_a_desk_leave_the_tickets_of_other_desks_alone(world: World, rule: AddRule) -> None:
    rule("created", set={"priority": "urgent"})
    rule_changes.create(
        world.context("charlie", "globex"),
        "Theirs",
        {"when": {"event": "created"}, "then": {"add_tags": ["theirs"]}},
        by=SYSTEM,
        is_on=True,
    )
    theirs = creating.create(world.context("charlie", "globex"), title="The printer")
    ours = opened(world)
    found = changing.read(world.context("charlie", "globex"), theirs)
    assert (found.priority, list(found.tags)) == ("normal", ["theirs"])
    assert (ticket(world, ours).priority, list(ticket(world, ours).tags)) == ("urgent", [])
