"""Who is calling, for which tenant, and whether this view is for them.

`IdentityMiddleware` takes the place of Django's session and authentication middlewares: one round trip gives
session, user and tenant. `AccessMiddleware` then enforces what the view declared (`portal/web/access.py`) and that
an unsafe request comes from a page made for this person and this tenant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.backends.base import UpdateError
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django.utils.crypto import constant_time_compare

from portal.errors import PortalError
from portal.web import error_pages
from portal.web.access import Access
from portal.web.stash import PAGE_MARK, Stash
from tenants.membership import members
from tenants.tenancy import context
from tenants.tenancy.roles import Role

GetResponse = Callable[[HttpRequest], HttpResponse]
SAFE = ("GET", "HEAD", "OPTIONS", "TRACE")


class IdentityMiddleware:
    """Sets request.session, request.user and request.tenant; afterwards saves a changed session and its cookie."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        cookie = request.COOKIES.get(settings.SESSION_COOKIE_NAME, "")
        ids = context.read_cookie(cookie) if cookie else None
        request.user, request.tenant = AnonymousUser(), None  # type: ignore[attr-defined]  # tenant is ours
        try:
            identity = context.resolve(ids)
            request.session = identity.session
            if identity.user is not None:
                request.user = identity.user
            request.tenant = identity.tenant  # type: ignore[attr-defined]
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
        value = context.write_cookie(
            context.Ids(session.session_key or "", str(request.user.pk), session.get(context.TENANT_KEY, ""))
        )
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


class AccessMiddleware:
    """Runs before each view. A view without a declaration is refused, so that no route is open by forgetting."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., HttpResponse], args: Any, kwargs: Any
    ) -> HttpResponse | None:
        access: Access | None = getattr(view, "access", None)
        if access is None:
            raise ImproperlyConfigured(f"{request.path} does not say who may call it; see portal/web/access.py.")
        if access.level == "public":
            return None
        if not request.user.is_authenticated:
            return ask_to_sign_in(request)
        if access.level == "operator" and not request.user.is_operator:
            return render(request, "portal/403.html", {"reason": "This is for the platform's operators."}, status=403)
        return self._check_member(request, access) if access.level == "member" else None

    def _check_member(self, request: HttpRequest, access: Access) -> HttpResponse | None:
        tenant: context.TenantContext | None = request.tenant  # type: ignore[attr-defined]
        if tenant is None:
            return ask_for_tenant(request)
        if tenant.suspended:
            return render(request, "tenants/suspended.html", {"tenant_name": tenant.name}, status=403)
        if request.method not in SAFE:
            mark = request.POST.get(PAGE_MARK, "")
            if not constant_time_compare(mark, tenant.page_mark):
                return wrong_tenant(request, Stash.of(request))
        if not tenant.role.at_least(Role(access.role)):
            reason = (
                f"This needs the role {Role(access.role).label} or above; in {tenant.name} you are {tenant.role_label}."
            )
            return render(request, "portal/403.html", {"reason": reason}, status=403)
        return None


def ask_to_sign_in(request: HttpRequest) -> HttpResponse:
    """To the sign-in page; a form that was sent is kept in it and offered again afterwards."""
    from tenants.identity.forms import SignInForm

    stash = Stash.of(request)
    if stash is None:
        return _go(request, reverse("tenants:login"))
    form = SignInForm(initial={"next": ""})
    return render(request, "tenants/login.html", {"form": form, "resume": stash}, status=401)


def ask_for_tenant(request: HttpRequest) -> HttpResponse:
    stash = Stash.of(request)
    if stash is None:
        return _go(request, reverse("tenants:pick"))
    return wrong_tenant(request, stash)


def wrong_tenant(request: HttpRequest, stash: Stash | None) -> HttpResponse:
    """409: the page was made for another tenant, or for another person. Whose it was is found among the
    caller's own memberships by comparing marks, so the answer never names a tenant that the caller is not in."""
    mine = None
    if stash is not None and stash.page_mark:
        for membership in members.memberships_of(str(request.user.pk)):
            if constant_time_compare(context.page_mark(str(request.user.pk), membership.tenant_id), stash.page_mark):
                mine = {"id": membership.tenant_id, "name": membership.name}
                break
    return render(request, "portal/409_tenant.html", {"page_tenant": mine, "stash": stash}, status=409)


def _go(request: HttpRequest, url: str) -> HttpResponse:
    """Redirect there, with the way back. A partial request must move the whole page, not swap a page into a part."""
    partial = "HX-Request" in request.headers
    back = urlsplit(request.headers.get("HX-Current-URL", "")) if partial else None
    if request.method in SAFE:
        query = QueryDict(mutable=True)
        query[REDIRECT_FIELD_NAME] = (
            f"{back.path}?{back.query}".rstrip("?") if back and back.path else request.get_full_path()
        )
        url = f"{url}?{query.urlencode(safe='/')}"
    return HttpResponse(status=204, headers={"HX-Redirect": url}) if partial else redirect(url)
