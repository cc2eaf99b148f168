"""Show the evidence of a desk to its auditors and owners, and let owners say who is an auditor."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from functools import cache, partial
from typing import Any, Final

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from portal import clock
from portal.dynamo.client import fan_out
from portal.errors import Conflict, Invalid, NotFound
from portal.web import locales, moments
from portal.web.access import for_auditors, in_person, member, on_get, on_post, open_while_closing, public
from portal.web.conflicts import told_in
from portal.web.heavy_work import heavy, heavy_to_read
from tenants.audit_trail import chain, recording
from tenants.audit_trail.recording import AuditAction, AuditEntry
from tenants.auditing import access_review, audit_export
from tenants.lifecycle import certificates
from tenants.membership import auditors, invitation_views, past_roster
from tenants.membership.stored import AuditorItem
from tenants.tenancy.context import MEMBER_ROLES, Role
from tenants.tenancy.request import TenantRequest, actor_of, refusal_told


class EndForm(forms.Form):
    """Take the last day of an access, in the reader's zone; `ends_at` is its end once the form is valid."""

    until = forms.DateField(
        label=gettext_lazy("Last day"),
        help_text=gettext_lazy("The access ends by itself when this day ends in your time zone. At most 90 days."),
        error_messages={"invalid": gettext_lazy("Enter a day."), "required": gettext_lazy("Enter a day.")},
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        today = clock.today(locales.current().zone)
        self.fields["until"].initial = today + timedelta(days=30)
        last = locales.current().local(clock.now() + auditors.LONGEST).date() - timedelta(days=1)
        self.fields["until"].widget.attrs |= {"min": f"{today}", "max": f"{last}"}

    @property
    def ends_at(self) -> datetime:
        return clock.day_ends(self.cleaned_data["until"], locales.current().zone)


class InviteAuditorForm(EndForm):
    """Take who is invited as an auditor, and why."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=auditors.NAME_LIMIT)
    email = forms.EmailField(label=gettext_lazy("E-mail"), max_length=254)
    purpose = forms.CharField(
        label=gettext_lazy("Purpose"),
        max_length=auditors.PURPOSE_LIMIT,
        help_text=gettext_lazy("The auditor and the audit trail are told, such as “ISO 27001, yearly audit”."),
    )
    field_order = ("name", "email", "purpose", "until")


MOST_VERIFIED: Final = 20_000  # rows that are read for one click; a longer trail is verified from its export
_VISITS: Final = 5  # of operators in the review


@for_auditors
@member(Role.OWNER)
@on_get(get="auditor", query="audit chain, audit row", trips=4, reads=16)
def evidence(request: TenantRequest) -> HttpResponse:
    """Show where the audit chain ends, the keys, and what can be downloaded. Costs two Queries at the same time, and
    with them a GetItem of an auditor's own access."""
    return _evidence(request)


def _evidence(request: TenantRequest, verified: chain.Verified | None = None) -> HttpResponse:
    now, tenant = clock.now().replace(microsecond=0), request.tenant
    reads: list[Any] = [partial(chain.ends_of, tenant.tenant_id), partial(chain.head_of, tenant.repository, now)]
    if tenant.is_auditor:
        reads.append(partial(auditors.find, tenant, tenant.user_id))
    ends, head, *own = fan_out(reads)
    rows = sum(count for count, _hash in ends.values())
    page: dict[str, Any] = {
        "own": _shown(own[0]) if own else None,
        "rows": rows,
        "head": head.text,
        "verified": verified,
        "can_verify": rows <= MOST_VERIFIED,
        "keys": list(certificates.known_keys()),
        "script_digest": _script_digest(),
        "published_at": settings.KEYS_PUBLISHED_AT,
        "is_development_key": certificates.is_development_key(),
        "command": f"python3 {audit_export.SCRIPT.name} pooldesk-keys.json evidence-{tenant.slug}-*.zip",
        "as_of": now,
    }
    return render(request, "auditing/evidence.html", page)


@cache
def _script_digest() -> str:
    return hashlib.sha256(audit_export.SCRIPT.read_bytes()).hexdigest()


@open_while_closing
@for_auditors
@member(Role.OWNER)
@on_post(get="auditor", query="audit chain, audit row", write="audit row", trips=8, reads=35, writes=10)
@heavy
def verify(request: TenantRequest) -> HttpResponse:
    """Read the whole trail, compare it with the ends of the chain, and show what was found."""
    tenant = request.tenant
    if sum(count for count, _hash in chain.ends_of(tenant.tenant_id).values()) > MOST_VERIFIED:
        messages.warning(request, _("This audit trail is too long to be verified here. Verify its export instead."))
        return redirect("tenants:evidence")
    verified = chain.verify(tenant.tenant_id)
    after = {"entries": str(verified.rows), "faults": str(len(verified.findings)), "fingerprint": verified.fingerprint}
    about = (tenant.tenant_id, AuditAction.TRAIL_VERIFIED, actor_of(request), "export", "audit", "the audit trail")
    page = _evidence(request, verified)  # with the entries that were read, before the one about it
    recording.record(AuditEntry(*about, after=after))
    return page


@open_while_closing
@for_auditors
@member(Role.OWNER)
@on_post(query="audit chain", write="audit row", trips=8, reads=15, writes=20)
@heavy
def download(request: TenantRequest) -> HttpResponseBase:
    """Send the evidence as a zip while it is made. The export is in the audit trail, and so in the file."""
    try:
        content = audit_export.export(request.tenant, by=actor_of(request))
    except Conflict:
        messages.error(request, _("This installation has no key to sign evidence with. Ask its operator to set one."))
        return redirect("tenants:evidence")
    name = f"evidence-{request.tenant.slug}-{clock.now():%Y%m%d-%H%M%S}.zip"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingHttpResponse(content, content_type="application/zip", headers=headers)


@for_auditors
@member(Role.OWNER)
@on_get(
    query="API key, audit row, audit rows by object, auditor, member",
    trips=5,
    reads=60,
    room="10 members, each with 100 rows of the trail",
)
@heavy_to_read
def review(request: TenantRequest) -> HttpResponse:
    """Show who may do what, since when and by whom; with `at`, who was a member at that moment."""
    tenant, asked, problem = request.tenant, request.GET.get("at", ""), ""
    page: dict[str, Any] = {"asked": asked, "after": request.GET.get("after", "")}
    at = clock.stamp()
    if asked:
        try:
            at = moments.moment(asked)
            page["people"] = [one for one in past_roster.at(tenant, at) if one.then]
        except Invalid as error:
            problem = error.message
    else:
        found = access_review.page(tenant, after=request.GET.get("after"))
        page |= {
            "members": found.members,
            "next_url": f"?{urlencode({'after': found.next})}" if found.next else None,
            "auditors": [
                {
                    **_shown(one.item),
                    "has_second_factor": one.has_second_factor,
                    "entered_at": one.entered_at,
                    "all_read": one.all_read,
                }
                for one in found.auditors
            ],
            "roles": MEMBER_ROLES[::-1],
            "keys": found.keys,
            "visits": found.visits[:_VISITS],
            "parse": clock.parse,
        }
    page |= {"problem": problem, **moments.page(at)}
    return render(request, "auditing/review.html", page, status=400 if problem else 200)


def _shown(item: AuditorItem) -> dict[str, Any]:
    return {
        "id": item.user_id,
        "name": item.name,
        "email": item.email,
        "purpose": item.purpose,
        "by": item.invited_by_name,
        "begun_at": clock.parse(item.begun_at),
        "ends_at": clock.parse(item.ends_at),
        "is_over": auditors.is_over(item),
    }


@in_person
@member(Role.OWNER)
@on_get(get="member", query="auditor, invitation, members by name, unreached invitation", trips=3, reads=15)
@on_post(
    get="address, member, suppressed address",
    query="auditor, invitation, members by name, unreached invitation",
    write="attempts, audit row, invitation, invitation link, invited, membership",
    trips=9,
    reads=15,
    writes=55,
)
def auditors_page(request: TenantRequest) -> HttpResponse:
    """Show who is an auditor, who is invited, and the form that invites. Costs two Queries at the same time."""
    form = InviteAuditorForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        chosen = form.cleaned_data
        with told_in(form):
            sent = auditors.invite(
                request.tenant,
                name=chosen["name"],
                address=chosen["email"],
                purpose=chosen["purpose"],
                until=form.ends_at,
                by=actor_of(request),
                write=partial(invitation_views.write_mail, request),
            )
            invitation_views.send_mails(request, [sent])
            return redirect("tenants:auditors")
    reads: list[Any] = [
        partial(auditors.listed, request.tenant.repository),
        partial(invitation_views.pending, request.tenant),
    ]
    listed, pending = fan_out(reads)
    page = {
        "form": form,
        "end_form": EndForm(auto_id=False),
        "auditors": [_shown(one) for one in listed],
        "pending": [one for one in pending if one["role"] is Role.AUDITOR],
        "kept_days": auditors.KEPT.days,
    }
    return render(request, "auditing/auditors.html", page, status=422 if form.is_bound else 200)


@in_person
@member(Role.OWNER)
@on_post(get="auditor", write="audit row, auditor, membership", trips=6, reads=10, writes=30)
def extend(request: TenantRequest, user: str) -> HttpResponse:
    """Give an access another end."""
    form = EndForm(request.POST)
    auditors.find(request.tenant, user)
    with refusal_told(request, Conflict, Invalid):
        if not form.is_valid():
            raise Invalid(" ".join(map(str, form.errors["until"])))
        item = auditors.extend(request.tenant, user_id=user, until=form.ends_at, by=actor_of(request))
        messages.success(request, _("The access of %(name)s has another end now.") % {"name": item.name})
    return redirect("tenants:auditors")


@in_person
@open_while_closing
@member(Role.OWNER)
@on_post(get="auditor", write="audit row, auditor, membership", trips=8, reads=10, writes=40)
def end(request: TenantRequest, user: str) -> HttpResponse:
    """End an access at once."""
    with refusal_told(request, Conflict):
        item = auditors.end(request.tenant, user_id=user, by=actor_of(request))
        messages.success(request, _("The access of %(name)s has ended.") % {"name": item.name})
    return redirect("tenants:auditors")


@in_person
@open_while_closing
@for_auditors
@member(Role.OWNER)
@on_post(get="auditor", write="audit row, auditor, membership", trips=8, reads=10, writes=40)
def end_own(request: TenantRequest) -> HttpResponse:
    """Let an auditor end the own access."""
    with refusal_told(request, Conflict):
        auditors.end(request.tenant, user_id=request.tenant.user_id, by=actor_of(request))
        messages.success(request, _("Your access to %(desk)s has ended.") % {"desk": request.tenant.name})
        return redirect("tenants:pick")
    return redirect("tenants:evidence")


@public
@on_get()
def public_keys(request: HttpRequest) -> HttpResponse:
    """Send the public keys of what this installation signs, by their ids, as `certificate_keys` prints them."""
    found = certificates.known_keys()
    if not found:
        raise NotFound(_("This installation signs nothing: it has no key."))
    return HttpResponse(certificates.write_keys(found) + "\n", content_type="application/json")


@public
@on_get()
def script(request: HttpRequest) -> HttpResponse:
    """Send the script that verifies evidence."""
    headers = {"Content-Disposition": f'attachment; filename="{audit_export.SCRIPT.name}"'}
    return HttpResponse(audit_export.SCRIPT.read_bytes(), content_type="text/x-python; charset=utf-8", headers=headers)
