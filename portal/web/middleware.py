"""Surround every request: health, bill and log line, refusals before anything reads it, and pages for what is wrong.

Error pages need no database: the engine may be what is wrong.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final
from urllib.parse import urlsplit

from csp.constants import HEADER
from csp.middleware import CSPMiddleware
from csp.utils import build_policy
from django.conf import settings
from django.contrib.messages.storage.cookie import CookieStorage
from django.core.exceptions import BadRequest, DisallowedHost, SuspiciousOperation
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, JsonResponse, UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal import logs
from portal.dynamo import meter
from portal.dynamo.meter import Meter
from portal.errors import Invalid, LimitReached, NotFound, PortalError, Unavailable
from portal.load import measurement
from portal.version_number import VERSION
from portal.web import access, locales, price_presenters, readiness
from portal.web.access import is_guest_path
from portal.web.locales import asked_language, in_language, known_language
from portal.web.stash import Stash

_GONE, _BUSY = 404, (429, 503)
_PROBLEM: Final = "outside/problem.html"


def problem(request: HttpRequest, error: PortalError) -> HttpResponse:
    """Return the page for an error of ours, with what was typed. Any 404 is the same one, whatever does not exist."""
    status = error.status if error.status in (_GONE, *_BUSY) else 400
    wait: int | None = getattr(error, "retry_after", None) if status in _BUSY else None
    if status == 503:
        # Neither the address, which may be a signed link, nor the text of the cause, which may quote what it was about.
        log.warning("%s (%s)", error.message, type(error.__cause__).__name__)
    template: str = getattr(error, "guest_page", _PROBLEM)  # of an error that has a page of its own
    stash = Stash.of(request)  # it is lost otherwise: browsers forget what was typed into a page that is gone
    language = known_language(asked_language(request.headers.get("Accept-Language", "")))
    page: dict[str, Any] = {"status": status, "retry_after": wait, "stash": stash, "language": language}
    page |= {"path": request.path_info, "method": request.method}
    with in_language(language):
        response = render(request, template, page, status=status)
    if wait is not None:
        response["Retry-After"] = str(wait)
    response["Cache-Control"] = "no-store"
    return response


log = logging.getLogger("pooldesk")
requests_log = logging.getLogger("pooldesk.requests")

_TEMPLATES = {status: f"portal/{status}.html" for status in (400, 403, 404, 429, 503)}


def error_page(request: HttpRequest, error: PortalError) -> HttpResponse:
    """Return the page for an error of ours: its sentence, and what was typed, which a role or a ticket that has gone
    meanwhile must not take along. It can be sent again where that makes sense."""
    if is_guest_path(request.path_info):
        return problem(request, error)
    status = error.status if error.status in _TEMPLATES else 400
    context: dict[str, Any] = {"reason": error.message, "stash": Stash.of(request) if status in (403, 404) else None}
    if isinstance(error, Unavailable):
        log.warning("%s (%s)", error.message, type(error.__cause__).__name__)
    wait = error.retry_after if isinstance(error, LimitReached | Unavailable) else None
    if wait is not None:
        context |= {"stash": Stash.of(request), "retry_after": wait}
    response = render(request, _TEMPLATES[status], context, status=status)
    if wait is not None:
        response["Retry-After"] = str(wait)
    response["Cache-Control"] = "no-store"
    return response


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return render(request, "portal/400.html", {"reason": ""}, status=400)


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return render(request, "portal/403.html", {"reason": str(exception or "")}, status=403)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    if is_guest_path(request.path_info):
        return problem(request, NotFound())
    return render(request, "portal/404.html", {"reason": ""}, status=404)


def server_error(request: HttpRequest) -> HttpResponse:
    return render(request, "portal/500.html", {}, status=500)


METHODS = ("GET", "HEAD", "POST")
# Django raises these for a request that is wrong, and answers with a traceback in the log, on the page too with DEBUG.
CLIENT_FAULTS = (SuspiciousOperation, BadRequest, MultiPartParserError, UnreadablePostError)
_ADDRESS_HEADERS = ("HX-Current-URL", "Origin", "Referer")
_UTF8 = ("", "utf-8", "utf8")


class _Middleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response


@dataclass(frozen=True)
class RefusedRequest:
    """The status of an answer and its sentence for a person, which is translated where it is read."""

    status: int
    message: str
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        return _(self.message) % self.values


class RequestLimitsMiddleware(_Middleware):
    """Answers 400, 405, 413 or 415 with a page where `refusal` finds a reason, and a form's address that is opened.

    The parameters are read here, once: what raised anywhere further in would be Django's to answer.
    """

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if (refused := refusal(request)) is None:
            answer = self.get_response(request)
            if request.method == "GET" and isinstance(answer, HttpResponseNotAllowed):
                # On the answer that is there: its headers say who may keep it, and for how long.
                answer.content = _page_of_form(request).content
                answer.headers["Content-Length"] = str(len(answer.content))
            return answer
        response = _refused_page(request, refused)
        if refused.status == 405:
            response["Allow"] = ", ".join(METHODS)
        return response


def _page_of_form(request: HttpRequest) -> HttpResponse:
    refused = RefusedRequest(405, gettext_noop("This address takes what a form sends. It has no page."))
    is_guest = is_guest_path(request.path_info)  # a member's page leads to the queue
    return problem(request, Invalid(refused.message)) if is_guest else _refused_page(request, refused)


def _refused_page(request: HttpRequest, refused: RefusedRequest) -> HttpResponse:
    with _language_of_browser(request):
        context = {"reason": refused.sentence, "status": refused.status}
        return render(request, "portal/400.html", context, status=refused.status)


def _language_of_browser(request: HttpRequest) -> AbstractContextManager[None]:
    """Write in the language that the browser asks for, where nobody knows yet, or any more, who is there."""
    return locales.in_language(locales.asked_language(request.headers.get("Accept-Language", "")) or locales.ENGLISH)


def refusal(request: HttpRequest) -> RefusedRequest | None:
    """Return why a page refuses the request, or None: its method, host, size, character set, addresses or form."""
    if request.method not in METHODS:
        return RefusedRequest(405, gettext_noop("No page takes %(method)s requests."), {"method": request.method})
    if refused := unreadable(request):
        return refused
    try:
        request.POST  # noqa: B018  # read now
    except CLIENT_FAULTS:
        return RefusedRequest(400, gettext_noop("The form that was sent is damaged, or has too many fields."))
    return None


def unreadable(request: HttpRequest) -> RefusedRequest | None:
    """Return why nobody should read the request, whatever its method, or None: as `refusal`."""
    try:
        request.get_host()
    except DisallowedHost:
        # Not which one: what somebody put there by mistake, a key say, is not to stand in a log.
        log.warning("Refused a request for a host that ALLOWED_HOSTS does not name.")
        return RefusedRequest(400, gettext_noop("This host name is not served here."))
    most = _most_bytes(request)
    if _content_length(request) > most:
        limit = most // 1_000_000
        return RefusedRequest(
            413, gettext_noop("What was sent is larger than %(limit)s MB, the most that is taken."), {"limit": limit}
        )
    if (request.content_params or {}).get("charset", "").strip("\"'").lower() not in _UTF8:
        return RefusedRequest(415, gettext_noop("What was sent is not encoded as UTF-8."))
    if not all(_is_address(request.headers.get(name, "")) for name in _ADDRESS_HEADERS):
        return RefusedRequest(400, gettext_noop("A header that names a page holds no address."))
    try:
        request.GET  # noqa: B018  # read now
    except CLIENT_FAULTS:
        most = settings.DATA_UPLOAD_MAX_NUMBER_FIELDS
        return RefusedRequest(
            400,
            gettext_noop("The address has more than %(most)s parameters, the most that are read."),
            {"most": f"{most:,}"},
        )
    return None


def _most_bytes(request: HttpRequest) -> int:
    """Return the most bytes that are taken of a request: more of a form that may have small files in it."""
    may_have_files = request.content_type == "multipart/form-data" and not request.path.startswith("/api/")
    return settings.FORM_FILES_BYTES if may_have_files else settings.DATA_UPLOAD_MAX_MEMORY_SIZE


def _content_length(request: HttpRequest) -> int:
    try:
        return int(request.META.get("CONTENT_LENGTH") or 0)
    except ValueError:
        return 0


def _is_address(text: str) -> bool:
    try:
        urlsplit(text)
    except ValueError:
        return False
    return True


class ContentPolicyMiddleware(CSPMiddleware):
    """Sets the policy of CONTENT_SECURITY_POLICY, which the library would make anew for each answer. A view that needs
    another one says so as the library's decorator `csp_replace` does."""

    @cached_property
    def _policy(self) -> str:
        return build_policy()

    def process_request(self, request: HttpRequest) -> None:
        """Make no nonce: no page of ours has a script of its own."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if settings.DEBUG or hasattr(response, "_csp_replace"):
            return super().process_response(request, response)
        response.headers.setdefault(HEADER, self._policy)
        return response


class HealthMiddleware(_Middleware):
    """Answer `/healthz` and `/readyz` before everything else: a load balancer sends an address as Host, and plain HTTP.

    The first says that the process answers, and nothing of the engine, which one process cannot mend by restarting.
    The second says whether it can serve people now, and how far those who follow are behind; `check_health` says more.
    """

    def __call__(self, request: HttpRequest) -> HttpResponse:
        answer = {"/healthz": _healthy, "/readyz": _ready}.get(request.path)
        if answer is None:
            return self.get_response(request)
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        response = answer()
        response["Cache-Control"] = "no-store"
        return response


def _healthy() -> HttpResponse:
    return HttpResponse("ok\n", content_type="text/plain")


def _ready() -> HttpResponse:
    found = readiness.look()
    return JsonResponse({"version": VERSION, **found.said}, status=200 if found.is_ready else 503)


_LOGGED_METHODS: Final = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
# As Amazon's load balancers write it, by which a line of theirs is found.
_TRACE: Final = re.compile(r"(?:^|;)Root=(1-[0-9a-f]{8}-[0-9a-f]{24})(?:;|$)")


class RequestLogMiddleware(_Middleware):
    """Gives each request its id and its bill, and leaves one line about it in the log.

    The line has the route and not the address, which may hold a token or what somebody searches for. With DEBUG on, a
    Server-Timing header has the bill, for whom it may be told. A page that left a place for its price gets it here.
    """

    def __call__(self, request: HttpRequest) -> HttpResponse:
        begun = time.perf_counter()
        with logs.following(logs.new_request_id()), meter.measure() as bill:
            response = self.get_response(request)
            if bill.calls and tells_cost(request):
                response["Server-Timing"] = bill.server_timing()
            if not response.streaming and response.content.rfind(price_presenters.IN_PAGE) >= 0:  # near the end
                price_presenters.fill_in(response, bill)
            response.headers.setdefault(logs.HEADER, logs.request_id())
            _log(request, response.status_code, (time.perf_counter() - begun) * 1000, bill)
        return response


def _log(request: HttpRequest, status: int, ms: float, bill: Meter) -> None:
    method, route = named(request)
    measurement.answered(f"{method} {route}" if route != "?" else "", status, ms, bill)
    reads, writes = bill.read_units, bill.write_units
    access.note_cost(request, (method, route), bill.trips, reads, writes)
    fields: dict[str, Any] = {
        "method": method,
        "route": route,
        "status": status,
        "ms": round(ms, 1),
        "trips": bill.trips,
        "read_units": reads,
        "write_units": writes,
        **who(request),
    }
    if trace := _TRACE.search(request.headers.get("X-Amzn-Trace-Id", "")):
        fields["trace"] = trace[1]
    requests_log.info(
        "%s %s %s %.0f ms %d trips [%s]",
        *(method, route, status, ms, bill.trips, logs.request_id()),
        extra={"fields": fields},
    )


class DroppingStorage(CookieStorage):
    """A cookie of messages that drops the oldest ones when it is full.

    With DEBUG, Django would answer 500 to a request whose changes are written already. A page without messages, as most
    are, does not remove a cookie that the browser does not have.
    """

    def update(self, response: HttpResponseBase) -> list[Any]:
        if self._queued_messages or self.cookie_name in self.request.COOKIES:  # type: ignore[attr-defined]
            super().update(response)
        return []


def is_piece(request: HttpRequest) -> bool:
    """Tell whether a page takes a part of the answer. htmx takes a whole page where it goes back in the history."""
    return "HX-Request" in request.headers and "HX-History-Restore-Request" not in request.headers


def named(request: HttpRequest) -> tuple[str, str]:
    """Return the method and the route of a request, "?" for what is none of ours."""
    match = request.resolver_match
    method = request.method if request.method in _LOGGED_METHODS else "?"
    return str(method), f"/{match.route}" if match else "?"


def tells_cost(request: HttpRequest) -> bool:
    """Tell whether an answer says to everybody what it cost: with DEBUG on, except to whoever may not read internal
    notes in the desk, which are read and paid for and left out."""
    places = (request, getattr(request, "caller", None))  # of a page, of the API
    desks: list[Any] = [getattr(one, name, None) for one in places for name in ("tenant", "desk")]
    return settings.DEBUG and all(desk is None or desk.is_agent for desk in desks)


def who(request: HttpRequest) -> dict[str, str]:
    """Return the ids of the tenant and of the person or API key that asked, and of the operator who acts for them."""
    caller = getattr(request, "caller", None)  # of the API
    desk = getattr(request, "tenant", None) or getattr(caller, "tenant", None)
    user = getattr(request, "user", None)
    acting = getattr(request, "acting", None)
    found = {
        "tenant": getattr(desk or getattr(request, "desk", None), "tenant_id", ""),
        "actor": getattr(desk, "user_id", "") or getattr(user, "id", ""),
        "operator": getattr(acting, "operator_id", ""),
    }
    return {name: str(value) for name, value in found.items() if value}


class ErrorPageMiddleware(_Middleware):
    """Turn a PortalError that a view lets through into its page, and what Django raises for a client's fault into that
    of a bad request. Middlewares call `error_page` themselves.

    With DEBUG on, Django answers an address without a route with a page for programmers; people of `make run` get
    ours, as in production.
    """

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if settings.DEBUG and response.status_code == 404 and request.resolver_match is None:
            with _language_of_browser(request):
                return not_found(request)
        return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if isinstance(exception, CLIENT_FAULTS):
            log.warning("A request was refused: %s", type(exception).__name__)
            return bad_request(request)
        return error_page(request, exception) if isinstance(exception, PortalError) else None
