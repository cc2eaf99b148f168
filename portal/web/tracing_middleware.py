"""Traces for OpenTelemetry: a span for each request, with one in it for each call of the database.

Off, and not imported, unless TRACES is set; then the packages of requirements-otel.txt have to be installed. Where the
spans go, and how many, the standard variables say, such as OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_TRACES_SAMPLER. A span
holds what the line of the request in the log holds: ids, and never a text, a token or an address.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.trace.status import StatusCode

from portal import logs
from portal.dynamo import client
from portal.version_number import VERSION
from portal.web import middleware

_SPAN: Final = "pooldesk.span"  # in the context that botocore hands from event to event
_PROPAGATOR: Final = TraceContextTextMapPropagator()


@cache
def provider() -> TracerProvider:
    """Return what makes this process's spans and sends them, in a thread: a forked process makes its own."""
    made = TracerProvider(resource=Resource.create({"service.name": "pooldesk", "service.version": VERSION}))
    made.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return made


os.register_at_fork(after_in_child=provider.cache_clear)


def _tracer() -> Tracer:
    return provider().get_tracer("pooldesk", VERSION)


class TracingMiddleware:
    """Make the span of a request; it belongs to the caller's trace, if the request names one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response
        client.followers.add(follow)

    def __call__(self, request: HttpRequest) -> HttpResponse:
        named = {name.lower(): value for name, value in request.headers.items()}
        callers = _PROPAGATOR.extract(named)
        with _tracer().start_as_current_span("request", context=callers, kind=SpanKind.SERVER) as span:
            response = self._get_response(request)
            method, route = middleware.named(request)
            span.update_name(f"{method} {route}")
            ids = {"request": response.headers.get(logs.HEADER, ""), **middleware.who(request)}
            span.set_attributes({f"pooldesk.{name}": value for name, value in ids.items()})
            span.set_attributes({"http.request.method": method, "http.route": route})
            span.set_attribute("http.response.status_code", response.status_code)
            if response.status_code >= 500:
                span.set_status(StatusCode.ERROR)
        return response


def follow(made: Any) -> None:
    """Make a span for each call that a new client of DynamoDB sends: its operation, and no key or value."""
    made.meta.events.register("before-call.*", _begin)
    made.meta.events.register("after-call.*", _end)
    made.meta.events.register("after-call-error.*", _fail)


def _begin(model: Any, context: dict[str, Any], **_: Any) -> None:
    span = _tracer().start_span(f"DynamoDB {model.name}", kind=SpanKind.CLIENT)
    span.set_attributes({"db.system.name": "aws.dynamodb", "db.operation.name": model.name})
    context[_SPAN] = span


def _end(context: dict[str, Any], http_response: Any, **_: Any) -> None:
    if span := context.pop(_SPAN, None):
        if http_response.status_code >= 300:
            span.set_status(StatusCode.ERROR)
        span.end()


def _fail(context: dict[str, Any], **_: Any) -> None:
    if span := context.pop(_SPAN, None):
        span.set_status(StatusCode.ERROR)
        span.end()
