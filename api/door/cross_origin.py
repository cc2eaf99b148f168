"""Let scripts of other origins' pages call, where a key says so. Off by default: a key names no origin.

A browser asks before it sends a key, so that question cannot depend on one and is always answered alike. What decides
is the key of the request itself: from an origin that it does not name, nothing is done, and nothing but that can be
read. What is refused before a key has let anybody in may be read by any page: nothing of a desk is in it, and that a
key has ended is told to those alone who hold it.
"""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest, HttpResponse

from api.door.problems import RequestProblem
from tenants.api_keys.key_authentication import ApiCaller

_OPEN: Final = "Access-Control-Allow-Origin"
_ANY: Final = "*"
_HEADERS: Final = "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, X-Request-Id"
_READABLE: Final = "ETag, Idempotency-Replayed, Link, Location, RateLimit, RateLimit-Policy, Retry-After, X-Request-Id"
_REMEMBERED: Final = "7200"  # seconds; no browser remembers the answer for longer


def is_preflight(request: HttpRequest) -> bool:
    """Tell whether a browser asks if it may send a request."""
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
    if origin and not _is_own(request, origin) and origin not in caller.origins:
        sentence = "This API key does not name the origin of the calling page."
        raise RequestProblem(403, "origin_not_allowed", sentence, headers={_OPEN: _ANY})


def open_to(request: HttpRequest, response: HttpResponse, caller: ApiCaller | None) -> None:
    """Let the page that called read the answer, where the key names its origin or has let nobody in."""
    origin = request.headers.get("Origin")
    if origin and (caller is None or origin in caller.origins):
        response.headers.setdefault(_OPEN, _ANY if caller is None else origin)
        response["Access-Control-Expose-Headers"] = _READABLE


def _is_own(request: HttpRequest, origin: str) -> bool:
    return origin == f"{request.scheme}://{request.get_host()}"
