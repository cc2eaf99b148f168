"""A ready answer is inserted into a comment, changes the ticket with it, and is counted exactly once."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest

from portal.dynamo import meter
from tenants.audit_trail.recording import SYSTEM, Actor
from tenants.lifecycle import desk_settings
from tenants.tenancy.context import TenantContext
from tests.desk.test_cost import IDENTITY, spent
from tests.support.world import Browser, World
from tickets.desk import changing, commenting, timelines
from tickets.desk.changing import Wishes
from tickets.ready_answers import answer_changes, answer_reading
from tickets.ready_answers.answer_reading import Given
from tickets.ready_answers.answer_uses import Uses
from tickets.ticket.fields import Status

PAGE = "/acme/tickets/1/"
COMMENT = f"{PAGE}comment/"


@pytest.fixture
def alice(world: World) -> TenantContext:
    world.tickets("acme", 1)
    return world.context("alice", "acme")


@pytest.fixture
def bob(world: World) -> Browser:
    return world.browser("bob", "acme")


def text_of(answer: Any) -> str:
    return answer.content.decode()  # type: ignore[no-any-return]


def kept(
    tenant: TenantContext, shortcut: str, body: str = "Hello {requester}", *, shared: bool = True, **how: Any
) -> str:
    given = Given(f"The answer {shortcut}", shortcut, body, **how)
    return str(answer_changes.create(tenant, given, shared=shared, by=SYSTEM).answer_id)


def sent(body: str = "Hello", **more: object) -> dict[str, object]:
    return {"body": body, "request_id": uuid.uuid4().hex, "seen": "open", **more}


def uses(tenant: TenantContext, answer: str) -> int:
    return answer_reading.uses(tenant, [answer])[answer]


def entries(tenant: TenantContext) -> list[Any]:
    return timelines.ticket(tenant, 1).activity


# --- what it changes ---


def test_an_answer_changes_status_tags_and_assignee_with_the_comment(
    alice: TenantContext, bob: Browser, world: World
) -> None:
    changing.change(alice, 1, Wishes(tags=["old"]))
    answer = kept(alice, "done")
    form = sent(answers=answer, set_status="resolved", add_tags=["refund", "old"], set_resolver="me")
    assert bob.send(COMMENT, form).status_code == 302
    ticket = changing.read(alice, 1)
    assert (ticket.status, ticket.resolver, ticket.resolver_name) == ("resolved", world.users["bob"].id, "Bob Example")
    assert [*ticket.tags] == ["old", "refund"]
    assert ticket.resolved_at
    assert int(ticket.version) == 3
    said, told = entries(alice)[-2:]
    assert said.body == "Hello"
    assert [(c.field, c.before, c.after) for c in told.changes] == [
        ("status", "open", "resolved"),
        ("tags", "old", "old, refund"),
        ("resolver", "", "Bob Example"),
    ]
    assert uses(alice, answer) == 1


def test_a_note_changes_the_ticket_too(alice: TenantContext, bob: Browser, world: World) -> None:
    bob.send(COMMENT, sent(internal="on", add_tags="refund", set_resolver=world.users["alice"].id))
    ticket = changing.read(alice, 1)
    assert ([*ticket.tags], ticket.resolver_name) == (["refund"], "Alice Example")
    assert ticket.noted_at
    assert [entry.kind for entry in entries(alice)[-2:]] == ["note", "event"]


def test_changes_that_the_ticket_has_already_write_a_comment_alone(alice: TenantContext, bob: Browser) -> None:
    changing.change(alice, 1, Wishes(tags=["refund"]))
    bob.send(COMMENT, sent(set_status="open", add_tags="refund"))
    assert int(changing.read(alice, 1).version) == 2
    assert entries(alice)[-1].kind == "comment"


REFUSED = [
    ({"set_status": "broken"}, "status"),
    ({"set_resolver": "broken"}, "The assignee is damaged."),
    ({"set_resolver": "0" * 32}, "Only agents, admins and owners of this desk can be assigned."),
    ({"add_tags": [f"tag-{n}" for n in range(12)]}, "A ticket can have at most 12 tags; these are 13."),
]


@pytest.mark.parametrize(("wrong", "sentence"), REFUSED)
def test_a_change_that_is_refused_adds_no_comment_and_loses_nothing(
    alice: TenantContext, bob: Browser, wrong: dict[str, object], sentence: str
) -> None:
    changing.change(alice, 1, Wishes(tags=["old"]))
    before, answer = len(entries(alice)), kept(alice, "done")
    refused = bob.send(COMMENT, sent("My long text", answers=answer, **wrong))
    assert refused.status_code == 422
    assert sentence in text_of(refused)
    assert "My long text" in text_of(refused)
    assert (len(entries(alice)), uses(alice, answer)) == (before, 0)


# --- counting ---


def test_the_same_comment_sent_again_is_counted_once(alice: TenantContext, bob: Browser) -> None:
    answer, form = kept(alice, "done"), sent()
    for _ in range(3):
        assert bob.send(COMMENT, {**form, "answers": answer}).status_code == 302
    assert uses(alice, answer) == 1
    bob.send(COMMENT, sent(answers=[answer, answer]))
    assert uses(alice, answer) == 2
    assert "used 2 times" in text_of(bob.get("/acme/tickets/answers/"))


def test_a_comment_that_is_taken_back_is_not_counted(alice: TenantContext, bob: Browser) -> None:
    desk_settings.change_defaults(alice, values={"reply_hold": "10"}, by=Actor(alice.user_id))
    answer, other = kept(alice, "done"), kept(alice, "other")
    form = sent(answers=[answer, other], set_status="resolved", add_tags="money")
    page = text_of(bob.send(COMMENT, form, follow=True))
    assert answer_reading.uses(alice, [answer, other]) == {answer: 1, other: 1}
    receipt = re.search(r'name="receipt" value="([^"]+)"', page)
    assert receipt
    bob.send("/acme/tickets/bulk/undo/", {"receipt": receipt[1], "back": "/acme/tickets/"})
    assert answer_reading.uses(alice, [answer, other]) == {answer: 0, other: 0}
    assert (changing.read(alice, 1).status, [*changing.read(alice, 1).tags]) == ("open", [])


def test_what_is_no_answer_of_the_writer_is_not_counted(alice: TenantContext, bob: Browser) -> None:
    private, gone = kept(alice, "mine", shared=False), kept(alice, "gone")
    answer_changes.delete(alice, gone, by=SYSTEM)
    assert bob.send(COMMENT, sent(answers=[private, gone, "rubbish", f"ra_{'0' * 32}"])).status_code == 302
    assert answer_reading.uses(alice, [private, gone]) == {private: 0, gone: 0}


def test_a_comment_with_an_answer_costs_one_read_and_one_member_of_its_transaction_more(alice: TenantContext) -> None:
    answer = kept(alice, "done")

    def cost(**how: Any) -> tuple[int, list[str], float, float]:
        with meter.measure() as bill:
            commenting.comment(alice, 1, body="Hello", **how)
        operations = sorted(call.operation for call in bill.calls)
        return bill.trips, operations, bill.read_units, bill.write_units

    cost()
    plain, answered = cost(), cost(companion=Uses(alice, [answer]))
    assert answered[0] == plain[0]
    assert answered[1] == sorted([*plain[1], "BatchGetItem"])
    assert answered[2] - plain[2] == 0.5
    assert answered[3] - plain[3] == 2  # a transaction pays twice for the counter


def test_the_page_of_a_ticket_reads_no_answers(alice: TenantContext, bob: Browser) -> None:
    kept(alice, "done")
    bill = spent(bob, PAGE)
    assert bill.trips == 2
    assert bill.read_units <= IDENTITY + 1


# --- inserting ---


def test_an_answer_is_offered_and_filled_for_its_ticket(alice: TenantContext, bob: Browser, world: World) -> None:
    answer = kept(
        alice, "refund", "Hello {requester}", status="resolved", tags=("money",), resolver=world.users["alice"].id
    )
    assert bob.get("/acme/tickets/answers/options/?q=ref").json() == {
        "answers": [{"id": answer, "title": "The answer refund", "shortcut": "refund"}]
    }
    told = bob.get(f"{PAGE}answers/{answer}/").json()
    assert told["text"] == "Hello Alice Example"
    assert [(one["name"], one["value"], one["label"]) for one in told["actions"]] == [
        ("set_status", "resolved", "Set the status to Resolved"),
        ("add_tags", "money", "Add the tag money"),
        ("set_resolver", world.users["alice"].id, "Assign to Alice Example"),
    ]
    changing.change(alice, 1, Wishes(status=Status.RESOLVED, tags=["money"], resolver=alice.user_id))
    assert bob.get(f"{PAGE}answers/{answer}/").json()["actions"] == []  # nothing is left to change


def test_without_a_script_an_answer_is_found_and_inserted_and_what_was_typed_stays(
    alice: TenantContext, bob: Browser
) -> None:
    answer = kept(alice, "refund", tags=("money",), resolver="me")
    kept(alice, "refuse")
    assert 'type="submit" name="then" value="find"' in text_of(bob.get("/tickets/1/"))
    typed = sent("I typed this", internal="on", cc="eve@example.org", then="find", answer_words="ref")
    found = text_of(bob.send(COMMENT, typed))
    assert 'type="submit" name="then" value="insert"' in found
    assert found.count('<option value="ra_') == 2
    page = text_of(bob.send(COMMENT, {**typed, "then": "insert", "answer_choice": answer}))
    assert "I typed this\n\nHello Alice Example</textarea>" in page
    assert re.search(r'name="internal"[^>]* checked', page)
    assert f'<input type="hidden" name="answers" value="{answer}">' in page
    assert '<input type="checkbox" name="add_tags" value="money" checked>' in page
    assert "Assign to me" in page
    assert str(typed["request_id"]) in page
    assert [entry for entry in entries(alice) if entry.kind != "event"] == []


def test_without_a_script_a_whole_shortcut_inserts_its_answer_at_once(alice: TenantContext, bob: Browser) -> None:
    kept(alice, "refund")
    page = text_of(bob.send(COMMENT, sent("", then="find", answer_words=";Refund")))
    assert "Hello Alice Example</textarea>" in page
    assert "No answer has words" in text_of(bob.send(COMMENT, sent("", then="find", answer_words="xyz")))
    assert "Choose an answer first." in text_of(bob.send(COMMENT, sent("", then="insert")))
    assert "There is no such ready answer." in text_of(
        bob.send(COMMENT, sent("", then="insert", answer_choice="rubbish"))
    )


def test_a_preview_shows_the_text_and_sends_nothing(alice: TenantContext, bob: Browser) -> None:
    page = text_of(bob.send(COMMENT, sent("Some **bold** text", then="preview")))
    assert "<strong>bold</strong>" in page
    assert "Some **bold** text</textarea>" in page
    assert entries(alice)[-1].kind == "event"
    piece = text_of(bob.send("/acme/tickets/preview/", {"body": "**bold** of #1 <script>"}))
    assert "<strong>bold</strong>" in piece
    assert '<a href="/acme/tickets/1/">#1</a>' in piece
    assert "<script>" not in piece
    assert "Nothing to preview yet." in text_of(bob.send("/acme/tickets/preview/", {"body": " "}))
