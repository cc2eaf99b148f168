"""The pages of one ticket: create it, read it, comment on it, learn that others changed it. What changes its fields is
in change_views.py."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from portal import clock
from portal.errors import Conflict, Invalid
from portal.web.access import get_or_post, member
from tenants.lifecycle import desk_settings
from tenants.tenancy.request import TenantRequest
from tenants.tenancy.roles import Role
from tickets.desk import commenting, creating, summaries, ticket_presenters, timelines
from tickets.desk.forms import CommentForm, NewTicketForm
from tickets.desk.people_views import people_choices
from tickets.desk.ticket_presenters import ticket_url
from tickets.ticket.fields import STATUS, Status


@member(Role.AGENT)
@get_or_post
def new(request: TenantRequest) -> HttpResponse:
    preset = {"priority": desk_settings.default_value(request.tenant, "ticket_priority")}
    form = NewTicketForm(request.POST or None, initial=preset, people=people_choices(request))
    if request.method == "POST" and form.is_valid():
        try:
            number = creating.create(request.tenant, **form.values, request_id=form.cleaned_data["request_id"])
        except Invalid as error:
            form.add_error(error.field if error.field in form.fields else None, error.message)
        else:
            messages.success(request, f"Ticket #{number} created.")
            return redirect("tickets:ticket", number)
    status = 422 if form.is_bound else 200
    return render(request, "tickets/form.html", {"form": form, "ticket": None}, status=status)


@member(Role.VIEWER)
@require_safe
def ticket(request: TenantRequest, number: int) -> HttpResponse:
    return _ticket_page(request, number, None)


def _ticket_page(request: TenantRequest, number: int, form: CommentForm | None, status: int = 200) -> HttpResponse:
    """Show the ticket with this form, or with an empty one for None; beside the form what came since `seen_at`."""
    before = request.GET.get("before")
    stored = timelines.ticket(request.tenant, number, before=before)
    context = ticket_presenters.ticket_page(request.tenant, stored, is_latest=before is None)
    if form is None:
        form = CommentForm(initial={"seen": stored.summary.status})
    else:
        since = form.cleaned_data.get("seen_at") or context["seen_at"]
        context["news"] = [e for e in context["activity"] if clock.stamp(e.at) > since]
    return render(request, "tickets/ticket.html", context | {"comment_form": form}, status=status)


@member(Role.AGENT)
@require_POST
def comment(request: TenantRequest, number: int) -> HttpResponse:
    form = CommentForm(request.POST)
    if not form.is_valid():
        return _ticket_page(request, number, form, status=422)
    then = request.POST.get("then")
    data = form.cleaned_data
    try:
        before = commenting.comment(
            request.tenant,
            number,
            body=data["body"],
            internal=data["internal"],
            then=STATUS.clean(then) if then else None,
            seen=data["seen_at"] if clock.is_stamp(data["seen_at"]) else "",
            request_id=data["request_id"],
        )
    except (Invalid, Conflict) as error:
        form.add_error("body", error.message)
        return _ticket_page(request, number, form, status=422 if isinstance(error, Invalid) else 409)
    if data["seen"] and data["seen"] != before.status and not then:
        what = "note" if data["internal"] else "comment"
        messages.warning(
            request,
            f"While you were writing, the status changed from {Status(data['seen']).label} to "
            f"{Status(before.status).label}. Your {what} was added; it left the status as it is.",
        )
    return redirect(ticket_url(number) + "#latest")


@member(Role.VIEWER)
@require_safe
def ticket_updates(request: TenantRequest, number: int) -> HttpResponse:
    """Answer with what came since an open page of a ticket was read, or with nothing where that is `shown` already."""
    summary, seen = summaries.read(request.tenant, number, consistent=False), request.GET.get("seen", "")
    if request.GET.get("shown", seen) >= summaries.updated_at(request.tenant, summary):
        return HttpResponse(status=204)
    entries = timelines.news(request.tenant, number, seen=seen)
    return render(request, "tickets/_news.html", ticket_presenters.news(request.tenant, summary, entries, seen))
