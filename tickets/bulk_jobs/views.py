"""Change fields of selected tickets, or of all tickets of a list by a job; watch, cancel and undo such jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import chain
from typing import Any, Final

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from portal import plain_text
from portal.dynamo.client import alongside, fan_out
from portal.errors import Conflict, Forbidden, Invalid
from portal.web import locales
from portal.web.access import counted, member, on_get, on_post
from portal.web.conflicts import told_in
from portal.web.heavy_work import heavy
from tenants.membership import members
from tenants.membership.forms import offered_members
from tenants.membership.members import AtHand
from tenants.tenancy.context import Role, TenantContext
from tenants.tenancy.request import TenantRequest, actor_of
from tickets.bulk_jobs import bulk_requests, presenters
from tickets.bulk_jobs.bulk_requests import Job, ListedTickets
from tickets.bulk_jobs.forms import BulkEditForm
from tickets.custom_fields import definitions
from tickets.desk import many, ticket_presenters
from tickets.desk.changing import TicketState
from tickets.desk.queue_presenters import QueueAddress
from tickets.desk.views import back_address


@member(Role.AGENT)
@on_get(get="bulk job, member", query="members by name, noted tickets, tickets by status", trips=5, reads=30)
@on_post(
    get="bulk job, member, ticket",
    query="members by name, noted tickets, ticket, tickets by status",
    write="audit row, bulk job, membership, ticket",
    trips=9,
    reads=20,
    writes=12,
    per="ticket",
    each=(2, 2, 20),
)
@heavy
def edit(request: TenantRequest) -> HttpResponse:
    """Ask what to change of the selected tickets, or of all of a list, and have it done."""
    asked = QueryDict(request.POST.get("list", "")) if request.method == "POST" else request.GET
    try:
        selected = [TicketState.parse(text) for text in request.POST.getlist("tickets")]
        listed = None if request.method == "POST" and "list" not in request.POST else _listed(request, asked.dict())
    except Invalid as error:
        messages.error(request, error.message)
        return redirect(back_address(request))
    is_sent = "apply" in request.POST
    if listed is None and not selected:
        messages.error(request, _("Select tickets first."))
        return redirect(back_address(request))
    known = members.at_hand(request.tenant)
    people = offered_members(request.tenant, known)
    form = BulkEditForm(request.POST if is_sent else None, people=people, defined=definitions.of(request.tenant))
    if is_sent and form.is_valid() and form.edit is not None:
        with told_in(form):
            return _ask(request, listed, form) if listed else _change(request, selected, form)
    context = {"form": form, "back": presenters.list_url(listed.params) if listed else back_address(request)}
    context |= _about_list(request, listed, known) if listed else {"tickets": selected, "title": _titled(len(selected))}
    return render(request, "bulk_jobs/edit.html", context, status=422 if form.errors else 200)


def _listed(request: TenantRequest, params: dict[str, str]) -> ListedTickets:
    return ListedTickets.of(request.tenant, QueueAddress.of(params).params)


def _titled(count: int) -> str:
    return ngettext("Change %(num)s ticket", "Change %(num)s tickets", count) % {"num": locales.current().number(count)}


def _about_list(request: TenantRequest, listed: ListedTickets, known: AtHand) -> dict[str, Any]:
    count, is_more = bulk_requests.count(request.tenant, listed)
    title = ngettext("Change all %(num)s ticket", "Change all %(num)s tickets", count)
    if is_more:
        title = _("Change all more than %(num)s tickets")
    people = members.names_of(request.tenant.repository, known, [QueueAddress.of(dict(listed.params)).who])
    query = QueryDict(mutable=True)
    query.update(dict(listed.params))
    return {
        "title": title % {"num": locales.current().number(count)},
        "count": count,
        "list": query.urlencode(),
        "words": presenters.list_words(request.tenant, listed.params, people),
        "running": bulk_requests.running(request.tenant),
    }


def _change(request: TenantRequest, selected: list[TicketState], form: BulkEditForm) -> HttpResponse:
    """Change selected tickets at once, each by itself, and tell what became of them."""
    assert form.edit is not None  # noqa: S101  # a valid form has one
    if len(selected) > (most := many.limit(request.tenant)):
        sentence = _("At most %(most)s tickets can be changed together; you selected %(count)s.")
        raise Invalid(sentence % {"most": most, "count": len(selected)})
    counted(request, len(selected))
    outcomes = many.edit(request.tenant, {one.number: one.version for one in selected}, form.edit)
    changed = [one.entry for one in outcomes if one.did == many.CHANGED]
    if changed:
        told = ngettext("%(num)s ticket changed.", "%(num)s tickets changed.", len(changed))
        text = told % {"num": locales.current().number(len(changed))}
        messages.success(request, text, extra_tags=many.receipt(request.tenant, changed))
    if same := presenters.left_over([one.number for one in outcomes if one.did == many.UNCHANGED]):
        messages.info(request, same)
    for sentence in ticket_presenters.shortened([one.sentence for one in outcomes if one.did == many.REFUSED]):
        messages.warning(request, sentence)
    return redirect(back_address(request))


def _ask(request: TenantRequest, listed: ListedTickets, form: BulkEditForm) -> HttpResponse:
    assert form.edit is not None  # noqa: S101  # a valid form has one
    job_id = bulk_requests.ask(request.tenant, form.edit, params=listed.params, by=actor_of(request))
    return redirect("tickets:bulk_job", job_id)


@member(Role.AGENT)
@on_get(get="bulk job, member", query="bulk part, members by name", trips=3, reads=20)
def jobs(request: TenantRequest) -> HttpResponse:
    """List the desk's bulk jobs of the last week: one read and two Queries at the same time, then one BatchGetItem for
    who is not at hand."""
    tenant = request.tenant
    reads: list[Callable[[TenantContext], Any]] = [bulk_requests.running, bulk_requests.history, members.at_hand]
    running, ended, known = fan_out([partial(read, tenant) for read in reads])
    past = [one for one in ended if running is None or one.job_id != running.job_id]
    listed = ([running] if running else []) + past
    people = _people(request, known, *listed)
    lines = [presenters.job_line(tenant, one, people) for one in listed]
    return render(request, "bulk_jobs/jobs.html", {"jobs": lines})


@member(Role.AGENT)
@on_get(get="bulk job, bulk part, member", query="members by name", trips=5, reads=15)
def job(request: TenantRequest, job: str) -> HttpResponse:
    """Show how far a job is, and what became of each ticket: two or three reads and a Query."""
    find, aside = partial(bulk_requests.find, request.tenant, job), partial(members.at_hand, request.tenant)
    found, known = alongside(find, aside=aside)
    first = request.GET.get("from", "1")
    start = plain_text.whole_number(first, digits=6) or 1
    page = presenters.job_page(request.tenant, found, _people(request, known, found), first=start)
    return render(request, "bulk_jobs/job.html", {"job": page})


def _people(request: TenantRequest, known: AtHand, *jobs: Job) -> Mapping[str, str]:
    named = chain.from_iterable(map(presenters.people_in, jobs))
    return members.names_of(request.tenant.repository, known, named)


_changes_job: Final = on_post(
    get="bulk job, bulk part", write="audit row, bulk job, membership", trips=5, reads=3, writes=15
)


@member(Role.AGENT)
@_changes_job
def cancel(request: TenantRequest, job: str) -> HttpResponse:
    """End a job with what it has changed until then."""
    return _done(request, job, lambda: bulk_requests.cancel(request.tenant, job, by=actor_of(request)))


@member(Role.AGENT)
@_changes_job
@heavy
def undo(request: TenantRequest, job: str) -> HttpResponse:
    return _done(request, job, lambda: bulk_requests.undo(request.tenant, job, by=actor_of(request)))


def _done(request: TenantRequest, job: str, act: Callable[[], str | None]) -> HttpResponse:
    try:
        return redirect("tickets:bulk_job", act() or job)
    except (Conflict, Forbidden) as error:
        messages.error(request, error.message)
    return redirect("tickets:bulk_job", job)
