"""Describe the tables and the stream's worker; nothing is counted."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse

from delivery.timers import due
from portal.dynamo import provisioning
from portal.dynamo.client import fan_out
from portal.nosql.admin import Notice
from portal.schema import registry
from portal.schema.registry import Table
from portal.streams import stream_source, watermark
from portal.streams.stream_source import StreamSource
from portal.web.access import on_get, on_post
from tenants.operators.operator_site import OperatorSite
from tenants.tenancy import tenant_directory
from tickets.dashboards.dashboard import Freshness
from tickets.ticket.stored import TICKETS

OWN_SHOWN: Final = 100  # streams of tenants' own tables that are looked at
_SAYS = {
    "current": "The stream worker keeps up.",
    "stopped": "The stream worker has stopped: numbers stand still.",
    "behind": "The stream worker is behind: numbers are late.",
    "unknown": "No stream worker has reported yet. Neither run_stream nor the function stream-worker was started.",
}


def described() -> list[tuple[Table, dict[str, Any] | None]]:
    """Return each declared table with the engine's description, None where it is missing; all calls at once."""
    tables = registry.tables()
    return list(zip(tables, fan_out([partial(provisioning.describe, table) for table in tables]), strict=True))


@OperatorSite.page("status/", name="status", title="Tables and streams")
@on_get(get="placed stream, watermark", query="due rows by time, placed tenant, watermark", trips=9, reads=12)
@on_post(query="due rows by time, placed tenant, watermark", trips=5, reads=6)
def status(request: HttpRequest) -> HttpResponse:
    """Show the tables and the stream. Counts and sizes are DynamoDB's own estimates, up to six hours old."""
    tables = described()
    stream = next((d or {} for table, d in tables if table == TICKETS), {}).get("LatestStreamArn", "")
    latest = watermark.read(TICKETS)
    freshness = Freshness.of(latest)
    context = {
        **OperatorSite.context_of(request),
        "title": "Tables and streams",
        "tables": [_row(table, description) for table, description in tables],
        "stream": stream,
        "freshness": freshness,
        "says": _SAYS[freshness.state],
        "written_at": latest.written_at if latest else None,
        "leases": watermark.unfinished(stream) if stream else [],
        "due_behind": round(due.worst_lag()),
        **_own_streams(),
    }
    return TemplateResponse(request, "tickets/admin/status.html", context)


def _own_streams() -> dict[str, Any]:
    """Return how far the streams of up to OWN_SHOWN tenants' own tables are applied, and how many there are.

    Costs a Query, a GetItem for each stream and one BatchGetItem for the tenants' names.
    """
    sources = stream_source.placed()
    shown = sources[:OWN_SHOWN]
    found = fan_out([partial(_freshness_of, source) for source in shown])
    ids = list(dict.fromkeys(source.tenant_id for source in shown))
    slugs = {tenant.tenant_id: tenant.slug for tenant in (tenant_directory.get_many(ids) if ids else [])}
    rows = [
        {
            "tenant": slugs.get(source.tenant_id, source.tenant_id),
            "placement": str(source.placement),
            "freshness": freshness,
            "says": _SAYS[freshness.state],
        }
        for source, freshness in zip(shown, found, strict=True)
    ]
    return {"own_streams": rows, "own_streams_count": len(sources)}


def _freshness_of(source: StreamSource) -> Freshness:
    with source.entered():
        return Freshness.of(watermark.read(TICKETS))


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
    freshness = Freshness.of(watermark.read(TICKETS))
    if freshness.state == "current":
        return []
    level = "info" if freshness.state == "unknown" else "error"
    order = 40 if freshness.state == "unknown" else 10
    return [Notice(order, _SAYS[freshness.state], reverse("admin:status"), level)]  # type: ignore[arg-type]  # a literal


@OperatorSite.watches
def due_rows_are_late() -> list[Notice]:
    """Report what waits for a moment that has passed: a Query of one row for each shard."""
    lag = due.summary_of_lag()
    if not lag["late"]:
        return []
    text = f"What waits for a moment, such as a snoozed ticket, is {lag['behind']} s late."
    return [Notice(11, text, reverse("admin:status"), "error")]


@OperatorSite.watches
def own_streams_are_late() -> list[Notice]:
    """Report tenants' own streams whose worker is late or has stopped: a Query, and a GetItem for each of OWN_SHOWN."""
    sources = stream_source.placed()[:OWN_SHOWN]
    if not sources:
        return []
    states = [freshness.state for freshness in fan_out([partial(_freshness_of, source) for source in sources])]
    late = sum(state in ("behind", "stopped") for state in states)
    if not late:
        return []
    what = "stream of a tenant's own tables is" if late == 1 else "streams of tenants' own tables are"
    return [
        Notice(11, f"{late} {what} not followed in time: their numbers are late.", reverse("admin:status"), "error")
    ]


@OperatorSite.watches
def tables_run_short() -> list[Notice]:
    """Report an account that has nearly as many tables as it may: a ListTables for each hundred tables."""
    return [
        Notice(12, f"{f'The site {site}' if site else 'The account'} has {use}.", reverse("admin:places"), "error")
        for site, use in provisioning.counted_tables()
        if use and use.is_nearly_full
    ]


@OperatorSite.watches_each(registry.tables)
def table_is_not_active(table: Table) -> list[Notice]:
    """Report a table that is missing, not active or not as declared: DescribeTable, DescribeTimeToLive."""
    described = provisioning.describe(table) or {}
    state = described.get("TableStatus", "missing")
    if state != "ACTIVE":
        return [Notice(0, f"{table.full_name} is {state}.", reverse("admin:status"), "error")]
    return [
        Notice(0, f"{one}.", reverse("admin:status"), "info" if one.mend == provisioning.DROP_OLD else "error")
        for one in provisioning.differences(table, described)
    ]
