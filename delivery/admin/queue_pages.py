"""Show which tenant has which queues, how full they are and how far one tenant's trouble reaches; move a tenant."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import urlencode

from delivery.admin import presenters
from delivery.admin.forms import BlastRadiusForm, QueueMoveForm
from delivery.queues import allocation, blast_radius, depths, queue_sets
from delivery.queues.allocation import Survey
from delivery.queues.blast_radius import PUBLISHED, PUBLISHED_NOISY
from portal.dynamo.client import fan_out
from portal.errors import Conflict, Invalid
from portal.nosql.admin import Notice
from portal.web.access import on_get, on_post
from tenants.operators.operator_site import OperatorSite, actor

_INITIAL = {"size": queue_sets.SIZE, "tenants": 1_240}


@OperatorSite.page("queues/", name="queues", title="Queues")
@on_get(get="queue depths", query="queue set, tenant by name", trips=1, reads=5)
@on_post(
    get="queue depths",
    query="given queues, queue set, tenant by name",
    write="audit row, given queues, queue set, tenant",
    trips=7,
    reads=8,
    writes=20,
)
def queues(request: HttpRequest) -> HttpResponse:
    """Show all queues and the tenants' sets: two Queries and a GetItem at the same time, for up to 5,000 tenants.

    With `?tenant=<slug>` also who shares with that tenant, and a form that moves it.
    """
    reads: list[Any] = [allocation.survey, depths.read]
    survey, seen = fan_out(reads)
    slug = request.GET.get("tenant", "")
    chosen = slug if slug in survey.slugs else ""
    form = QueueMoveForm(request.POST or None) if chosen else None
    if request.method == "POST" and form is not None and form.is_valid() and _moved(request, survey, chosen, form):
        return redirect(f"{reverse('admin:queues')}?{urlencode({'tenant': chosen})}")
    rows, more = presenters.tenant_rows(survey, request.GET.get("q", "").strip().casefold())
    context = {
        **OperatorSite.context_of(request),
        "title": "Queues",
        "rows": presenters.queue_rows(survey, seen),
        "seen": seen,
        "tenants": rows,
        "more": more,
        "shown": presenters.SHOWN,
        "q": request.GET.get("q", ""),
        "number": len(survey.slugs),
        "without": sum(tenant_id not in survey.sets for tenant_id in survey.slugs.values()),
        "worst": blast_radius.worst_pair(survey.named()),
        "unknown": slug if slug and not chosen else "",
        **(_of_tenant(survey, chosen, form) if chosen else {}),
    }
    return TemplateResponse(request, "delivery/admin/queues.html", context)


@OperatorSite.watches
def nobody_delivers() -> list[Notice]:
    """Report that no worker has looked at the queues lately: one GetItem. Without any worker yet there is nothing."""
    seen = depths.read()
    if seen is None or not seen.is_late:
        return []
    since = f"{seen.at:%d %b %Y, %H:%M} UTC"
    text = f"No worker has looked at the queues since {since}: deliveries may be standing still."
    return [Notice(15, text, reverse("admin:queues"), "error")]


def _of_tenant(survey: Survey, slug: str, form: Any) -> dict[str, Any]:
    tenant_id = survey.slugs[slug]
    numbers = allocation.said(survey.sets.get(tenant_id, ()))
    if not form.is_bound:
        form = QueueMoveForm(initial={"seen": numbers.removeprefix("none")})
    near, further = presenters.neighbour_rows(survey, slug)
    return {"slug": slug, "tenant_id": tenant_id, "numbers": numbers, "form": form, "near": near, "further": further}


def _moved(request: HttpRequest, survey: Survey, slug: str, form: QueueMoveForm) -> bool:
    """Give the tenant the set that was typed; False, with the reason in the form, where that cannot be."""
    values = form.cleaned_data
    try:
        now = allocation.move(survey.slugs[slug], to=values["queues"], seen=values["seen"], by=actor(request))
    except (Conflict, Invalid) as error:
        form.add_error("queues", error.message)
        return False
    messages.success(request, f"{slug} has the queues {allocation.said(now)}.")
    return True


@OperatorSite.page("blast-radius/", name="blast_radius", title="Blast radius")
@on_get(query="queue set, tenant by name", trips=1, reads=4)
@on_post(query="queue set, tenant by name", trips=1, reads=4)
def radius(request: HttpRequest) -> HttpResponse:
    """Compute who shares how much: for the numbers chosen, the published table, and this installation.

    Reads two Queries.
    """
    asked = {**_INITIAL, "queues": settings.DELIVERY_QUEUES} | request.GET.dict()
    form = BlastRadiusForm(asked)
    survey = allocation.survey()
    rows: list[dict[str, Any]] = []
    designs: list[dict[str, Any]] = []
    odds = None
    if form.is_valid():
        queues, size, tenants = (form.cleaned_data[name] for name in ("queues", "size", "tenants"))
        if form.is_ours:
            rows.append(presenters.our_row(queues, tenants))
        rows.append(presenters.chance_row(queues, size, tenants))
        designs = presenters.designs(queues, size, tenants, form.cleaned_data["dollars"], with_ours=form.is_ours)
        odds = presenters.odds_row(queues, size)
    rows.append(presenters.published_row())
    named = survey.named()
    rows.append(
        presenters.radius_row(
            "This installation", named, survey.queues, queue_sets.SIZE, len(queue_sets.sets(survey.queues))
        )
    )
    context = {
        **OperatorSite.context_of(request),
        "title": "Blast radius",
        "form": form,
        "rows": rows,
        "designs": designs,
        "odds": odds,
        "slides": presenters.slide_figures(),
        "is_ours": form.is_valid() and form.is_ours,
        "published_near": sorted(blast_radius.neighbours(PUBLISHED, PUBLISHED_NOISY)),
        "published_noisy": PUBLISHED_NOISY,
        "worst": blast_radius.worst_pair(named),
        "number": len(named),
    }
    return TemplateResponse(request, "delivery/admin/blast_radius.html", context)
