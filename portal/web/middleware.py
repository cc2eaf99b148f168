"""Surround every request: health, its bill, and pages instead of tracebacks for errors of ours."""

from __future__ import annotations

import logging
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed

from portal.dynamo import meter
from portal.errors import PortalError
from portal.web import error_pages
from portal.web.request_limits import CLIENT_FAULTS

log = logging.getLogger("pooldesk")

GetResponse = Callable[[HttpRequest], HttpResponse]


class HealthMiddleware:
    """Answer `/healthz` before everything else: a load balancer sends an address as Host, and plain HTTP.

    It says that the process answers, and nothing of the engine, which one process cannot mend by restarting;
    `check_health` is for that.
    """

    PATH = "/healthz"

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path != self.PATH:
            return self.get_response(request)
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        return HttpResponse("ok\n", content_type="text/plain", headers={"Cache-Control": "no-store"})


class MeterMiddleware:
    """Count the request's calls to DynamoDB; say so in a Server-Timing header where DEBUG is on."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        with meter.measure() as bill:
            response = self.get_response(request)
        if settings.DEBUG and bill.calls:
            response["Server-Timing"] = bill.server_timing()
        return response


class ErrorPageMiddleware:
    """Turn a PortalError that a view lets through into its page, and what Django raises for a client's fault into that
    of a bad request. Middlewares call `error_page` themselves.

    With DEBUG on, Django answers an address without a route with a page for programmers; people of `make run` get
    ours, as in production.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if settings.DEBUG and response.status_code == 404 and request.resolver_match is None:
            return error_pages.not_found(request)
        return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if isinstance(exception, CLIENT_FAULTS):
            log.warning("%s %s: refused (%s)", request.method, request.path, type(exception).__name__)
            return error_pages.bad_request(request)
        return error_pages.error_page(request, exception) if isinstance(exception, PortalError) else None
