"""Show pages that belong to no feature."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from portal.web import desk_prefix
from portal.web.access import SAFE, member, public
from portal.web.costs import costs
from portal.web.stash import Stash


@public
def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Refuse a form older than the last sign-in, and offer it again if it really came from a page of ours."""
    origin = request.headers.get("Origin") or request.headers.get("Referer") or ""
    ours = urlsplit(origin).netloc == request.get_host()
    stash = Stash.of(request) if ours else None
    return render(request, "portal/csrf.html", {"stash": stash}, status=403)


@member("viewer")
@costs()
@require_safe
def desk_home(request: HttpRequest) -> HttpResponse:
    """Send `/acme/` to the desk's first page."""
    return redirect(settings.LOGIN_REDIRECT_URL)


@member("viewer")
@costs(on="GET")
@costs(on="POST")
def without_desk(request: HttpRequest, rest: str) -> HttpResponse:
    """Send an address that names no desk, as in an old bookmark, to the pinned desk's, with the form it carries."""
    return redirect(f"/{desk_prefix.in_use()}{request.get_full_path()}", preserve_request=request.method not in SAFE)
