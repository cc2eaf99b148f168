"""Show where desks lie and which of them move, and let operators order a move, watch it, go back or discard a copy."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponse

from portal import clock
from portal.dynamo import fencing, placement, provisioning
from portal.dynamo.placement import POOL, Placement
from portal.errors import Invalid, Unavailable
from portal.nosql.admin.options import ReasonField
from portal.web.access import on_get, on_post
from tenants.operators.operator_site import OperatorSite, actor
from tenants.tenancy import placements
from tenants.tenancy.stored import TenantItem
from tickets.admin.tenant_page import KEPT_WHERE, UNEXPLAINED, TenantPage, cells
from tickets.moving import move_requests, place_changes
from tickets.moving.move_requests import GRACE_DAYS
from tickets.moving.stored import MoveItem


class PlaceForm(forms.Form):
    """Ask where a desk is to lie, how long its old copy is kept, and why."""

    to = forms.ChoiceField(label="Place", help_text="The tables of all, tables of its own, or those at a site.")
    grace = forms.IntegerField(
        label="Grace",
        min_value=0,
        max_value=365,
        initial=GRACE_DAYS,
        help_text="Days that the old copy is kept. Until somebody discards it, going back is possible.",
    )
    reason = ReasonField(
        required=False,
        help_text=f"It is kept {KEPT_WHERE}",
    )

    def __init__(self, *args: Any, **how: Any) -> None:
        super().__init__(*args, **how)
        # Nothing is chosen beforehand: a desk moves nowhere by a button that was pressed too soon.
        named = [("", "Choose a place"), ("pool", "Pool: the tables of all"), ("bridge", "Bridge: tables of its own")]
        self.fields["to"].choices = [*named, *((f"silo/{site}", f"Silo: {site}") for site in settings.SILOS)]  # type: ignore[attr-defined]  # a ChoiceField


@OperatorSite.page("places/", name="places", title="Places")
@on_get(get="move, slug", query="move, past move", trips=7, reads=6)
@on_post(
    get="move, slug",
    query="move, past move",
    write="audit row, move, past move, resharding, tenant",
    trips=16,
    reads=8,
    writes=25,
)
def places(request: HttpRequest) -> HttpResponse:
    """Show which desks were moved, and the tables and key of each account; or the desk of `?tenant=<slug>`."""
    return _PAGE.answer(request)


def _of_all() -> dict[str, Any]:
    return {
        "rows": [move_row(item) for item in place_changes.MOVES.all_last()],
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
        "now": move_row(last) if last else {},
        "kept": move_row(kept) if kept else {},
        "rows": [move_row(item) for item in place_changes.MOVES.history(tenant.tenant_id)],
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


_STEPS: Final = {
    "preparing": "Step 1 of 6: tables are made at the new place.",
    "announcing": "Step 2 of 6: all processes learn of it.",
    "copying": "Step 3 of 6: tickets are copied.",
    "catching": "Step 4 of 6: the new place counts and indexes them.",
    "holding": "Step 5 of 6: writes wait for the switch.",
    "verifying": "Step 6 of 6: both copies are compared.",
    "comparing": "Step 1 of 2: both copies are compared.",
    "clearing": "Step 2 of 2: the old copy is deleted.",
}
_STATES: Final = {
    place_changes.RUNNING: "running",
    place_changes.CANCELLING: "being ended",
    place_changes.CANCELLED: "ended before its switch",
    place_changes.KEPT: "moved",
    place_changes.DISCARDING: "the old copy is being discarded",
    place_changes.DONE: "done, the old copy is gone",
}


_OPTIONS: Final = {place_changes.CANCELLING: "--roll-back", place_changes.DISCARDING: "--discard"}


def move_row(item: MoveItem) -> dict[str, Any]:
    """Return one move for a table: from where to where, why, who, when, how far, and how long writes wait."""
    begun = clock.parse(item.begun_at)
    change, state, why = f"{item.from_place} to {item.to_place}", _STATES[item.state], item.reason or UNEXPLAINED
    return {
        "slug": item.slug,
        "change": change,
        "option": _OPTIONS.get(item.state, f"--on {item.to_place}"),
        "why": why,
        "who": item.by,
        "begun": begun,
        "state": state,
        "runs": item.state in place_changes.MOVES.unfinished,
        "discards": item.state == place_changes.DISCARDING,
        "cancellable": item.state == place_changes.RUNNING and not item.switched_at,
        "kept_until": clock.parse(item.kept_until) if item.state == place_changes.KEPT else None,
        "discardable": item.state == place_changes.KEPT and item.kept_until <= clock.stamp(),
        "step": _STEPS.get(item.phase, item.phase),
        "done": int(item.done),
        "last": int(item.last_number),
        "changes": int(item.changes),
        "waits": not item.holder,
        "held": _held(item),
        "switched": bool(item.switched_at),
        "trouble": item.trouble,
        "cells": cells(
            Places=change,
            State=state,
            Why=why,
            By=item.by,
            Begun=begun,
            Waited=f"{int(item.held_ms) / 1000:.2f} s" if item.switched_at else "",
        ),
    }


def _held(item: MoveItem) -> str:
    if item.switched_at:
        return f"Writes waited for at most {int(item.held_ms) / 1000:.2f} s."
    limit = f"{fencing.HOLD_SECONDS:g} s"
    return f"Writes will wait once, some tenths of a second. A wait that comes to {limit} is given up and tried later."
