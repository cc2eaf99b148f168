"""Show over how many partitions tickets are spread, and let operators begin, watch and stop a change of that."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any, Final

from django import forms
from django.http import HttpRequest, HttpResponse

from portal import clock
from portal.dynamo.client import fan_out
from portal.nosql.admin.options import ReasonField
from portal.web.access import on_get, on_post
from tenants.operators.operator_site import OperatorSite, actor
from tenants.tenancy.placements import ShardLayout
from tenants.tenancy.stored import MOST_SHARDS, TenantItem
from tickets.admin.tenant_page import KEPT_WHERE, UNEXPLAINED, TenantPage, cells
from tickets.sharding import reshard_requests
from tickets.sharding.stored import ReshardItem


class ReshardForm(forms.Form):
    """Ask how many shards a tenant is to have, and why."""

    shards = forms.IntegerField(
        min_value=1,
        max_value=MOST_SHARDS,
        error_messages=dict.fromkeys(("min_value", "max_value", "invalid"), f"Use 1-{MOST_SHARDS} shards."),
        help_text=f"From 1 to {MOST_SHARDS}. Each takes up to 1,000 write units a second; a list reads all of them.",
    )
    reason = ReasonField(
        required=False,
        help_text=f"It is kept in the history and {KEPT_WHERE}",
    )


@OperatorSite.page("shards/", name="shards", title="Shards")
@on_get(get="resharding, slug", query="past resharding, resharding", trips=3, reads=6)
@on_post(
    get="resharding, slug",
    query="past resharding, resharding",
    write="audit row, resharding, tenant",
    trips=7,
    reads=2,
    writes=15,
)
def shards(request: HttpRequest) -> HttpResponse:
    """Show who was resharded lately: one Query. With `?tenant=<slug>` that tenant, and what can be done."""
    return _PAGE.answer(request)


def _of_all() -> dict[str, Any]:
    return {"rows": [reshard_row(item) for item in reshard_requests.all_last()]}


def _of_tenant(tenant: TenantItem) -> dict[str, Any]:
    reads: list[Any] = [
        partial(reshard_requests.last_of, tenant.tenant_id),
        partial(reshard_requests.RESHARDINGS.history, tenant.tenant_id),
    ]
    last, ended = fan_out(reads)
    now = reshard_row(last) if last else {}
    return {
        "layout": ShardLayout.of(tenant),
        "said": reshard_requests.said(ShardLayout.of(tenant).readers),
        "now": now if now.get("runs") else {},
        "rows": [reshard_row(item) for item in ended],
    }


def _order(request: HttpRequest, tenant: TenantItem, values: dict[str, Any]) -> str:
    reshard_requests.begin(tenant, **values, by=actor(request))
    return f"{tenant.name} gets {reshard_requests.said(values['shards'])}. A stream worker begins."


def _stop(request: HttpRequest, tenant: TenantItem) -> str:
    reshard_requests.stop(tenant, by=actor(request))
    return "It is being stopped. Lists stay whole; what was moved stays where it is."


_PAGE = TenantPage("shards", ReshardForm, "shards", _of_tenant, _of_all, _order, {"stop": _stop})


_STEPS: Final = {
    "widening": "Step 1 of 5: lists are told to read all partitions, old and new.",
    "switching": "Step 2 of 5: writes are told to go to the new partitions.",
    "moving": "Step 3 of 5: tickets are moved to their places.",
    "narrowing": "Step 4 of 5: lists are told to leave the partitions that are empty.",
    "sweeping": "Step 5 of 5: a last look at the partitions that were left.",
}
_STATES: Final = {
    reshard_requests.RUNNING: "running",
    reshard_requests.STOPPING: "being stopped",
    reshard_requests.STOPPED: "stopped",
    reshard_requests.DONE: "done",
}


def reshard_row(item: ReshardItem) -> dict[str, Any]:
    """Return one resharding for a table: what, why, who, when, how far."""
    change, why = f"{int(item.from_shards)} to {int(item.to_shards)}", item.reason or UNEXPLAINED
    state, who, took = _STATES[item.state], item.by or "the stream worker", _said(reshard_requests.duration(item))
    begun, moved = clock.parse(item.begun_at), int(item.moved)
    return {
        "slug": item.slug,
        "title": item.title,
        "change": change,
        "why": why,
        "who": who,
        "begun": begun,
        "took": took,
        "moved": moved,
        "runs": item.state in reshard_requests.RESHARDINGS.unfinished,
        "stoppable": item.state == reshard_requests.RUNNING,
        "step": _STEPS.get(item.phase, item.phase),
        "waits": not item.holder,
        "ended": _moment(item.ended_at),
        "cells": cells(Shards=change, State=state, Why=why, By=who, Begun=begun, Took=took, Moved=moved),
    }


def _moment(stamp: str) -> datetime | None:
    return clock.parse(stamp) if stamp else None


def _said(seconds: float) -> str:
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
