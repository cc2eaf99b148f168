"""Show how a tenant's search index stands, and search in its tickets as the tenant would, once its content is open."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.contrib.admin.utils import quote
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import urlencode

from portal import clock
from portal.dynamo.client import alongside
from portal.errors import Invalid
from portal.web.access import on_get, on_post
from tenants.operators import content_access
from tenants.operators.operator_site import OperatorSite
from tenants.tenancy import context, tenant_directory
from tenants.tenancy.stored import TenantItem
from tickets.dashboards.charts import lag
from tickets.dashboards.dashboard import Freshness
from tickets.search import index_check, presenters, ticket_search, tokenizer
from tickets.search.results import Hit
from tickets.ticket.fields import Status


@OperatorSite.page("search/", name="search", title="Search")
@on_get(
    get="counter, placed stream, search segment, slug, ticket, watermark",
    query="search directory, ticket",
    trips=4,
    reads=15,
)
@on_post()
def search(request: HttpRequest) -> HttpResponse:
    """Show, with `?tenant=<slug>`, the state of its index, and with `q` what this finds in its tickets."""
    slug, text = (request.GET.get(name, "").strip() for name in ("tenant", "q"))
    tenant = tenant_directory.with_slug(slug)
    page = {
        **OperatorSite.context_of(request),
        "title": "Search",
        "slug": slug,
        "text": text,
        "unknown": slug and tenant is None,
        "tenant": tenant,
        "newest_version": tokenizer.VERSION,
    }
    if tenant is not None:
        page |= _of_tenant(request, tenant, text, request.GET.get("after", ""))
    return TemplateResponse(request, "search/admin.html", page)


def _of_tenant(request: HttpRequest, tenant: TenantItem, text: str, after: str) -> dict[str, Any]:
    read_state = partial(index_check.report, context.for_system(tenant).repository)
    if not text or not content_access.is_open(request, [tenant.tenant_id]):
        return {"index": _index(read_state())}
    try:
        find = partial(ticket_search.find, context.for_system(tenant), text, further=after)
        found, report = alongside(find, aside=read_state)
    except Invalid as error:
        return {"index": _index(read_state()), "problem": error.message}
    further = {"tenant": tenant.slug, "q": text, "after": found.further}
    return {
        "index": _index(report),
        "found": found,
        "hits": [_hit(tenant.tenant_id, hit) for hit in found.hits],
        "further_url": f"{reverse('admin:search')}?{urlencode(further)}" if found.further else "",
    }


def _hit(tenant_id: str, hit: Hit) -> dict[str, Any]:
    """Return a hit with its address in the operators' own site: they belong to no desk."""
    number = int(hit.summary.number)
    return {
        **presenters.hit_text(hit),
        "number": number,
        "url": reverse("admin:tickets_ticket_change", args=[quote(f"{tenant_id}/{number}")]),
        "status": Status(hit.summary.status).label,
        "updated_at": clock.parse(hit.summary.updated_at),
    }


def _index(report: index_check.IndexReport) -> dict[str, Any]:
    freshness = Freshness.of(report.as_of)
    return {"report": report, "freshness": freshness, "behind": lag(freshness.seconds)}
