"""Views that belong to no feature."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from portal.web.access import public
from portal.web.stash import Stash


@public
def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A page older than the last sign-in. What it sent is offered again only if it really came from one of ours."""
    origin = request.headers.get("Origin") or request.headers.get("Referer") or ""
    ours = urlsplit(origin).netloc == request.get_host()
    stash = Stash.of(request) if ours else None
    return render(request, "portal/csrf.html", {"stash": stash}, status=403)
