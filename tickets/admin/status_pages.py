"""How the tables and the stream's worker are: described, not counted."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse

from portal.dynamo import provisioning
from portal.dynamo.client import fan_out
from portal.nosql.admin import Notice
from portal.schema import registry
from portal.schema.tables import Table
from portal.streams import watermark
from tenants.operators.operator_site import OperatorSite
from tickets.dashboards.freshness import Freshness
from tickets.ticket.tables import TICKETS

_SAYS = {
    "current": "The stream worker keeps up.",
    "stopped": "The stream worker has stopped: numbers stand still.",
    "behind": "The stream worker is behind: numbers are late.",
    "unknown": "No stream worker has reported yet. A Lambda function does not, or run_stream was never started.",
}


def described() -> list[tuple[Table, dict[str, Any] | None]]:
    """Every declared table with the engine's description, None where it is missing: asked for at the same time."""
    return list(
        zip(
            registry.tables(),
            fan_out([partial(provisioning.describe, table) for table in registry.tables()]),
            strict=True,
        )
    )


@OperatorSite.page("status/", name="status", title="Tables and streams")
def status(request: HttpRequest) -> HttpResponse:
    """Item counts and sizes are DynamoDB's own estimates, up to six hours old; nothing is read to make them."""
    found = described()
    stream = next((d or {} for table, d in found if table == TICKETS), {}).get("LatestStreamArn", "")
    beat = watermark.read(TICKETS)
    freshness = Freshness.of(beat, [])
    context = {
        **OperatorSite.context_of(request),
        "title": "Tables and streams",
        "tables": [_row(table, description) for table, description in found],
        "stream": stream,
        "freshness": freshness,
        "says": _SAYS[freshness.state],
        "written_at": beat.written_at if beat else None,
        "leases": watermark.leases(stream) if stream else [],
    }
    return TemplateResponse(request, "tickets/admin/status.html", context)


def _row(table: Table, description: dict[str, Any] | None) -> dict[str, Any]:
    found = description or {}
    indexes = found.get("GlobalSecondaryIndexes") or []
    return {
        "name": table.full_name,
        "status": found.get("TableStatus", "missing"),
        "items": found.get("ItemCount"),
        "size": found.get("TableSizeBytes"),
        "indexes": ", ".join(f"{i['IndexName']} {i.get('IndexStatus', '')}" for i in indexes),
    }


@OperatorSite.watches
def worker_is_late() -> list[Notice]:
    """Say what the watermark tells: at most one GetItem."""
    freshness = Freshness.of(watermark.read(TICKETS), [])
    if freshness.state == "current":
        return []
    level = "info" if freshness.state == "unknown" else "error"
    order = 40 if freshness.state == "unknown" else 10
    return [Notice(order, _SAYS[freshness.state], reverse("admin:status"), level)]  # type: ignore[arg-type]  # a literal


@OperatorSite.watches
def tables_are_not_active() -> list[Notice]:
    url = reverse("admin:status")
    wrong = [(t, (d or {}).get("TableStatus", "missing")) for t, d in described()]
    return [Notice(0, f"{t.full_name} is {state}.", url, "error") for t, state in wrong if state != "ACTIVE"]
