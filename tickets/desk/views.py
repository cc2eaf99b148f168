"""The queue, the ticket and what can be done with them. Rules are in lifecycle.py, bulk.py and queries.py."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from portal.errors import Invalid
from portal.web.access import member
from tenants.membership import members
from tenants.provisioning import defaults
from tenants.tenancy.request import TenantRequest
from tenants.tenancy.roles import Role
from tickets.dashboards import dashboard, presenters
from tickets.desk import bulk, lifecycle, queries, queue_presenters, ticket_presenters
from tickets.desk.forms import ChangeForm, CommentForm, TicketForm
from tickets.desk.lifecycle import EditConflict
from tickets.ticket import fields
from tickets.ticket.fields import Status
from tickets.ticket.items import SummaryItem

get_or_post = require_http_methods(["GET", "HEAD", "POST"])


@member(Role.VIEWER)
@require_safe
def queue(request: TenantRequest) -> HttpResponse:
    params = request.GET.dict()
    if address := queue_presenters.tidied(params):
        return redirect(address)
    asked = queue_presenters.Asked.of(params)
    context = queue_presenters.context(request.tenant, asked, params.get("after", ""))
    return render(request, "tickets/queue.html", context)


@member(Role.VIEWER)
@require_safe
def people(request: TenantRequest) -> HttpResponse:
    """Whose tickets to list: the members of the tenant, as links to the queue."""
    asked = queue_presenters.Asked.of(request.GET.dict())
    return _people(request, lambda m: asked.url(resolver=m.id, name=m.name), {"ticket": None})


def _people(request: TenantRequest, link: Any, context: dict[str, Any], status: int = 200) -> HttpResponse:
    search = request.GET.get("q", "").strip()
    found = [
        {
            "id": m.id,
            "name": m.name,
            "role_label": m.role.label,
            "is_me": m.id == request.tenant.user_id,
            "url": link(m) if link else None,
        }
        for m in members.members_of(request.tenant.repository)
        if m.role.at_least(Role.AGENT) and search.casefold() in f"{m.name} {m.email}".casefold()
    ]
    template = "tickets/_people.html" if "HX-Request" in request.headers else "tickets/assign.html"
    return render(request, template, context | {"people": found, "q": search}, status=status)


@member(Role.AGENT)
@get_or_post
def new(request: TenantRequest) -> HttpResponse:
    preset = {"priority": defaults.value(request.tenant, "ticket_priority")}
    form = TicketForm(request.POST or None, initial=preset)
    if request.method == "POST" and form.is_valid():
        number = lifecycle.create(request.tenant, **form.values, request_id=form.cleaned_data["request_id"])
        messages.success(request, f"Ticket #{number} is open.")
        return redirect("tickets:ticket", number)
    status = 422 if form.is_bound else 200
    return render(request, "tickets/form.html", {"form": form, "ticket": None}, status=status)


@member(Role.VIEWER)
@require_safe
def ticket(request: TenantRequest, number: int) -> HttpResponse:
    return _ticket_page(request, number, CommentForm())


def _ticket_page(request: TenantRequest, number: int, form: CommentForm, status: int = 200) -> HttpResponse:
    tenant = request.tenant
    before = request.GET.get("before")
    found = queries.ticket(tenant, number, before=before)
    here = reverse("tickets:ticket", args=[number])
    context = {
        "ticket": ticket_presenters.row(tenant, found.summary, description=found.description),
        "activity": [ticket_presenters.entry(a) for a in found.activity],
        "earlier_url": f"{here}?before={found.earlier}" if found.earlier else None,
        "latest_url": here if before else None,
        "status_moves": ticket_presenters.status_moves(found.summary),
        "priorities": [
            {"value": p.value, "label": p.label, "current": p.value == found.summary.priority} for p in fields.Priority
        ],
        "comment_form": form,
        "can_write": tenant.is_agent,
        "can_see_notes": tenant.is_agent,
        "me_id": tenant.user_id,
    }
    return render(request, "tickets/ticket.html", context, status=status)


@member(Role.AGENT)
@require_POST
def comment(request: TenantRequest, number: int) -> HttpResponse:
    form = CommentForm(request.POST)
    if form.is_valid():
        then = request.POST.get("then")
        try:
            lifecycle.comment(
                request.tenant,
                number,
                body=form.cleaned_data["body"],
                internal=form.cleaned_data["internal"],
                then=fields.status(then) if then else None,
                request_id=form.cleaned_data["request_id"],
            )
        except Invalid as error:
            form.add_error("body", error.message)
        else:
            return redirect(reverse("tickets:ticket", args=[number]) + "#latest")
    return _ticket_page(request, number, form, status=422)


@member(Role.AGENT)
@get_or_post
def edit(request: TenantRequest, number: int) -> HttpResponse:
    if request.method != "POST":
        summary = lifecycle.read(request.tenant, number)
        initial = _editable(summary, lifecycle.read_description(request.tenant, number))
        context = {"form": TicketForm(initial=initial), "ticket": ticket_presenters.row(request.tenant, summary)}
        return render(request, "tickets/form.html", context)
    form = TicketForm(request.POST)
    if form.is_valid():
        try:
            lifecycle.edit(request.tenant, number, version=form.cleaned_data["version"] or 0, **form.values)
        except EditConflict as conflict:
            return _conflict(request, conflict.stored, form)
        messages.success(request, "Saved.")
        return redirect("tickets:ticket", number)
    stored = ticket_presenters.row(request.tenant, lifecycle.read(request.tenant, number))
    return render(request, "tickets/form.html", {"form": form, "ticket": stored}, status=422)


def _editable(summary: SummaryItem, description: str) -> dict[str, Any]:
    return {
        "title": summary.title,
        "description": description,
        "priority": summary.priority,
        "tags": ", ".join(summary.tags),
        "version": int(summary.version),
    }


@member(Role.AGENT)
@require_POST
def change(request: TenantRequest, number: int) -> HttpResponse:
    """One of the quick changes: status or priority."""
    form = ChangeForm(request.POST)
    if not form.is_valid():
        raise Invalid("This change cannot be understood. Load the ticket again.")
    version = form.cleaned_data["version"]
    try:
        if form.cleaned_data["status"]:
            to = Status(form.cleaned_data["status"])
            lifecycle.change_status(request.tenant, number, to=to, version=version)
        elif form.cleaned_data["priority"]:
            priority = fields.Priority(form.cleaned_data["priority"])
            lifecycle.change_priority(request.tenant, number, to=priority, version=version)
    except EditConflict as conflict:
        return _conflict(request, conflict.stored, form)
    except Invalid as error:
        messages.error(request, error.message)
    return redirect("tickets:ticket", number)


@member(Role.AGENT)
@get_or_post
def assign(request: TenantRequest, number: int) -> HttpResponse:
    if request.method != "POST":
        stored = lifecycle.read(request.tenant, number)
        return _people(request, None, {"ticket": ticket_presenters.row(request.tenant, stored)})
    form = ChangeForm(request.POST)
    # Without a name it is not "nobody": a request that lost a field must not take a ticket from somebody.
    if not form.is_valid() or not form.cleaned_data["resolver"]:
        raise Invalid("This change cannot be understood. Load the ticket again.")
    who = form.cleaned_data["resolver"]
    resolver = {"me": request.tenant.user_id, "none": ""}.get(who, who)
    try:
        lifecycle.assign(request.tenant, number, to=resolver, version=form.cleaned_data["version"])
    except EditConflict as conflict:
        return _conflict(request, conflict.stored, form)
    except Invalid as error:
        messages.error(request, error.message)
    return redirect("tickets:ticket", number)


def _conflict(request: TenantRequest, stored: SummaryItem, form: TicketForm | ChangeForm) -> HttpResponse:
    """Both versions side by side, and the person's own ready to be sent again on top of the newer one."""
    number = int(stored.number)
    theirs: dict[str, str] = {
        "title": stored.title,
        "status": Status(stored.status).label,
        "priority": fields.Priority(stored.priority).label,
        "tags": ", ".join(stored.tags),
        "resolver": stored.resolver_name or "Unassigned",
    }
    if isinstance(form, TicketForm):
        theirs["description"] = lifecycle.read_description(request.tenant, number)
    mine = _mine(request, form)
    last = queries.last_change(request.tenant, number)
    data = request.POST.copy()
    data["version"] = str(int(stored.version))
    context = {
        "ticket": ticket_presenters.row(request.tenant, stored),
        "fields": [
            {
                "name": name,
                "label": lifecycle.LABELS[name],
                "mine": mine[name],
                "theirs": theirs[name],
                "differs": mine[name] != theirs[name],
            }
            for name in lifecycle.LABELS
            if name in mine
        ],
        "by": last.author_name if last else "",
        "when_changed": ticket_presenters.entry(last).at if last else None,
        "form": form.again(data),
        "action": request.path,
    }
    return render(request, "tickets/conflict.html", context, status=409)


def _mine(request: TenantRequest, form: TicketForm | ChangeForm) -> dict[str, str]:
    data = form.cleaned_data
    if isinstance(form, TicketForm):
        priority = fields.Priority(data["priority"]).label
        tags = ", ".join(data["tags"])
        return {"title": data["title"], "description": data["description"], "priority": priority, "tags": tags}
    if data["status"]:
        return {"status": Status(data["status"]).label}
    if data["priority"]:
        return {"priority": fields.Priority(data["priority"]).label}
    who = data["resolver"]
    if who == "none":
        return {"resolver": "Unassigned"}
    if who in ("me", request.tenant.user_id):
        return {"resolver": request.tenant.user_name}
    person = members.member(request.tenant.repository, who)
    return {"resolver": person.name if person else "Somebody who is not a member"}


@member(Role.AGENT)
@require_POST
def bulk_change(request: TenantRequest) -> HttpResponse:
    """The selected tickets of a list, all to one status or none."""
    back = _back(request)
    to = fields.status(request.POST.get("to", ""))
    try:
        selected = [bulk.Seen.parse(text) for text in request.POST.getlist("tickets")]
        count = bulk.change_status(request.tenant, selected, to=to)
    except bulk.BulkRefused as refused:
        context = {
            "to": to.value,
            "to_label": to.label,
            "refused": [
                {
                    "number": r.number,
                    "title": r.title,
                    "url": reverse("tickets:ticket", args=[r.number]),
                    "reason": r.reason,
                }
                for r in refused.refusals
            ],
            "kept": [{"number": s.number, "select_value": str(s)} for s in refused.kept],
            "back": back,
        }
        return render(request, "tickets/bulk_refused.html", context, status=409)
    except Invalid as error:
        messages.error(request, error.message)
        return redirect(back)
    messages.success(request, f"{count} ticket{'s are' if count != 1 else ' is'} {to.value} now.")
    return redirect(back)


def _back(request: TenantRequest) -> str:
    url = request.POST.get("back", "")
    if url_has_allowed_host_and_scheme(url, allowed_hosts=None) and url.startswith("/"):
        return url
    return reverse("tickets:queue")


@member(Role.AGENT)
@require_safe
def dashboard_page(request: TenantRequest) -> HttpResponse:
    """The numbers of the tenant for those who run it; for agents their own."""
    tenant = request.tenant
    if not tenant.is_admin:
        return render(request, "tickets/share.html", presenters.share(tenant, dashboard.share(tenant)))
    days = request.GET.get("days", "")
    found = dashboard.read(tenant, days=next((n for n in dashboard.PERIODS if str(n) == days), dashboard.PERIODS[0]))
    return render(request, "tickets/dashboard.html", presenters.dashboard(tenant, found))
