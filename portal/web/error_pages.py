"""Show a page when something is wrong. Such pages need no database: the engine may be what is wrong."""

from __future__ import annotations

import logging
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from portal.errors import LimitReached, PortalError, Unavailable
from portal.web.stash import Stash

log = logging.getLogger("pooldesk")

_TEMPLATES = {status: f"portal/{status}.html" for status in (400, 403, 404, 429, 503)}


def error_page(request: HttpRequest, error: PortalError) -> HttpResponse:
    """Return the page for an error of ours: its sentence, and what was typed where sending again makes sense."""
    status = error.status if error.status in _TEMPLATES else 400
    context: dict[str, Any] = {"reason": error.message, "stash": None}
    if isinstance(error, Unavailable):
        log.warning("%s %s: %s (%s)", request.method, request.path, error.message, error.__cause__)
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
    return render(request, "portal/404.html", {"reason": ""}, status=404)


def server_error(request: HttpRequest) -> HttpResponse:
    return render(request, "portal/500.html", {}, status=500)
