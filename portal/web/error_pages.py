"""Show a page when something is wrong. Such pages need no database: the engine may be what is wrong."""

from __future__ import annotations

import logging
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from portal.errors import PortalError, Unavailable
from portal.web.stash import Stash

log = logging.getLogger("pooldesk")

_TEMPLATES = {400: "portal/400.html", 403: "portal/403.html", 404: "portal/404.html", 503: "portal/503.html"}


def error_page(request: HttpRequest, error: PortalError) -> HttpResponse:
    """Return the page for an error of ours: its sentence, and what was typed where sending again makes sense."""
    status = error.status if error.status in _TEMPLATES else 400
    context: dict[str, Any] = {"reason": error.message, "stash": None}
    if isinstance(error, Unavailable):
        log.warning("%s %s: %s (%s)", request.method, request.path, error.message, error.__cause__)
        context |= {"stash": Stash.of(request), "retry_after": error.retry_after}
    response = render(request, _TEMPLATES[status], context, status=status)
    if isinstance(error, Unavailable):
        response["Retry-After"] = str(error.retry_after)
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
