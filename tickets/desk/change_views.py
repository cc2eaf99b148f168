"""Change the fields of a ticket, and show the page that shows two versions where two people changed one field."""

from __future__ import annotations

from typing import Final

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from portal.errors import Invalid
from portal.web.access import get_or_post, member
from tenants.membership import members
from tenants.tenancy.request import TenantRequest
from tenants.tenancy.roles import Role
from tickets.desk import changing, conflict_presenters, summaries, ticket_presenters
from tickets.desk.changing import EditConflict, Wishes
from tickets.desk.forms import ChangeForm, TicketForm
from tickets.desk.people_views import people_page

_INCOMPLETE: Final = "This change is incomplete. Reload the ticket and try again."


@member(Role.AGENT)
@get_or_post
def edit(request: TenantRequest, number: int) -> HttpResponse:
    if request.method != "POST":
        summary = summaries.read(request.tenant, number)
        initial = ticket_presenters.editable(summary, summaries.read_description(request.tenant, number))
        context = {"form": TicketForm(initial=initial), "ticket": ticket_presenters.listed(request.tenant, summary)}
        return render(request, "tickets/form.html", context)
    form = TicketForm(request.POST)
    if form.is_valid():
        try:
            changing.edit(request.tenant, number, version=form.cleaned_data["version"] or 0, **form.values)
        except EditConflict as conflict:
            return _conflict_page(request, conflict, form)
        except Invalid as error:
            form.add_error(None, error.message)
        else:
            messages.success(request, "Changes saved.")
            return redirect("tickets:ticket", number)
    stored = ticket_presenters.listed(request.tenant, summaries.read(request.tenant, number))
    return render(request, "tickets/form.html", {"form": form, "ticket": stored}, status=422)


@member(Role.AGENT)
@require_POST
def change(request: TenantRequest, number: int) -> HttpResponse:
    """Make a quick change of fields that have a few values, such as status or priority."""
    form = ChangeForm(request.POST)
    if not form.is_valid() or not form.values:
        raise Invalid(_INCOMPLETE)
    return _attempt(request, number, form, Wishes(**form.values))


@member(Role.AGENT)
@get_or_post
def assign(request: TenantRequest, number: int) -> HttpResponse:
    if request.method != "POST":
        stored = summaries.read(request.tenant, number)
        return people_page(request, {"ticket": ticket_presenters.listed(request.tenant, stored)})
    # Without a name it is not "nobody": a request that lost a field must not take a ticket from somebody.
    form = ChangeForm(request.POST)
    if not form.is_valid() or not form.cleaned_data["resolver"]:
        raise Invalid(_INCOMPLETE)
    who = form.cleaned_data["resolver"]
    return _attempt(request, number, form, Wishes(resolver={"me": request.tenant.user_id, "none": ""}.get(who, who)))


def _attempt(request: TenantRequest, number: int, form: ChangeForm, wishes: Wishes) -> HttpResponse:
    try:
        changing.change(request.tenant, number, wishes, version=form.cleaned_data["version"])
    except EditConflict as conflict:
        return _conflict_page(request, conflict, form)
    except Invalid as error:
        messages.error(request, error.message)
    return redirect("tickets:ticket", number)


def _conflict_page(request: TenantRequest, conflict: EditConflict, form: TicketForm | ChangeForm) -> HttpResponse:
    """Show both versions side by side, and the person's own ready to be sent again on top of the newer one."""
    data = request.POST.copy()
    data["version"] = str(int(conflict.stored.version))
    if isinstance(form, TicketForm):
        conflict.description = summaries.read_description(request.tenant, int(conflict.stored.number))
        for name, value in conflict_presenters.left_alone(form, conflict).items():
            data[name] = value
        form = form.again(data)
    mine = conflict_presenters.sent_texts(form) or {"resolver": _person(request, form.cleaned_data["resolver"])}
    theirs = conflict_presenters.stored_texts(conflict.stored, conflict.description)
    context = conflict_presenters.conflict_page(request.tenant, conflict, mine=mine, theirs=theirs)
    return render(
        request, "tickets/conflict.html", context | {"form": form.again(data), "action": request.path}, status=409
    )


def _person(request: TenantRequest, who: str) -> str:
    if who in ("", "none"):
        return "Unassigned"
    if who in ("me", request.tenant.user_id):
        return request.tenant.user_name
    person = members.member(request.tenant.repository, who)
    return person.name if person else "A former member"
