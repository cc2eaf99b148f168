"""With TRACES a request is a span, and each call of the database one in it; without, nothing of it is loaded."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from django.conf import LazySettings, settings

from portal.dynamo import client
from tests.support.api_client import api_client
from tests.support.stored import send
from tests.support.world import World
from tickets.ticket.stored import TICKETS

sdk = pytest.importorskip("opentelemetry.sdk.trace", reason="requirements-otel.txt is not installed")
memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
export = pytest.importorskip("opentelemetry.sdk.trace.export")

CALLERS = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def spans(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> Iterator[memory.InMemorySpanExporter]:
    from portal.web import tracing_middleware as tracing

    kept = memory.InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(kept))
    monkeypatch.setattr(tracing, "provider", lambda: provider)
    first, *others = settings.MIDDLEWARE
    settings.MIDDLEWARE = [first, "portal.web.tracing_middleware.TracingMiddleware", *others]
    client.followers.add(tracing.follow)
    client.reset()
    yield kept
    client.followers.clear()
    client.reset()


def test_a_request_is_a_span_of_its_callers_trace_with_ids_and_its_calls_of_the_database(
    world: World, spans: memory.InMemorySpanExporter
) -> None:
    (number,) = world.tickets("acme", 1)
    spans.clear()
    browser = world.browser("bob")
    answer = browser.get(f"/tickets/{number}/", headers={"traceparent": CALLERS})
    *calls, request = (one for one in spans.get_finished_spans() if f"{one.context.trace_id:032x}" in CALLERS)
    assert request.name == "GET /<slug:desk>/tickets/<ticket_number:number>/"
    assert dict(request.attributes) == {
        "http.request.method": "GET",
        "http.route": "/<slug:desk>/tickets/<ticket_number:number>/",
        "http.response.status_code": 200,
        "pooldesk.request": answer["X-Request-Id"],
        "pooldesk.tenant": world.tenants["acme"].tenant_id,
        "pooldesk.actor": world.users["bob"].id,
    }
    assert {one.parent.span_id for one in calls} == {request.context.span_id}
    assert {"DynamoDB Query", "DynamoDB BatchGetItem"} <= {one.name for one in calls}


def test_a_request_and_a_call_that_fail_say_so(world: World, spans: memory.InMemorySpanExporter) -> None:
    system = api_client(world)
    send("DeleteTable", TableName=TICKETS.full_name)
    assert system.ask("/tickets").status_code == 503
    failed = {one.name for one in spans.get_finished_spans() if not one.status.is_ok}
    assert failed == {"GET /api/v1/tickets", "DynamoDB Query"}


def test_without_the_setting_nothing_of_it_is_loaded() -> None:
    code = "import django, sys; django.setup(); import portal.wsgi; print([n for n in sys.modules if 'telemetry' in n])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=settings.BASE_DIR, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
