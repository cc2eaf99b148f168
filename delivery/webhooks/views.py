"""Show the endpoints of a desk with their deliveries, and let its admins set them up, test them and send again."""

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
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from delivery.outbox.publisher import ENVELOPE
from delivery.queues import holds
from delivery.webhooks import delivery_log, endpoints, presenters
from delivery.webhooks.forms import EndpointForm, SendSinceForm, VersionForm
from delivery.webhooks.stored import EndpointItem
from portal import clock
from portal.dynamo.client import fan_out
from portal.errors import Conflict
from portal.web import locales
from portal.web.access import member, on_get, on_post
from portal.web.conflicts import status_of, told_in
from tenants.tenancy.context import Role, TenantContext
from tenants.tenancy.request import TenantRequest, actor_of, refusal_told


@member(Role.ADMIN)
@on_get(get="hold of deliveries", query="webhook", trips=1, reads=3)
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
@on_get()
@on_post(query="webhook", write="audit row, membership, tenant, webhook, webhook secret", trips=4, reads=5, writes=25)
def new(request: TenantRequest) -> HttpResponse:
    """Add an endpoint and show its secret, once."""
    form = EndpointForm(request.POST or None, initial={"request_id": uuid.uuid4().hex})
    if request.method == "POST" and form.is_valid():
        request_id = form.cleaned_data["request_id"] or uuid.uuid4().hex
        with told_in(form):
            item, secret = endpoints.add(
                request.tenant, choice=form.choice, request_id=request_id, by=actor_of(request)
            )
            return _secret(request, item, secret, is_new=True)
    page = {"form": form, "receiver": settings.WEBHOOK_RECEIVER, "is_new": True}
    return render(request, "webhooks/endpoint_form.html", page, status=422 if form.is_bound else 200)


@member(Role.ADMIN)
@on_get(get="webhook", trips=1, reads=2)
@on_post(get="webhook", write="audit row, membership, tenant, webhook", trips=5, reads=6, writes=20)
def edit(request: TenantRequest, endpoint: str) -> HttpResponse:
    """Change the address, the description and the events of an endpoint."""
    stored = endpoints.find(request.tenant.repository, endpoint)
    form = EndpointForm(request.POST) if request.method == "POST" else EndpointForm.of(stored)
    if request.method == "POST" and form.is_valid():
        seen, choose = form.cleaned_data["version"] or 0, lambda item: form.choice
        with told_in(form, lambda: EndpointForm.of(stored)):
            endpoints.change(request.tenant, endpoint_id=endpoint, choose=choose, version=seen, by=actor_of(request))
            messages.success(request, _("Endpoint saved."))
            return redirect("delivery:webhook", endpoint)
    page = {"form": form, "receiver": settings.WEBHOOK_RECEIVER, "endpoint": presenters.endpoint(stored)}
    return render(request, "webhooks/endpoint_form.html", page, status=status_of(form))


@member(Role.ADMIN)
@on_get(get="hold of deliveries, webhook", query="delivery", trips=1, reads=10)
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
        "at_once": delivery_log.AT_ONCE,
        "looks": presenters.looks_left(request.GET.get("looks")),
    }
    return render(request, "webhooks/endpoint.html", page)


@member(Role.ADMIN)
@on_get(get="webhook", trips=1, reads=2)
@on_post(
    get="webhook, webhook secret", write="audit row, membership, webhook, webhook secret", trips=4, reads=6, writes=20
)
def rotate(request: TenantRequest, endpoint: str) -> HttpResponse:
    """Ask first, on a page of its own, then replace the secret and show the new one, once."""
    form = VersionForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        version = form.cleaned_data["version"]
        with refusal_told(request, Conflict):
            item, secret = endpoints.rotate(request.tenant, endpoint_id=endpoint, version=version, by=actor_of(request))
            return _secret(request, item, secret, is_new=False)
        return redirect("delivery:webhook", endpoint)
    stored = presenters.endpoint(endpoints.find(request.tenant.repository, endpoint))
    return render(request, "webhooks/rotate.html", {"endpoint": stored}, status=422 if form.is_bound else 200)


def _secret(request: TenantRequest, item: EndpointItem, secret: str, *, is_new: bool) -> HttpResponse:
    """Show a secret in the answer to the form itself: it is in no address, cookie or log."""
    page = {"endpoint": presenters.endpoint(item), "secret": secret, "is_new": is_new}
    return render(request, "webhooks/secret.html", page)


@member(Role.ADMIN)
@on_get(get="webhook", trips=1, reads=2)
@on_post(get="webhook", write="audit row, membership, tenant, webhook", trips=4, reads=5, writes=20)
def pause(request: TenantRequest, endpoint: str) -> HttpResponse:
    """Ask first, because what happens meanwhile is not kept, then pause the endpoint."""
    if request.method != "POST":
        stored = presenters.endpoint(endpoints.find(request.tenant.repository, endpoint))
        return render(request, "webhooks/pause.html", {"endpoint": stored})
    return _acted(
        request, partial(endpoints.pause, endpoint_id=endpoint, by=actor_of(request)), _("Paused."), _at(endpoint)
    )


@member(Role.ADMIN)
@on_post(get="webhook", write="audit row, membership, tenant, webhook", trips=4, reads=5, writes=20)
def resume(request: TenantRequest, endpoint: str) -> HttpResponse:
    act = partial(endpoints.resume, endpoint_id=endpoint, by=actor_of(request))
    return _acted(request, act, _("Resumed. Events are sent from now on."), _at(endpoint))


@member(Role.ADMIN)
@on_get(get="webhook", trips=1, reads=2)
@on_post(get="webhook", write="audit row, membership, tenant, webhook, webhook secret", trips=4, reads=5, writes=25)
def remove(request: TenantRequest, endpoint: str) -> HttpResponse:
    """Ask first, on a page of its own, then remove the endpoint."""
    if request.method != "POST":
        stored = presenters.endpoint(endpoints.find(request.tenant.repository, endpoint))
        return render(request, "webhooks/remove.html", {"endpoint": stored})
    act, then = partial(endpoints.remove, endpoint_id=endpoint, by=actor_of(request)), reverse("delivery:webhooks")
    return _acted(request, act, _("The endpoint was removed."), _at(endpoint), then=then)


def _at(endpoint: str) -> str:
    return reverse("delivery:webhook", args=[endpoint])


def _acted(
    request: TenantRequest, act: Callable[[TenantContext], object], done: str, page: str, *, then: str = ""
) -> HttpResponse:
    """Do it, and lead back to the page with what came of it, or to `then` where it was done."""
    with refusal_told(request, Conflict):
        act(request.tenant)
        messages.success(request, done)
        return redirect(then or page)
    return redirect(page)


@member(Role.ADMIN)
@on_get()
def event_types(request: TenantRequest) -> HttpResponse:
    """Show what can be subscribed to, with an example of each. Reads nothing."""
    kinds = [*endpoints.offered(), endpoints.TEST]
    page = {
        "kinds": [presenters.event_type(request.tenant, kind) for kind in kinds],
        "envelope": presenters.fields(ENVELOPE),
    }
    return render(request, "webhooks/event_types.html", page)


# --- deliveries ---


@member(Role.ADMIN)
@on_get(get="delivery, outbox row, webhook", trips=1, reads=3)
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
@on_post(get="delivery, outbox row, webhook", write="delivery, outbox row", trips=7, reads=5, writes=6)
def redeliver(request: TenantRequest, endpoint: str, delivery: str) -> HttpResponse:
    page = reverse("delivery:webhook_delivery", args=[endpoint, delivery])
    act = partial(delivery_log.redeliver, endpoint_id=endpoint, name=delivery)
    done = _("It is being sent again. The result appears here within a moment.")
    return _acted(request, act, done, page, then=_watching(page))


@member(Role.ADMIN)
@on_post(get="outbox row, webhook", query="delivery", write="delivery, outbox row", trips=7, reads=10, writes=20)
def redeliver_since(request: TenantRequest, endpoint: str) -> HttpResponse:
    """Send again what was not delivered since a moment, a bounded number at once, and lead on to the rest."""
    address = _at(endpoint)
    form = SendSinceForm(request.POST)
    if not form.is_valid():
        endpoints.find(request.tenant.repository, endpoint)
        messages.error(request, _("Enter a day and a time."))
        return redirect(address)
    values = form.cleaned_data
    with refusal_told(request, Conflict):
        sent = delivery_log.redeliver_since(request.tenant, endpoint_id=endpoint, **values)
        count = ngettext(
            "%(num)s delivery is being sent again.", "%(num)s deliveries are being sent again.", sent.count
        )
        count = count % {"num": locales.current().number(sent.count)}
        if sent.more_from:
            query = {"more": sent.more_from} | ({"all": "1"} if values["also_answered"] else {})
            messages.success(request, _("%(count)s There are later ones: go on below.") % {"count": count})
            return redirect(f"{address}?{urlencode(query)}")
        messages.success(request, count if sent.count else _("There is nothing to send again since then."))
        return redirect(_watching(address) if sent.count else address)
    return redirect(address)


@member(Role.ADMIN)
@on_post(get="webhook", write="outbox row", trips=4, reads=2, writes=6)
def test(request: TenantRequest, endpoint: str) -> HttpResponse:
    act = partial(delivery_log.send_test, endpoint_id=endpoint)
    done = _("A test is on its way. The delivery appears below within a moment.")
    return _acted(request, act, done, _at(endpoint), then=_watching(_at(endpoint)))


def _watching(address: str) -> str:
    """Return the address of a page that looks again by itself, a few times."""
    return f"{address}?{urlencode({'looks': presenters.LOOKS})}"
