"""Render a page for people outside a desk: in the desk's looks, in their language, under a strict policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from portal.web.locales import in_language, known_language
from tickets.outside.looks import Looks


def _is_framed(request: HttpRequest) -> bool:
    """Tell whether a browser asks for the page to show it within another one."""
    return request.headers.get("Sec-Fetch-Dest", "") in ("iframe", "frame")


@contextmanager
def language(request: HttpRequest, looks: Looks, requester: str = "") -> Iterator[str]:
    """Let texts inside be in the language that the address has as `lang`, else the requester's, else the desk's."""
    chosen = known_language(request.GET.get("lang", ""), requester or looks.language)
    with in_language(chosen):
        yield chosen


def page(
    request: HttpRequest,
    template: str,
    values: Mapping[str, Any],
    *,
    looks: Looks,
    requester_language: str = "",
    status: int = 200,
    signed_link: bool = False,
    framed_by: Sequence[str] = (),
) -> HttpResponse:
    """Return a page that extends `outside/base.html`.

    The address of a `signed_link` is a secret: no other site and no cache gets it, and no search engine keeps it.
    `framed_by` are the origins that may show the page in a frame, none by default.
    """
    with language(request, looks, requester_language) as chosen:
        shown = {
            **values,
            "looks": looks,
            "language": chosen,
            "is_private": signed_link,
            "is_framed": _is_framed(request),
        }
        response = render(request, template, shown, status=status)
    policy: dict[str, Any] = {}
    if looks.style is not None:
        policy["style-src"] = ["'self'", looks.style.source]
    if framed_by:
        policy["frame-ancestors"] = ["'self'", *framed_by]
        response.xframe_options_exempt = True  # read by Django's middleware
    response._csp_replace = policy  # type: ignore[attr-defined]  # read by django-csp
    if signed_link:
        response["Referrer-Policy"] = "no-referrer"
        response["X-Robots-Tag"] = "noindex"
    response["Cache-Control"] = "private, no-store" if signed_link else "no-store"
    return response
