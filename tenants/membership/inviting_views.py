"""Show the invitations of a desk, and let its admins send and revoke them. Rules are in inviting.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from portal import clock
from portal.dynamo.client import fan_out
from portal.errors import Conflict
from portal.mailing.outgoing import OutgoingMail
from portal.web.access import member
from tenants.membership import invite_storage, invite_tokens, inviting, mails, members, undelivered_invites
from tenants.membership.forms import InviteForm
from tenants.membership.inviting import InviteOutcome, SentInvite
from tenants.membership.items import InviteItem, UnreachedItem
from tenants.tenancy.context import TenantContext
from tenants.tenancy.request import TenantRequest, absolute_url, actor_of
from tenants.tenancy.roles import Role


@member(Role.ADMIN)
@require_http_methods(["GET", "HEAD", "POST"])
def invite_people(request: TenantRequest) -> HttpResponse:
    """Show the pending invitations and the form, and send what the form holds."""
    form = InviteForm(request.tenant.role, request.POST or None)
    if request.method == "POST" and form.is_valid():
        role = Role(form.cleaned_data["role"])
        outcomes = inviting.invite_all(
            request.tenant,
            addresses=form.cleaned_data["addresses"],
            role=role,
            by=actor_of(request),
            write=partial(_write, request),
        )
        _mail(request, [outcome.sent for outcome in outcomes if outcome.sent])
        refused = [outcome for outcome in outcomes if not outcome.sent]
        if not refused:
            return redirect("tenants:invitations")
        form = _form_with_the_rest(request.tenant, role, refused)
    page = {"form": form, "pending": _pending(request.tenant), "days": invite_tokens.LIFETIME.days}
    return render(request, "tenants/invitations.html", page, status=422 if form.is_bound else 200)


def _form_with_the_rest(tenant: TenantContext, role: Role, refused: Sequence[InviteOutcome]) -> InviteForm:
    """Return the form with the addresses that could not be invited, and a reason for each."""
    rest = {"addresses": "\n".join(outcome.address for outcome in refused), "role": role.value}
    form = InviteForm(tenant.role, rest)
    for outcome in refused:
        form.add_error("addresses", f"{outcome.address}: {outcome.error}")
    return form


def _pending(tenant: TenantContext) -> list[dict[str, Any]]:
    """Return the rows of the list: invitations, members for what their inviters may still do, and whose mails did not
    get through, at the same time."""
    reads: list[Callable[[], Any]] = [
        partial(invite_storage.pending, tenant.repository),
        partial(members.members_of, tenant.repository),
        partial(undelivered_invites.listed, tenant.repository),
    ]
    invites, everybody, unreached = fan_out(reads)
    roles = {person.id: person.role for person in everybody}
    return [
        {
            "id": invite.invite_id,
            "email": invite.email,
            "role_label": Role(invite.role).label,
            "by": invite.invited_by_name,
            "sent_at": clock.parse(invite.sent_at),
            "unreached": _unreached(unreached.get(invite.invite_id), invite),
            "expired": invite_storage.is_expired(invite),
            "inviter_lost_right": invite.invited_by != invite_storage.PROVIDER
            and not (
                invite.invited_by in roles and invite_storage.may_invite(roles[invite.invited_by], Role(invite.role))
            ),
            "mine_to_change": invite_storage.may_invite(tenant.role, Role(invite.role)),
        }
        for invite in invites
    ]


def _unreached(item: UnreachedItem | None, invite: InviteItem) -> dict[str, Any] | None:
    if item is None or not undelivered_invites.is_about(item, invite):
        return None
    return {"at": clock.parse(item.at), "why": item.why}


@member(Role.ADMIN)
@require_POST
def resend(request: TenantRequest, invite: str) -> HttpResponse:
    """Send an invitation again."""
    try:
        write = partial(_write, request)
        sent = inviting.resend(request.tenant, invite_id=invite, by=actor_of(request), write=write)
    except Conflict as error:
        messages.error(request, error.message)
    else:
        _mail(request, [sent])
    return redirect("tenants:invitations")


@member(Role.ADMIN)
@require_http_methods(["GET", "HEAD", "POST"])
def revoke(request: TenantRequest, invite: str) -> HttpResponse:
    """Ask first, on a page of its own, then revoke."""
    if request.method != "POST":
        page = {"invite": inviting.require_pending(request.tenant, invite)}
        return render(request, "tenants/invitation_revoke.html", page)
    try:
        revoked = inviting.revoke(request.tenant, invite_id=invite, by=actor_of(request))
    except Conflict as error:
        messages.error(request, error.message)
    else:
        messages.success(request, f"The invitation for {revoked.email} was revoked.")
    return redirect("tenants:invitations")


def _write(request: TenantRequest, invite: InviteItem, secret: str) -> OutgoingMail:
    url = absolute_url(request, reverse("tenants:invitation", args=[secret]))
    return mails.invitation(invite, tenant=request.tenant, url=url)


def _mail(request: TenantRequest, sent: Sequence[SentInvite]) -> None:
    """Send what did not leave with the invitation itself, and say whom a mail goes to, and whom none reaches."""
    for mail in (mail for one in sent for mail in one.mails):
        mails.send_beside(mail)
    mailed = [one for one in sent if not one.unreached]
    if mailed:
        to = mailed[0].invite.email if len(mailed) == 1 else f"{len(mailed)} people"
        messages.success(request, f"An invitation was sent to {to}.")
    for one in sent:
        if one.unreached:
            messages.warning(request, f"{one.invite.email} was invited and gets no mail. {one.unreached}")
