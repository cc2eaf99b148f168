"""Show where desks lie and which of them move, and let operators order a move, watch it, go back or discard a copy."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse

from portal.dynamo import placement, provisioning
from portal.dynamo.placement import POOL, Placement
from portal.errors import Invalid, Unavailable
from tenants.operators.operator_site import OperatorSite, actor
from tenants.tenancy import placements
from tenants.tenancy.stored import TenantItem
from tickets.admin import move_presenters
from tickets.admin.forms import PlaceForm
from tickets.admin.tenant_page import TenantPage
from tickets.moving import move_requests, place_changes


@OperatorSite.page("places/", name="places", title="Places")
def places(request: HttpRequest) -> HttpResponse:
    """Show which desks were moved, and the tables and key of each account; or the desk of `?tenant=<slug>`."""
    return _PAGE.answer(request)


def _of_all() -> dict[str, Any]:
    return {
        "rows": [move_presenters.move_row(item) for item in place_changes.MOVES.all_last()],
        "accounts": [_account_row(site, use) for site, use in provisioning.counted_tables()],
    }


def _account_row(site: str, use: provisioning.TableUse | None) -> dict[str, Any]:
    key = (placement.site(site).table_key_arn or "the key of its account for DynamoDB") if site else _key_of("", POOL)
    return {"site": site, "use": use, "key": key}


def _of_tenant(tenant: TenantItem) -> dict[str, Any]:
    last = place_changes.MOVES.last(tenant.tenant_id)
    where, kept = placements.location(tenant), move_requests.kept_copy(tenant, last)
    return {
        "place": where.placement,
        "former": where.former,
        "key": _key_of(tenant.tenant_id, where.placement),
        "now": move_presenters.move_row(last) if last else {},
        "kept": move_presenters.move_row(kept) if kept else {},
        "rows": [move_presenters.move_row(item) for item in place_changes.MOVES.history(tenant.tenant_id)],
    }


def _key_of(tenant_id: str, where: Placement) -> str:
    try:
        return provisioning.key_of(tenant_id, where)
    except Unavailable:
        return ""


def _order(request: HttpRequest, tenant: TenantItem, values: dict[str, Any]) -> str:
    to = Placement.parse(values["to"])
    move_requests.begin(tenant, to=to, grace_days=values["grace"], reason=values["reason"], by=actor(request))
    return f"The move of {tenant.name} is ordered: it is to lie {to.in_words}."


def _go_back(request: HttpRequest, tenant: TenantItem) -> str:
    goes_back = move_requests.roll_back(tenant, by=actor(request))
    return "The way back to its old copy is ordered." if goes_back else "The move is being called off; the desk stays."


def _discard(request: HttpRequest, tenant: TenantItem) -> str:
    if "sure" not in request.POST:
        raise Invalid("Tick that you understand the old copy cannot be restored.")
    move_requests.discard(tenant, early=True, by=actor(request))
    return "The old copy is compared once more, and deleted then."


_PAGE = TenantPage("places", PlaceForm, "to", _of_tenant, _of_all, _order, {"back": _go_back, "discard": _discard})
