"""Operators see unexpected errors of all processes, once for each place they come from, without any words of people."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from django.conf import LazySettings

from api.v1 import ticket_routes
from portal import logs
from portal.dynamo import meter
from portal.errors import Unavailable
from portal.faults import fault_board
from portal.faults.stored import TABLE
from portal.load import reporting
from portal.logs import FaultHandler, FaultNotes
from tests.support import proving
from tests.support.api_client import api_client
from tests.support.commands import everything
from tests.support.operators import Operator
from tests.support.world import World

PAGE = "/admin/errors/"
SECRET = "gooseberry"
log = logging.getLogger("pooldesk.test")


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "notes", FaultNotes())


def broken(*args: Any, **kwargs: Any) -> Any:
    raise LookupError(f"nothing like {SECRET}")


def fail(kind: type[Exception] = ValueError, times: int = 1) -> None:
    for _ in range(times):
        try:
            raise kind(SECRET)
        except kind:
            log.exception("It failed")


def test_where_nothing_failed_it_says_so(root: Operator) -> None:
    assert "No unexpected errors in the last 30 days." in root.says(PAGE)


def test_errors_of_pages_are_grouped_and_lead_to_their_last_request(world: World, root: Operator) -> None:
    browser = world.browser("bob", raise_request_exception=False)
    with proving.view("queue", broken):
        answers = [browser.get(f"/tickets/?q={SECRET}") for _ in range(3)]
    fail(ZeroDivisionError)
    assert fault_board.write("web", "platform") == 2
    shown = root.get(PAGE)
    first, second = shown.context["errors"]
    assert (first["type"], second["type"], second["times"]) == ("ZeroDivisionError", "LookupError", 3)
    assert second["place"].startswith("tests/operators/test_errors_page.py:")
    assert (second["route"], second["process"]) == ("/<slug:desk>/tickets/", "web")
    assert second["request"] == answers[-1]["X-Request-Id"]
    assert answers[-1]["X-Request-Id"] in shown.content.decode()
    assert SECRET not in shown.content.decode() + str(everything(TABLE))


def test_errors_of_the_api_have_their_route(world: World, root: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ticket_routes.timelines, "head", broken)
    assert api_client(world).ask("/tickets/1", X_Request_Id="my-request-1").status_code == 500
    fault_board.write("web", "platform")
    (shown,) = root.get(PAGE).context["errors"]
    assert (shown["route"], shown["request"]) == ("GET /api/v1/tickets/<ticket_number:number>", "my-request-1")


def test_what_several_processes_note_adds_up(root: Operator) -> None:
    for kind, role in (("web", "platform"), ("stream worker", "worker"), ("delivery worker", "delivery")):
        fail(times=2)
        assert fault_board.write(kind, role) == 1  # type: ignore[arg-type]
    (shown,) = root.get(PAGE).context["errors"]
    assert (shown["times"], shown["process"]) == (6, "delivery worker")
    assert shown["first_at"] < shown["last_at"]


def test_the_last_request_is_that_of_the_last_error_whichever_process_writes_first(
    monkeypatch: pytest.MonkeyPatch, root: Operator
) -> None:
    earlier, later = FaultNotes(), FaultNotes()
    for number, notes in enumerate((earlier, later)):
        monkeypatch.setattr(logs, "notes", notes)
        with logs.following(f"request-{number}"):
            fail()
    for notes in (later, earlier):
        monkeypatch.setattr(logs, "notes", notes)
        fault_board.write("web", "platform")
    (shown,) = root.get(PAGE).context["errors"]
    assert (shown["times"], shown["request"]) == (2, "request-1")
    assert shown["first_at"] <= shown["last_at"]


def test_while_the_database_is_away_errors_are_kept(monkeypatch: pytest.MonkeyPatch, root: Operator) -> None:
    def away(*arguments: Any, **named: Any) -> None:
        raise Unavailable("The database cannot be reached.")

    fail(times=2)
    with monkeypatch.context() as patched:
        patched.setattr("portal.dynamo.store.Store.update", away)
        with pytest.raises(Unavailable):
            fault_board.write("web", "platform")
    fail()
    fault_board.write("web", "platform")
    (shown,) = root.get(PAGE).context["errors"]
    assert shown["times"] == 3


def test_memory_and_writes_are_bounded() -> None:
    kinds = [type(f"Kind{number}", (Exception,), {}) for number in range(logs.MOST + 50)]
    for kind in kinds:
        fail(kind)
    assert len(logs.notes.take(1_000)) == logs.MOST
    for kind in kinds[:30]:
        fail(kind)
    with meter.measure() as bill:
        fault_board.write("web", "platform")
    assert (len(bill.calls), bill.write_units) == (fault_board.AT_ONCE, fault_board.AT_ONCE)


def test_the_page_is_one_query(root: Operator) -> None:
    fail()
    fault_board.write("web", "platform")
    with meter.measure() as bill:
        fault_board.latest()
    assert [call.operation for call in bill.calls] == ["Query"]


def test_a_process_writes_its_errors_down_beside_its_work(root: Operator, settings: LazySettings) -> None:
    settings.NOISE_NOTED = True
    reporting.start("dispatch function", "worker", in_thread=False)
    fail()
    reporting.turn()
    fail()
    reporting.stop()
    assert root.get(PAGE).context["errors"][0]["times"] == 2


def test_records_without_an_exception_are_no_errors_of_this_kind() -> None:
    log.error("A delivery is dead")
    assert logs.notes.take(10) == []
    assert any(isinstance(handler, FaultHandler) for handler in logging.getLogger().handlers)
