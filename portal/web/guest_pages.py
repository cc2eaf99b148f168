"""Answer people outside the desks where something is wrong: in their language, without a cookie, with what they typed.

Guests of a desk see no page of the portal itself: it would ask them to sign in, and its forms carry a cookie.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from portal.errors import PortalError
from portal.web.locales import asked_language, in_language, known_language
from portal.web.stash import Stash

log = logging.getLogger("pooldesk")

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
