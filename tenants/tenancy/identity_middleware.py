"""Resolve who is calling and for which tenant: in the place of Django's session and authentication middlewares."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.backends.base import UpdateError
from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers

from portal.errors import PortalError
from portal.web import desk_prefix, error_pages
from tenants.tenancy import pinned_tenant

GetResponse = Callable[[HttpRequest], HttpResponse]


class IdentityMiddleware:
    """Sets request.session, request.user and request.tenant in one round trip; saves a changed session afterwards.

    Addresses made during the request are those of the pinned tenant's desk.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        cookie = request.COOKIES.get(settings.SESSION_COOKIE_NAME, "")
        ids = pinned_tenant.read_cookie(cookie) if cookie else None
        request.user, request.tenant = AnonymousUser(), None  # type: ignore[attr-defined]  # tenant is ours
        with desk_prefix.addresses_of(""):
            try:
                identity = pinned_tenant.resolve(ids)
                request.session = identity.session
                if identity.user is not None:
                    request.user = identity.user
                if identity.tenant is not None:
                    request.tenant = identity.tenant  # type: ignore[attr-defined]
                    desk_prefix.use(identity.tenant.slug)
                response = self.get_response(request)
                return self._remember(request, response, cookie)
            except PortalError as error:
                return error_pages.error_page(request, error)

    def _remember(self, request: HttpRequest, response: HttpResponse, cookie: str) -> HttpResponse:
        session = request.session
        # Some addresses answer htmx with a part of their page: the browser must not show that for the page.
        patch_vary_headers(response, ("Cookie", "HX-Request"))
        if request.user.is_authenticated:
            # A page of a signed-in person is never another person's, and never tomorrow's.
            response.headers.setdefault("Cache-Control", "private, no-store")
        if session.is_empty():
            if cookie:
                response.delete_cookie(settings.SESSION_COOKIE_NAME, samesite="Lax")
            return response
        if session.modified and response.status_code < 500:
            try:
                session.save()
            except UpdateError:
                # Signed out in another tab while this request ran: signed out it stays.
                response.delete_cookie(settings.SESSION_COOKIE_NAME, samesite="Lax")
                return response
        ids = pinned_tenant.Ids(
            session.session_key or "", str(request.user.pk), session.get(pinned_tenant.TENANT_KEY, "")
        )
        value = pinned_tenant.write_cookie(ids)
        if value != cookie:
            response.set_cookie(
                settings.SESSION_COOKIE_NAME,
                value,
                max_age=session.get_expiry_age(),
                secure=settings.SESSION_COOKIE_SECURE,
                httponly=True,
                samesite="Lax",
            )
        return response
