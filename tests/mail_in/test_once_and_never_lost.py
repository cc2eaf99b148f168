"""A letter is filed once and never lost, wherever a process was killed; a message that kills workers is given up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any

import pytest

from delivery.outbox.stored import OUTBOX
from delivery.queues import direct_work, queue_readers
from delivery.queues.message_handling import MOST_BEGINNINGS
from portal.dynamo import meter
from portal.dynamo.client import SharedConnection
from portal.objects.object_store import ObjectStore
from portal.queueing.sqs_client import QueueConnection
from tests.support.commands import everything
from tests.support.letters_in import come_in, drain, incoming, letter, objects, post, rows, tell_again, work
from tests.support.world import World
from tickets.desk import changing
from tickets.letters import filing, ledger
from tickets.letters.stored import LETTERS_QUEUE
from tickets.replies import reply_addresses
from tickets.requesters import requesters
from tickets.ticket import stored as tickets
from tickets.ticket import ticket_events
from tickets.ticket.fields import Status
from tickets.ticket.stored import TICKET_ITEMS, DetailItem

WRITES = {"PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem"}


class Killed(BaseException):
    """The process has ended after a write."""


@contextmanager
def killed_after(number: int) -> Iterator[list[str]]:
    """End everything after the write of this number has been carried out, to a table, to the bucket or to a queue."""
    done: list[str] = []

    def watched(real: Callable[..., Any], name_of: Callable[..., str | None]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            answer = real(*args, **kwargs)
            if name := name_of(*args):
                done.append(name)
                if len(done) == number:
                    raise Killed(name)
            return answer

        return call

    with pytest.MonkeyPatch.context() as patch:
        table = watched(SharedConnection.ask, lambda self, operation, *_: operation if operation in WRITES else None)
        patch.setattr(SharedConnection, "ask", table)
        for name in ("put", "delete"):
            patch.setattr(ObjectStore, name, watched(getattr(ObjectStore, name), lambda *_, said=name: said))
        sent = watched(QueueConnection.call, lambda self, operation, *_: "send" if "Send" in operation else None)
        patch.setattr(QueueConnection, "call", sent)
        yield done


@pytest.mark.parametrize("words", [1, 500])
@pytest.mark.parametrize("kind", ["ticket", "comment"])
def test_a_letter_is_filed_once_and_whole_whichever_write_a_process_was_killed_after(
    mail: World, kind: str, words: int
) -> None:
    come_in(letter(message_id="<0@customer.example>"))
    to = [reply_address(mail)] if kind == "comment" else []

    def body(number: int) -> str:
        return f"Letter {number}. " * words

    def one(number: int) -> bytes:
        sender = f"Z <z{number}@customer.example>"
        return letter(sender=sender, subject=f"{number}", body=body(number), message_id=f"<{number}@customer.example>")

    for number in count(1):  # how many writes it takes differs by what else is due
        before = len(rows(mail))
        name = post(one(100 + number), *to, sender=f"z{number}@customer.example")
        with killed_after(number) as done, suppress(Killed):
            drain()
        if len(done) < number:
            break
        tell_again(name, *to)  # what was received and not deleted is seen again
        drain()
        found = rows(mail)
        assert len(found) == before + 1, done
        assert found[0].state == ledger.FILED, done
        assert sum(one.object == name for one in found) == 1
        assert incoming() == []
        assert body(100 + number).split() in [text.split() for text, _ in texts_of(mail, int(found[0].number))]
        assert requesters.by_address(mail.context("bob", "acme"), f"z{100 + number}@customer.example"), done
        if kind == "ticket":
            assert openings_of(mail, int(found[0].number)) == (1, 1), done
    assert number > 6
    assert len(objects(mail)) == len(rows(mail))


def test_the_same_notification_again_changes_nothing(mail: World) -> None:
    name = come_in(letter())
    tenant_id = mail.tenants["acme"].tenant_id
    for _ in range(2):
        direct_work.send("letter", tenant_id, name, queues=())
        work()
    assert len(rows(mail)) == len(objects(mail)) == 1
    assert changing.read(mail.context("bob", "acme"), 1).comment_count == 0


def test_a_letter_that_kills_its_worker_again_and_again_is_put_before_people(
    mail: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def burst(raw: bytes) -> None:
        raise RuntimeError("nobody expected this")

    monkeypatch.setattr(filing.letter_process, "read", burst)
    monkeypatch.setattr("delivery.queues.message_handling.AWAY_SECONDS", 0)
    post(letter())
    queue_readers.read(LETTERS_QUEUE, wait=0)
    assert [*work()].count("struck") == MOST_BEGINNINGS
    (row,) = rows(mail)
    assert row.state == ledger.REFUSED
    assert "being worked on 3 times when that ended badly" in row.reason
    monkeypatch.undo()
    come_in(letter(body="Another one.", message_id="<2@customer.example>"))
    assert rows(mail)[0].state == ledger.FILED


def test_two_programs_that_answer_each_other_stop_within_five_letters(mail: World) -> None:
    filed = 0
    for number in range(12):
        subject = "Re: " * number + "Your call is important to us"
        come_in(letter(subject=subject, body=f"Automatic {number}.", message_id=f"<{number}@robot.example>"))
        filed = sum(row.state == ledger.FILED for row in rows(mail))
    assert filed <= 5
    assert "may be a program" in rows(mail)[0].reason
    come_in(letter(sender="ann@human.example", subject="Hello", message_id="<a@human.example>"))
    assert rows(mail)[0].state == ledger.FILED


def test_a_loop_on_one_ticket_stops_within_five_letters_too(mail: World) -> None:
    come_in(letter())
    zoe, tenant_id = changing.read(mail.context("bob", "acme"), 1).requester, mail.tenants["acme"].tenant_id
    to = reply_addresses.address_of(tenant_id, 1, zoe, is_agent=False)
    for number in range(8):
        come_in(letter(subject=f"{number}", body=f"{number}", message_id=f"<x{number}@robot.example>"), to)
    assert sum(row.state == ledger.FILED for row in rows(mail)) <= 5


NEW = {"sender": "New Customer <new@customer.example>"}
UNCONFIRMED = {"dmarc": "FAIL", "spf": "FAIL"}  # gets no acknowledgement
RESOLVED = {"X-Ticket": "resolved"}


@pytest.mark.parametrize(
    ("kilobytes", "is_answer", "headers", "verdicts", "most"),
    [
        pytest.param(0, True, {}, {}, 11, id="a comment"),
        pytest.param(10, True, {}, {}, 12 + 10, id="a comment of 10 KB"),
        pytest.param(0, True, RESOLVED, {}, 14, id="a comment that opens its ticket again"),
        pytest.param(0, False, {}, UNCONFIRMED, 12, id="a ticket"),
        pytest.param(10, False, {}, UNCONFIRMED, 12 + 11, id="a ticket of 10 KB"),
        pytest.param(0, False, {}, {}, 12 + 3, id="a ticket and its acknowledgement"),
        pytest.param(0, False, NEW, UNCONFIRMED, 12 + 5, id="a ticket of somebody new"),
        pytest.param(0, False, NEW, {}, 12 + 5 + 3, id="a ticket of somebody new and its acknowledgement"),
    ],
)
def test_filing_a_letter_costs_few_write_units(
    mail: World, kilobytes: int, is_answer: bool, headers: dict[str, str], verdicts: dict[str, str], most: int
) -> None:
    come_in(letter(message_id="<0@customer.example>"))
    to = [reply_address(mail)] if is_answer else []
    if headers is RESOLVED:
        changing.change_status(mail.context("bob", "acme"), 1, to=Status.RESOLVED, version=1)
    body = "word " * 204 * kilobytes + "Hi"
    post(letter(subject="Else", body=body, message_id="<1@customer.example>", **headers), *to, **verdicts)
    with meter.measure() as bill:
        drain()
    assert len(rows(mail)) == 2
    assert bill.write_units == most, [(c.operation, c.table, c.write_units) for c in bill.calls if c.write_units]
    number = int(rows(mail)[0].number)
    assert [*body.split()] in (text.split() for text, _ in texts_of(mail, number))


def reply_address(mail: World) -> str:
    """The reply address of ticket 1 that its requester was given."""
    zoe, tenant_id = changing.read(mail.context("bob", "acme"), 1).requester, mail.tenants["acme"].tenant_id
    return reply_addresses.address_of(tenant_id, 1, zoe, is_agent=False)


def texts_of(mail: World, number: int) -> list[tuple[str, dict[str, Any]]]:
    """The texts of a ticket, and what they keep of their letters."""
    found = mail.context("bob", "acme").repository.query_all(TICKET_ITEMS, tickets.ticket, number)
    pairs = [(item.description if isinstance(item, DetailItem) else getattr(item, "body", ""), item) for item in found]
    return [(text, item.letter.as_dict()) for text, item in pairs if getattr(item, "letter", None)]


def openings_of(mail: World, number: int) -> tuple[int, int]:
    """How often a ticket was opened by its history, and how many acknowledgements it has."""
    found = mail.context("bob", "acme").repository.query_all(TICKET_ITEMS, tickets.ticket, number)
    opened = [item for item in found if getattr(item, "verb", "") == "opened the ticket"]
    subject = {"S": ticket_events.subject(number)}
    return len(opened), sum(row["subject"] == subject for row in everything(OUTBOX))
