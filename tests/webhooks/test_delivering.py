"""Deliveries to real sockets: what arrives, what the log says, how it goes on, and when an endpoint is paused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.core import mail
from standardwebhooks import Webhook

from delivery.outbox import destinations
from delivery.webhooks import delivery_log, endpoints
from delivery.webhooks.stored import DeliveryItem, EndpointItem
from portal import clock
from portal.dynamo import meter
from tenants.audit_trail.recording import Actor
from tests.support.endpoints import endpoint, rows, tell, work_off
from tests.support.receivers import Receiver, answering, listening
from tests.support.world import World


class Answers:
    """A receiver that gives these answers, the last of them for ever, and keeps what it heard."""

    def __init__(self, settings: Any) -> None:
        self.heard: list[bytes] = []
        self.answers = [200]
        self.head = ""
        self.settings = settings

    def talk(self, connection: Any) -> None:
        status = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        text = f"HTTP/1.1 {status} X\r\n{self.head}Content-Length: 5\r\n\r\nhello"
        answering(text.encode(), heard=self.heard)(connection)

    def use(self, receiver: Receiver) -> None:
        self.settings.WEBHOOK_RECEIVER = f"http://127.0.0.1:{receiver.port}"

    @property
    def url(self) -> str:
        return f"{self.settings.WEBHOOK_RECEIVER}/hooks"

    def requests(self) -> list[tuple[dict[str, str], bytes]]:
        """Headers and body of each request."""
        found = []
        for request in self.heard:
            head, _, body = request.partition(b"\r\n\r\n")
            lines = [line.partition(": ") for line in head.decode().split("\r\n")[1:]]
            found.append(({name.lower(): value for name, _, value in lines}, body))
        return found


@pytest.fixture
def answers(settings: Any) -> Iterator[Answers]:
    found = Answers(settings)
    with listening(found.talk) as receiver:
        found.use(receiver)
        yield found


def stored(world: World, item: EndpointItem) -> EndpointItem:
    return endpoints.find(world.context("alice", "acme").repository, item.endpoint_id)


def log(world: World, item: EndpointItem) -> list[DeliveryItem]:
    return delivery_log.page(world.context("alice", "acme").repository, item.endpoint_id).rows


def told(world: World, url: str, *weights: float) -> tuple[EndpointItem, str]:
    """An endpoint of Acme's at this address, and one event for each weight."""
    item, secret = endpoint(world.context("alice", "acme"), url)
    tell(world.context("alice", "acme"), *weights)
    return item, secret


def test_what_arrives_is_signed_and_says_whose_it_is_and_what_has_happened(world: World, answers: Answers) -> None:
    _, secret = told(world, answers.url, 250)
    alice = world.context("alice", "acme")
    assert [outcome.state for outcome in work_off(alice)] == ["answered"]
    ((headers, body),) = answers.requests()
    event = Webhook(secret).verify(body, headers)
    (row,) = rows()
    assert event == {
        "id": headers["webhook-id"],
        "type": "parcel.sent",
        "version": 1,
        "timestamp": row.timestamp,
        "tenant": {"id": alice.tenant_id, "name": "Acme", "slug": "acme"},
        "sequence": 1,
        "data": {"weight": 250},
    }
    assert headers["content-type"] == "application/json"
    assert not row.open
    assert row.pending is None


def test_each_secret_of_the_last_day_verifies_what_arrives(world: World, answers: Answers) -> None:
    item, old = told(world, answers.url, 1)
    alice = world.context("alice", "acme")
    _, new = endpoints.rotate(alice, endpoint_id=item.endpoint_id, version=1, by=Actor(alice.user_id))
    _, newest = endpoints.rotate(alice, endpoint_id=item.endpoint_id, version=2, by=Actor(alice.user_id))
    work_off(alice)
    ((headers, body),) = answers.requests()
    for secret in (old, new, newest):
        assert Webhook(secret).verify(body, headers)["data"] == {"weight": 1}


def test_the_log_has_the_answer_and_each_attempt(world: World, answers: Answers) -> None:
    answers.answers = [500, 200]
    item, _ = told(world, answers.url, 1)
    alice = world.context("alice", "acme")
    (outcome,) = work_off(alice)
    assert (outcome.state, outcome.note) == ("failed", "Answered 500.")
    (row,) = log(world, item)
    assert (row.state, row.status, row.excerpt) == (delivery_log.FAILED, 500, "hello")
    assert row.next_at > clock.stamp()
    assert work_off(alice)[0].state == "answered"
    (row,) = log(world, item)
    assert (row.state, row.status, row.next_at) == (delivery_log.ANSWERED, 200, None)
    assert [int(tried["status"]) for tried in row.attempts] == [500, 200]
    (first, _), (second, _) = answers.requests()
    assert first["webhook-id"] == second["webhook-id"]


def test_an_endpoint_is_failing_from_its_first_failure_to_its_next_answer(world: World, answers: Answers) -> None:
    answers.answers = [500, 500, 200]
    item, _ = told(world, answers.url, 1)
    alice = world.context("alice", "acme")
    work_off(alice)
    since = stored(world, item).failing_since
    assert since is not None
    work_off(alice)
    assert stored(world, item).failing_since == since
    work_off(alice)
    assert stored(world, item).failing_since is None


_DATE = "Date: Wed, 21 Oct 2026 07:28:00 GMT\r\n"


@pytest.mark.parametrize(
    ("status", "head", "seconds"),
    [
        (503, "Retry-After: 7200\r\n", 7200),
        (429, "Retry-After: 999999999\r\n", 86400),
        (429, "Retry-After: 99999999999\r\n", 86400),
        (503, f"Retry-After: {'9' * 5000}\r\n", 86400),
        (503, "Retry-After: 000000000007200\r\n", 7200),
        (500, "Retry-After: 7200\r\n", 0),
        (503, f"{_DATE}Retry-After: Wed, 21 Oct 2026 09:28:00 GMT\r\n", 7200),
        (503, f"{_DATE}Retry-After: Wednesday, 21-Oct-26 09:28:00 GMT\r\n", 7200),
        (503, f"{_DATE}Retry-After: Wed Oct 21 09:28:00 2026\r\n", 7200),
        (503, f"{_DATE}Retry-After: Fri, 31 Dec 9999 23:59:59 GMT\r\n", 86400),
        (503, "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT\r\n", 86400),
        (503, f"{_DATE}Retry-After: Wed, 21 Oct 2026 07:27:00 GMT\r\n", 0),
        (503, "Date: yesterday\r\nRetry-After: Wed, 21 Oct 2020 07:28:00 GMT\r\n", 0),
        (503, "Retry-After: Wed, 99 Oct 99999 07:28:00 GMT\r\n", 0),
        (503, "Retry-After: -1\r\n", 0),
    ],
)
def test_a_receiver_that_asks_for_time_gets_it_within_bounds(
    status: int, head: str, seconds: float, world: World, answers: Answers
) -> None:
    answers.answers, answers.head = [status], head
    told(world, answers.url, 1)
    (outcome,) = work_off(world.context("alice", "acme"))
    assert outcome.retry_after == pytest.approx(seconds or destinations.PAUSES[0], abs=destinations.PAUSES[0])


def test_a_redirect_is_a_failure_that_says_so(world: World, answers: Answers) -> None:
    answers.answers, answers.head = [302], "Location: http://127.0.0.1:1/\r\n"
    item, _ = told(world, answers.url, 1)
    work_off(world.context("alice", "acme"))
    assert log(world, item)[0].note == "Answered 302. Redirects are not followed."


def test_an_address_that_is_no_longer_allowed_is_not_called(world: World, answers: Answers, settings: Any) -> None:
    item, _ = told(world, answers.url, 1)
    settings.WEBHOOK_RECEIVER = ""
    (outcome,) = work_off(world.context("alice", "acme"))
    assert outcome.state == "failed"
    assert "https://" in log(world, item)[0].note
    assert answers.heard == []


def test_a_name_that_leads_inside_is_not_called(world: World, answers: Answers, settings: Any) -> None:
    settings.WEBHOOK_PORTS = [443, int(answers.url.rpartition(":")[2].partition("/")[0])]
    item, _ = told(world, f"https://localhost.localdomain:{settings.WEBHOOK_PORTS[1]}/", 1)
    (outcome,) = work_off(world.context("alice", "acme"))
    assert outcome.state == "failed"
    assert log(world, item)[0].status == 0
    assert answers.heard == []


def test_a_removed_endpoint_gets_nothing_and_holds_nothing_up(world: World, answers: Answers) -> None:
    item, _ = told(world, answers.url, 1)
    alice = world.context("alice", "acme")
    endpoints.remove(alice, endpoint_id=item.endpoint_id, by=Actor(alice.user_id))
    assert [outcome.state for outcome in work_off(alice)] == ["answered"]
    assert answers.heard == []
    assert [row.pending for row in rows()] == [None]


def test_what_meets_a_paused_endpoint_is_skipped_and_logged(world: World, answers: Answers) -> None:
    item, _ = told(world, answers.url, 1)
    alice = world.context("alice", "acme")
    endpoints.pause(alice, endpoint_id=item.endpoint_id, by=Actor(alice.user_id))
    assert [outcome.state for outcome in work_off(alice)] == ["answered"], "nobody waits for it any more"
    assert [row.state for row in log(world, item)] == [delivery_log.SKIPPED]
    assert answers.heard == []


# --- endpoints that are dead ---


def test_who_answers_410_is_paused_at_once_and_its_owners_are_told(world: World, answers: Answers) -> None:
    answers.answers = [410]
    item, _ = told(world, answers.url, 1)
    alice = world.context("alice", "acme")
    assert [outcome.state for outcome in work_off(alice)] == ["dead"]
    paused = stored(world, item)
    assert (paused.state, paused.paused_because) == ("paused", "It answered 410 Gone.")
    assert dict(world.context("alice", "acme").subscriptions) == {}
    (letter,) = mail.outbox
    assert letter.to == ["alice@example.com"]
    assert letter.subject == "A webhook of Acme was paused"
    assert answers.url in letter.body
    assert f"/acme/desk/settings/webhooks/{item.endpoint_id}/" in letter.body


def test_an_endpoint_that_answered_nothing_for_all_attempts_is_paused(world: World, answers: Answers) -> None:
    answers.answers = [500]
    item, _ = told(world, answers.url, 1)
    alice = world.context("alice", "acme")
    states = [work_off(alice)[0].state for _ in range(destinations.ATTEMPTS)]
    assert states == ["failed"] * (destinations.ATTEMPTS - 1) + ["dead"]
    paused = stored(world, item)
    assert paused.state == "paused"
    assert paused.paused_because.endswith("The last: Answered 500.")
    assert [row.state for row in log(world, item)] == [delivery_log.DEAD]
    assert len(mail.outbox) == 1
    assert work_off(alice) == []


def test_an_endpoint_that_answered_something_meanwhile_is_not_paused(world: World, answers: Answers) -> None:
    answers.answers = [500]
    item, _ = told(world, answers.url, 1)
    alice = world.context("alice", "acme")
    for _ in range(destinations.ATTEMPTS - 1):
        work_off(alice)
    answers.answers = [500, 200]  # the old one, for the last time, and a new one
    before = stored(world, item).failing_since
    repository = alice.repository
    repository.update(EndpointItem(alice.tenant_id, item.endpoint_id), [EndpointItem.failing_since.remove()])
    assert work_off(alice)[0].state == "dead"
    assert before
    assert stored(world, item).state == "active"
    assert mail.outbox == []


def test_the_pause_of_an_endpoint_that_an_admin_has_just_paused_is_no_error(world: World, answers: Answers) -> None:
    answers.answers = [410]
    item, _ = told(world, answers.url, 1, 2)
    alice = world.context("alice", "acme")
    assert [outcome.state for outcome in work_off(alice)] == ["dead", "answered"]
    assert len(mail.outbox) == 1
    assert len(log(world, item)) == 2


# --- costs ---


def test_a_delivery_costs_two_reads_at_once_and_one_write(world: World, answers: Answers) -> None:
    told(world, answers.url, 1)
    alice = world.context("alice", "acme")
    (row,) = rows()
    before = [json.loads(event)["type"] for event in row.events]
    with meter.measure() as bill:
        work_off(alice)
    calls = [(call.operation, call.table.rpartition(".")[2]) for call in bill.calls if "Scan" not in call.operation]
    assert before == ["parcel.sent"]
    assert sorted(calls[:2]) == [("GetItem", "Endpoints"), ("GetItem", "Secrets")]
    assert calls[2:] == [("UpdateItem", "Deliveries"), ("UpdateItem", "Outbox")]
    assert [call.write_units for call in bill.calls if call.table.endswith("Deliveries")] == [1.0]
