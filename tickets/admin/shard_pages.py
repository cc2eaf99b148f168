"""Show over how many partitions tickets are spread, and let operators begin, watch and stop a change of that."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse

from portal.dynamo.client import fan_out
from tenants.operators.operator_site import OperatorSite, actor
from tenants.tenancy.shard_layout import ShardLayout
from tenants.tenancy.stored import TenantItem
from tickets.admin import presenters
from tickets.admin.forms import ReshardForm
from tickets.admin.tenant_page import TenantPage
from tickets.sharding import reshard_requests


@OperatorSite.page("shards/", name="shards", title="Shards")
def shards(request: HttpRequest) -> HttpResponse:
    """Show who was resharded lately: one Query. With `?tenant=<slug>` that tenant, and what can be done."""
    return _PAGE.answer(request)


def _of_all() -> dict[str, Any]:
    return {"rows": [presenters.reshard_row(item) for item in reshard_requests.all_last()]}


def _of_tenant(tenant: TenantItem) -> dict[str, Any]:
    reads: list[Any] = [
        partial(reshard_requests.last_of, tenant.tenant_id),
        partial(reshard_requests.RESHARDINGS.history, tenant.tenant_id),
    ]
    last, ended = fan_out(reads)
    now = presenters.reshard_row(last) if last else {}
    return {
        "layout": ShardLayout.of(tenant),
        "said": reshard_requests.said(ShardLayout.of(tenant).readers),
        "now": now if now.get("runs") else {},
        "rows": [presenters.reshard_row(item) for item in ended],
    }


def _order(request: HttpRequest, tenant: TenantItem, values: dict[str, Any]) -> str:
    reshard_requests.begin(tenant, **values, by=actor(request))
    return f"{tenant.name} gets {reshard_requests.said(values['shards'])}. A stream worker begins."


def _stop(request: HttpRequest, tenant: TenantItem) -> str:
    reshard_requests.stop(tenant, by=actor(request))
    return "It is being stopped. Lists stay whole; what was moved stays where it is."


_PAGE = TenantPage("shards", ReshardForm, "shards", _of_tenant, _of_all, _order, {"stop": _stop})
