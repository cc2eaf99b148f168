"""Serve the logo of a desk to its pages for people outside."""

from __future__ import annotations

from django.http import HttpResponse

from portal.errors import NotFound
from portal.web.access import on_get, on_post
from tenants.tenancy.request import GuestRequest
from tickets.outside import looks, pages


@pages.desk_by_name
@on_get(get="logo, slug", trips=1, reads=2)
@on_post(get="slug", trips=1, reads=1)
def logo(request: GuestRequest, slug: str) -> HttpResponse:
    """Send the logo, which browsers keep: its address has its digest."""
    content = looks.logo_of(request.desk) if request.method != "POST" else None
    if content is None:
        raise NotFound
    response = HttpResponse(content, content_type="image/webp")
    response["Content-Security-Policy"] = "default-src 'none'; sandbox"
    response["Cache-Control"] = "public, max-age=86400"
    return response
