"""Pages about files: where a browser begins an upload, and where people download."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from portal import plain_text
from portal.errors import Invalid, NotFound
from portal.plain_text import file_size
from portal.web.access import member, on_get, on_post
from portal.web.client_address import client_address
from portal.web.heavy_work import heavy
from tenants.sign_in import attempt_limits
from tenants.sign_in.attempt_limits import AttemptLimit
from tenants.tenancy.context import Role, TenantContext
from tenants.tenancy.request import TenantRequest
from tickets.attachments import attachments, downloads, presenters, previews, removing
from tickets.attachments.attachments import Upload

GUEST_FILES_OF_NETWORK: Final = 60  # that people outside begin in a window of SIGN_IN_WINDOW seconds
GUEST_FILES_OF_DESK: Final = 600

_Response = TypeVar("_Response", HttpResponse, StreamingHttpResponse)
# For every answer that leads to a file or is one: a browser runs nothing of it, whatever it takes it for.
_POLICY = "default-src 'none'; sandbox; frame-ancestors 'none'"


@member(Role.AGENT)
@on_post(get="file", write="file", trips=4, reads=12, writes=2)
def upload(request: TenantRequest) -> HttpResponse:
    """Answer with a signed form for one file of the name and size that are given."""
    return answer_upload(request, partial(attachments.begin, request.tenant))


def answer_upload(request: HttpRequest, begin: Callable[[str, int], Upload]) -> HttpResponse:
    """Answer as files.js expects it: with the form of the file that `begin` makes of a name and a size in bytes, or
    with the sentence of the Invalid that it raises."""
    size = request.POST.get("size", "")
    try:
        begun = begin(request.POST.get("name", ""), plain_text.whole_number(size, digits=15) or 0)
    except Invalid as error:
        return JsonResponse({"problem": error.message}, status=422)
    return JsonResponse(
        {
            "id": begun.file.id,
            "name": begun.file.name,
            "size": file_size(begun.file.size),
            "url": begun.form.url,
            "fields": begun.form.fields,
        }
    )


def answer_guest_upload(request: HttpRequest, desk: TenantContext, form_id: str) -> HttpResponse:
    """Answer somebody outside the desk with the form of a file, as `answer_upload` does.

    A file that becomes no part of a ticket is stored for a day. So each that is begun is counted, for the sender's
    network first, and for the desk where that lets it go on.
    """
    network = attempt_limits.network_of(client_address(request))
    for limit in (
        AttemptLimit("guest files, network", f"{desk.tenant_id} {network}", GUEST_FILES_OF_NETWORK),
        AttemptLimit("guest files, desk", desk.tenant_id, GUEST_FILES_OF_DESK),
    ):
        if attempt_limits.begin((limit,)).wait_minutes:
            problem = _("Many files came from your network or to this desk. Add it again in a quarter of an hour.")
            return JsonResponse({"problem": problem}, status=429)
    return answer_upload(request, partial(attachments.guest_form, desk, form_id))


@member(Role.VIEWER)
@on_get(get="file, ticket", trips=2, reads=2)
def file(request: TenantRequest, number: int, file_id: str) -> HttpResponse:
    response = HttpResponse(status=302)
    response["Location"] = downloads.address_of(request.tenant, number, file_id)
    return _guarded(response)


@member(Role.VIEWER)
@on_get(get="file, ticket", trips=2, reads=2)
def preview(request: TenantRequest, number: int, file_id: str) -> HttpResponse:
    response = HttpResponse(status=302)
    response["Location"] = previews.address_of(request.tenant, number, file_id)
    return _guarded(response)


@member(Role.VIEWER)
@on_post(query="ticket", trips=1, reads=8)
@heavy
def all_files(request: TenantRequest, number: int) -> StreamingHttpResponse:
    files = downloads.files_of(request.tenant, number)
    if not files:
        raise NotFound(_("This ticket has no files."))
    response = StreamingHttpResponse(downloads.zipped(request.tenant, files), content_type="application/zip")
    response["Content-Disposition"] = f'attachment; filename="ticket-{number}-files.zip"'
    return _guarded(response)


@member(Role.ADMIN)
@on_get(get="file", trips=1, reads=1)
@on_post(get="file, ticket", write="file, ticket", trips=6, reads=3, writes=15)
def remove(request: TenantRequest, number: int, file_id: str) -> HttpResponse:
    """Ask whether a file is to be removed from a ticket, and remove it."""
    if request.method == "POST":
        name = removing.remove(request.tenant, number, file_id)
        messages.success(request, _("%(name)s is removed.") % {"name": name})
        return redirect("tickets:ticket", number)
    found = downloads.file_of(request.tenant, number, file_id)
    return render(request, "tickets/file_remove.html", {"number": number, "name": found.name})


def _guarded(response: _Response) -> _Response:
    response["Content-Security-Policy"] = _POLICY
    response["X-Content-Type-Options"] = "nosniff"
    response["Cache-Control"] = "private, no-store"
    return response


@member(Role.ADMIN)
@on_get(get="file", trips=1, reads=12)
def usage(request: TenantRequest) -> HttpResponse:
    """Show what the files of the desk need: a part of the page Usage, and a page without JavaScript."""
    page = {"usage": attachments.usage(request.tenant), "limits": presenters.LIMITS}
    return render(request, "tickets/files_usage.html", page)
