"""Refuse requests that no page of the portal can mean, before anything reads them: cheaply, and with a sentence."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import BadRequest, DisallowedHost, SuspiciousOperation
from django.http import HttpRequest, HttpResponse, UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from django.shortcuts import render

log = logging.getLogger("pooldesk")

METHODS = ("GET", "HEAD", "POST")
# Django raises these for a request that is wrong, and answers with a traceback in the log, on the page too with DEBUG.
CLIENT_FAULTS = (SuspiciousOperation, BadRequest, MultiPartParserError, UnreadablePostError)
_ADDRESS_HEADERS = ("HX-Current-URL", "Origin", "Referer")
_UTF8 = ("", "utf-8", "utf8")


@dataclass(frozen=True)
class RefusedRequest:
    """The status of an answer and its sentence for a person."""

    status: int
    sentence: str


class RequestLimitsMiddleware:
    """Answers 400, 405, 413 or 415 with a page where `refusal` finds a reason.

    The parameters are read here, once: what raised anywhere further in would be Django's to answer.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        refused = refusal(request)
        if refused is None:
            return self.get_response(request)
        context = {"reason": refused.sentence, "status": refused.status}
        response = render(request, "portal/400.html", context, status=refused.status)
        if refused.status == 405:
            response["Allow"] = ", ".join(METHODS)
        return response


def refusal(request: HttpRequest) -> RefusedRequest | None:
    """Return why a page refuses the request, or None: its method, host, size, character set, addresses or form."""
    if request.method not in METHODS:
        return RefusedRequest(405, f"No page takes {request.method} requests.")
    if refused := unreadable(request):
        return refused
    try:
        request.POST  # noqa: B018  # read now
    except CLIENT_FAULTS:
        return RefusedRequest(400, "The form that was sent is damaged, or has too many fields.")
    return None


def unreadable(request: HttpRequest) -> RefusedRequest | None:
    """Return why nobody should read the request, whatever its method, or None: as `refusal`."""
    try:
        request.get_host()
    except DisallowedHost:
        # Not which one: what somebody put there by mistake, a key say, is not to stand in a log.
        log.warning("Refused a request for a host that ALLOWED_HOSTS does not name.")
        return RefusedRequest(400, "This host name is not served here.")
    if _content_length(request) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE // 1_000_000
        return RefusedRequest(413, f"What was sent is larger than {limit} MB, the most that is taken.")
    if (request.content_params or {}).get("charset", "").strip("\"'").lower() not in _UTF8:
        return RefusedRequest(415, "What was sent is not encoded as UTF-8.")
    if not all(_is_address(request.headers.get(name, "")) for name in _ADDRESS_HEADERS):
        return RefusedRequest(400, "A header that names a page holds no address.")
    try:
        request.GET  # noqa: B018  # read now
    except CLIENT_FAULTS:
        most = settings.DATA_UPLOAD_MAX_NUMBER_FIELDS
        return RefusedRequest(400, f"The address has more than {most:,} parameters, the most that are read.")
    return None


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
