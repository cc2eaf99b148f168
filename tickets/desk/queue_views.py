"""The queue, and what is done with many of its tickets at once."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST, require_safe

from portal.errors import Invalid
from portal.plain_text import amount
from portal.web.access import member
from portal.web.heavy_work import heavy
from tenants.tenancy.request import TenantRequest
from tenants.tenancy.roles import Role
from tickets.desk import bulk, filter_presenters, lists, queue_presenters
from tickets.desk.bulk import BulkRefused
from tickets.desk.filter_presenters import QueueAddress
from tickets.desk.summaries import TicketState
from tickets.ticket.fields import STATUS, Status

HANDFUL = 5  # as many are closed together without a question


@member(Role.VIEWER)
@require_safe
def queue(request: TenantRequest) -> HttpResponse:
    params = request.GET.dict()
    try:
        if address := filter_presenters.tidied(params):
            return redirect(address)
        context = queue_presenters.queue_page(request.tenant, QueueAddress.of(params), params.get("after", ""))
    except Invalid as error:
        context = queue_presenters.refused_page(request.tenant, params, error)
        return render(request, "tickets/queue.html", context, status=400)
    return render(request, "tickets/queue.html", context)


@member(Role.VIEWER)
@require_safe
def queue_updates(request: TenantRequest) -> HttpResponse:
    """Tell whether an open page of the queue is out of date: nothing, or a notice that offers to load it again."""
    address, told = QueueAddress.of(request.GET.dict()), request.GET.get("told", "0")
    count = lists.changed_since(
        request.tenant,
        status=address.statuses,
        resolver=address.resolver(request.tenant),
        only=address.only,
        seen=request.GET.get("seen", ""),
    )
    if str(count) == told:
        return HttpResponse(status=204)
    again = request.GET.copy()
    again["told"] = str(count)
    many = f"{lists.NEWS_LIMIT} or more" if count >= lists.NEWS_LIMIT else str(count)
    text = f"{many} ticket{'s' if count > 1 else ''} in this list {'have' if count > 1 else 'has'} been updated."
    label = "Show them" if count > 1 else "Show it"
    context = {"text": text, "label": label, "url": address.url(), "updates_url": f"{request.path}?{again.urlencode()}"}
    return render(request, "tickets/_updates.html", context)


@member(Role.AGENT)
@require_POST
@heavy
def bulk_change(request: TenantRequest) -> HttpResponse:
    """Set all selected tickets of a list to one status, or none of them. Closing many is asked about first."""
    back = _back(request)
    to = STATUS.clean(request.POST.get("to", ""))
    try:
        selected = [TicketState.parse(text) for text in request.POST.getlist("tickets")]
        many = HANDFUL < len(selected) <= bulk.limit(request.tenant)
        if to is Status.CLOSED and many and "confirmed" not in request.POST:
            context = {"to": to, "tickets": queue_presenters.selection(selected), "back": back}
            return render(request, "tickets/bulk_confirm.html", context, status=428)
        change = bulk.change_status(request.tenant, selected, to=to)
    except BulkRefused as refused:
        context = queue_presenters.refused_change(refused, to=to, back=back)
        return render(request, "tickets/bulk_refused.html", context, status=409)
    except Invalid as error:
        messages.error(request, error.message)
        return redirect(back)
    text = f"{amount(change.count, 'ticket is', 'tickets are')} now {to.value}."
    # The notice of such a message has a button that takes the change back; see templates/portal/_notice.html.
    messages.success(request, text, extra_tags=change.receipt)
    return redirect(back)


@member(Role.AGENT)
@require_POST
@heavy
def bulk_undo(request: TenantRequest) -> HttpResponse:
    """Take back a bulk change, for all its tickets that nobody has changed since."""
    try:
        taken = bulk.take_back(request.tenant, request.POST.get("receipt", ""))
    except Invalid:
        messages.error(request, "This change can no longer be undone.")
        return redirect(_back(request))
    if taken.count:
        moved = "ticket is back in its" if taken.count == 1 else "tickets are back in their"
        messages.success(request, f"{taken.count} {moved} previous status.")
    if taken.left == 1:
        messages.warning(request, "1 ticket has been changed again since and was left as it is.")
    elif taken.left:
        messages.warning(
            request,
            f"{amount(taken.left, 'ticket has', 'tickets have')} been changed again since and stayed as before.",
        )
    return redirect(_back(request))


def _back(request: TenantRequest) -> str:
    url = request.POST.get("back", "")
    if url_has_allowed_host_and_scheme(url, allowed_hosts=None) and url.startswith("/"):
        return url
    return reverse("tickets:queue")
