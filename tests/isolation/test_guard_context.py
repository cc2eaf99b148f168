"""In whose name a request is made, what the person sees of a refusal, and the switch that turns the guard off."""

from __future__ import annotations

import contextvars
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.conf import LazySettings

from portal.dynamo import client
from portal.dynamo.store import Store
from portal.errors import NotFound
from portal.isolation import guard
from portal.isolation.guard import IsolationError, acting_for, current_tenant
from tests.support.guarded import FOREIGN, TICKETS, A, B, Caught, get
from tests.support.world import World
from tickets.ticket import stored
from tickets.ticket.stored import SummaryItem


def test_without_a_tenant_nothing_is_sent(caplog: pytest.LogCaptureFixture) -> None:
    caught = Caught()
    with pytest.raises(IsolationError) as refused:
        caught.client._make_api_call("GetItem", get())
    assert caught.sent == []
    assert refused.value.why == "no tenant"
    assert "(none)" in caplog.text


def test_the_tenant_ends_with_the_block_also_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), acting_for(B):
        1 / 0  # noqa: B018
    with acting_for(A):
        with acting_for(B):
            pass
        assert current_tenant() == A
    with pytest.raises(IsolationError):
        current_tenant()


@pytest.mark.parametrize("tenant", ["", "*", A.upper(), A + "\n", A[:-1], f"{A}|", None])
def test_nobody_acts_for_what_is_no_tenant(tenant: str) -> None:
    with pytest.raises(ValueError, match="tenant id"), acting_for(tenant):
        pass


def test_a_thread_has_a_tenant_only_if_it_is_handed_one() -> None:
    found: list[object] = []

    def ask() -> None:
        try:
            found.append(current_tenant())
        except IsolationError:
            found.append(None)

    with acting_for(A):
        for target in (ask, lambda: contextvars.copy_context().run(ask), None):
            if target:
                thread = threading.Thread(target=target)
                thread.start()
                thread.join()
        client.fan_out([ask, ask, ask])
    assert found == [None, None, A, A, A]


def test_sixteen_threads_are_never_taken_for_another_tenant() -> None:
    caught = Caught()
    tenants = [f"{n:032x}"[::-1] for n in range(40)]

    def ask(number: int) -> bool:
        mine, other = tenants[number % 40], tenants[(number + 1) % 40]
        caught.ask("GetItem", get(stored.ticket(mine, 1)), mine)
        with pytest.raises(IsolationError):
            caught.ask("GetItem", get(stored.ticket(other, 1)), mine)
        return True

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(ask, range(400)))
    assert len(caught.sent) == 400


def test_the_person_sees_that_there_is_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world.tickets("globex", 1)
    globex = world.tenants["globex"].tenant_id
    browser = world.browser("bob")
    real: Callable[[str, int], str] = stored.ticket
    monkeypatch.setattr(stored, "ticket", lambda tenant_id, number: real(globex, number))
    response = browser.get("/tickets/1/")
    assert response.status_code == 404
    assert "Ticket 1" not in response.content.decode()
    events = [r for r in caplog.records if r.name == "pooldesk.security"]
    assert [r.levelno for r in events] == [logging.CRITICAL]
    assert world.tenants["acme"].tenant_id in events[0].getMessage()


def test_a_refusal_is_an_error_of_ours_that_tells_the_person_nothing() -> None:
    refused = IsolationError("GetItem", TICKETS, "dynamodb:GetItem of 1 keys is not allowed")
    assert isinstance(refused, NotFound)
    assert refused.status == 404
    assert refused.message == "There is no such object."


def test_a_name_cannot_write_a_line_of_its_own_into_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(IsolationError):
        Caught().ask("GetItem", get() | {"TableName": "x\nRefused GetItem on y for tenant z" + "w" * 1000})
    (record,) = caplog.records
    assert "\n" not in record.getMessage()
    assert len(record.getMessage()) < 500


def test_the_guard_is_on_unless_it_is_switched_off(world: World, settings: LazySettings) -> None:
    (number,) = world.tickets("globex", 1)
    globex = world.tenants["globex"].tenant_id
    mine = Store("tenant", world.tenants["acme"].tenant_id)

    def steal() -> SummaryItem | None:
        return mine.get(SummaryItem, lambda tenant_id: stored.ticket(globex, number), sort=stored.SUMMARY)

    assert settings.DYNAMODB_GUARD
    with pytest.raises(IsolationError):
        steal()
    settings.DYNAMODB_GUARD = False
    client.reset()
    try:
        # What the switch gives up: on this engine nothing else stands behind the keys.
        assert steal() is not None
    finally:
        client.reset()


def test_the_platforms_client_reads_of_any_tenant() -> None:
    caught = Caught(client.make_client("platform"))
    caught.client._make_api_call("GetItem", get(FOREIGN))
    assert len(caught.sent) == 1


def test_a_policy_that_cannot_be_understood_stops_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        guard.policies, "document", lambda role, **_: {"Version": "2012-10-17", "Statement": [{"Effect": "Allow"}]}
    )
    with pytest.raises(ValueError, match="Action"):
        client.make_client("tenant")
