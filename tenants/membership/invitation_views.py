"""Invite people, and accept an invitation, by the link in the mail or from the list of desks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from portal import clock
from portal.dynamo.client import fan_out
from portal.errors import Conflict, NotFound
from portal.mailing.outgoing import OutgoingMail
from portal.web.access import member, on_get, on_post, public, signed_in
from portal.web.client_address import client_address
from portal.web.conflicts import told_in
from tenants.membership import accepting, invitations, mails, members
from tenants.membership.accepting import InviteOffer
from tenants.membership.forms import InviteForm
from tenants.membership.invitations import InviteOutcome, SentInvite
from tenants.membership.stored import InviteItem, UnreachedItem
from tenants.sign_in import accounts
from tenants.sign_in.accounts import User
from tenants.sign_in.forms import NewAccountForm
from tenants.tenancy import context
from tenants.tenancy.context import Role, TenantContext
from tenants.tenancy.request import TenantRequest, absolute_url, actor_of, enter_desk, refusal_told, start_session


@member(Role.ADMIN)
@on_get(get="member", query="invitation, members by name, unreached invitation", trips=3, reads=100)
@on_post(
    get="address, member, suppressed address",
    query="invitation, member, members by name, unreached invitation",
    write="attempts, audit row, invitation, invitation link, invited, membership, outbox row, tenant, unreached "
    "invitation",
    trips=12,
    reads=20,
    writes=100,
)
def invite_people(request: TenantRequest) -> HttpResponse:
    """Show the pending invitations and the form, and send what the form holds."""
    form = InviteForm(request.tenant.role, request.POST or None)
    if request.method == "POST" and form.is_valid():
        role = Role(form.cleaned_data["role"])
        outcomes = invitations.invite_all(
            request.tenant,
            addresses=form.cleaned_data["addresses"],
            role=role,
            by=actor_of(request),
            write=partial(write_mail, request),
        )
        send_mails(request, [outcome.sent for outcome in outcomes if outcome.sent])
        refused = [outcome for outcome in outcomes if not outcome.sent]
        if not refused:
            return redirect("tenants:invitations")
        form = _form_with_the_rest(request.tenant, role, refused)
    page = {"form": form, "pending": pending(request.tenant), "days": invitations.LIFETIME.days}
    return render(request, "tenants/invitations.html", page, status=422 if form.is_bound else 200)


def _form_with_the_rest(tenant: TenantContext, role: Role, refused: Sequence[InviteOutcome]) -> InviteForm:
    """Return the form with the addresses that could not be invited, and a reason for each."""
    rest = {"addresses": "\n".join(outcome.address for outcome in refused), "role": role.value}
    form = InviteForm(tenant.role, rest)
    for outcome in refused:
        form.add_error("addresses", f"{outcome.address}: {outcome.error}")
    return form


def pending(tenant: TenantContext) -> list[dict[str, Any]]:
    """Return the rows of the list: invitations, members for what their inviters may still do, and whose mails did not
    get through, at the same time."""
    reads: list[Callable[[], Any]] = [
        partial(invitations.pending, tenant.repository),
        partial(members.at_hand, tenant),
        partial(invitations.unreached, tenant.repository),
    ]
    invites, known, unreached = fan_out(reads)
    inviters = members.with_ids(tenant.repository, known, [invite.invited_by for invite in invites])
    roles = {person.id: person.role for person in inviters.people}
    return [
        {
            "id": invite.invite_id,
            "email": invite.email,
            "role": Role(invite.role),
            "name": invite.name,
            "purpose": invite.purpose,
            "access_until": clock.parse(invite.access_until) if invite.access_until else None,
            "by": invite.invited_by_name,
            "sent_at": clock.parse(invite.sent_at),
            "unreached": _unreached(unreached.get(invite.invite_id), invite),
            "expired": invitations.is_expired(invite),
            "inviter_lost_right": invite.invited_by != invitations.PROVIDER
            and not (
                invite.invited_by in roles and invitations.may_invite(roles[invite.invited_by], Role(invite.role))
            ),
            "mine_to_change": invitations.may_invite(tenant.role, Role(invite.role)),
        }
        for invite in invites
    ]


def _unreached(item: UnreachedItem | None, invite: InviteItem) -> dict[str, Any] | None:
    if item is None or not invitations.is_about(item, invite):
        return None
    return {"at": clock.parse(item.at), "why": item.why}


@member(Role.ADMIN)
@on_post(
    get="invitation, suppressed address",
    write="attempts, audit row, invitation, invitation link, invited, membership, outbox row, tenant",
    trips=7,
    reads=6,
    writes=40,
)
def resend(request: TenantRequest, invite: str) -> HttpResponse:
    with refusal_told(request, Conflict):
        write = partial(write_mail, request)
        sent = invitations.resend(request.tenant, invite_id=invite, by=actor_of(request), write=write)
        send_mails(request, [sent])
    return redirect("tenants:invitations")


@member(Role.ADMIN)
@on_get(get="invitation", trips=1, reads=2)
@on_post(
    get="invitation", write="audit row, invitation, invitation link, invited, membership", trips=5, reads=3, writes=25
)
def revoke(request: TenantRequest, invite: str) -> HttpResponse:
    """Ask first, on a page of its own, then revoke."""
    if request.method != "POST":
        page = {"invite": invitations.require_pending(request.tenant, invite)}
        return render(request, "tenants/invitation_revoke.html", page)
    with refusal_told(request, Conflict):
        revoked = invitations.revoke(request.tenant, invite_id=invite, by=actor_of(request))
        messages.success(request, _("The invitation for %(email)s was revoked.") % {"email": revoked.email})
    return redirect("tenants:invitations")


def write_mail(request: TenantRequest, invite: InviteItem, secret: str) -> OutgoingMail:
    """Write the mail of an invitation that somebody sends by a page."""
    url = absolute_url(request, reverse("tenants:invitation", args=[secret]))
    return mails.invitation(invite, tenant=request.tenant, url=url)


def send_mails(request: TenantRequest, sent: Sequence[SentInvite]) -> None:
    """Send what did not leave with the invitation itself, and say whom a mail goes to, and whom none reaches."""
    for mail in (mail for one in sent for mail in one.mails):
        mails.send_beside(mail)
    mailed = [one for one in sent if not one.unreached]
    if mailed:
        to = mailed[0].invite.email if len(mailed) == 1 else _("%(count)s people") % {"count": len(mailed)}
        messages.success(request, _("An invitation was sent to %(to)s.") % {"to": to})
    for one in sent:
        if one.unreached:
            messages.warning(
                request,
                _("%(email)s was invited and gets no mail. %(why)s")
                % {"email": one.invite.email, "why": one.unreached},
            )


@public
@on_get(get="address, invitation, invitation link", trips=2, reads=6)
@on_post(
    get="address, invitation, invitation link",
    write="account, address, audit row, auditor, invitation, invitation link, invited, member, membership, tenant",
    trips=10,
    reads=20,
    writes=60,
)
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
        with told_in(form):
            user = accepting.accept_as_new(offer, name=name, password=password, origin=client_address(request))
            start_session(request, user)
            return _enter(request, offer, user)
    return _page(request, offer, {"form": form}, status=422 if form.is_bound else 200)


@signed_in
@on_post(
    get="invitation, invited",
    write="audit row, auditor, invitation, invitation link, invited, member, membership, tenant",
    trips=6,
    reads=20,
    writes=35,
)
def accept_waiting(request: HttpRequest) -> HttpResponse:
    """Accept an invitation from the list of desks. It is looked up for the caller's own address."""
    user: User = request.user  # type: ignore[assignment]  # signed in: our User
    return _accept(request, accepting.by_address(user.email, request.POST.get("tenant", "")), user)


def _accept(request: HttpRequest, offer: InviteOffer, user: User) -> HttpResponse:
    with refusal_told(request, Conflict):
        accepting.accept(offer, user=user, by=actor_of(request))
        return _enter(request, offer, user)
    return redirect("tenants:pick")


def _enter(request: HttpRequest, offer: InviteOffer, user: User) -> HttpResponse:
    """Open the desk whose member the person is now."""
    request.user = user
    tenant = context.enter(user, offer.tenant.tenant_id)
    if tenant is not None:
        enter_desk(request, tenant, by=actor_of(request))
    messages.success(request, _("Welcome to %(desk)s.") % {"desk": offer.tenant.name})
    return redirect(settings.LOGIN_REDIRECT_URL)


def _page(request: HttpRequest, offer: InviteOffer, more: dict[str, Any], status: int = 200) -> HttpResponse:
    until = clock.parse(offer.invite.access_until) if offer.invite.access_until else None
    page = {"offer": offer, "role": offer.role, "access_until": until, **more}
    return render(request, "tenants/invitation.html", page, status=status)


def _no_longer_valid(request: HttpRequest, why: str, *, status: int) -> HttpResponse:
    return render(request, "tenants/invitation_gone.html", {"why": why}, status=status)
