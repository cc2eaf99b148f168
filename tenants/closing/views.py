"""Let owners close their desk, and undo it. Rules are in desk_closing.py."""

from __future__ import annotations

from functools import partial

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from portal.errors import Conflict
from portal.web.access import get_or_post, member, open_while_closing
from tenants.closing import closing_mails, desk_closing
from tenants.closing.forms import CloseForm
from tenants.tenancy.request import TenantRequest, actor_of
from tenants.tenancy.roles import Role


@member(Role.OWNER)
@get_or_post
def close(request: TenantRequest) -> HttpResponse:
    """Ask for the desk's name, then close it. Where it is closing already, the page offers the undo."""
    tenant = request.tenant
    form = CloseForm(request.POST or None, name=tenant.name)
    if request.method == "POST" and form.is_valid():
        try:
            desk_closing.close(
                tenant.tenant_id,
                by=actor_of(request),
                write=partial(closing_mails.to_owners, request=request),
                reason=form.cleaned_data["reason"],
                at_work=tenant,
            )
        except Conflict as error:
            form.add_error(None, error.message)
        else:
            messages.success(request, f"{tenant.name} is closed. Its owners have got a mail that says until when.")
            return redirect("tenants:close")
    page = {"form": form, "days": settings.CLOSING_DAYS}
    return render(request, "tenants/close.html", page, status=422 if form.is_bound else 200)


@open_while_closing
@member(Role.OWNER)
@require_POST
def reopen(request: TenantRequest) -> HttpResponse:
    """Undo the closing."""
    try:
        desk_closing.reopen(
            request.tenant.tenant_id,
            by=actor_of(request),
            write=partial(closing_mails.to_owners, request=request),
            at_work=request.tenant,
        )
    except Conflict as error:
        messages.error(request, error.message)
        return redirect("tenants:close")
    messages.success(request, f"{request.tenant.name} will not be deleted. Everybody can work as before.")
    return redirect("tenants:settings")
