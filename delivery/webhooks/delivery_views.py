"""Show single deliveries, send them again, and try an endpoint out. Rules are in redelivering.py."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_POST, require_safe

from delivery.webhooks import delivery_log, endpoints, presenters, redelivering
from delivery.webhooks.forms import SendSinceForm
from portal.dynamo.client import fan_out
from portal.errors import Conflict
from portal.plain_text import amount
from portal.web.access import member
from tenants.tenancy.request import TenantRequest
from tenants.tenancy.roles import Role


@member(Role.ADMIN)
@require_safe
def delivery(request: TenantRequest, endpoint: str, delivery: str) -> HttpResponse:
    """Show a delivery with request, answer and attempts. Costs three GetItems at the same time."""
    repository = request.tenant.repository
    reads: list[Any] = [
        partial(endpoints.find, repository, endpoint),
        partial(delivery_log.find, repository, endpoint, delivery),
    ]
    stored, (row, outbox_row) = fan_out(reads)
    page = {
        "endpoint": presenters.endpoint(stored),
        "delivery": presenters.delivery_page(row, outbox_row),
        "looks": presenters.looks_left(request.GET.get("looks")),
    }
    return render(request, "webhooks/delivery.html", page)


@member(Role.ADMIN)
@require_POST
def redeliver(request: TenantRequest, endpoint: str, delivery: str) -> HttpResponse:
    """Send one delivery again."""
    try:
        redelivering.redeliver(request.tenant, endpoint_id=endpoint, name=delivery)
    except Conflict as error:
        messages.error(request, error.message)
    else:
        messages.success(request, "It is being sent again. The result appears here within a moment.")
        return redirect(_watching(reverse("delivery:webhook_delivery", args=[endpoint, delivery])))
    return redirect("delivery:webhook_delivery", endpoint, delivery)


@member(Role.ADMIN)
@require_POST
def redeliver_since(request: TenantRequest, endpoint: str) -> HttpResponse:
    """Send again what was not delivered since a moment, a bounded number at once, and lead on to the rest."""
    address = reverse("delivery:webhook", args=[endpoint])
    form = SendSinceForm(request.POST)
    if not form.is_valid():
        endpoints.find(request.tenant.repository, endpoint)
        messages.error(request, "Enter a day and a time.")
        return redirect(address)
    values = form.cleaned_data
    try:
        sent = redelivering.redeliver_since(request.tenant, endpoint_id=endpoint, **values)
    except Conflict as error:
        messages.error(request, error.message)
        return redirect(address)
    count = f"{amount(sent.count, 'delivery is', 'deliveries are')} being sent again."
    if sent.more_from:
        query = {"more": sent.more_from} | ({"all": "1"} if values["also_answered"] else {})
        messages.success(request, f"{count} There are later ones: go on below.")
        return redirect(f"{address}?{urlencode(query)}")
    messages.success(request, count if sent.count else "There is nothing to send again since then.")
    return redirect(_watching(address) if sent.count else address)


@member(Role.ADMIN)
@require_POST
def test(request: TenantRequest, endpoint: str) -> HttpResponse:
    """Send a test event."""
    try:
        redelivering.send_test(request.tenant, endpoint_id=endpoint)
    except Conflict as error:
        messages.error(request, error.message)
    else:
        messages.success(request, "A test is on its way. The delivery appears below within a moment.")
        return redirect(_watching(reverse("delivery:webhook", args=[endpoint])))
    return redirect("delivery:webhook", endpoint)


def _watching(address: str) -> str:
    """Return the address of a page that looks again by itself, a few times."""
    return f"{address}?{urlencode({'looks': presenters.LOOKS})}"
