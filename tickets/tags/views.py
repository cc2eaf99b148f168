"""Show the tags of a desk, change one on all tickets, and suggest tags."""

from __future__ import annotations

from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from portal.dynamo.client import fan_out
from portal.errors import Conflict, Invalid
from portal.web.access import member, on_get, on_post
from portal.web.conflicts import put_on_stored
from tenants.tenancy.context import Role
from tenants.tenancy.request import TenantRequest, actor_of
from tickets.bulk_jobs import bulk_requests
from tickets.dashboards import dashboard
from tickets.desk import ticket_presenters
from tickets.desk_setup import setup
from tickets.desk_setup.setup import COLOUR_NAMES
from tickets.tags import desk_tags
from tickets.ticket.fields import TAG_LIMIT

COLOURS: Final = [("", gettext_lazy("None")), *((str(n), gettext_lazy(name)) for n, name in enumerate(COLOUR_NAMES))]


class RenameTagForm(forms.Form):
    """The name that a tag gets; that of another tag merges the two."""

    to = forms.CharField(
        label=gettext_lazy("New name"),
        max_length=TAG_LIMIT,
        help_text=gettext_lazy("The name of another tag merges the two."),
        error_messages={"required": gettext_lazy("Enter a name.")},
        widget=forms.TextInput(attrs={"autocomplete": "off", "dir": "auto"}),
    )


class ColourForm(forms.Form):
    """The hue of a tag, "" for none."""

    colour = forms.ChoiceField(
        label=gettext_lazy("Colour"),
        required=False,
        choices=COLOURS,
        widget=forms.RadioSelect,
        show_hidden_initial=True,
    )


@member(Role.AGENT)
@on_get(get="bulk job, placed stream, watermark", query="aggregate", trips=2, reads=10)
def all_tags(request: TenantRequest) -> HttpResponse:
    """List the tags that are used most, with how many tickets have each."""
    typed = request.GET.get("tag", "").strip()
    if typed:
        try:
            return redirect(_address(desk_tags.one(typed)))
        except Invalid as error:
            messages.error(request, error.message)
    reads: list[Any] = [partial(dashboard.tags, request.tenant), partial(bulk_requests.running, request.tenant)]
    (found, job), colours = fan_out(reads), setup.colours_of(request.tenant)
    rows = [
        {
            "tag": load.key,
            "hue": colours.get(load.key, ""),
            "url": ticket_presenters.queue_url(status="any", tag=load.key),
            "edit_url": _address(load.key),
            "unresolved": load.unresolved,
            "total": load.total,
        }
        for load in found.tags
    ]
    context = {"rows": rows, "others": found.others.most, "job": job}
    return render(request, "tags/list.html", context)


@member(Role.ADMIN)
@on_get()
@on_post(write="audit row, bulk job, membership, setup", trips=7, reads=5, writes=30)
def edit_tag(request: TenantRequest) -> HttpResponse:
    """Rename a tag, merge it into another one, delete it, or give it a colour."""
    try:
        tag = desk_tags.one((request.POST if request.method == "POST" else request.GET).get("tag", ""))
    except Invalid as error:
        messages.error(request, error.message)
        return redirect("tickets:tags")
    stored = ColourForm(initial={"colour": setup.colours_of(request.tenant).get(tag, "")})
    renaming, colouring, status = RenameTagForm(), stored, 200
    if request.method == "POST":
        act = request.POST.get("act", "")
        renaming = RenameTagForm(request.POST) if act == "rename" else renaming
        colouring = ColourForm(request.POST) if act == "colour" else colouring
        is_stale = colouring.is_bound and put_on_stored(colouring, stored)
        try:
            if done := _act(request, tag, act, renaming, colouring):
                return done
        except (Invalid, Conflict) as error:
            form = renaming if act == "rename" else colouring
            if form.is_bound:
                form.add_error("to" if getattr(error, "field", "") == "to" else None, error.message)
            else:
                messages.error(request, error.message)
        status = 409 if is_stale else 422
    context: dict[str, Any] = {
        "tag": tag,
        "hue": setup.colours_of(request.tenant).get(tag, ""),
        "list_url": ticket_presenters.queue_url(status="any", tag=tag),
        "form": renaming if renaming.is_bound else colouring,
        "renaming": renaming,
        "colouring": colouring,
        "colours": [
            {"value": value, "label": label, "is_now": str(colouring["colour"].value() or "") == value}
            for value, label in COLOURS
        ],
    }
    return render(request, "tags/edit.html", context, status=status)


def _act(
    request: TenantRequest, tag: str, act: str, renaming: RenameTagForm, colouring: ColourForm
) -> HttpResponse | None:
    """Do what a form asks for, and lead to what comes of it; None where the form has errors. Raises Invalid and
    Conflict."""
    by = actor_of(request)
    if act == "rename" and renaming.is_valid():
        job_id = desk_tags.rename(request.tenant, tag, to=renaming.cleaned_data["to"], by=by)
        return redirect("tickets:bulk_job", job_id)
    if act == "delete":
        return redirect("tickets:bulk_job", desk_tags.delete(request.tenant, tag, by=by))
    if act == "colour" and colouring.is_valid():
        setup.change_colours(request.tenant, {tag: colouring.cleaned_data["colour"]}, by=by)
        messages.success(request, _("The colour of %(tag)s is saved.") % {"tag": tag})
        return redirect("tickets:tags")
    return None


@member(Role.AGENT)
@on_get(get="placed stream, watermark", query="aggregate", trips=2, reads=10)
def tag_options(request: TenantRequest) -> HttpResponse:
    """Offer tags for what is typed in a field of tags."""
    return render(
        request, "tags/_options.html", {"options": desk_tags.suggest(request.tenant, request.GET.get("tags", ""))}
    )


def _address(tag: str) -> str:
    return f"{reverse('tickets:tag_edit')}?{urlencode({'tag': tag})}"
