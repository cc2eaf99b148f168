"""Show how far one tenant's trouble reaches: as computed for any installation, and for this one."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from delivery.admin import presenters
from delivery.admin.forms import BlastRadiusForm
from delivery.queues import allocation, blast_radius, queue_sets
from delivery.queues.blast_radius import PUBLISHED, PUBLISHED_NOISY
from tenants.operators.operator_site import OperatorSite

_INITIAL = {"size": queue_sets.SIZE, "tenants": 1_240}


@OperatorSite.page("blast-radius/", name="blast_radius", title="Blast radius")
def radius(request: HttpRequest) -> HttpResponse:
    """Compute who shares how much: for the numbers chosen, the published table, and this installation.

    Reads two Queries. The simulation, a second or two of computing in the first call, runs where it is asked for.
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
    is_asked = "simulate" in asked and form.is_valid()
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
        "simulated": presenters.simulated_rows(form.cleaned_data["queues"]) if is_asked else [],
    }
    return TemplateResponse(request, "delivery/admin/blast_radius.html", context)
