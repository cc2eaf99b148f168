"""What is refused only for what others do at the same moment is not kept as the answer: sent again, it is done."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from portal.dynamo.store import Store, Transaction
from portal.errors import TRANSACTION_CONFLICT, Reason, TransactionRefused
from tenants.api_keys import key_authentication, key_changes
from tenants.api_keys.key_changes import KeyChoice
from tenants.api_keys.scopes import Scope
from tenants.api_keys.stored import ApiKeyItem
from tenants.audit_trail.recording import Actor
from tests.support.api_client import ApiClient, api_client
from tests.support.api_keys import make_key
from tests.support.world import World

HOOK = {"url": "https://hooks.example.com/in", "event_types": ["ticket.created"]}
CLOSED = {"status": "closed", "tickets": [{"number": 1}]}
BY = Actor("a" * 32, "alice@example.com", "192.0.2.1")


def refusing(member: str, *, code: str = TRANSACTION_CONFLICT, times: int = 100) -> Callable[[Transaction], None]:
    """Refuses the next transactions beside an answer, because of the member of this name."""
    left = [times]

    def refuse(transaction: Transaction) -> None:
        names = list(transaction.names)
        if "answer" in names and left[0]:
            left[0] -= 1
            reasons = [Reason(code, "", None) if name == member else None for name in names]
            raise TransactionRefused(reasons, names=names)

    return refuse


def send(client: ApiClient, path: str, body: object = None) -> Any:
    return client.send(path, body, Idempotency_Key="once")


def told(response: Any) -> tuple[int, str]:
    return response.status_code, response.json().get("code", "")


@pytest.fixture
def client(world: World) -> ApiClient:
    world.tickets("acme", 1)
    return api_client(world)


@pytest.fixture
def meeting(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Sends something while what it writes is refused for a member of its transaction."""
    monkeypatch.setattr("portal.dynamo.retry.sleep", lambda seconds: None)
    write = Store.transact

    def sent(client: ApiClient, path: str, body: object = None, **how: Any) -> Any:
        refuse = refusing(**how)

        def transact(store: Store, transaction: Transaction, **kwargs: Any) -> None:
            refuse(transaction)
            write(store, transaction, **kwargs)

        with monkeypatch.context() as patched:
            patched.setattr(Store, "transact", transact)
            return send(client, path, body)

    return sent


def test_a_comment_that_met_others_too_often_is_added_the_next_time(
    client: ApiClient, meeting: Callable[..., Any]
) -> None:
    path, body = "/tickets/1/comments", {"body": "Once."}
    assert told(meeting(client, path, body, member="1")) == (409, "comment_not_added")
    assert send(client, path, body).status_code == 201


def test_an_endpoint_that_somebody_else_changed_at_the_same_moment_is_paused_the_next_time(
    client: ApiClient, meeting: Callable[..., Any]
) -> None:
    path = f"/webhooks/{client.send('/webhooks', HOOK).json()['id']}/pause"
    assert told(meeting(client, path, member="endpoint", code="ConditionalCheckFailed")) == (409, "conflict")
    assert send(client, path).json()["state"] == "paused"


def test_tickets_that_others_changed_at_the_same_moment_are_changed_the_next_time(
    client: ApiClient, meeting: Callable[..., Any]
) -> None:
    assert told(meeting(client, "/tickets/status", CLOSED, member="1")) == (409, "bulk_refused")
    assert send(client, "/tickets/status", CLOSED).json() == {"count": 1, "status": "closed"}


def test_tickets_that_cannot_be_what_was_asked_for_are_refused_alike_each_time(client: ApiClient) -> None:
    body = {"status": "closed", "tickets": [{"number": 2}]}
    first, again = (send(client, "/tickets/status", body) for _ in range(2))
    assert (told(first), again.content) == ((409, "bulk_refused"), first.content)


def test_a_bulk_change_whose_answer_meets_another_transaction_is_to_be_sent_again(
    client: ApiClient, meeting: Callable[..., Any]
) -> None:
    refused = meeting(client, "/tickets/status", CLOSED, member="answer")
    assert (told(refused), refused["Retry-After"]) == ((503, "busy"), "1")
    assert send(client, "/tickets/status", CLOSED).status_code == 200


def test_a_test_event_that_meets_another_transaction_is_written_again(
    client: ApiClient, meeting: Callable[..., Any]
) -> None:
    path = f"/webhooks/{client.send('/webhooks', HOOK).json()['id']}/test"
    assert meeting(client, path, member="answer", times=2).status_code == 202


# --- keys that end or change while they are at work ---


@pytest.fixture
def in_flight(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Lets something happen when the next request has been let in."""
    real = key_authentication.authenticate

    def then(act: Callable[[], object]) -> None:
        def authenticated(text: str, *, address: str) -> key_authentication.ApiCaller:
            monkeypatch.setattr(key_authentication, "authenticate", real)
            caller = real(text, address=address)
            act()
            return caller

        monkeypatch.setattr(key_authentication, "authenticate", authenticated)

    return then


@pytest.fixture
def key(world: World) -> tuple[ApiKeyItem, str]:
    return make_key(world.context("alice", "acme"), *Scope)


def test_who_is_revoked_at_work_gets_401_and_the_next_key_of_the_same_caller_is_let_to_it(
    world: World, key: tuple[ApiKeyItem, str], in_flight: Callable[[Callable[[], object]], None]
) -> None:
    owner, (old, text) = world.context("alice", "acme"), key
    _, successor = key_changes.roll(
        owner, prefix=old.api_key_prefix, version=1, grace=timedelta(hours=1), expires_at=None, by=BY
    )
    in_flight(lambda: key_changes.revoke(owner, prefix=old.api_key_prefix, by=BY))
    refused = send(ApiClient(text), "/webhooks", HOOK)
    assert told(refused) == (401, "key_revoked")
    assert "invalid_token" in refused["WWW-Authenticate"]
    done = send(ApiClient(successor), "/webhooks", HOOK)
    assert (done.status_code, "Idempotency-Replayed" in done) == (201, False)


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_what_needs_no_idempotency_key_is_refused_to_a_revoked_key_alike(
    world: World, key: tuple[ApiKeyItem, str], in_flight: Callable[[Callable[[], object]], None], method: str
) -> None:
    owner, (old, text) = world.context("alice", "acme"), key
    path = f"/webhooks/{ApiClient(text).send('/webhooks', HOOK).json()['id']}"
    in_flight(lambda: key_changes.revoke(owner, prefix=old.api_key_prefix, by=BY))
    body = {"description": "Mine"} if method == "PATCH" else None
    assert told(ApiClient(text).call(method, path, body)) == (401, "key_revoked")


def test_what_a_key_does_is_not_done_once_a_scope_was_taken_from_it(
    world: World, key: tuple[ApiKeyItem, str], in_flight: Callable[[Callable[[], object]], None]
) -> None:
    owner, (stored, text) = world.context("alice", "acme"), key
    reading = KeyChoice(name=stored.name, scopes=frozenset({Scope.TICKETS_READ}))
    in_flight(lambda: key_changes.change(owner, prefix=stored.api_key_prefix, choice=reading, version=1, by=BY))
    client = ApiClient(text)
    refused = send(client, "/webhooks", HOOK)
    assert told(refused) == (409, "conflict")
    assert "API key" in refused.json()["detail"]
    assert told(send(client, "/webhooks", HOOK)) == (403, "scope_missing")
    assert world.context("alice", "acme").subscriptions == {}
