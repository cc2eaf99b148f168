"""Let an invited person accept, by the link in the mail or from the list of desks. Rules are in accepting.py."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods, require_POST

from portal.errors import Conflict, NotFound
from portal.web.access import public, signed_in
from portal.web.client_address import client_address
from tenants.membership import accepting
from tenants.membership.accepting import InviteOffer
from tenants.sign_in import accounts
from tenants.sign_in.accounts import User
from tenants.sign_in.forms import NewAccountForm
from tenants.tenancy import context
from tenants.tenancy.request import actor_of, enter_desk, start_session


@public
@require_http_methods(["GET", "HEAD", "POST"])
def follow_link(request: HttpRequest, token: str) -> HttpResponse:
    """Show the invitation of a link, and accept it. Reading writes nothing: mail scanners open links too."""
    try:
        response = _answer(request, accepting.by_secret(token))
    except NotFound as error:
        response = _no_longer_valid(request, error.message, status=404)
    # The address of this page is the secret: no cache may keep it. That no other site learns it from a link is
    # SECURE_REFERRER_POLICY's; a stricter one would take the Origin from the page's own form, which is then refused.
    response["Cache-Control"] = "private, no-store"
    return response


def _answer(request: HttpRequest, offer: InviteOffer) -> HttpResponse:
    if offer.obstacle:
        return _no_longer_valid(request, offer.obstacle, status=410)
    if not request.user.is_authenticated:
        return _answer_visitor(request, offer)
    user: User = request.user
    if accounts.normal_address(user.email) != offer.invite.email:
        return _page(request, offer, {"someone_else": True}, status=409 if request.method == "POST" else 200)
    return _accept(request, offer, user) if request.method == "POST" else _page(request, offer, {})


def _answer_visitor(request: HttpRequest, offer: InviteOffer) -> HttpResponse:
    """Send somebody who has an account to the sign-in, from where they come back; let others make one here."""
    if accounts.id_of(offer.invite.email):
        query = urlencode({"next": request.path})
        return _page(request, offer, {"sign_in_url": f"{reverse('tenants:login')}?{query}"})
    form = NewAccountForm(User(email=offer.invite.email), request.POST or None)
    if request.method == "POST" and form.is_valid():
        name, password = form.cleaned_data["name"], form.cleaned_data["new_password1"]
        try:
            user = accepting.accept_as_new(offer, name=name, password=password, origin=client_address(request))
        except Conflict as error:
            form.add_error(None, error.message)
        else:
            start_session(request, user)
            return _enter(request, offer, user)
    return _page(request, offer, {"form": form}, status=422 if form.is_bound else 200)


@signed_in
@require_POST
def accept_waiting(request: HttpRequest) -> HttpResponse:
    """Accept an invitation from the list of desks. It is looked up for the caller's own address."""
    user: User = request.user  # type: ignore[assignment]  # signed in: our User
    return _accept(request, accepting.by_address(user.email, request.POST.get("tenant", "")), user)


def _accept(request: HttpRequest, offer: InviteOffer, user: User) -> HttpResponse:
    try:
        accepting.accept(offer, user=user, by=actor_of(request))
    except Conflict as error:
        messages.error(request, error.message)
        return redirect("tenants:pick")
    return _enter(request, offer, user)


def _enter(request: HttpRequest, offer: InviteOffer, user: User) -> HttpResponse:
    """Open the desk whose member the person is now."""
    request.user = user
    tenant = context.enter(user, offer.tenant.tenant_id)
    if tenant is not None:
        enter_desk(request, tenant, by=actor_of(request))
    messages.success(request, f"Welcome to {offer.tenant.name}.")
    return redirect(settings.LOGIN_REDIRECT_URL)


def _page(request: HttpRequest, offer: InviteOffer, more: dict[str, Any], status: int = 200) -> HttpResponse:
    return render(request, "tenants/invitation.html", {"offer": offer, "role": offer.role, **more}, status=status)


def _no_longer_valid(request: HttpRequest, why: str, *, status: int) -> HttpResponse:
    return render(request, "tenants/invitation_gone.html", {"why": why}, status=status)
