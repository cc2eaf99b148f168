"""Show operators the letters to no desk, and let them hand some to a desk or discard them."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse

from portal import clock
from portal.errors import Invalid
from portal.nosql.admin.options import ReasonField
from portal.plain_text import amount, file_size
from portal.web.access import on_get, on_post
from tenants.operators.operator_site import OperatorSite, actor
from tickets.admin.tenant_page import cells
from tickets.letters import unclaimed
from tickets.letters.unclaimed import UnclaimedLetter


class UnclaimedForm(forms.Form):
    """Ask which letters, to which desk they go, and why."""

    desk = forms.CharField(
        max_length=60,
        required=False,
        label="Desk",
        help_text="The name in the address of the desk. It is not needed to discard letters.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    reason = ReasonField(
        help_text="It is kept with your name in the audit trail of the desk, for discarded letters in the platform's."
    )


@OperatorSite.page("letters/", name="letters", title="Letters to unknown addresses")
@on_get()
@on_post(get="slug", write="audit row", trips=6, reads=2, writes=10)
def letters(request: HttpRequest) -> HttpResponse:
    """Show the newest letters to no desk, and do with those that were chosen what the button says."""
    form = UnclaimedForm(request.POST or None)
    chosen = request.POST.getlist("letter")[: unclaimed.SHOWN]
    if request.method == "POST":
        if not chosen:
            form.add_error(None, "Choose at least one letter.")
        if form.is_valid() and _decided(request, form, chosen):
            return redirect(reverse("admin:letters"))
    found, has_more = unclaimed.newest()
    context = {
        **OperatorSite.context_of(request),
        "title": "Letters to unknown addresses",
        "rows": [_row(one, chosen) for one in found],
        "has_more": has_more,
        "form": form,
    }
    return TemplateResponse(request, "tickets/admin/letters.html", context, status=422 if form.is_bound else 200)


def _decided(request: HttpRequest, form: UnclaimedForm, chosen: list[str]) -> bool:
    """Do it, and say what was done; False where what was typed has to stay, with the reason at its field."""
    reason, by = form.cleaned_data["reason"], actor(request)
    if "discard" in request.POST:
        gone = unclaimed.discard(chosen, reason=reason, by=by)
        messages.success(request, f"{amount(gone, 'letter')} discarded.")
        return True
    try:
        tenant = unclaimed.desk_named(form.cleaned_data["desk"])
    except Invalid as error:
        form.add_error(error.field, error.message)
        return False
    handed = unclaimed.deliver(chosen, tenant, reason=reason, by=by)
    messages.success(request, f"{amount(handed, 'letter')} handed to {tenant.name}, to be filed in a moment.")
    return True


def _row(one: UnclaimedLetter, chosen: list[str]) -> dict[str, Any]:
    return {
        "name": one.name,
        "is_chosen": one.name in chosen,
        "cells": cells(
            Received=clock.parse(one.at), Size=file_size(one.size), Recipients=", ".join(one.recipients) or "not known"
        ),
    }
