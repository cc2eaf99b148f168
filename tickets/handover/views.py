"""The pages that reassign what a former member had to do. Rules are in handover.py."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from portal.errors import Invalid
from portal.web import locales
from portal.web.access import counted, member, on_get, on_post
from portal.web.heavy_work import heavy
from tenants.membership.forms import OfferedMembers, offered_members
from tenants.tenancy.context import Role
from tenants.tenancy.request import TenantRequest, actor_of
from tickets.handover import handover

NOBODY: Final = "none"


class HandoverForm(forms.Form):
    """Take a member who can have tickets, oneself at first, or NOBODY."""

    def __init__(self, data: Any, *, people: OfferedMembers, me: str) -> None:
        super().__init__(data, initial={"to": me})
        field = people.field((NOBODY, _("Unassigned")), label=_("New assignee"))
        field.required, field.error_messages["required"] = True, _("Choose a new assignee.")
        self.fields["to"] = field


@member(Role.ADMIN)
@on_get(
    get="member",
    query="aggregate, audit rows by object, noted tickets by resolver, tickets by resolver",
    trips=5,
    reads=20,
)
def handovers(request: TenantRequest) -> HttpResponse:
    """Show who has left with unresolved tickets; straight to those of `of`, somebody who was just removed."""
    left = request.GET.get("of", "")
    if left and handover.has_any(request.tenant, left):
        return redirect("tickets:handover", left)
    return render(request, "tickets/handovers.html", {"loads": handover.former(request.tenant)})


@member(Role.ADMIN)
@on_get(get="member", query="members by name, noted tickets by resolver, tickets by resolver", trips=2, reads=15)
@on_post(
    get="member, ticket",
    query="audit rows by object, members by name, noted tickets by resolver, tickets by resolver",
    write="audit row, outbox row, ticket",
    trips=14,
    reads=30,
    writes=10,
    per="ticket",
    each=(2, 1, 15),
)
@heavy
def hand_on(request: TenantRequest, user: str) -> HttpResponse:
    tenant = request.tenant
    found = handover.look(tenant, user)
    form = HandoverForm(request.POST or None, people=offered_members(tenant, found.known, but=user), me=tenant.user_id)
    done = None
    if form.is_valid():
        to = form.cleaned_data["to"]
        try:
            done = handover.hand_on(tenant, user_id=user, to="" if to == NOBODY else to, by=actor_of(request))
        except Invalid as error:
            form.add_error("to", error.message)
    if done is None:
        page = {"found": found, "form": form, "limit": handover.LIMIT}
        return render(request, "tickets/handover.html", page, status=422 if form.errors else 200)
    moved, name = done
    counted(request, moved)
    said = ngettext("%(num)s ticket was unassigned.", "%(num)s tickets were unassigned.", moved)
    if name:
        said = ngettext(
            "%(num)s ticket was reassigned to %(name)s.", "%(num)s tickets were reassigned to %(name)s.", moved
        )
    messages.success(request, said % {"num": locales.current().number(moved), "name": name})
    return redirect(f"{reverse('tickets:handovers')}?{urlencode({'of': user})}")
