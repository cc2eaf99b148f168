"""Show over how many partitions tickets are spread, and let operators begin, watch and stop a change of that."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import urlencode

from portal.dynamo.client import fan_out
from portal.errors import Conflict, Invalid
from tenants.operators.operator_site import OperatorSite, actor
from tenants.tenancy import tenant_directory
from tenants.tenancy.items import TenantItem
from tenants.tenancy.shard_layout import ShardLayout
from tickets.admin import presenters
from tickets.admin.forms import ReshardForm
from tickets.sharding import reshard_requests

LOOK_AGAIN_SECONDS: Final = 3  # while a tenant is being resharded


@OperatorSite.page("shards/", name="shards", title="Shards")
def shards(request: HttpRequest) -> HttpResponse:
    """Show who was resharded lately: one Query. With `?tenant=<slug>` that tenant, and what can be done."""
    slug = request.GET.get("tenant", "").strip()
    tenant = tenant_directory.with_slug(slug)
    form = ReshardForm(request.POST if tenant and "shards" in request.POST else None)
    if request.method == "POST" and tenant and _acted(request, tenant, form):
        return redirect(f"{reverse('admin:shards')}?{urlencode({'tenant': tenant.slug})}")
    context = {
        **OperatorSite.context_of(request),
        "title": "Shards",
        "slug": slug,
        "unknown": slug and tenant is None,
        "form": form,
        **(_of_tenant(tenant) if tenant else {"rows": _rows(reshard_requests.all_last())}),
    }
    response = TemplateResponse(request, "tickets/admin/shards.html", context)
    if request.method == "GET" and context.get("now", {}).get("runs"):
        response["Refresh"] = str(LOOK_AGAIN_SECONDS)
    return response


def _of_tenant(tenant: TenantItem) -> dict[str, Any]:
    reads: list[Any] = [
        partial(reshard_requests.last_of, tenant.tenant_id),
        partial(reshard_requests.history, tenant.tenant_id),
    ]
    last, ended = fan_out(reads)
    now = presenters.reshard_row(last) if last else {}
    return {
        "tenant": tenant,
        "layout": ShardLayout.of(tenant),
        "said": reshard_requests.said(ShardLayout.of(tenant).readers),
        "now": now if now.get("runs") else {},
        "rows": _rows(ended),
    }


def _rows(items: Any) -> list[dict[str, Any]]:
    return [presenters.reshard_row(item) for item in items]


def _acted(request: HttpRequest, tenant: TenantItem, form: ReshardForm) -> bool:
    """Do what the button says; False, with the reason in the form or above the page, where that cannot be."""
    if "stop" in request.POST:
        try:
            reshard_requests.stop(tenant, by=actor(request))
        except Conflict as error:
            messages.error(request, error.message)
        else:
            messages.success(request, "It is being stopped. Lists stay whole; what was moved stays where it is.")
        return True
    if not form.is_valid():
        return False
    values = form.cleaned_data
    try:
        reshard_requests.begin(tenant, shards=values["shards"], reason=values["reason"], by=actor(request))
    except (Conflict, Invalid) as error:
        form.add_error("shards", error.message)
        return False
    messages.success(request, f"{tenant.name} gets {reshard_requests.said(values['shards'])}. A stream worker begins.")
    return True
