"""Send a list of the queue as a file."""

from __future__ import annotations

from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_POST

from portal import clock, spreadsheet
from portal.web.access import member, open_while_closing
from portal.web.heavy_work import heavy
from tenants.audit_trail import recording
from tenants.audit_trail.recording import AuditAction, AuditEntry
from tenants.tenancy.request import TenantRequest, actor_of
from tenants.tenancy.roles import Role
from tickets.desk.filter_presenters import QueueAddress
from tickets.exporting import list_rows


@open_while_closing
@member(Role.VIEWER)
@require_POST
@heavy
def export(request: TenantRequest) -> HttpResponseBase:
    """Send all tickets of a list as CSV while they are read. The export is recorded in the audit trail."""
    tenant = request.tenant
    address = QueueAddress.of(request.POST.dict())
    chosen = {name: value for name, value in address.params.items() if value}
    recording.record(
        AuditEntry(
            tenant.tenant_id, AuditAction.EXPORT_MADE, actor_of(request), "export", "tickets", "tickets", after=chosen
        )
    )
    rows = list_rows.everything(tenant, statuses=address.statuses, resolver=address.resolver(tenant), only=address.only)
    name = f"tickets-{tenant.slug}-{clock.now():%Y%m%d-%H%M%S}.csv"
    return StreamingHttpResponse(
        spreadsheet.lines(list_rows.COLUMNS, map(list_rows.cells, rows)),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )
