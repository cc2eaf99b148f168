"""Render a page for people outside a desk: in the desk's looks, in their language, under a strict policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from portal.errors import NotFound
from portal.quotas import BoundedCache
from portal.web.access import guest
from portal.web.locales import in_language, known_language
from tenants.tenancy import context
from tenants.tenancy.context import Role, TenantContext
from tenants.tenancy.stored import TenantItem
from tickets.letters import desk_addresses
from tickets.outside.looks import Looks


def desk_of_tenant(tenant: TenantItem | None) -> TenantContext:
    """Return the context of a desk for somebody outside: nobody is at work in it, and an agent's rules refuse it.

    Raises NotFound for a desk that is no more, is closing, or lets nobody in.
    """
    if tenant is None:
        raise NotFound
    desk = context.of_tenant(tenant, role=Role.VIEWER, user_id="", user_name="")
    if desk.suspended or desk.where.purged:
        raise NotFound
    return desk


def _named(arguments: Mapping[str, Any]) -> TenantContext:
    """Return the desk with this name. Where the process remembers whose it was, the desk itself says if it still is."""
    name = arguments["slug"]
    known = _ids.get(name)
    tenant = desk_addresses.desk_at_work(known) if known else None
    if tenant is None or tenant.slug != name:
        tenant = desk_addresses.desk_named(name)
    if tenant is not None:
        _ids.put(name, tenant.tenant_id)
    return desk_of_tenant(tenant)


_ids: Final[BoundedCache[str, str]] = BoundedCache(1024)
forget: Final = _ids.clear  # as a process that was just started


# Declares a view whose address has the desk's name as `slug`. Costs one read, two for a name that the
# process has not met. A page with a signed token declares its
# own by `guest(find)`, where `find` reads the token and passes `desk_addresses.desk_at_work(...)` to `desk_of_tenant`.
desk_by_name: Final = guest(_named)


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
