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
from tenants.membership import members
from tenants.sign_in import impersonation_session
from tenants.sign_in.accounts import User
from tenants.sign_in.impersonation_session import ActingIds
from tenants.tenancy import context, pinned_tenant, session_cookie
from tenants.tenancy.context import TenantContext
from tenants.tenancy.request import actor_of, enter_desk
from tenants.tenancy.session_cookie import Pin

GetResponse = Callable[[HttpRequest], HttpResponse]


class IdentityMiddleware:
    """Sets request.session, request.user and request.tenant in one round trip; saves a changed session afterwards.

    The tenant is the person's desk that the address names. One that is not pinned yet is looked up among the person's
    memberships, once. Where the address names none of theirs, the tenant is the one used last.
    Addresses made during the request are those of the tenant's desk. While an operator acts as a member,
    request.acting says so, and user and tenant are the member's; the operators' admin takes no notice of it.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        cookie = request.COOKIES.get(settings.SESSION_COOKIE_NAME, "")
        ids = session_cookie.read(cookie) if cookie else None
        request.user, request.tenant = AnonymousUser(), None  # type: ignore[attr-defined]  # tenant is ours
        request.acting, request.acting_has_ended = None, False  # type: ignore[attr-defined]  # ours
        request.pins = ids.pins if ids else ()  # type: ignore[attr-defined]  # ours
        with desk_prefix.addresses_of(""):
            try:
                acting = _acting_ids(request)
                path = request.path_info
                identity = (
                    pinned_tenant.resolve_acting(ids, acting, path) if acting else pinned_tenant.resolve(ids, path)
                )
                request.session = identity.session
                request.acting, request.acting_has_ended = identity.acting, identity.has_ended  # type: ignore[attr-defined]
                if identity.user is not None:
                    request.user = identity.user
                if identity.tenant is not None:
                    request.tenant = identity.tenant  # type: ignore[attr-defined]
                    desk_prefix.use(identity.tenant.slug)
                if identity.user is not None and identity.acting is None:
                    _pin_named(request, identity.user, identity.tenant)
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
        pins = request.pins  # type: ignore[attr-defined]  # ours
        value = session_cookie.write(session_cookie.Ids(session.session_key or "", session.get(SESSION_KEY, ""), pins))
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


def _pin_named(request: HttpRequest, user: User, tenant: TenantContext | None) -> None:
    """Let the desk that the address names be the one used last; enter it first where it is another of the person's.

    That costs a Query of the person's memberships, whether the name is one of theirs or not, and then one read more.
    """
    pins: tuple[Pin, ...] = request.pins  # type: ignore[attr-defined]  # ours
    if tenant is not None and not pins[0].slug:  # by the cookie of a former version
        request.pins = pins = (Pin(tenant.slug, tenant.tenant_id),)  # type: ignore[attr-defined]  # ours
    desk = session_cookie.first_word(request.path_info)
    pinned = next((pin for pin in pins if desk and pin.slug == desk), None)
    if tenant is None or tenant.slug != desk:
        if not desk or desk_prefix.desk_of(request.path_info) != desk:
            return
        read = tenant.tenant_id if tenant else ""
        mine = members.memberships_of(user.id)
        named = next((m for m in mine if m.slug == desk and m.tenant_id != read), None)
        entered = context.enter(user, named.tenant_id) if named else None
        if entered is not None:
            request.tenant = entered  # type: ignore[attr-defined]  # ours
            enter_desk(request, entered, by=actor_of(request))
            return
    now = Pin(tenant.slug, tenant.tenant_id) if tenant else pinned
    if now is None or (pinned is None and now.slug != desk):
        return
    # Parts that a page in the background fetches do not make its desk the last used one.
    is_page = "HX-Boosted" in request.headers or (
        "HX-Request" not in request.headers and request.headers.get("Sec-Fetch-Mode", "navigate") == "navigate"
    )
    if is_page or now not in pins:
        request.pins = session_cookie.used(pins, now.slug, now.tenant_id)  # type: ignore[attr-defined]  # ours


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
