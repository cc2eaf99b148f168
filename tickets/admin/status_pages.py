"""Describe the tables and the stream's worker; nothing is counted."""

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
    """Return each declared table with the engine's description, None where it is missing; all calls at once."""
    tables = registry.tables()
    return list(zip(tables, fan_out([partial(provisioning.describe, table) for table in tables]), strict=True))


@OperatorSite.page("status/", name="status", title="Tables and streams")
def status(request: HttpRequest) -> HttpResponse:
    """Show the tables and the stream. Counts and sizes are DynamoDB's own estimates, up to six hours old."""
    tables = described()
    stream = next((d or {} for table, d in tables if table == TICKETS), {}).get("LatestStreamArn", "")
    latest = watermark.read(TICKETS)
    freshness = Freshness.of(latest, [])
    context = {
        **OperatorSite.context_of(request),
        "title": "Tables and streams",
        "tables": [_row(table, description) for table, description in tables],
        "stream": stream,
        "freshness": freshness,
        "says": _SAYS[freshness.state],
        "written_at": latest.written_at if latest else None,
        "leases": watermark.leases(stream) if stream else [],
    }
    return TemplateResponse(request, "tickets/admin/status.html", context)


def _row(table: Table, description: dict[str, Any] | None) -> dict[str, Any]:
    known = description or {}
    indexes = known.get("GlobalSecondaryIndexes") or []
    return {
        "name": table.full_name,
        "status": known.get("TableStatus", "missing"),
        "items": known.get("ItemCount"),
        "size": known.get("TableSizeBytes"),
        "indexes": ", ".join(f"{i['IndexName']} {i.get('IndexStatus', '')}" for i in indexes),
    }


@OperatorSite.watches
def worker_is_late() -> list[Notice]:
    """Report a stream worker that is late or has stopped: at most one GetItem."""
    freshness = Freshness.of(watermark.read(TICKETS), [])
    if freshness.state == "current":
        return []
    level = "info" if freshness.state == "unknown" else "error"
    order = 40 if freshness.state == "unknown" else 10
    return [Notice(order, _SAYS[freshness.state], reverse("admin:status"), level)]  # type: ignore[arg-type]  # a literal


@OperatorSite.watches_each(registry.tables)
def table_is_not_active(table: Table) -> list[Notice]:
    """Report a table that is missing or not active: one DescribeTable."""
    state = (provisioning.describe(table) or {}).get("TableStatus", "missing")
    return [] if state == "ACTIVE" else [Notice(0, f"{table.full_name} is {state}.", reverse("admin:status"), "error")]
