"""Show requesters: the list, one person with their tickets, and the forms that add, change and merge people."""

from __future__ import annotations

import uuid
from typing import Final

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from portal.errors import Conflict, Invalid, Overtaken
from portal.web.access import member, on_get, on_post
from portal.web.conflicts import put_on_newer
from tenants.tenancy.context import Role
from tenants.tenancy.request import TenantRequest, actor_of, refusal_told
from tickets.requesters import naming, presenters, requester_changes, requester_list, requester_tickets, requesters
from tickets.requesters.forms import MergeForm, RequesterForm
from tickets.requesters.requester_changes import AddressTaken
from tickets.requesters.requesters import Requester

PAGE_SIZE: Final = 50


@member(Role.AGENT)
@on_get(query="requesters by last word, requesters by name", trips=1, reads=10)
def list_requesters(request: TenantRequest) -> HttpResponse:
    """List people by name, or those whose name or address begins with `?q=`. One Query, or two at the same time."""
    typed, after = request.GET.get("q", "").strip(), request.GET.get("after", "")
    found = requester_list.page(request.tenant, typed=typed, after=after, limit=PAGE_SIZE)
    context = {
        "people": [presenters.person(one) for one in found.people],
        "q": typed,
        "is_first": not after,
        "next": found.next,
        "is_cut": bool(typed) and len(found.people) == PAGE_SIZE,
    }
    return render(request, "requesters/list.html", context)


@member(Role.AGENT)
@on_get(query="requesters by last word, requesters by name", trips=1, reads=10)
def requester_options(request: TenantRequest) -> HttpResponse:
    """Offer people for what is typed, and say of the person whose address is typed whether mail reaches them."""
    typed = request.GET.get("requester", "") or request.GET.get("other", "")
    people = requesters.complete(request.tenant, typed[:400])
    exact = next((one for one in people if typed.strip() in (one.typed, one.address)), None)
    context = {
        "people": [presenters.person(one) for one in people],
        "exact": presenters.person(exact) if exact else None,
        "is_new": not people and "@" in typed,
    }
    return render(request, "requesters/_options.html", context)


@member(Role.AGENT)
@on_get(get="requester", query="tickets of a requester", trips=3, reads=6)
def requester(request: TenantRequest, requester: str) -> HttpResponse:
    """Show a person with their tickets. A GetItem and a Query at the same time."""
    found, rows = requester_tickets.with_person(request.tenant, requester, limit=requester_tickets.SHOWN + 1)
    person = found or requesters.known(request.tenant, requester)
    if person.id != requester:
        return redirect("tickets:requester", person.id)
    merged = requesters.those_merged(request.tenant, person)
    context = {
        "person": presenters.person(person),
        "tickets": presenters.tickets(rows[: requester_tickets.SHOWN]),
        "has_more": len(rows) > requester_tickets.SHOWN,
        "merged": [presenters.person(one) | {"is_direct": one.merged_into == person.id} for one in merged],
    }
    return render(request, "requesters/requester.html", context)


@member(Role.AGENT)
@on_get(get="requester", query="tickets of a requester", trips=2, reads=4)
def beside_ticket(request: TenantRequest, requester: str, number: int) -> HttpResponse:
    """Show, beside a ticket, who asked for it and their other tickets. A GetItem and a Query at the same time."""
    limit = requester_tickets.BESIDE + 2  # with this ticket, and one that says that there are more
    person, rows = requester_tickets.with_person(request.tenant, requester, limit=limit)
    if "HX-Request" not in request.headers:
        return redirect("tickets:requester", requesters.known(request.tenant, requester).id)
    return render(request, "requesters/_beside.html", presenters.beside(person, rows, number=number))


# --- adding and changing ---


@member(Role.AGENT)
@on_get()
@on_post(get="requester", write="address of a requester, audit row, membership, requester", trips=4, reads=3, writes=30)
def new_requester(request: TenantRequest) -> HttpResponse:
    form = RequesterForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            made = requester_changes.create(
                request.tenant,
                form.details,
                by=actor_of(request),
                request_id=form.cleaned_data["request_id"] or uuid.uuid4().hex,
            )
        except (Invalid, Conflict) as error:
            return _form_page(request, form, None, error)
        messages.success(request, _("%(label)s was added.") % {"label": made.label})
        return redirect("tickets:requester", made.id)
    return _form_page(request, form, None)


@member(Role.AGENT)
@on_get(get="requester", trips=1, reads=2)
@on_post(get="requester", write="address of a requester, audit row, membership, requester", trips=5, reads=5, writes=30)
def edit_requester(request: TenantRequest, requester: str) -> HttpResponse:
    if request.method != "POST":
        person = _found(request, requester)
        return _form_page(request, RequesterForm.of(person), person)
    form = RequesterForm(request.POST)
    if form.is_valid():
        try:
            person = requester_changes.change(
                request.tenant,
                requester,
                lambda before: form.details,
                version=form.cleaned_data["version"] or 0,
                by=actor_of(request),
            )
        except Overtaken:
            person = _found(request, requester)
            said = _("Somebody else has changed this person meanwhile. Save again to replace their values.")
            put_on_newer(form, RequesterForm.of(person))
            return _form_page(request, form, person, Conflict(said))
        except (Invalid, Conflict) as error:
            return _form_page(request, form, _found(request, requester), error)
        messages.success(request, _("Changes saved."))
        return redirect("tickets:requester", person.id)
    return _form_page(request, form, _found(request, requester))


def _found(request: TenantRequest, requester_id: str) -> Requester:
    return Requester.of(requesters.profile(request.tenant, requester_id))


def _form_page(
    request: TenantRequest,
    form: RequesterForm,
    person: Requester | None,
    error: Invalid | Conflict | None = None,
) -> HttpResponse:
    taken = ""
    if error is not None:
        field = getattr(error, "field", "") or ""
        form.add_error(field if field in form.fields else None, error.message)
        taken = error.requester_id if isinstance(error, AddressTaken) else ""
    context = {
        "form": form,
        "person": presenters.person(person) if person else None,
        "taken": taken,
    }
    status = 409 if isinstance(error, Conflict) else 422 if form.is_bound else 200
    return render(request, "requesters/form.html", context, status=status)


@member(Role.AGENT)
@on_post(get="requester", write="audit row, membership, requester", trips=4, reads=3, writes=15)
def end_links(request: TenantRequest, requester: str) -> HttpResponse:
    with refusal_told(request, Conflict):
        person = requester_changes.revoke_links(request.tenant, requester, by=actor_of(request))
        said = _("All links of %(name)s to their tickets are ended. The next letter has a new one.")
        messages.success(request, said % {"name": person.label})
    return redirect("tickets:requester", requester)


# --- merging ---


@member(Role.AGENT)
@on_get(get="requester", trips=1, reads=2)
@on_post(
    get="address of a requester, requester",
    query="requesters by last word, requesters by name",
    write="address of a requester, audit row, membership, requester",
    trips=7,
    reads=15,
    writes=40,
)
def merge_requester(request: TenantRequest, requester: str) -> HttpResponse:
    """Choose the other person, see both together, then merge them."""
    person = _found(request, requester)
    form = MergeForm(request.POST or None, initial={"other": request.GET.get("other", "")})
    other: Requester | None = None
    if request.method == "POST" and form.is_valid():
        try:
            other = naming.known(request.tenant, form.cleaned_data["other"])
            if form.cleaned_data["confirmed"] == other.id:
                both = requester_changes.merge(request.tenant, person.id, other.id, by=actor_of(request))
                messages.success(
                    request, _("%(name)s was merged into %(other)s.") % {"name": other.label, "other": both.label}
                )
                return redirect("tickets:requester", both.id)
            requester_changes.refuse_merge(request.tenant, person.id, other.id)
        except (Invalid, Conflict) as error:
            other = None
            form.add_error("other", error.message)
    context = {
        "form": form,
        "person": presenters.person(person),
        "other": presenters.person(other) if other else None,
    }
    return render(request, "requesters/merge.html", context, status=422 if form.errors else 200)


@member(Role.AGENT)
@on_post(get="requester", write="address of a requester, audit row, membership, requester", trips=4, reads=5, writes=40)
def separate_requester(request: TenantRequest, requester: str) -> HttpResponse:
    """Undo the merge of this person."""
    with refusal_told(request, Conflict):
        person = requester_changes.undo_merge(request.tenant, requester, by=actor_of(request))
        messages.success(request, _("%(label)s is a person of their own again.") % {"label": person.label})
        return redirect("tickets:requester", person.id)
    return redirect("tickets:requester", requester)
