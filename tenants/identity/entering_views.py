"""Let somebody in whose sign-in is complete, by whichever way: start a session, enter a desk, offer what was kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from portal.dynamo.client import fan_out
from portal.errors import Invalid
from portal.web.client_address import client_address
from portal.web.desk_prefix import desk_of
from portal.web.stash import Stash
from tenants.audit_trail.recording import Actor
from tenants.identity import accounts, known_browsers, throttle
from tenants.identity.models import User
from tenants.identity.throttle import CountedAttempt
from tenants.membership import members
from tenants.tenancy import context, page_mark
from tenants.tenancy.request import enter_desk, start_session


def let_in(
    request: HttpRequest, user: User, *, attempts: Sequence[CountedAttempt], stash: Stash | None, next_url: str
) -> HttpResponse:
    """Sign this person in, who has proved to be who they are: the counted attempts were no guesses."""
    forgiven = [partial(throttle.succeeded, attempt) for attempt in attempts]
    fan_out([*forgiven, partial(accounts.note_sign_in, user.id)])
    start_session(request, user)
    response = _enter(request, user, stash, next_url)
    response.set_cookie(
        known_browsers.COOKIE,
        known_browsers.remembered(request.COOKIES.get(known_browsers.COOKIE, ""), user.email, epoch=user.session_epoch),
        max_age=known_browsers.LIFETIME,
        path=reverse("tenants:login"),  # sent with attempts to sign in, and nowhere else
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
    return response


def _enter(request: HttpRequest, user: User, stash: Stash | None, next_url: str) -> HttpResponse:
    """Lead, after signing in, straight into the only tenant, or the one that an interrupted form belongs to, else
    choose."""
    mine = members.memberships_of(user.id)
    interrupted = stash.page_mark if stash else ""
    named = desk_of(next_url)
    chosen = mine[0] if len(mine) == 1 else next((m for m in mine if m.slug == named), None)
    for membership in mine:
        if interrupted and page_mark.matches(interrupted, user.id, membership.tenant_id):
            chosen = membership
    tenant = context.enter(user, chosen.tenant_id) if chosen else None
    if tenant is not None:
        enter_desk(request, tenant, by=Actor(user.id, user.email, client_address(request)))
    if stash is not None and tenant is not None:
        return resume(request, user, tenant.tenant_id, stash)
    target = safe_next(request, next_url)
    if user.is_operator and not mine:
        # Who only runs the platform has no desk to choose, and no page of one to go back to.
        admin_url = reverse("admin:index")
        if stash is not None and stash.path.startswith(admin_url):
            return resume(request, user, "", stash)
        return redirect(target if target.startswith(admin_url) else admin_url)
    if tenant is None and not next_url:
        return redirect("tenants:pick")
    return redirect(target)  # where a page needs a desk that its address does not name, it asks for one itself


def resume(request: HttpRequest, user: User, tenant_id: str, stash: Stash) -> HttpResponse:
    """Offer an interrupted form again, on a page that belongs to the tenant just entered."""
    tenant = context.enter(user, tenant_id)
    request.user, request.tenant = user, tenant  # type: ignore[attr-defined]  # tenant is ours
    if tenant is not None and (desk := desk_of(stash.path)):
        # The form is the tenant's by its page's mark, whatever desk has the name now that its address had then.
        stash = replace(stash, path=f"/{tenant.slug}/{stash.path.removeprefix(f'/{desk}/')}")
    return render(request, "portal/resume.html", {"stash": stash})


def stash_of(request: HttpRequest) -> Stash | None:
    token = request.POST.get("resume", "")
    if not token:
        return None
    try:
        return Stash.from_token(token)
    except Invalid:
        messages.warning(request, "What was kept of your form is too old to be sent again.")
        return None


def safe_next(request: HttpRequest, url: str) -> str:
    if url and url_has_allowed_host_and_scheme(
        url, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    ):
        return url
    return resolve_url(settings.LOGIN_REDIRECT_URL)
