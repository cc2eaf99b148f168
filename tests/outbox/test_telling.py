"""What changes of tickets tell: only where somebody listens, in the same transaction, and all that a receiver needs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from delivery.outbox import publisher
from delivery.outbox.stored import OUTBOX
from portal import clock
from portal.dynamo import meter
from portal.errors import Invalid
from tenants.audit_trail.recording import SYSTEM
from tenants.tenancy.context import TenantContext
from tests.support import archives
from tests.support.archives import imported, issue
from tests.support.fakes import answering, refusal
from tests.support.outbox import pending, rows, subscribe, told
from tests.support.world import World
from tickets.desk import bulk, changing, commenting, creating, undoing
from tickets.desk.changing import EditConflict, TicketState
from tickets.handover import handover
from tickets.ticket import fields
from tickets.ticket.fields import Priority, Status


@pytest.fixture
def alice(world: World) -> TenantContext:
    """Alice, with everything told to one endpoint."""
    subscribe(world, "acme")
    return world.context("alice", "acme")


def states(tenant: TenantContext, numbers: list[int]) -> list[TicketState]:
    return [TicketState.of(changing.read(tenant, number)) for number in numbers]


def everything(tenant: TenantContext) -> None:
    """Each kind of change of a ticket, once."""
    number = creating.create(tenant, title="Printer", description="It *broke*.", tags=["vip"])
    changing.change_status(tenant, number, to=Status.PENDING, version=1)
    changing.assign(tenant, number, to=tenant.user_id, version=2)
    changing.edit(tenant, number, priority=Priority.HIGH, version=3)
    changing.edit(
        tenant, number, version=4, title="Printer 3", description="New.", priority=Priority.LOW, tags=["vip", "paper"]
    )
    commenting.comment(tenant, number, body="Done.", then=Status.RESOLVED)
    commenting.comment(tenant, number, body="Between us.", internal=True)
    change = bulk.change_status(tenant, states(tenant, [number]), to=Status.CLOSED)
    undoing.take_back(tenant, change.receipt)


# --- nobody listens ---


def test_nothing_is_written_and_nothing_more_is_asked_where_nobody_subscribed(world: World) -> None:
    with meter.measure() as bill:
        everything(world.context("alice", "acme"))
    assert rows() == []
    assert OUTBOX.full_name not in {call.table for call in bill.calls}


def test_a_subscription_takes_no_call_more(world: World) -> None:
    def calls() -> list[str]:
        with meter.measure() as bill:
            everything(world.context("alice", "acme"))
        return [call.operation for call in bill.calls]

    before = calls()
    subscribe(world, "acme")
    assert calls() == before
    assert len(rows()) == 9


def test_another_desks_subscription_tells_nothing_of_this_one(world: World) -> None:
    subscribe(world, "globex")
    creating.create(world.context("alice", "acme"), title="Printer")
    assert rows() == []


def test_a_type_that_nobody_subscribed_to_is_not_told_beside_one_that_somebody_did(world: World) -> None:
    subscribe(world, "acme", "ticket.status_changed")
    alice = world.context("alice", "acme")
    number = creating.create(alice, title="Printer")
    commenting.comment(alice, number, body="Done.", then=Status.RESOLVED)
    assert [event["type"] for event in told()] == ["ticket.status_changed"]


# --- what is told ---


def test_each_change_is_told_once_with_what_it_changed(alice: TenantContext) -> None:
    everything(alice)
    me = {"id": alice.user_id, "name": "Alice Example"}
    wanted: list[tuple[str, int, dict[str, Any]]] = [
        (
            "ticket.created",
            1,
            {
                "title": "Printer", "description": "It *broke*.", "status": "open", "priority": "normal",
                "channel": "hand", "rating": None, "tags": ["vip"], "requester": me,
                "kind": None, "group": None, "custom": {},
            },
        ),
        ("ticket.status_changed", 2, {"before": "open", "after": "pending"}),
        ("ticket.assigned", 3, {"before": None, "after": me}),
        ("ticket.changed", 4, {"changes": [{"field": "priority", "before": "normal", "after": "high"}]}),
        (
            "ticket.changed",
            5,
            {
                "changes": [
                    {"field": "title", "before": "Printer", "after": "Printer 3"},
                    {"field": "priority", "before": "high", "after": "low"},
                    {"field": "tags", "before": ["vip"], "after": ["vip", "paper"]},
                    {"field": "description", "before": None, "after": "New."},
                ]
            },
        ),
        ("ticket.commented", 6, {"body": "Done."}),
        ("ticket.status_changed", 6, {"before": "pending", "after": "resolved"}),
        ("ticket.note_added", 6, {"body": "Between us."}),
        ("ticket.status_changed", 7, {"before": "resolved", "after": "closed"}),
        ("ticket.status_changed", 8, {"before": "closed", "after": "resolved"}),
    ]  # fmt: skip
    found = told()
    assert [(e["type"], e["sequence"]) for e in found] == [(kind, sequence) for kind, sequence, _ in wanted]
    for event, (_, _, data) in zip(found, wanted, strict=True):
        if event["type"] in ("ticket.commented", "ticket.note_added"):
            assert clock.is_stamp(event["data"].pop("at"))
        assert event["data"] == {"number": 1, "by": me, **data}


def test_an_event_names_its_tenant_and_has_an_id_of_its_own(alice: TenantContext) -> None:
    everything(alice)
    assert all(e["tenant"] == {"id": alice.tenant_id, "name": "Acme", "slug": "acme"} for e in told())
    assert len({e["id"] for e in told()}) == len(told())
    assert all(e["version"] == 1 and clock.is_stamp(e["timestamp"]) for e in told())


def test_a_change_that_changes_nothing_tells_nothing(alice: TenantContext) -> None:
    number = creating.create(alice, title="Printer")
    changing.change_status(alice, number, to=Status.OPEN, version=1)
    changing.edit(alice, number, priority=Priority.NORMAL, version=1)
    assert [e["type"] for e in told()] == ["ticket.created"]


def test_a_form_that_is_sent_twice_is_told_once(alice: TenantContext) -> None:
    request_id = changing.new_request_id()
    for _ in range(3):
        number = creating.create(alice, title="Printer", request_id=request_id)
        commenting.comment(alice, number, body="Once.", request_id=request_id)
    assert [e["type"] for e in told()] == ["ticket.created", "ticket.commented"]


def test_a_change_that_is_refused_tells_nothing(alice: TenantContext) -> None:
    number = creating.create(alice, title="Printer")
    changing.change_status(alice, number, to=Status.PENDING, version=1)
    with pytest.raises(EditConflict):
        changing.change_status(alice, number, to=Status.CLOSED, version=1)
    assert len(told()) == 2


def test_a_change_that_is_written_again_is_told_once(alice: TenantContext) -> None:
    number = creating.create(alice, title="Printer")
    lost = refusal("TransactionCanceledException", CancellationReasons=[{"Code": "TransactionConflict"}])
    with answering("tenant", "TransactWriteItems", lost):
        changing.change_status(alice, number, to=Status.PENDING, version=1)
    assert [e["type"] for e in told()] == ["ticket.created", "ticket.status_changed"]


def test_importing_tells_nothing(world: World, alice: TenantContext, tmp_path: Path) -> None:
    imported(archives.write(tmp_path / "archive.json", issue(7, title="Printer on fire")))
    assert changing.read(alice, 1).title == "Printer on fire"
    assert rows() == []


# --- many at once ---


def test_a_bulk_change_of_49_tells_49_events_in_one_row(world: World, alice: TenantContext) -> None:
    numbers = world.tickets("acme", 49)
    before = len(rows())
    change = bulk.change_status(alice, states(alice, numbers), to=Status.CLOSED)
    assert change.count == 49
    (row,) = rows()[before:]
    assert sorted(e["data"]["number"] for e in told()[-49:]) == numbers
    assert row.open == {f"{index}/ep_one" for index in range(49)}


def test_how_many_change_at_once_and_are_listed_does_not_depend_on_who_has_subscribed(world: World) -> None:
    world.tickets("acme", 51)

    def at_once() -> tuple[int, int]:
        page = world.browser("alice", "acme").get("/tickets/")
        return bulk.limit(world.context("alice", "acme")), len(page.context["page"]["rows"])

    assert at_once() == (49, 49)
    subscribe(world, "acme", "ticket.status_changed")
    assert at_once() == (49, 49)
    alice = world.context("alice", "acme")
    with pytest.raises(Invalid, match="At most 49 tickets can be changed together; you selected 50"):
        bulk.change_status(alice, states(alice, list(range(1, 51))), to=Status.CLOSED)


def test_handing_on_tells_who_had_a_ticket_and_who_has_it(world: World, alice: TenantContext) -> None:
    number = creating.create(alice, title="Printer")
    changing.assign(alice, number, to=alice.user_id, version=1)
    bob = world.users["bob"]
    handover.hand_on(alice, user_id=alice.user_id, to=bob.id, by=SYSTEM)
    event = told()[-1]
    assert (event["type"], event["sequence"]) == ("ticket.assigned", 3)
    assert event["data"]["before"] == {"id": alice.user_id, "name": "Alice Example"}
    assert event["data"]["after"] == {"id": bob.id, "name": "Bob Example"}


# --- sizes and costs ---


def test_the_longest_texts_that_a_ticket_takes_can_be_told(world: World, alice: TenantContext) -> None:
    wide = "\U0001f600"
    tags = fields.tag_list(",".join(wide * (fields.TAG_LIMIT - 2) + f"{i:02}" for i in range(fields.TAGS_LIMIT)))
    number = creating.create(
        alice, title=wide * fields.TITLE_LIMIT, description=wide * fields.DESCRIPTION_LIMIT, tags=tags
    )
    changing.edit(
        alice, number, version=1, title="x", description='"' + wide * (fields.DESCRIPTION_LIMIT - 1),
        priority=Priority.LOW, tags=[],
    )  # fmt: skip
    commenting.comment(alice, number, body=wide * fields.COMMENT_LIMIT, then=Status.RESOLVED)
    assert [e["type"] for e in told()] == [
        "ticket.created", "ticket.changed", "ticket.commented", "ticket.status_changed",
    ]  # fmt: skip


def test_an_event_that_is_too_large_is_a_sentence_and_what_was_typed_is_kept(
    world: World, alice: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher, "PAYLOAD_LIMIT", 300)
    typed = {"title": "Long", "description": "word " * 100, "priority": "low", "request_id": changing.new_request_id()}
    page = world.browser("alice", "acme").send("/tickets/new/", typed)
    assert page.status_code == 422
    text = page.content.decode()
    assert re.search(r"would have \d+ bytes, and those who subscribed to it take at most 300", text)
    assert "word word word" in text
    assert rows() == []


def test_telling_of_a_small_change_costs_two_write_units_and_one_for_each_index(world: World) -> None:
    quiet = world.context("alice", "acme")

    def units(tenant: TenantContext) -> float:
        with meter.measure() as bill:
            creating.create(tenant, title="Printer")
        return bill.write_units

    without = units(quiet)
    subscribe(world, "acme")
    assert units(world.context("alice", "acme")) - without == 4
    assert len(pending()) == 1
