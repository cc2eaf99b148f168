"""Show, save, order and delete saved views."""

from __future__ import annotations

from functools import partial
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from portal.dynamo.client import alongside
from portal.errors import Forbidden, Invalid, NotFound
from portal.web.access import member, on_get, on_post
from portal.web.conflicts import put_on_stored, told_in
from tenants.tenancy.context import Role
from tenants.tenancy.request import TenantRequest, actor_of, refusal_told
from tickets.desk.queue_presenters import QueueAddress
from tickets.saved_views import presenters, saved_views, view_counts
from tickets.saved_views.presenters import ListPlace
from tickets.saved_views.saved_views import NAME_LIMIT, View

OWN, DESK = "own", "desk"


class ViewForm(forms.Form):
    """The name of a view; of a new one also for whom it is, where the person may choose that."""

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=NAME_LIMIT,
        error_messages={"required": gettext_lazy("Enter a name.")},
        show_hidden_initial=True,
    )
    whose = forms.ChoiceField(
        label=gettext_lazy("Who sees it"),
        choices=[(OWN, gettext_lazy("Only me")), (DESK, gettext_lazy("Everybody in this desk"))],
        required=False,
        widget=forms.RadioSelect,
    )
    starred = forms.BooleanField(label=gettext_lazy("Show it beside my queue"), required=False)

    def __init__(self, *args: Any, is_new: bool, may_share: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not is_new:
            del self.fields["starred"]
        if not is_new or not may_share:
            del self.fields["whose"]


@member(Role.VIEWER)
@on_get(get="agent, saved views", query="aggregate", trips=1, reads=10)
def list_views(request: TenantRequest) -> HttpResponse:
    """List all views with their counts: a read of views and aggregates, then lists that no aggregate counts."""
    tenant = request.tenant
    views, stored = alongside(partial(saved_views.read, tenant), aside=partial(view_counts.read, tenant))
    counts = view_counts.of(tenant, [*views.desk, *views.own], stored)
    return render(request, "saved_views/list.html", presenters.all_views(tenant, views, counts))


@member(Role.VIEWER)
@on_get(get="agent, saved views", query="aggregate, noted tickets, tickets by status", trips=2, reads=30)
def counts(request: TenantRequest) -> HttpResponse:
    """Show groups and starred views with their counts, for the place beside the queue."""
    tenant = request.tenant
    views, stored = alongside(partial(saved_views.read, tenant), aside=partial(view_counts.read, tenant))
    found = view_counts.of(tenant, views.beside, stored)
    return render(request, "saved_views/_starred.html", presenters.starred(tenant, views, counts=found))


@member(Role.VIEWER)
@on_get()
@on_post(get="saved views", write="audit row, membership, saved views", trips=4, reads=3, writes=15)
def new_view(request: TenantRequest) -> HttpResponse:
    """Save the list of this address under a name."""
    address = QueueAddress.of_what_is_understood(request.GET.dict())
    may_share = request.tenant.is_admin
    form = ViewForm(request.POST or None, is_new=True, may_share=may_share, initial={"whose": OWN, "starred": True})
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        with told_in(form):
            made = saved_views.save(
                request.tenant,
                data["name"],
                saved_views.query_of(address.params),
                is_desks=data.get("whose") == DESK,
                is_starred=data["starred"],
                by=actor_of(request),
            )
            messages.success(request, _("The view “%(name)s” is saved.") % {"name": made.name})
            return redirect(address.url())
    return _form_page(request, form, address, None)


@member(Role.VIEWER)
@on_get(get="agent, saved views", trips=1, reads=3)
@on_post(get="agent, saved views", write="audit row, membership, saved views", trips=7, reads=10, writes=15)
def edit_view(request: TenantRequest, view: str) -> HttpResponse:
    stored = saved_views.read(request.tenant).get(view)
    if not saved_views.may_change(request.tenant, stored):
        raise Forbidden(_("Admins and owners change the views of the desk."))
    make = partial(ViewForm, is_new=False, may_share=False, initial={"name": stored.name})
    form = make(request.POST or None)
    is_stale = form.is_bound and put_on_stored(form, make())
    if request.method == "POST" and form.is_valid():
        with told_in(form):
            saved_views.change(request.tenant, view, name=form.cleaned_data["name"], seen=stored, by=actor_of(request))
            messages.success(request, _("View saved."))
            return redirect("tickets:views")
    status = 409 if is_stale else 0
    return _form_page(request, form, QueueAddress.of_what_is_understood(stored.params), stored, status=status)


def _form_page(
    request: TenantRequest, form: ViewForm, address: QueueAddress, view: View | None, *, status: int = 0
) -> HttpResponse:
    context: dict[str, Any] = {
        "form": form,
        "view": view,
        "words": presenters.in_words(request.tenant, address),
        "list_url": address.url(),
        "action": request.path + ("" if view else f"?{urlencode({n: v for n, v in address.params.items() if v})}"),
    }
    return render(request, "saved_views/form.html", context, status=status or (422 if form.errors else 200))


@member(Role.VIEWER)
@on_get(query="noted tickets, tickets by status", trips=1, reads=20)
def step(request: TenantRequest, number: int, *, backwards: bool = False) -> HttpResponse:
    """Lead to the next ticket of the list that the address names, or to the one before."""
    place = ListPlace.of(request.GET.dict())
    if place is None:
        raise NotFound(_("This address names no list."))
    if there := place.neighbour(request.tenant, number, backwards=backwards):
        return redirect(there)
    messages.info(
        request,
        _("That was the first ticket of this list.") if backwards else _("That was the last ticket of this list."),
    )
    return redirect(place.listing.url())


@member(Role.VIEWER)
@on_post(get="agent, saved views", write="audit row, membership, saved views", trips=7, reads=10, writes=15)
def move_view(request: TenantRequest, view: str) -> HttpResponse:
    """Move a view up or down among those of its owner."""
    saved_views.move(request.tenant, view, -1 if "up" in request.POST else 1, by=actor_of(request))
    return redirect("tickets:views")


@member(Role.VIEWER)
@on_post(get="agent, saved views", write="membership, saved views", trips=5, reads=4, writes=6)
def star_view(request: TenantRequest, view: str) -> HttpResponse:
    with refusal_told(request, Invalid):
        saved_views.star(request.tenant, view, on="on" in request.POST, by=actor_of(request))
    return redirect("tickets:views")


@member(Role.VIEWER)
@on_post(get="agent, saved views", write="audit row, membership, saved views", trips=7, reads=10, writes=15)
def delete_view(request: TenantRequest, view: str) -> HttpResponse:
    gone = saved_views.delete(request.tenant, view, by=actor_of(request))
    messages.success(request, _("The view “%(name)s” is deleted. Its tickets stay.") % {"name": gone.name})
    return redirect("tickets:views")
