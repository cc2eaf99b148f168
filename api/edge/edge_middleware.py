"""Let requests of the API in by their key. They go through none of the pages' middlewares: no cookie, no session.

The way of a request: its address says which route it means, and the route which scope it needs. A request that no route
can read is refused; so is a malformed key, without a read. Key and tenant are read together, the tenant is held to its
limits, and the route is called. Whatever is wrong comes back as a problem.

A key that let in before is held to its tenant's limits before that read, so that a flood costs none. Any other is no
tenant's until it is proved, takes nothing of one and learns nothing of one: `key_attempts.py` bounds those.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from contextvars import ContextVar
from typing import Any, Final

from django.conf import settings
from django.core.signals import request_finished
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse
from django.middleware.gzip import GZipMiddleware
from django.middleware.security import SecurityMiddleware
from django.urls import Resolver404, resolve
from django.utils.cache import patch_vary_headers

from api.edge import key_attempts, problem_responses
from api.edge.problem_responses import RequestProblem
from api.edge.routing import ApiRequest, ApiRoute
from portal import logs
from portal.errors import NotFound, PortalError
from portal.web import middleware
from portal.web.access import SAFE, Access
from portal.web.client_address import client_address
from tenants.api_keys import key_authentication, key_text
from tenants.api_keys.key_authentication import ApiCaller, KeyRefused
from tenants.tenancy.tenant_middleware import NotAdmitted, admitted, charge, units_of


def request_id(request: HttpRequest) -> str:
    """Return the request's id: that of its header X-Request-Id where it is 8 to 64 plain characters."""
    given: str = request.headers.get(logs.HEADER, "")
    if logs.is_request_id(given):
        logs.use_request_id(given)
    return logs.request_id() or logs.new_request_id()


# --- scripts of other origins ---
#
# They may call where a key says so. Off by default: a key names no origin. A browser asks before it sends a key, so
# that question cannot depend on one and is always answered alike. The key of the request itself decides: from an origin
# that it does not name, nothing is done, and nothing but that can be read. A refusal before a key has let anybody in
# may be read by any page: nothing of a desk is in it, and that a key has ended is told to those alone who hold it.

_OPEN: Final = "Access-Control-Allow-Origin"
_ANY: Final = "*"
_HEADERS: Final = "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, X-Request-Id"
_READABLE: Final = "ETag, Idempotency-Replayed, Link, Location, RateLimit, RateLimit-Policy, Retry-After, X-Request-Id"
_REMEMBERED: Final = "7200"  # seconds; no browser remembers the answer for longer


def is_preflight(request: HttpRequest) -> bool:
    return request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers


def allow_asking(response: HttpResponse, methods: list[str]) -> None:
    """Let the browser send the request with a key, in the headers of the answer to a preflight."""
    response[_OPEN] = _ANY
    response["Access-Control-Allow-Methods"] = ", ".join(methods)
    response["Access-Control-Allow-Headers"] = _HEADERS
    response["Access-Control-Max-Age"] = _REMEMBERED


def refuse_foreign(request: HttpRequest, caller: ApiCaller) -> None:
    """Raise RequestProblem where a page of another origin calls that the key does not name."""
    origin = request.headers.get("Origin")
    if origin and origin not in (f"{request.scheme}://{request.get_host()}", *caller.origins):
        sentence = "This API key does not name the origin of the calling page."
        raise RequestProblem(403, "origin_not_allowed", sentence, headers={_OPEN: _ANY})


def open_to(request: HttpRequest, response: HttpResponse, caller: ApiCaller | None) -> None:
    """Let the page that called read the answer, where the key names its origin or has let nobody in."""
    origin = request.headers.get("Origin")
    if origin and (caller is None or origin in caller.origins):
        response.headers.setdefault(_OPEN, _ANY if caller is None else origin)
        response["Access-Control-Expose-Headers"] = _READABLE


# --- requests ---


log = logging.getLogger("pooldesk.api")

PREFIX: Final = "/api/"
_METHODS: Final = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
_REALM: Final = 'Bearer realm="Pooldesk"'

GetResponse = Callable[[HttpRequest], HttpResponse]
Routes = Mapping[str, ApiRoute]


class ApiMiddleware:
    """Answers what is addressed to the API, and leaves everything else to the pages."""

    def __init__(self, get_response: GetResponse) -> None:
        self._pages = get_response
        self._api: GetResponse
        security = SecurityMiddleware(_answer)
        security.redirect = False  # a key that has travelled in the clear is refused, not led on
        self._api = GZipMiddleware(security)  # type: ignore[assignment]  # neither is asynchronous

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.path_info.startswith(PREFIX):
            return self._pages(request)
        try:
            request.resolver_match = resolve(request.path_info)
        except Resolver404:
            return self._api(request)
        access: Access | None = getattr(request.resolver_match.func, "access", None)
        # Pages about the API are pages.
        return self._api(request) if access is not None and access.level == "api" else self._pages(request)


def _answer(request: HttpRequest) -> HttpResponse:
    """Answer in one form, whatever happens."""
    said = request_id(request)
    request.request_id, request.caller = said, None  # type: ignore[attr-defined]  # an ApiRequest from here on
    try:
        response = _routed(request)
    except PortalError as error:
        response = problem_responses.of(error, said)
        _say_how_to_come(response, error)
    except middleware.CLIENT_FAULTS:
        response = problem_responses.response(
            400, "unreadable", "This request cannot be read as a whole.", request_id=said
        )
    except Exception:
        log.exception("%s failed [%s]", _route_of(request), said, extra={"route": _route_of(request)})
        response = problem_responses.response(500, "internal", "Something went wrong on our side.", request_id=said)
    caller: ApiCaller | None = request.caller  # type: ignore[attr-defined]
    response["X-Request-Id"] = said
    response.headers.setdefault("Cache-Control", "private, no-cache")
    patch_vary_headers(response, ("Authorization", "Origin"))
    open_to(request, response, caller)
    if response.status_code in (204, 304):
        del response["Content-Type"]
    else:
        response["Content-Length"] = str(len(response.content))  # else the server ends the connection behind it
    _answered.set(caller)
    # Django would log refusals and faults with the address, in which a key may stand.
    response._has_been_logged = True  # type: ignore[attr-defined]
    return response


# Whose answer this thread is sending, None for a refused key.
_answered: ContextVar[ApiCaller | None] = ContextVar("API caller", default=None)


@receiver(request_finished)
def _note_use(**_signal: Any) -> None:
    """Note the use of a key behind the answer, for which nobody waits longer."""
    caller = _answered.get()
    if caller is None:
        return
    _answered.set(None)
    try:
        key_authentication.note_use(caller)
    except Exception:  # raised further, it would cost the caller the connection
        log.exception("The use of a key of tenant %s was not noted", caller.tenant.tenant_id)


def _route_of(request: HttpRequest) -> str:
    """Return what the log says of the request: never what the caller wrote, in which a key may stand."""
    match = request.resolver_match
    method = request.method if request.method in _METHODS else "?"
    return f"{method} /{match.route if match else '?'}"


def _routed(request: HttpRequest) -> HttpResponse:
    if request.resolver_match is None:
        raise NotFound("The API has no such address.")
    if settings.SECURE_SSL_REDIRECT and not request.is_secure():
        raise RequestProblem(403, "tls_required", "Call the API by https: this key has travelled in the clear.")
    routes: Routes = request.resolver_match.func.api_routes  # type: ignore[attr-defined]
    methods = [*routes, *(["HEAD"] if "GET" in routes else []), "OPTIONS"]
    if request.method not in methods:
        allow = {"Allow": ", ".join(methods)}
        raise RequestProblem(405, "method_not_allowed", f"No {request.method} goes to this address.", headers=allow)
    if refused := middleware.unreadable(request):
        raise RequestProblem(refused.status, "unreadable", refused.sentence)
    if request.method == "OPTIONS":
        response = HttpResponse(status=204, headers={"Allow": ", ".join(methods)})
        if is_preflight(request):
            allow_asking(response, methods)
        return response
    route = routes["GET" if request.method == "HEAD" else str(request.method)]
    if unknown := [name for name in request.GET if name not in route.parameters]:
        raise RequestProblem(422, "unknown_parameter", "This route has no such parameter.", field=unknown[0][:100])
    return _let_in(request, route)  # type: ignore[arg-type]  # an ApiRequest from here on


def _let_in(request: ApiRequest, route: ApiRoute) -> HttpResponse:
    key, units = _bearer(request), units_of(changes=request.method not in SAFE)
    tenant_id, address = key_authentication.address_in(key).tenant_id, client_address(request)
    digest = key_text.digest(key)
    with ExitStack() as inside:
        is_known = key_attempts.attempts.knows(digest)
        if is_known:
            inside.enter_context(admitted(tenant_id, units))
        with key_attempts.attempts.counted(digest, address=address):
            caller = request.caller = key_authentication.authenticate(key, address=address)
        if not is_known:
            inside.enter_context(admitted(tenant_id, units))
        rate = charge(caller.tenant, units)
        if rate is not None and not rate.allowed:
            raise NotAdmitted(rate)
        response = _called(request, route, caller)
        for name, value in rate.headers.items() if rate else ():
            response[name] = value
        return response


def _called(request: ApiRequest, route: ApiRoute, caller: ApiCaller) -> HttpResponse:
    try:
        refuse_foreign(request, caller)
        if caller.tenant.closes_at and request.method not in SAFE:
            raise KeyRefused("tenant_closing")
        request.tenant, request.acting = caller.tenant, caller.tenant_for(route.scope)
        view, asked = request.resolver_match.func, request.method  # type: ignore[union-attr]
        request.method = "GET" if asked == "HEAD" else asked
        try:
            return view(request, **request.resolver_match.kwargs)  # type: ignore[union-attr,no-any-return]
        finally:
            request.method = asked
    except PortalError as error:
        response = problem_responses.of(error, request.request_id)
        _say_how_to_come(response, error)
        return response


def _bearer(request: HttpRequest) -> str:
    kind, _, text = request.headers.get("Authorization", "").partition(" ")
    return text.strip() if kind.lower() == "bearer" else ""


def _say_how_to_come(response: HttpResponse, error: PortalError) -> None:
    """Tell by headers what a client of this kind goes by. Source: RFC 6750, section 3; the limiter's own headers."""
    if isinstance(error, KeyRefused):
        if error.scope:
            response["WWW-Authenticate"] = f'{_REALM}, error="insufficient_scope", scope="{error.scope}"'
        elif error.status == 401:
            response["WWW-Authenticate"] = _REALM + ("" if error.code == "key_missing" else ', error="invalid_token"')
    elif isinstance(error, NotAdmitted) and error.answer is not None:
        for name, value in error.answer.headers.items():
            response[name] = value
