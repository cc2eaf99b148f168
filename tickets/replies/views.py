"""Show how a desk sends mail, and let its admins change it, choose an address to send from, and check its domain."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import messages
from django.forms import Form
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal import clock
from portal.errors import Conflict, Invalid
from portal.web.access import member, on_get, on_post
from portal.web.conflicts import put_on_newer, status_of, told_in
from portal.web.heavy_work import heavy
from portal.web.locales import stored_text
from tenants.tenancy.context import Role, TenantContext
from tenants.tenancy.request import TenantRequest, actor_of, refusal_told
from tickets.replies import mail_settings, own_domain, ticket_links
from tickets.replies.forms import LinksForm, MailForm, SenderForm
from tickets.replies.mail_settings import MailSettings
from tickets.replies.own_domain import MISSING, OK, WARNING

_BADGES: Final = {
    OK: (gettext_noop("Found"), "answered"),
    MISSING: (gettext_noop("Missing"), "dead"),
    WARNING: (gettext_noop("Look at this"), "failed"),
}


def domain(tenant: TenantContext, settings: MailSettings) -> dict[str, Any] | None:
    """Return the records that the desk's own domain needs and what the last check found; None without a domain."""
    if not settings.domain:
        return None
    told = settings.findings
    return {
        "name": settings.domain,
        "sender": settings.domain_sender,
        "is_proved": bool(settings.domain_proved_at),
        "checked_at": clock.parse(settings.domain_checked_at) if settings.domain_checked_at else None,
        "records": [
            {"kind": one.kind, "host": one.host, "value": one.value, "why": one.why, "is_needed": one.is_needed}
            | _finding(told.get(one.name, ""))
            for one in own_domain.records(tenant, settings)
        ],
        "others": [_finding(told[name]) | {"name": label} for name, label in _OTHERS.items() if name in told],
        "unchecked": own_domain.unchecked(),
    }


_OTHERS: Final = {"ses": "Amazon SES", "spf": "SPF", "dmarc": "DMARC"}


def _finding(text: str) -> dict[str, Any]:
    state, _space, sentence = text.partition(" ")
    label, kind = _BADGES.get(state, (gettext_noop("Not checked yet"), ""))
    return {"state": _(label), "badge": kind, "finding": stored_text(sentence)}


_PAGE = "tickets:mail_settings"


@member(Role.ADMIN)
@on_get(get="mail settings", trips=1, reads=2)
@on_post(get="mail settings", write="audit row, mail settings, membership", trips=5, reads=3, writes=15)
def settings_page(request: TenantRequest) -> HttpResponse:
    """Show the settings, by one GetItem, or store them."""
    if request.method != "POST":
        settings = mail_settings.read(request.tenant)
        return _page(request, settings, MailForm.of(settings))
    form = MailForm(request.POST)
    if form.is_valid():
        version = form.cleaned_data["version"]
        with told_in(form):
            mail_settings.change(request.tenant, values=form.values, version=version, by=actor_of(request))
            messages.success(request, _("Settings saved."))
            return redirect(_PAGE)
    settings = mail_settings.read(request.tenant)
    put_on_newer(form, MailForm.of(settings))
    return _page(request, settings, form, status=status_of(form))


_changes_mail_settings: Final = on_post(
    get="mail settings", write="audit row, mail settings, membership", trips=5, reads=3, writes=15
)


@member(Role.ADMIN)
@_changes_mail_settings
def choose_sender(request: TenantRequest) -> HttpResponse:
    """Take the address that the desk sends from."""
    form = SenderForm(request.POST)
    if form.is_valid():
        sender, version = form.cleaned_data["domain_sender"], form.cleaned_data["version"]
        with told_in(form):
            own_domain.choose(request.tenant, sender=sender, version=version, by=actor_of(request))
            if sender.strip():
                messages.success(request, _("Add these records to your domain, then check it."))
            else:
                messages.success(request, _("Letters leave from the address of the desk."))
            return redirect(_PAGE)
    settings = mail_settings.read(request.tenant)
    put_on_newer(form, SenderForm.of(settings))
    return _page(request, settings, MailForm.of(settings), sender_form=form, status=status_of(form))


@member(Role.ADMIN)
@on_post(get="mail settings", write="audit row, mail settings, membership", trips=6, reads=5, writes=15)
@heavy  # it waits for name servers that the desk has named
def check_domain(request: TenantRequest) -> HttpResponse:
    """Look at the domain's records now."""
    with refusal_told(request, Invalid, Conflict):
        settings = own_domain.check(request.tenant, by=actor_of(request))
        if settings.domain_proved_at:
            messages.success(
                request, _("Letters leave from %(domain_sender)s now.") % {"domain_sender": settings.domain_sender}
            )
        else:
            messages.warning(request, _("The domain is not set up yet. The findings are beside the records."))
        return redirect(_PAGE)
    return redirect(_PAGE)


@member(Role.ADMIN)
@_changes_mail_settings
def end_all_links(request: TenantRequest) -> HttpResponse:
    """End all links of the desk's requesters to their tickets."""
    form = LinksForm(request.POST)
    with refusal_told(request, Conflict):
        version = form.cleaned_data["version"] if form.is_valid() else -1
        mail_settings.revoke_links(request.tenant, version=version, by=actor_of(request))
        messages.success(request, _("All links to tickets are ended. The next letter to each requester has a new one."))
    return redirect(_PAGE)


@member(Role.AGENT)
@on_post(get="ticket", write="ticket", trips=4, reads=2, writes=20)
def end_links_of_ticket(request: TenantRequest, number: int) -> HttpResponse:
    ticket_links.revoke(request.tenant, number)
    messages.success(request, _("The requester's links to this ticket are ended. The next letter has a new one."))
    return redirect("tickets:ticket", number)


def _page(
    request: TenantRequest, settings: MailSettings, form: Form, *, sender_form: Form | None = None, status: int = 200
) -> HttpResponse:
    page = {
        "form": form,
        "sender_form": sender_form or SenderForm.of(settings),
        "own_address": mail_settings.own_address(request.tenant.slug),
        "version": settings.version,
        "domain": domain(request.tenant, settings),
    }
    return render(request, "replies/settings.html", page, status=status)
