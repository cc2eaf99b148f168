"""Signing in and out, passwords, choosing a tenant."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import authenticate, update_session_auth_hash
from django.contrib.auth import logout as end_session
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme, urlsafe_base64_decode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from portal.dynamo.client import fan_out
from portal.errors import Conflict, Invalid, NotFound
from portal.web.access import leads_out, public, signed_in, unlimited
from portal.web.desk_prefix import desk_of
from portal.web.heavy_work import heavy
from portal.web.stash import Stash
from tenants.audit_trail.recording import Actor
from tenants.identity import accounts, known_browsers, session_lifecycle, throttle
from tenants.identity.forms import NewPasswordForm, PasswordChangeForm, PasswordResetForm, SignInForm
from tenants.identity.models import User
from tenants.identity.reset_links import RESET_LINKS
from tenants.membership import invite_storage, mails, members, roster
from tenants.tenancy import context, page_mark, pinned_tenant
from tenants.tenancy.client_address import client_address
from tenants.tenancy.context import TenantContext
from tenants.tenancy.request import absolute_url, actor_of, pin_tenant, start_session

get_or_post = require_http_methods(["GET", "HEAD", "POST"])


@unlimited
@public
@get_or_post
def login(request: HttpRequest) -> HttpResponse:
    if request.user.is_authenticated and request.method != "POST":
        return redirect(settings.LOGIN_REDIRECT_URL)
    form = SignInForm(request.POST or None, initial={"next": request.GET.get("next", "")})
    stash = _stash(request)
    page = {"form": form, "resume": stash}
    if request.method != "POST" or not form.is_valid():
        return render(request, "tenants/login.html", page, status=200 if request.method != "POST" else 422)
    email, address = form.cleaned_data["email"], client_address(request)
    known = request.COOKIES.get(known_browsers.COOKIE, "")
    limits = throttle.sign_in(email, address=address, browser=known_browsers.name_of(known, email))
    attempt = throttle.begin(limits)
    if attempt.wait_minutes is not None:
        return render(request, "tenants/login.html", page | {"wait_minutes": attempt.wait_minutes}, status=429)
    user = authenticate(request, email=email, password=form.cleaned_data["password"])
    if user is None:
        session_lifecycle.refused(email, origin=address)
        form.add_error(None, "The e-mail address or password is wrong.")
        return render(request, "tenants/login.html", page, status=422)
    fan_out([partial(throttle.succeeded, attempt), partial(accounts.note_sign_in, user.id)])
    start_session(request, user)
    response = _enter(request, user, stash, form.cleaned_data["next"])
    _remember_browser(response, known_browsers.remembered(known, email))
    return response


def _remember_browser(response: HttpResponse, cookie: str) -> None:
    response.set_cookie(
        known_browsers.COOKIE,
        cookie,
        max_age=known_browsers.LIFETIME,
        path=reverse("tenants:login"),  # sent with attempts to sign in, and nowhere else
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def _enter(request: HttpRequest, user: User, stash: Stash | None, next_url: str) -> HttpResponse:
    """After signing in: straight into the only tenant, or the one that an interrupted form belongs to, else choose."""
    mine = members.memberships_of(user.id)
    interrupted = stash.page_mark if stash else ""
    named = desk_of(next_url)
    chosen = mine[0] if len(mine) == 1 else next((m for m in mine if m.slug == named), None)
    for membership in mine:
        if interrupted and page_mark.matches(interrupted, user.id, membership.tenant_id):
            chosen = membership
    if chosen is None:
        pin_tenant(request, "", slug="")
    else:
        pin_tenant(request, chosen.tenant_id, slug=chosen.slug)
        session_lifecycle.started(chosen.tenant_id, by=Actor(user.id, user.email, client_address(request)))
    if stash is not None and chosen is not None:
        return _resume(request, user, chosen.tenant_id, stash)
    target = _safe_next(request, next_url)
    if user.is_operator and not mine:
        # Who only runs the platform has no desk to choose, and no page of one to go back to.
        admin_url = reverse("admin:index")
        if stash is not None and stash.path.startswith(admin_url):
            return _resume(request, user, "", stash)
        return redirect(target if target.startswith(admin_url) else admin_url)
    if chosen is None:
        pick_url = reverse("tenants:pick")
        return redirect(f"{pick_url}?{urlencode({'next': target})}" if next_url else pick_url)
    return redirect(target)


def _resume(request: HttpRequest, user: User, tenant_id: str, stash: Stash) -> HttpResponse:
    """Offer an interrupted form again, on a page that belongs to the tenant just entered."""
    tenant = context.enter(user, tenant_id)
    request.user, request.tenant = user, tenant  # type: ignore[attr-defined]  # tenant is ours
    return render(request, "portal/resume.html", {"stash": stash})


@leads_out
@unlimited
@public
@require_POST
def logout(request: HttpRequest) -> HttpResponse:
    end_session(request)
    messages.info(request, "You are signed out.")
    return redirect("tenants:login")


@unlimited
@signed_in
@require_POST
def logout_everywhere(request: HttpRequest) -> HttpResponse:
    accounts.sign_out_everywhere(str(request.user.pk), by=actor_of(request))
    end_session(request)
    messages.success(request, "You are signed out on every device.")
    return redirect("tenants:login")


@signed_in
@require_safe
def account(request: HttpRequest) -> HttpResponse:
    tenant: TenantContext | None = request.tenant  # type: ignore[attr-defined]
    page = {
        "password_form": PasswordChangeForm(request.user),  # type: ignore[arg-type]
        "is_only_owner": tenant is not None and roster.is_only_owner(tenant),
    }
    return render(request, "tenants/account.html", page)


@signed_in
@get_or_post
@heavy
def password_change(request: HttpRequest) -> HttpResponse:
    user: User = request.user  # type: ignore[assignment]  # signed in: our User
    if request.method != "POST":
        return render(request, "tenants/password_change.html", {"password_form": PasswordChangeForm(user)})
    attempt = throttle.begin(throttle.old_password(user.id))
    if attempt.wait_minutes is not None:
        page = {"password_form": PasswordChangeForm(user), "wait_minutes": attempt.wait_minutes}
        return render(request, "tenants/password_change.html", page, status=429)
    form = PasswordChangeForm(user, request.POST)
    form.is_valid()
    if "old_password" not in form.errors:
        throttle.succeeded(attempt)
    if form.errors:
        return render(request, "tenants/password_change.html", {"password_form": form}, status=422)
    user = accounts.set_password(user.id, form.cleaned_data["new_password1"], by=actor_of(request))
    update_session_auth_hash(request, user)
    messages.success(request, "Your password is changed. You are signed out on your other devices.")
    return redirect("tenants:account")


@unlimited
@public
@get_or_post
def password_reset(request: HttpRequest) -> HttpResponse:
    form = PasswordResetForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        email = form.cleaned_data["email"]
        attempt = throttle.begin(throttle.reset_mail(email, address=client_address(request)))
        if attempt.wait_minutes is None:
            path = reverse("tenants:password_reset_confirm", args=["UID", "TOKEN"])
            mails.send_password_reset(email, absolute_url(request, path))
        return redirect("tenants:password_reset_sent")
    return render(request, "tenants/password_reset.html", {"form": form}, status=422 if form.is_bound else 200)


@unlimited
@public
@require_safe
def password_reset_sent(request: HttpRequest) -> HttpResponse:
    return render(request, "tenants/password_reset_sent.html")


@unlimited
@public
@get_or_post
@never_cache  # the address of this page is the secret
def password_reset_confirm(request: HttpRequest, uid: str, token: str) -> HttpResponse:
    user = _user_of_link(uid)
    if user is None or not RESET_LINKS.check_token(user, token):
        return _reset_link_is_void(request)
    form = NewPasswordForm(user, request.POST or None)
    if request.method == "POST" and form.is_valid():
        by = Actor(user.id, user.email, client_address(request))
        try:
            accounts.set_password(user.id, form.cleaned_data["new_password1"], by=by, instead_of=user.password)
        except Conflict:  # the same link has been used at the same moment
            return _reset_link_is_void(request)
        messages.success(request, "Your password is changed. Sign in with the new one.")
        return redirect("tenants:login")
    page = {"form": form}
    return render(request, "tenants/password_reset_confirm.html", page, status=422 if form.is_bound else 200)


def _reset_link_is_void(request: HttpRequest) -> HttpResponse:
    return render(request, "tenants/password_reset_confirm.html", {"invalid": True}, status=404)


@unlimited
@signed_in
@require_safe
def pick(request: HttpRequest) -> HttpResponse:
    """The caller's tenants, and the invitations that wait for the caller: two Queries at the same time, whatever
    their number; the search looks through what they brought."""
    user: User = request.user  # type: ignore[assignment]  # signed in: our User
    queries: list[Callable[[], Any]] = [
        lambda: members.memberships_of(user.id),
        lambda: invite_storage.waiting_for(user.email),
    ]
    everything, waiting = fan_out(queries)
    search = request.GET.get("q", "").strip()
    current = request.tenant.tenant_id if request.tenant else ""  # type: ignore[attr-defined]
    found = [
        {
            "tenant_id": m.tenant_id,
            "name": m.name,
            "slug": m.slug,
            "role_label": m.role.label,
            "is_current": m.tenant_id == current,
        }
        for m in everything
        if search.casefold() in m.name.casefold() or search.casefold() in m.slug
    ]
    page = {
        "memberships": found,
        "is_out": request.session.get(pinned_tenant.TENANT_KEY, "") not in {"", *(m.tenant_id for m in everything)},
        "q": search,
        "total": len(everything),
        "waiting": [w for w in waiting if w.tenant_id not in {m.tenant_id for m in everything}],
        "next": _safe_next(request, request.GET.get("next", "")),
    }
    partial = "HX-Request" in request.headers
    return render(request, "tenants/_switcher.html" if partial else "tenants/pick.html", page)


@unlimited
@signed_in
@require_POST
def switch(request: HttpRequest) -> HttpResponse:
    """Pin the session to one of the caller's tenants; the membership is looked up, whatever the form says."""
    user: User = request.user  # type: ignore[assignment]  # signed in: our User
    tenant = context.enter(user, request.POST.get("tenant", ""))
    if tenant is None:
        raise NotFound("You are not a member of this tenant.")
    if request.session.get(pinned_tenant.TENANT_KEY) != tenant.tenant_id:
        session_lifecycle.started(tenant.tenant_id, by=actor_of(request))
    pin_tenant(request, tenant.tenant_id, slug=tenant.slug)
    stash = _stash(request)
    if stash is not None:
        return _resume(request, user, tenant.tenant_id, stash)
    target = request.POST.get("next", "")
    return redirect(_safe_next(request, target if desk_of(target) in ("", tenant.slug) else ""))


def _stash(request: HttpRequest) -> Stash | None:
    token = request.POST.get("resume", "")
    if not token:
        return None
    try:
        return Stash.from_token(token)
    except Invalid:
        messages.warning(request, "What was kept of your form is too old to be sent again.")
        return None


def _safe_next(request: HttpRequest, url: str) -> str:
    if url and url_has_allowed_host_and_scheme(
        url, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    ):
        return url
    return resolve_url(settings.LOGIN_REDIRECT_URL)


def _user_of_link(uid: str) -> User | None:
    try:
        return accounts.find_by_id(urlsafe_base64_decode(uid).decode())
    except ValueError:
        return None
