"""Let owners export their desk: ask, watch, cancel, download. Rules are in export_requests.py."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext

from portal import clock
from portal.errors import Conflict, NotFound
from portal.web.access import in_person, member, on_get, on_post, open_while_closing
from portal.web.heavy_work import heavy
from tenants.sign_in import security_views
from tenants.tenancy.context import Role
from tenants.tenancy.request import TenantRequest, actor_of, is_confirmed, refusal_told
from tickets.attachments import attachments
from tickets.desk_export import export_requests


@member(Role.OWNER)
@on_get(get="export, file", trips=2, reads=15)
def export_page(request: TenantRequest) -> HttpResponse:
    """Show the last export and how far it is, at the cost of one GetItem, and unless one is being made the parts of the
    desk's files, at the cost of one BatchGetItem."""
    item = export_requests.last(request.tenant)
    is_running = export_requests.EXPORTS.goes_on(item)
    page = {
        "export": item,
        "is_running": is_running,
        "is_ready": export_requests.is_ready(item, tenant=request.tenant),
        "until": clock.parse(item.expires_at) if item is not None and item.expires_at else None,
        "begun": clock.parse(item.begun_at) if item is not None else None,
        "parts": [] if is_running else [part for part in attachments.parts(request.tenant) if part.count],
        "days": export_requests.KEPT_DAYS,
    }
    return render(request, "tickets/desk_export.html", page)


@open_while_closing
@in_person
@member(Role.OWNER)
@on_post(get="export", write="audit row, export, membership", trips=5, reads=3, writes=15)
def ask(request: TenantRequest) -> HttpResponse:
    """Ask for an export, once the person has proved a moment ago to be who they are."""
    if not is_confirmed(request):
        return security_views.ask_first(request)
    return _done(request, export_requests.ask, gettext("The export has begun. You get a mail when it is ready."))


@open_while_closing
@in_person
@member(Role.OWNER)
@on_post(get="export", write="audit row, export, membership", trips=5, reads=3, writes=15)
def cancel(request: TenantRequest) -> HttpResponse:
    """End the export that is being made."""
    return _done(request, export_requests.cancel, gettext("The export is being cancelled."))


@open_while_closing
@in_person
@member(Role.OWNER)
@on_post(get="export", write="audit row, membership", trips=5, reads=3, writes=12)
@heavy
def download(request: TenantRequest) -> HttpResponseBase:
    """Send the file as it is read, to an owner who has proved a moment ago to be who they are."""
    if not is_confirmed(request):
        return security_views.ask_first(request)
    with refusal_told(request, NotFound):
        item, content = export_requests.fetch(request.tenant, by=actor_of(request))
        name = f"{request.tenant.slug}-{item.begun_at[:10]}.zip"
        headers = {"Content-Disposition": f'attachment; filename="{name}"', "Content-Length": str(int(item.size))}
        return StreamingHttpResponse(content, content_type="application/zip", headers=headers)
    return redirect("tickets:desk_export")


@open_while_closing
@in_person
@member(Role.OWNER)
@on_post(get="file", write="audit row, membership", trips=5, reads=12, writes=12)
@heavy
def files(request: TenantRequest, part: str) -> HttpResponseBase:
    """Send the contents of a part of the desk's files as they are read, to an owner who has proved who they are."""
    export_requests.require_files(request.tenant, part)
    if not is_confirmed(request):
        return security_views.ask_first(request)
    content = export_requests.fetch_files(request.tenant, part, by=actor_of(request))
    headers = {"Content-Disposition": f'attachment; filename="{request.tenant.slug}-files-{part}.zip"'}
    return StreamingHttpResponse(content, content_type="application/zip", headers=headers)


def _done(request: TenantRequest, act: Callable[..., None], said: str) -> HttpResponse:
    with refusal_told(request, Conflict):
        act(request.tenant, by=actor_of(request))
        messages.success(request, said)
    return redirect("tickets:desk_export")
