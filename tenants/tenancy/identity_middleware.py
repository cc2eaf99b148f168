"""Resolve who is calling and for which tenant: in the place of Django's session and authentication middlewares."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.backends.base import UpdateError
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.cache import patch_vary_headers

from portal.errors import PortalError
from portal.web import desk_prefix, error_pages
from tenants.identity import impersonation_session
from tenants.identity.impersonation_session import ActingIds
from tenants.tenancy import pinned_tenant, session_cookie

GetResponse = Callable[[HttpRequest], HttpResponse]


class IdentityMiddleware:
    """Sets request.session, request.user and request.tenant in one round trip; saves a changed session afterwards.

    Addresses made during the request are those of the pinned tenant's desk. While an operator acts as a member,
    request.acting says so, and user and tenant are the member's; the operators' admin takes no notice of it.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        cookie = request.COOKIES.get(settings.SESSION_COOKIE_NAME, "")
        ids = session_cookie.read(cookie) if cookie else None
        request.user, request.tenant = AnonymousUser(), None  # type: ignore[attr-defined]  # tenant is ours
        request.acting, request.acting_has_ended = None, False  # type: ignore[attr-defined]  # ours
        with desk_prefix.addresses_of(""):
            try:
                acting = _acting_ids(request)
                identity = pinned_tenant.resolve_acting(ids, acting) if acting else pinned_tenant.resolve(ids)
                request.session = identity.session
                request.acting, request.acting_has_ended = identity.acting, identity.has_ended  # type: ignore[attr-defined]
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
        _remember_acting(request, response)
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
        ids = session_cookie.Ids(
            session.session_key or "", session.get(SESSION_KEY, ""), session.get(pinned_tenant.TENANT_KEY, "")
        )
        value = session_cookie.write(ids)
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


def _acting_ids(request: HttpRequest) -> ActingIds | None:
    acting = impersonation_session.read_cookie(request.COOKIES.get(impersonation_session.COOKIE, ""))
    return None if acting is None or request.path.startswith(reverse("admin:index")) else acting


def _remember_acting(request: HttpRequest, response: HttpResponse) -> None:
    """Set the cookie of an impersonation that begins with this request, and remove that of one which is over."""
    begun: str | None = getattr(request, "acting_cookie", None)
    if begun:
        response.set_cookie(
            impersonation_session.COOKIE,
            begun,
            max_age=settings.IMPERSONATION_MINUTES * 60,
            secure=settings.SESSION_COOKIE_SECURE,
            httponly=True,
            samesite="Lax",
        )
    elif begun == "" or request.acting_has_ended:  # type: ignore[attr-defined]  # ours
        response.delete_cookie(impersonation_session.COOKIE, samesite="Lax")
