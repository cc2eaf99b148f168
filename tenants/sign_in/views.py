"""Sign in and out, change passwords, list and end sessions, and choose a tenant."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from django.contrib import messages
from django.contrib.auth import authenticate, update_session_auth_hash
from django.contrib.auth import logout as end_session
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlsafe_base64_decode
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache

from portal import clock
from portal.dynamo.client import fan_out
from portal.errors import Conflict, NotFound
from portal.nosql import session_store, stored
from portal.web import locales
from portal.web.access import counted, leads_out, on_get, on_post, public, signed_in, unlimited
from portal.web.client_address import client_address
from portal.web.desk_prefix import desk_of
from portal.web.heavy_work import heavy
from tenants.audit_trail.recording import Actor
from tenants.membership import invitations, mails, member_changes, members
from tenants.sign_in import accounts, attempt_limits, entering_views, session_lifecycle
from tenants.sign_in.accounts import User
from tenants.sign_in.forms import NewPasswordForm, PasswordChangeForm, PasswordResetForm, SignInForm
from tenants.sign_in.passwords import RESET_LINKS
from tenants.tenancy import access_middleware, context
from tenants.tenancy.context import Role
from tenants.tenancy.request import SignedInRequest, absolute_url, actor_of, enter_desk, pin_tenant


@unlimited
@public
@on_get()
@on_post(
    get="address, attempts", query="membership", write="account, attempts, audit row", trips=12, reads=20, writes=25
)
def login(request: HttpRequest) -> HttpResponse:
    if request.user.is_authenticated and request.method != "POST":
        return redirect(entering_views.safe_next(request, request.GET.get("next", "")))
    form = SignInForm(request.POST or None, initial={"next": request.GET.get("next", "")})
    stash = entering_views.stash_of(request)
    page = {"form": form, "resume": stash}
    if request.method != "POST" or not form.is_valid():
        return render(request, "tenants/login.html", page, status=200 if request.method != "POST" else 422)
    email, address = form.cleaned_data["email"], client_address(request)
    known = request.COOKIES.get(attempt_limits.KNOWN_COOKIE, "")
    limits = attempt_limits.sign_in(email, address=address, browser=attempt_limits.browser_name(known, email))
    attempt = attempt_limits.begin(limits)
    if attempt.wait_minutes is not None:
        return render(request, "tenants/login.html", page | {"wait_minutes": attempt.wait_minutes}, status=429)
    user = authenticate(request, email=email, password=form.cleaned_data["password"])
    if user is None:
        session_lifecycle.refused(email, origin=address)
        form.add_error(None, _("The e-mail address or password is wrong."))
        return render(request, "tenants/login.html", page, status=422)
    next_url = form.cleaned_data["next"]
    if user.second_factors:
        attempt_limits.succeeded(attempt)
        return entering_views.ask(request, user, stash=stash, next_url=next_url)
    return entering_views.let_in(request, user, attempts=[attempt], stash=stash, next_url=next_url)


@leads_out
@unlimited
@public
@on_post(write="session", trips=4, writes=15)
def logout(request: HttpRequest) -> HttpResponse:
    end_session(request)
    messages.info(request, _("You are signed out."))
    return redirect("tenants:login")


@unlimited
@signed_in
@on_post(
    query="sessions by person",
    write="account, audit row, session",
    trips=6,
    reads=3,
    writes=20,
    per="session",
    each=(1, 0.5, 3),
)
def logout_everywhere(request: SignedInRequest) -> HttpResponse:
    counted(request, accounts.sign_out_everywhere(request.user.id, by=actor_of(request)))
    end_session(request)
    messages.success(request, _("You are signed out on every device."))
    return redirect("tenants:login")


@signed_in
@on_get(query="members by name", trips=1, reads=8)
def account(request: SignedInRequest) -> HttpResponse:
    tenant = request.tenant
    page = {
        "password_form": PasswordChangeForm(request.user),
        "is_only_owner": tenant is not None and member_changes.is_only_owner(tenant),
        "zone": locales.current().zone,
    }
    return render(request, "tenants/account.html", page)


@signed_in
@on_get()
@on_post(get="attempts", query="sessions by person", write="account, attempts, audit row", trips=12, reads=6, writes=25)
@heavy
def password_change(request: SignedInRequest) -> HttpResponse:
    user = request.user
    if request.method != "POST":
        return render(request, "tenants/password_change.html", {"password_form": PasswordChangeForm(user)})
    attempt = attempt_limits.begin(attempt_limits.old_password(user.id))
    if attempt.wait_minutes is not None:
        page = {"password_form": PasswordChangeForm(user), "wait_minutes": attempt.wait_minutes}
        return render(request, "tenants/password_change.html", page, status=429)
    form = PasswordChangeForm(user, request.POST)
    form.is_valid()
    if "old_password" not in form.errors:
        attempt_limits.succeeded(attempt)
    if form.errors:
        return render(request, "tenants/password_change.html", {"password_form": form}, status=422)
    try:
        user = accounts.set_password(
            user.id, form.cleaned_data["new_password1"], by=actor_of(request), instead_of=user.password
        )
    except Conflict:
        form.add_error(None, _("Your password has just been changed elsewhere. Sign in again with that one."))
        return render(request, "tenants/password_change.html", {"password_form": form}, status=409)
    update_session_auth_hash(request, user)
    messages.success(request, _("Your password is changed. You are signed out on your other devices."))
    return redirect("tenants:account")


@unlimited
@public
@on_get()
@on_post(get="address, attempts", write="attempts, outbox row", trips=5, reads=2, writes=12)
def password_reset(request: HttpRequest) -> HttpResponse:
    form = PasswordResetForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        email = form.cleaned_data["email"]
        attempt = attempt_limits.begin(attempt_limits.reset_mail(email, address=client_address(request)))
        if attempt.wait_minutes is None:
            path = reverse("tenants:password_reset_confirm", args=["UID", "TOKEN"])
            mails.send_password_reset(email, absolute_url(request, path))
        return redirect("tenants:password_reset_sent")
    return render(request, "tenants/password_reset.html", {"form": form}, status=422 if form.is_bound else 200)


@unlimited
@public
@on_get()
def password_reset_sent(request: HttpRequest) -> HttpResponse:
    return render(request, "tenants/password_reset_sent.html")


@unlimited
@public
@on_get()
@on_post(query="sessions by person", write="account, audit row, session", trips=9, reads=3, writes=12)
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
        messages.success(request, _("Your password is changed. Sign in with the new one."))
        return redirect("tenants:login")
    page = {"form": form}
    return render(request, "tenants/password_reset_confirm.html", page, status=422 if form.is_bound else 200)


def _reset_link_is_void(request: HttpRequest) -> HttpResponse:
    return render(request, "tenants/password_reset_confirm.html", {"invalid": True}, status=404)


@unlimited
@signed_in
@on_get(query="invited, membership", trips=1, reads=4)
def pick(request: SignedInRequest) -> HttpResponse:
    """Show the caller's tenants, and the invitations that wait for the caller: two Queries at the same time, whatever
    their number; the search looks through what they brought."""
    user = request.user
    queries: list[Callable[[], Any]] = [
        lambda: members.memberships_of(user.id),
        lambda: invitations.waiting_for(user.email),
    ]
    everything, waiting = fan_out(queries)
    search = request.GET.get("q", "").strip()
    current = request.tenant.tenant_id if request.tenant else ""
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
        "is_out": bool(request.pins) and request.pins[0].tenant_id not in {m.tenant_id for m in everything},
        "q": search,
        "total": len(everything),
        "waiting": [
            {
                "tenant_id": w.tenant_id,
                "tenant_name": w.tenant_name,
                "invited_by_name": w.invited_by_name,
                "role_label": Role(w.role).label,
            }
            for w in waiting
            if w.tenant_id not in {m.tenant_id for m in everything}
        ],
        "next": entering_views.safe_next(request, request.GET.get("next", "")),
    }
    partial = "HX-Request" in request.headers
    return render(request, "tenants/_switcher.html" if partial else "tenants/pick.html", page)


@unlimited
@signed_in
@on_post(write="audit row", trips=5, reads=15, writes=10)
def switch(request: SignedInRequest) -> HttpResponse:
    """Pin the session to one of the caller's tenants; the membership is looked up, whatever the form says."""
    user = request.user
    tenant = context.enter(user, request.POST.get("tenant", ""))
    if tenant is None:
        raise NotFound(_("You are not a member of this tenant."))
    if tenant.where.purged:
        return access_middleware.being_deleted(request, tenant.name)
    if tenant.tenant_id in {pin.tenant_id for pin in request.pins}:
        pin_tenant(request, tenant)
    else:
        enter_desk(request, tenant, by=actor_of(request))
    stash = entering_views.stash_of(request)
    if stash is not None:
        return entering_views.resume(request, user, tenant.tenant_id, stash)
    target = request.POST.get("next", "")
    return redirect(entering_views.safe_next(request, target if desk_of(target) in ("", tenant.slug) else ""))


def _user_of_link(uid: str) -> User | None:
    try:
        return accounts.find_by_id(urlsafe_base64_decode(uid).decode())
    except ValueError:
        return None


@signed_in
@on_get(query="membership, sessions by person", trips=1, reads=4)
def sessions_page(request: SignedInRequest) -> HttpResponse:
    """Show the caller's sessions and the names of their desks: two Queries at the same time."""
    asked: list[Any] = [
        partial(session_store.of_user, request.user.id),
        partial(members.memberships_of, request.user.id),
    ]
    found, mine = fan_out(asked)
    desks = {membership.tenant_id: membership.name for membership in mine}
    here = stored.session(request.session.session_key or "")
    rows = [
        {
            "id": item.session_key,
            "is_here": item.session_key == here,
            "browser": session_lifecycle.browser_of(item.agent or ""),
            "address": item.address,
            "desk": desks.get(item.tenant_id or "", ""),
            "started_at": clock.parse(item.started_at or ""),
            "until": datetime.fromtimestamp(int(item.expires_at), UTC),
        }
        for item in found
    ]
    return render(request, "tenants/sessions.html", {"sessions": rows})


@signed_in
@on_post(write="audit row, session", trips=9, reads=5, writes=20)
def session_end(request: SignedInRequest, session: str) -> HttpResponse:
    """End one of the caller's own sessions; whose it is, the rule looks at."""
    try:
        session_lifecycle.end(request.user.id, session_id=session, by=actor_of(request))
    except NotFound as error:
        messages.info(request, error.message)
    else:
        messages.success(request, _("That browser is signed out."))
    return redirect("tenants:sessions")
