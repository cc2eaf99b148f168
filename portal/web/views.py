"""Show pages that belong to no feature."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from portal import spreadsheet
from portal.web import desk_prefix, locales
from portal.web.access import SAFE, costs, member, on_get, public
from portal.web.stash import Stash


@public
def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Refuse a form older than the last sign-in, and offer it again if it really came from a page of ours."""
    origin = request.headers.get("Origin") or request.headers.get("Referer") or ""
    ours = urlsplit(origin).netloc == request.get_host()
    stash = Stash.of(request) if ours else None
    return render(request, "portal/csrf.html", {"stash": stash}, status=403)


def csv_file(name: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> HttpResponse:
    """Send a table as a file that a spreadsheet in the reader's language opens by a double click: it takes the letters
    from the byte order mark, and the cells and decimals from the marks of the reader's numbers."""
    lines = spreadsheet.lines(columns, rows, delimiter=locales.current().delimiter)
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    return HttpResponse("\ufeff" + "".join(lines), content_type="text/csv; charset=utf-8", headers=headers)


@member("viewer")
@on_get()
def desk_home(request: HttpRequest) -> HttpResponse:
    """Send `/acme/` to the desk's first page."""
    return redirect(settings.LOGIN_REDIRECT_URL)


@member("viewer")
@costs()
def without_desk(request: HttpRequest, rest: str) -> HttpResponse:
    """Send an address that names no desk, as in an old bookmark, to the pinned desk's, with the form it carries."""
    return redirect(f"/{desk_prefix.in_use()}{request.get_full_path()}", preserve_request=request.method not in SAFE)
