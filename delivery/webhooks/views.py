"""Show the endpoints of a desk, and let its admins set them up. Rules are in endpoints.py and rotation.py."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from delivery.outbox.event_types import ENVELOPE
from delivery.queues import holds
from delivery.webhooks import delivery_log, endpoints, presenters, redelivering, rotation, webhook_events
from delivery.webhooks.forms import EndpointForm, SendSinceForm, VersionForm
from delivery.webhooks.stored import EndpointItem
from portal import clock
from portal.dynamo.client import fan_out
from portal.errors import Conflict
from portal.web.access import get_or_post, member
from tenants.tenancy.request import TenantRequest, actor_of
from tenants.tenancy.roles import Role


@member(Role.ADMIN)
@require_safe
def webhooks(request: TenantRequest) -> HttpResponse:
    """List the endpoints. Costs one Query, and at the same time a GetItem of what holds deliveries back."""
    repository = request.tenant.repository
    reads: list[Any] = [partial(endpoints.listed, repository), partial(holds.hold_of, repository.tenant_id)]
    found, hold = fan_out(reads)
    page = {
        "endpoints": [presenters.endpoint(item) for item in found],
        "most": endpoints.MOST,
        "held": holds.said_to_admins(hold),
    }
    return render(request, "webhooks/endpoints.html", page)


@member(Role.ADMIN)
@get_or_post
def new(request: TenantRequest) -> HttpResponse:
    """Add an endpoint and show its secret, once."""
    form = EndpointForm(request.POST or None, initial={"request_id": uuid.uuid4().hex})
    if request.method == "POST" and form.is_valid():
        request_id = form.cleaned_data["request_id"] or uuid.uuid4().hex
        try:
            item, secret = endpoints.add(
                request.tenant, choice=form.choice, request_id=request_id, by=actor_of(request)
            )
        except Conflict as error:
            form.add_error(None, error.message)
        else:
            return _secret(request, item, secret, is_new=True)
    page = {"form": form, "receiver": settings.WEBHOOK_RECEIVER, "is_new": True}
    return render(request, "webhooks/endpoint_form.html", page, status=422 if form.is_bound else 200)


@member(Role.ADMIN)
@get_or_post
def edit(request: TenantRequest, endpoint: str) -> HttpResponse:
    """Change the address, the description and the events of an endpoint."""
    stored = endpoints.find(request.tenant.repository, endpoint)
    form = EndpointForm(request.POST) if request.method == "POST" else EndpointForm.of(stored)
    if request.method == "POST" and form.is_valid():
        version = form.cleaned_data["version"] or 0
        try:
            endpoints.change(
                request.tenant,
                endpoint_id=endpoint,
                choose=lambda item: form.choice,
                version=version,
                by=actor_of(request),
            )
        except Conflict as error:
            form.add_error(None, error.message)
        else:
            messages.success(request, "Endpoint saved.")
            return redirect("delivery:webhook", endpoint)
    page = {"form": form, "receiver": settings.WEBHOOK_RECEIVER, "endpoint": presenters.endpoint(stored)}
    return render(request, "webhooks/endpoint_form.html", page, status=422 if form.is_bound else 200)


@member(Role.ADMIN)
@require_safe
def webhook(request: TenantRequest, endpoint: str) -> HttpResponse:
    """Show an endpoint with a page of its deliveries. Costs two GetItems and one Query at the same time."""
    repository, after = request.tenant.repository, request.GET.get("after")
    reads: list[Any] = [
        partial(endpoints.find, repository, endpoint),
        partial(delivery_log.page, repository, endpoint, after=after),
        partial(holds.hold_of, repository.tenant_id),
    ]
    stored, log, hold = fan_out(reads)
    day_ago = presenters.datetime_local(clock.now() - timedelta(days=1))
    more_from = request.GET.get("more", "")
    page = {
        "endpoint": presenters.endpoint(stored),
        "rows": [presenters.delivery(row) for row in log.rows],
        "log": log,
        "held": holds.said_to_admins(hold),
        "is_first": not after,
        "form": SendSinceForm(initial={"since": day_ago}),
        "more_from": more_from if clock.is_stamp(more_from) else "",
        "also_answered": "all" in request.GET,
        "at_once": redelivering.AT_ONCE,
        "looks": presenters.looks_left(request.GET.get("looks")),
    }
    return render(request, "webhooks/endpoint.html", page)


@member(Role.ADMIN)
@get_or_post
def rotate(request: TenantRequest, endpoint: str) -> HttpResponse:
    """Ask first, on a page of its own, then replace the secret and show the new one, once."""
    form = VersionForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        version = form.cleaned_data["version"]
        try:
            item, secret = rotation.rotate(request.tenant, endpoint_id=endpoint, version=version, by=actor_of(request))
        except Conflict as error:
            messages.error(request, error.message)
            return redirect("delivery:webhook", endpoint)
        return _secret(request, item, secret, is_new=False)
    stored = presenters.endpoint(endpoints.find(request.tenant.repository, endpoint))
    return render(request, "webhooks/rotate.html", {"endpoint": stored}, status=422 if form.is_bound else 200)


def _secret(request: TenantRequest, item: EndpointItem, secret: str, *, is_new: bool) -> HttpResponse:
    """Show a secret in the answer to the form itself: it is in no address, cookie or log."""
    page = {"endpoint": presenters.endpoint(item), "secret": secret, "is_new": is_new}
    return render(request, "webhooks/secret.html", page)


@member(Role.ADMIN)
@get_or_post
def pause(request: TenantRequest, endpoint: str) -> HttpResponse:
    """Ask first, because what happens meanwhile is not kept, then pause the endpoint."""
    if request.method != "POST":
        stored = presenters.endpoint(endpoints.find(request.tenant.repository, endpoint))
        return render(request, "webhooks/pause.html", {"endpoint": stored})
    return _acted(request, endpoint, endpoints.pause, "Paused.")


@member(Role.ADMIN)
@require_POST
def resume(request: TenantRequest, endpoint: str) -> HttpResponse:
    """Resume an endpoint."""
    return _acted(request, endpoint, endpoints.resume, "Resumed. Events are sent from now on.")


def _acted(request: TenantRequest, endpoint: str, act: Callable[..., object], done: str) -> HttpResponse:
    try:
        act(request.tenant, endpoint_id=endpoint, by=actor_of(request))
    except Conflict as error:
        messages.error(request, error.message)
    else:
        messages.success(request, done)
    return redirect("delivery:webhook", endpoint)


@member(Role.ADMIN)
@get_or_post
def remove(request: TenantRequest, endpoint: str) -> HttpResponse:
    """Ask first, on a page of its own, then remove the endpoint."""
    if request.method != "POST":
        stored = presenters.endpoint(endpoints.find(request.tenant.repository, endpoint))
        return render(request, "webhooks/remove.html", {"endpoint": stored})
    try:
        endpoints.remove(request.tenant, endpoint_id=endpoint, by=actor_of(request))
    except Conflict as error:
        messages.error(request, error.message)
        return redirect("delivery:webhook", endpoint)
    messages.success(request, "The endpoint was removed.")
    return redirect("delivery:webhooks")


@member(Role.ADMIN)
@require_safe
def event_types(request: TenantRequest) -> HttpResponse:
    """Show what can be subscribed to, with an example of each. Reads nothing."""
    kinds = [*webhook_events.offered(), webhook_events.TEST]
    page = {
        "kinds": [presenters.event_type(request.tenant, kind) for kind in kinds],
        "envelope": presenters.fields(ENVELOPE),
    }
    return render(request, "webhooks/event_types.html", page)
