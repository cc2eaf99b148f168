"""Let owners attack their desk: ask, watch, stop, download. Rules are in run_requests.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from django.http import HttpResponse
from django.shortcuts import redirect, render

from portal.dynamo.client import fan_out
from portal.errors import Conflict, Throttled
from portal.web.access import for_auditors, in_person, member, on_get, on_post, open_while_closing
from tenants.tenancy.context import Role
from tenants.tenancy.request import TenantRequest, actor_of, refusal_told
from tickets.isolation_runs import platform_proofs, presenters, run_requests
from tickets.isolation_runs.attempts import RunPlan


@for_auditors
@member(Role.OWNER)
@on_get(query="isolation proof, isolation run, past isolation run", trips=4, reads=15)
def isolation_page(request: TenantRequest) -> HttpResponse:
    """Show the last run and how far it is, those before, and the operators' last proof: three Queries, in one
    round trip."""
    tenant, plan = request.tenant, RunPlan()
    read: list[Any] = fan_out(
        [lambda: run_requests.last(tenant), lambda: run_requests.former(tenant), platform_proofs.last]
    )
    item, former, proof = read
    page = {
        "verdict": presenters.verdict(item, can_attack=tenant.is_owner),
        "run": presenters.run_page(item, plan) if item else None,
        "layers": presenters.layers(item),
        "former": [*presenters.former_page(former)],
        "proof": presenters.proof_page(proof),
        "left": run_requests.left_today(item),
        "a_day": run_requests.A_DAY,
        "attempts": run_requests.ATTEMPTS,
        "kinds": len(plan.kinds),
        "can_attack": tenant.is_owner,
        "command": presenters.VERIFY,
    }
    return render(request, "isolation_runs/isolation.html", page)


_changes_run: Final = on_post(
    query="isolation run", write="audit row, isolation run, membership", trips=8, reads=15, writes=40
)


@in_person
@member(Role.OWNER)
@_changes_run
def attack(request: TenantRequest) -> HttpResponse:
    return _done(request, run_requests.ask)


@in_person
@member(Role.OWNER)
@_changes_run
def stop(request: TenantRequest) -> HttpResponse:
    return _done(request, run_requests.cancel)


@open_while_closing
@for_auditors
@member(Role.OWNER)
@on_post(
    query="file of an isolation run, past isolation run",
    write="audit row",
    trips=5,
    reads=62,
    writes=10,
    room="a signed page of 400 KB",
)
def download(request: TenantRequest, run: str) -> HttpResponse:
    """Send the signed page of a run, and record that in the audit trail: two Queries and a write."""
    item, content = run_requests.fetch(request.tenant, run, by=actor_of(request))
    name = f"{request.tenant.slug}-isolation-{item.begun_at[:10]}-{item.run_id[:6]}.html"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(content, content_type="text/html; charset=utf-8", headers=headers)


def _done(request: TenantRequest, act: Callable[..., None]) -> HttpResponse:
    # Without a message: the page says how far the run is, and a message would still stand there when it has ended.
    with refusal_told(request, Conflict, Throttled):
        act(request.tenant, by=actor_of(request))
    return redirect("tickets:isolation")
