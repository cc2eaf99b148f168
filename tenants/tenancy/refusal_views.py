"""Answer requests that AccessMiddleware does not let through, each with a way on and with what was typed."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import urlsplit

from django.contrib.auth import REDIRECT_FIELD_NAME
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import escape_leading_slashes

from portal.web import error_pages
from portal.web.access import SAFE
from portal.web.client_address import client_address
from portal.web.stash import Stash
from tenants.impersonation import impersonating
from tenants.membership import members
from tenants.sign_in import impersonation_session
from tenants.sign_in.forms import SignInForm
from tenants.sign_in.impersonation_session import Impersonation
from tenants.tenancy import page_mark
from tenants.tenancy.context import TenantContext


def ask_to_sign_in(request: HttpRequest) -> HttpResponse:
    """Send to the sign-in page; a form that was sent is kept in it and offered again afterwards."""

    stash = Stash.of(request)
    if stash is None:
        return _go(request, reverse("tenants:login"))
    form = SignInForm(initial={"next": ""})
    return render(request, "tenants/login.html", {"form": form, "resume": stash}, status=401)


def ask_for_tenant(request: HttpRequest) -> HttpResponse:
    """Send to the choice of desks; a form that was sent is kept."""
    stash = Stash.of(request)
    if stash is None:
        return _go(request, reverse("tenants:pick"))
    return wrong_tenant(request, stash)


def ask_for_second_factor(request: HttpRequest, where: str) -> HttpResponse:
    """Send to the page where a second factor is added, which this place asks for; a form that was sent is shown."""
    stash = Stash.of(request)
    if stash is None and request.method in SAFE:
        return _go(request, reverse("tenants:security"))
    return render(request, "tenants/second_factor_needed.html", {"where": where, "stash": stash}, status=403)


def forbidden(request: HttpRequest, reason: str) -> HttpResponse:
    """Answer 403 with the reason."""
    return render(request, "portal/403.html", {"reason": reason}, status=403)


def impersonation_is_over(request: HttpRequest) -> HttpResponse:
    """Answer 403 with the way back to the admin, for an operator who acted as a member until now; nothing was done."""
    end_acting(request, why="the time was up, or it was not allowed any more")
    return render(request, "tenants/impersonation_over.html", {"stash": Stash.of(request)}, status=403)


def note_run_out(request: HttpRequest) -> None:
    """Write the row that ends a visit whose time ran out, at the operator's next click of any kind in this browser.

    The operator's own session remembers the visit: its cookie and its item may be gone by then.
    """
    kept: dict[str, Any] | None = request.session.get(impersonation_session.VISIT)
    if kept is not None and kept["until"] <= time.time():
        del request.session[impersonation_session.VISIT]
        ids = impersonation_session.read_cookie(request.COOKIES.get(impersonation_session.COOKIE, ""))
        why, origin = "its time was over", client_address(request)
        if ids is None or impersonating.end(ids, origin=origin, why=why) is None:
            impersonating.note_end(Impersonation(**kept), origin=origin, why=why)


def end_acting(request: HttpRequest, *, why: str) -> None:
    """End what the cookie of an operator who acts as a member names, where it still exists."""
    ids = impersonation_session.read_cookie(request.COOKIES.get(impersonation_session.COOKIE, ""))
    if ids is not None:
        if impersonating.end(ids, origin=client_address(request), why=why):
            request.session.pop(impersonation_session.VISIT, None)
        request.acting_cookie = ""  # type: ignore[attr-defined]  # the identity middleware removes it


def suspended(request: HttpRequest, tenant: TenantContext) -> HttpResponse:
    """Answer 403: nobody gets in at the moment."""
    return render(request, "tenants/suspended.html", {"tenant_name": tenant.name}, status=403)


def being_deleted(request: HttpRequest, name: str) -> HttpResponse:
    """Answer 403: the purge of the desk has begun, and operators are shut out as well."""
    return render(request, "tenants/being_deleted.html", {"tenant_name": name}, status=403)


def closing(request: HttpRequest, tenant: TenantContext) -> HttpResponse:
    """Answer 403: a desk that is closing can only be read. What was typed is shown, so that it can be taken
    elsewhere."""
    return render(request, "tenants/closing_refused.html", {"stash": Stash.of(request), "closing": tenant}, status=403)


def wrong_tenant(request: HttpRequest, stash: Stash | None) -> HttpResponse:
    """Answer 409: the page was made for another tenant, or for another person.

    Whose it was is looked for among the caller's own memberships by comparing marks, so the answer never names a
    tenant that the caller is not in.
    """
    page_tenant = None
    if stash is not None and stash.page_mark:
        for membership in members.memberships_of(str(request.user.pk)):
            if page_mark.matches(stash.page_mark, str(request.user.pk), membership.tenant_id):
                page_tenant = {"id": membership.tenant_id, "name": membership.name}
                break
    return render(request, "portal/409_tenant.html", {"page_tenant": page_tenant, "stash": stash}, status=409)


def address_of_another_desk(request: HttpRequest, tenant: TenantContext, desk: str) -> HttpResponse:
    """Answer a page's address that names none of the caller's desks: by a redirect where the caller's desk had this
    name before, else by 404, whether there is such a desk or not.

    A form is sent on by 307: its page's mark is that of the caller's desk, so it was made before that was renamed.
    """
    if request.method in SAFE and desk != tenant.former_slug:
        return error_pages.not_found(request)
    address = request.get_full_path().removeprefix(f"/{desk}/")
    return redirect(f"/{tenant.slug}/{address}", preserve_request=request.method not in SAFE)


def _shown_address(request: HttpRequest) -> str:
    """Return the address of the page that a partial request leads to or was made from, on this site."""
    current = urlsplit(request.headers.get("HX-Current-URL", ""))
    if "HX-Boosted" in request.headers or not current.path:
        return request.get_full_path()
    return f"{escape_leading_slashes(current.path)}?{current.query}".rstrip("?")


def _go(request: HttpRequest, url: str) -> HttpResponse:
    """Redirect there, with the way back. A partial request must move the whole page, not swap a page into a part."""
    partial = "HX-Request" in request.headers
    if request.method in SAFE:
        query = QueryDict(mutable=True)
        query[REDIRECT_FIELD_NAME] = _shown_address(request) if partial else request.get_full_path()
        url = f"{url}?{query.urlencode(safe='/')}"
    return HttpResponse(status=204, headers={"HX-Redirect": url}) if partial else redirect(url)
