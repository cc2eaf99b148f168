"""Inviting people to a desk, and accepting an invitation. Rules are in invites.py."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods, require_POST

from portal import clock
from portal.errors import Conflict, NotFound
from portal.web.access import member, public, signed_in
from tenants.identity import accounts, sessions
from tenants.identity.forms import NewAccountForm
from tenants.identity.models import User
from tenants.membership import invites, mails
from tenants.membership.forms import InviteForm
from tenants.membership.invites import Offer, Sent
from tenants.tenancy import tenant_directory
from tenants.tenancy.request import TenantRequest, actor_of, client_address, pin_tenant, start_session
from tenants.tenancy.roles import Role

get_or_post = require_http_methods(["GET", "HEAD", "POST"])


# --- inviting ---


@member(Role.ADMIN)
@get_or_post
def invitations(request: TenantRequest) -> HttpResponse:
    form = InviteForm(request.tenant.role, request.POST or None)
    if request.method == "POST" and form.is_valid():
        addresses, role = form.cleaned_data["addresses"], Role(form.cleaned_data["role"])
        outcomes = invites.invite_all(request.tenant, addresses=addresses, role=role, by=actor_of(request))
        _mail(request, [outcome.sent for outcome in outcomes if outcome.sent])
        refused = [outcome for outcome in outcomes if not outcome.sent]
        if not refused:
            return redirect("tenants:invitations")
        # What could not be sent stays in the form, with a reason for each line.
        left = {"addresses": "\n".join(outcome.address for outcome in refused), "role": role.value}
        form = InviteForm(request.tenant.role, left)
        for outcome in refused:
            form.add_error("addresses", f"{outcome.address}: {outcome.error}")
    return _invitations(request, form)


def _invitations(request: TenantRequest, form: InviteForm) -> HttpResponse:
    pending = [
        {
            "id": invite.invite_id,
            "email": invite.email,
            "role_label": Role(invite.role).label,
            "by": invite.invited_by_name,
            "sent_at": clock.parse(invite.sent_at),
            "expired": invites.is_expired(invite),
            "mine_to_change": request.tenant.role.at_least(Role(invite.role)),
        }
        for invite in invites.pending(request.tenant.repository)
    ]
    page = {"form": form, "pending": pending, "days": invites.LIFETIME.days}
    return render(request, "tenants/invitations.html", page, status=422 if form.is_bound else 200)


@member(Role.ADMIN)
@require_POST
def resend(request: TenantRequest, invite: str) -> HttpResponse:
    try:
        _mail(request, [invites.resend(request.tenant, invite_id=invite, by=actor_of(request))])
    except Conflict as error:
        messages.error(request, error.message)
    return redirect("tenants:invitations")


@member(Role.ADMIN)
@get_or_post
def revoke(request: TenantRequest, invite: str) -> HttpResponse:
    """Asks first, on a page of its own, then revokes."""
    if request.method != "POST":
        return render(request, "tenants/invitation_revoke.html", {"invite": invites.own(request.tenant, invite)})
    try:
        revoked = invites.revoke(request.tenant, invite_id=invite, by=actor_of(request))
    except Conflict as error:
        messages.error(request, error.message)
    else:
        messages.success(request, f"The invitation of {revoked.email} is revoked; its link does not work any more.")
    return redirect("tenants:invitations")


def _mail(request: TenantRequest, sent: list[Sent]) -> None:
    for one in sent:
        url = request.build_absolute_uri(reverse("tenants:invitation", args=[one.secret]))
        mails.send_invitation(one.invite, tenant_name=request.tenant.name, url=url)
    if sent:
        whom = sent[0].invite.email if len(sent) == 1 else f"{len(sent)} people"
        messages.success(request, f"An invitation is on its way to {whom}.")


# --- accepting ---


@public
@get_or_post
def invitation(request: HttpRequest, token: str) -> HttpResponse:
    """What an invitation's link leads to. Reading writes nothing: mail scanners open links too."""
    response = _invitation(request, token)
    # The address of this page is the secret: no cache may keep it. That no other site learns it from a link is
    # SECURE_REFERRER_POLICY's; a stricter one would take the Origin from the page's own form, which is then refused.
    response["Cache-Control"] = "private, no-store"
    return response


def _invitation(request: HttpRequest, token: str) -> HttpResponse:
    try:
        offer = invites.of_link(token)
    except NotFound:
        return render(request, "tenants/invitation_gone.html", {}, status=404)
    if offer.expired or offer.tenant.status != tenant_directory.ACTIVE:
        return render(request, "tenants/invitation_gone.html", {"offer": offer}, status=410)
    user: User | None = request.user if request.user.is_authenticated else None
    if user is not None and accounts.normal_address(user.email) != offer.invite.email:
        return _page(request, offer, {"someone_else": True}, status=200 if request.method != "POST" else 409)
    if user is None:
        return _as_visitor(request, offer)
    return _accept(request, offer, user) if request.method == "POST" else _page(request, offer, {})


def _as_visitor(request: HttpRequest, offer: Offer) -> HttpResponse:
    """Who has an account signs in with it and comes back; who has none makes one here."""
    if accounts.id_of(offer.invite.email):
        query = urlencode({"next": request.path})
        return _page(request, offer, {"sign_in_url": f"{reverse('tenants:login')}?{query}"})
    form = NewAccountForm(User(email=offer.invite.email), request.POST or None)
    if request.method == "POST" and form.is_valid():
        name, password = form.cleaned_data["name"], form.cleaned_data["new_password1"]
        try:
            user = invites.accept_as_new(offer, name=name, password=password, origin=client_address(request))
        except Conflict as error:
            form.add_error(None, error.message)
        else:
            start_session(request, user)
            return _welcome(request, offer, user)
    return _page(request, offer, {"form": form}, status=422 if form.is_bound else 200)


def _accept(request: HttpRequest, offer: Offer, user: User) -> HttpResponse:
    try:
        invites.accept(offer, user=user, by=actor_of(request))
    except Conflict as error:
        messages.error(request, error.message)
        return redirect("tenants:pick")
    return _welcome(request, offer, user)


def _welcome(request: HttpRequest, offer: Offer, user: User) -> HttpResponse:
    """Into the desk, whose member the person is now."""
    pin_tenant(request, offer.tenant.tenant_id, slug=offer.tenant.slug)
    request.user = user
    sessions.started(offer.tenant.tenant_id, by=actor_of(request))
    messages.success(request, f"Welcome to {offer.tenant.name}.")
    return redirect(settings.LOGIN_REDIRECT_URL)


def _page(request: HttpRequest, offer: Offer, more: dict[str, Any], status: int = 200) -> HttpResponse:
    page = {"offer": offer, "role_label": Role(offer.invite.role).label, "role_may": Role(offer.invite.role).may}
    return render(request, "tenants/invitation.html", page | more, status=status)


@signed_in
@require_POST
def accept_waiting(request: HttpRequest) -> HttpResponse:
    """Accept an invitation that is shown where one chooses a desk: it is looked up for the caller's own address."""
    user: User = request.user  # type: ignore[assignment]  # signed in: our User
    return _accept(request, invites.of_address(user.email, request.POST.get("tenant", "")), user)
