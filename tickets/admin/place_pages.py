"""Show where desks lie and which of them move, and let operators ask for a move, watch it, and go back."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import urlencode

from portal.dynamo.placement import Placement
from portal.errors import Conflict, Invalid
from tenants.operators.operator_site import OperatorSite, actor
from tenants.tenancy import tenant_directory
from tenants.tenancy.items import TenantItem
from tenants.tenancy.places import tenant_moves
from tickets.admin import move_presenters
from tickets.admin.forms import PlaceForm
from tickets.moving import move_requests

LOOK_AGAIN_SECONDS: Final = 3  # while a desk is being moved


@OperatorSite.page("places/", name="places", title="Places")
def places(request: HttpRequest) -> HttpResponse:
    """Show which desks were moved: one Query. With `?tenant=<slug>` that desk, and what can be done."""
    slug = request.GET.get("tenant", "").strip()
    tenant = tenant_directory.with_slug(slug)
    form = PlaceForm(request.POST if tenant and "to" in request.POST else None)
    if request.method == "POST" and tenant and _acted(request, tenant, form):
        return redirect(f"{reverse('admin:places')}?{urlencode({'tenant': tenant.slug})}")
    context = {
        **OperatorSite.context_of(request),
        "title": "Places",
        "slug": slug,
        "unknown": slug and tenant is None,
        "form": form,
        **(_of_tenant(tenant) if tenant else {"rows": _rows(move_requests.all_last())}),
    }
    response = TemplateResponse(request, "tickets/admin/places.html", context)
    if request.method == "GET" and context.get("now", {}).get("runs"):
        response["Refresh"] = str(LOOK_AGAIN_SECONDS)
    return response


def _of_tenant(tenant: TenantItem) -> dict[str, Any]:
    last = move_requests.last_of(tenant.tenant_id)
    where = tenant_moves.whereabouts(tenant)
    return {
        "tenant": tenant,
        "place": where.placement,
        "former": where.former,
        "now": move_presenters.move_row(last) if last else {},
        "rows": _rows(move_requests.history(tenant.tenant_id)),
    }


def _rows(items: Any) -> list[dict[str, Any]]:
    return [move_presenters.move_row(item) for item in items]


def _acted(request: HttpRequest, tenant: TenantItem, form: PlaceForm) -> bool:
    """Do what the button says; False, with the reason in the form, where that cannot be."""
    if "back" in request.POST:
        try:
            goes_back = move_requests.roll_back(tenant, by=actor(request))
        except (Conflict, Invalid) as error:
            messages.error(request, error.message)
        else:
            said = "It goes back to its old copy." if goes_back else "The move ends, and nobody has moved."
            messages.success(request, f"{said} Whoever carries it out begins.")
        return True
    if not form.is_valid():
        return False
    values = form.cleaned_data
    to = Placement.parse(values["to"])
    try:
        move_requests.begin(tenant, to=to, grace_days=values["grace"], reason=values["reason"], by=actor(request))
    except (Conflict, Invalid) as error:
        form.add_error("to", error.message)
        return False
    messages.success(request, f"{tenant.name} is to lie on {to}.")
    return True
