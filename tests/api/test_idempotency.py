"""A POST with an Idempotency-Key is done once, whatever dies or is slow, and is answered alike each time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from api.edge import idempotency
from api.edge.idempotency import CLAIM_SECONDS, KEPT_SECONDS
from api.edge.stored import ANSWERS
from portal.dynamo.store import Store
from portal.errors import ConditionFailed, Unavailable
from tests.desk.test_cost import _watching
from tests.support import commands, stored
from tests.support.api_client import ApiClient, api_client
from tests.support.world import World
from tickets.desk import creating

BODY = {"title": "Once", "description": "It broke."}
KEY = "order-4711"


class Died(BaseException):
    """The process is gone: nothing cleans up."""


@pytest.fixture(autouse=True)
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Lets so many seconds have gone by for claims, for which time stands still."""
    began = idempotency.time.time()

    def go(seconds: float) -> None:
        monkeypatch.setattr(idempotency, "time", SimpleNamespace(time=lambda: began + seconds))

    go(0)
    return go


def create(client: ApiClient, key: str = KEY, body: object = BODY) -> Any:
    return client.send("/tickets", body, Idempotency_Key=key)


def tickets(client: ApiClient) -> int:
    return len(client.ask("/tickets?limit=100").json()["data"])


def told(response: Any) -> tuple[int, str]:
    return response.status_code, response.json().get("code", "")


class _Interrupted:
    """Lets something happen at the next transaction, before it is written or after it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.patch, self.write = monkeypatch, Store.transact

    def _once(self, act: Callable[..., None]) -> None:
        def acted(repository: Any, *args: Any, **kwargs: Any) -> None:
            self.patch.setattr(Store, "transact", self.write)
            act(lambda: self.write(repository, *args, **kwargs))

        self.patch.setattr(Store, "transact", acted)

    def before(self, act: Callable[[], object]) -> None:
        def first(write: Callable[[], None]) -> None:
            act()
            write()

        self._once(first)

    def after(self, act: Callable[[], object]) -> None:
        def then(write: Callable[[], None]) -> None:
            write()
            act()

        self._once(then)


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> _Interrupted:
    return _Interrupted(monkeypatch)


def fail(error: BaseException) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


def test_the_same_request_again_gets_the_same_answer_and_does_nothing(client: ApiClient) -> None:
    first = create(client)
    again = [create(client) for _ in range(3)]
    assert first.status_code == 201
    assert "Idempotency-Replayed" not in first
    for answer in again:
        assert (answer.status_code, answer.content) == (201, first.content)
        assert answer["Idempotency-Replayed"] == "true"
        assert all(answer[name] == first[name] for name in ("Content-Type", "ETag", "Location"))
    assert tickets(client) == 1


def test_without_a_key_the_same_request_is_another_one(client: ApiClient) -> None:
    assert [create(client, key="").status_code for _ in range(2)] == [201, 201]
    assert tickets(client) == 2


def test_another_body_with_the_same_key_is_refused(client: ApiClient) -> None:
    create(client)
    answer = create(client, body={"title": "Other"})
    assert told(answer) == (422, "idempotency_key_reused")
    assert answer.json()["field"] == "Idempotency-Key"
    assert tickets(client) == 1


def test_a_key_is_its_callers_and_its_addresss(world: World, client: ApiClient) -> None:
    other = api_client(world)
    assert create(client).content != create(other).content
    paths = ("/tickets/1/comments", "/tickets/2/comments", "/tickets/1/notes")
    answers = [client.send(path, {"body": "x"}, Idempotency_Key=KEY) for path in paths]
    assert [a.status_code for a in answers] == [201] * 3
    assert len({a.json()["id"] for a in answers}) == 3


@pytest.mark.parametrize("key", ["x y", "x" * 256, "schlüssel"])
def test_a_key_that_cannot_be_one_is_refused(client: ApiClient, key: str) -> None:
    assert told(create(client, key)) == (422, "invalid")
    assert tickets(client) == 0


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/tickets/1/comments", {"body": "Once."}),
        ("/tickets/1/notes", {"body": "Once."}),
        ("/tickets/status", {"status": "closed", "tickets": [{"number": 1}]}),
    ],
)
def test_comments_notes_and_bulk_changes_are_done_once_too(
    world: World, client: ApiClient, path: str, body: Any
) -> None:
    world.tickets("acme", 1)
    first, again = (client.send(path, body, Idempotency_Key=KEY) for _ in range(2))
    assert first.status_code in (200, 201)
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert len(client.ask("/tickets/1/activity").json()["data"]) == 2


def test_while_the_first_is_at_work_the_second_is_told_to_come_back(
    client: ApiClient, interrupted: _Interrupted
) -> None:
    answers: list[Any] = []
    interrupted.before(lambda: answers.append(create(client)))
    first = create(client)
    (second,) = answers
    assert told(second) == (409, "idempotency_in_progress")
    assert second["Retry-After"] == "1"
    assert create(client).content == first.content
    assert tickets(client) == 1


def test_who_finds_a_request_that_is_long_at_work_comes_back_when_its_claim_ends(
    client: ApiClient, interrupted: _Interrupted, later: Callable[[float], None]
) -> None:
    answers: list[Any] = []

    def meanwhile() -> None:
        later(6)
        answers.append(create(client))

    interrupted.before(meanwhile)
    create(client)
    assert told(answers[0]) == (409, "idempotency_in_progress")
    assert int(answers[0]["Retry-After"]) in (CLAIM_SECONDS - 6, CLAIM_SECONDS - 5)


def test_what_died_before_it_wrote_is_done_by_the_next_one_when_its_claim_has_ended(
    client: ApiClient, interrupted: _Interrupted, later: Callable[[float], None]
) -> None:
    interrupted.before(fail(Died()))
    with pytest.raises(Died):
        create(client)
    assert told(create(client)) == (409, "idempotency_in_progress")
    later(CLAIM_SECONDS + 1)
    assert told(create(client, body={"title": "Other"})) == (422, "idempotency_key_reused")
    assert create(client).status_code == 201
    assert tickets(client) == 1


def test_what_died_after_it_wrote_is_not_done_again(client: ApiClient, interrupted: _Interrupted) -> None:
    interrupted.after(fail(Died()))
    with pytest.raises(Died):
        create(client)
    answer = create(client)
    assert (answer.status_code, answer["Idempotency-Replayed"]) == (201, "true")
    assert tickets(client) == 1


def test_who_was_so_slow_that_another_one_took_over_writes_nothing_and_answers_alike(
    client: ApiClient, interrupted: _Interrupted, later: Callable[[float], None]
) -> None:
    answers: list[Any] = []

    def taken_over() -> None:
        later(CLAIM_SECONDS + 1)
        answers.append(create(client))

    interrupted.before(taken_over)
    slow = create(client)
    assert [a.status_code for a in (*answers, slow)] == [201, 201]
    assert slow.content == answers[0].content
    assert slow["Idempotency-Replayed"] == "true"
    assert tickets(client) == 1


def test_who_lost_its_claim_writes_nothing_while_the_other_one_is_at_work(
    client: ApiClient, interrupted: _Interrupted, later: Callable[[float], None]
) -> None:
    def taken_over() -> None:
        later(CLAIM_SECONDS + 1)
        interrupted.before(fail(Died()))
        with suppress(Died):
            create(client)

    interrupted.before(taken_over)
    assert told(create(client)) == (409, "idempotency_in_progress")
    assert tickets(client) == 0


def test_who_finds_its_claim_gone_writes_nothing_and_may_come_back(
    client: ApiClient, interrupted: _Interrupted
) -> None:
    def gone() -> None:
        for raw in commands.in_pool(ANSWERS):
            stored.send("DeleteItem", TableName=ANSWERS.full_name, Key={"pk": raw["pk"]})

    interrupted.before(gone)
    assert told(create(client)) == (409, "idempotency_in_progress")
    assert create(client).status_code == 201
    assert tickets(client) == 1


def test_an_outage_is_no_answer_and_the_next_one_need_not_wait(client: ApiClient, interrupted: _Interrupted) -> None:
    interrupted.before(fail(Unavailable("Away.")))
    assert told(create(client)) == (503, "unavailable")
    answer = create(client)
    assert answer.status_code == 201
    assert "Idempotency-Replayed" not in answer


def test_a_write_whose_outcome_was_not_heard_of_is_found_by_its_answer(
    client: ApiClient, interrupted: _Interrupted
) -> None:
    interrupted.after(fail(Unavailable("No answer in time.")))
    assert told(create(client)) == (503, "unavailable")
    assert create(client)["Idempotency-Replayed"] == "true"
    assert tickets(client) == 1


def test_a_claim_whose_answer_was_lost_is_ones_own(client: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client sends it again, and the condition refuses what it has written itself."""
    update = Store.update

    def twice(repository: Any, item: Any, actions: Any, *, condition: Any = None) -> Any:
        stored = update(repository, item, actions, condition=condition)
        raise ConditionFailed(item=stored.serialize())

    monkeypatch.setattr(Store, "update", twice)
    assert create(client).status_code == 201


def test_a_refusal_is_an_answer_too(world: World, client: ApiClient) -> None:
    refused = client.send("/tickets/1/comments", {"body": "x"}, Idempotency_Key=KEY)
    world.tickets("acme", 1)
    again = client.send("/tickets/1/comments", {"body": "x"}, Idempotency_Key=KEY)
    assert (refused.status_code, again.status_code, again.content) == (404, 404, refused.content)
    assert again["Content-Type"] == "application/problem+json"
    assert client.send("/tickets/1/comments", {"body": "x"}, Idempotency_Key="another").status_code == 201


def test_after_a_day_a_key_is_new_again(client: ApiClient, later: Callable[[float], None]) -> None:
    create(client)
    later(KEPT_SECONDS - 1)
    assert create(client)["Idempotency-Replayed"] == "true"
    later(KEPT_SECONDS + 1)
    assert "Idempotency-Replayed" not in create(client, body={"title": "Other"})
    assert tickets(client) == 2


def test_an_answer_sent_again_takes_two_trips(client: ApiClient) -> None:
    create(client)
    with _watching() as bills:
        create(client)
    assert bills[0].trips == 2


def test_a_key_costs_four_write_units_more_than_a_form_does(client: ApiClient) -> None:
    """One to claim it, and two for each KB of the answer in the transaction."""
    with _watching() as bills:
        create(client, key="")
        create(client)
    without, with_key = (bill.write_units for bill in bills)
    assert with_key - without == 4


def test_an_answer_of_the_longest_ticket_is_kept(client: ApiClient) -> None:
    body = {"title": "\N{GRINNING FACE}" * 200, "description": "\N{GRINNING FACE}" * 50_000}
    first, again = (create(client, body=body) for _ in range(2))
    assert (first.status_code, again.content) == (201, first.content)


def test_the_portal_makes_tickets_as_before_beside_it(world: World, client: ApiClient) -> None:
    create(client)
    alice = world.context("alice", "acme")
    numbers = [creating.create(alice, title="Form", request_id="a" * 32) for _ in range(2)]
    assert numbers[0] == numbers[1]
    assert tickets(client) == 2
