"""Show operators who is noisy now, who suffers, and what the system did about it."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from delivery.queues import depths, holds
from portal import clock
from portal.dynamo.client import fan_out
from portal.load import noise_report
from portal.load.noise_report import LATE_MINUTES
from portal.streams import watermark
from tenants.operators.operator_site import OperatorSite
from tenants.tenancy import tenant_directory
from tickets.admin import noise_presenters as presenters
from tickets.sharding import reshard_requests
from tickets.ticket.stored import TICKETS

SPANS: Final = (5, 15, 30)  # minutes
_USUAL: Final = 15
_REFRESH_SECONDS: Final = 15
_HOLDS: Final = 20  # that are named


@OperatorSite.page("noise/", name="noise", title="Noise")
def noise(request: HttpRequest) -> HttpResponse:
    """Show the last 5, 15 or 30 minutes, `?minutes=`: a Query for each, two more, two GetItems and a BatchGetItem in
    two round trips, however many tenants there are."""
    asked = request.GET.get("minutes", "")
    minutes = next((span for span in SPANS if str(span) == asked), _USUAL)
    reads: list[Any] = [
        partial(noise_report.read, minutes=minutes, now=clock.now()),
        depths.read,
        partial(holds.waiting, limit=_HOLDS),
        reshard_requests.all_last,
        partial(watermark.read, TICKETS),
    ]
    board, seen, held, reshardings, mark = fan_out(reads)
    named = [one.tenant_id for one in (*board.noisiest(presenters.NAMED), *board.suffering(presenters.NAMED))]
    tenants = {tenant.tenant_id: tenant for tenant in tenant_directory.get_many(sorted({*named}))} if named else {}
    context = {
        **OperatorSite.context_of(request),
        "title": "Noise",
        "board": board,
        "minutes": minutes,
        "spans": SPANS,
        "late_minutes": LATE_MINUTES,
        "refresh": _REFRESH_SECONDS,
        "told_by": presenters.told_by(board),
        "noisy": presenters.noisy_rows(board, tenants),
        "suffering": presenters.suffering_rows(board, tenants),
        "deeds": presenters.deeds(board, held, reshardings),
        "rest": presenters.rest(board),
        "queues": presenters.queue_summary(seen),
        "oldest": presenters.oldest(board),
        "lag": presenters.lag(mark.as_of if mark else None),
        "is_counted": mark is not None,
    }
    return TemplateResponse(request, "tickets/admin/noise.html", context)
