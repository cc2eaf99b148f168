"""Answer searches: the page of what is found, and what is offered while somebody types."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from portal.dynamo.client import alongside
from portal.errors import Invalid
from portal.load import measurement, tenant_limiter
from portal.load.measurement import NoiseTally
from portal.load.tenant_limiter import TooHeavy
from portal.streams import watermark
from portal.web import desk_prefix
from portal.web.access import member, on_get
from tenants.membership.members import DeskMembership, memberships_of
from tenants.tenancy.context import Role, TenantContext
from tenants.tenancy.request import TenantRequest
from tickets.articles.presenters import beside_tickets
from tickets.dashboards.dashboard import Freshness
from tickets.saved_views import presenters as view_presenters
from tickets.saved_views import saved_views
from tickets.search import presenters, suggesting, ticket_search
from tickets.search.presenters import NEWEST, SearchAddress
from tickets.search.ticket_search import NOTHING_INDEXED
from tickets.ticket.stored import TICKETS

DESKS = 200  # that the palette offers; the page of all desks finds the others


@member(Role.VIEWER)
@on_get(
    get="article, counter, help centre, placed stream, requester, search segment, ticket, watermark",
    query="help centre, members by name, noted tickets, requesters by name, search directory, ticket, tickets by "
    "status",
    trips=10,
    reads=1_200,
    room="96 blocks of 16 KB, 30 histories of 200 entries of 300 characters, and as many for a similar word",
)
def search(request: TenantRequest) -> HttpResponse:
    """Show the tickets that a text finds, the best first. Errors of a query are explained on the same page."""
    params = request.GET.dict()
    try:
        if meant := presenters.tidied(params):
            return redirect(meant)
        address = SearchAddress.of(params)
        if not address.text:
            return render(request, "search/results.html", presenters.waiting_page(request.tenant, address))
        if meant := presenters.with_its_tabs(request.tenant, address):
            return redirect(meant)
        with place_for_a_search(request.tenant):
            context = _results(request.tenant, address, params.get("after", ""))
    except Invalid as error:
        return render(
            request, "search/results.html", presenters.refused_page(request.tenant, params, error), status=400
        )
    except TooHeavy as error:
        context = presenters.busy_page(request.tenant, address, error.message, here=request.get_full_path())
        response = render(request, "search/results.html", context, status=429)
        response["Retry-After"], response["Cache-Control"] = str(error.retry_after), "no-store"
        return response
    return render(request, "search/results.html", context)


@member(Role.VIEWER)
@on_get(
    get="counter, search segment, ticket",
    query="members by name, search directory",
    trips=3,
    reads=130,
    room="48 blocks of 16 KB, of a beginning that the words of very many tickets have",
)
def suggest(request: TenantRequest) -> HttpResponse:
    """Offer what a text that is still being typed may mean, as options for the list below the box.

    204 without a text: somebody is about to search, and what that needs has been read.
    """
    text = request.GET.get("q", "").strip()
    try:
        with place_for_a_search(request.tenant):
            if not text:
                suggesting.warm(request.tenant)
                return HttpResponse(status=204)
            suggested = suggesting.suggest(request.tenant, text)
    except TooHeavy as error:
        return HttpResponse(status=429, headers={"Retry-After": str(error.retry_after), "Cache-Control": "no-store"})
    context = {"suggested": presenters.suggestions(request.tenant, suggested)}
    return render(request, "search/suggestions.html", context)


@member(Role.VIEWER)
@on_get(get="agent, saved views", query="membership", trips=2, reads=10)
def commands(request: TenantRequest) -> HttpResponse:
    """Name what the command palette leads to beside the page's own links: saved views, the starred ones first, the
    desk's pages, and other desks of the caller. Views and desks are read together. Nobody who acts as a member is led
    to that member's other desks."""
    ask_views = partial(saved_views.read, request.tenant)
    mine: list[DeskMembership] = []
    if request.acting:
        views = ask_views()
    else:
        views, mine = alongside(ask_views, aside=partial(memberships_of, str(request.user.pk)))
    others = [view for view in (*views.desk, *views.own) if view.id not in views.stars]
    shown = [view_presenters.shown(request.tenant, view) for view in (*views.starred, *others)]
    desks = []
    for one in [m for m in mine if m.tenant_id != request.tenant.tenant_id][:DESKS]:
        with desk_prefix.addresses_of(one.slug):
            desks.append({"name": one.name, "slug": one.slug, "url": desk_prefix.address("tickets:queue")})
    return render(request, "search/commands.html", {"desks": desks, "views": shown})


def _results(tenant: TenantContext, address: SearchAddress, after: str) -> dict[str, object]:
    find = partial(
        ticket_search.find,
        tenant,
        address.text,
        newest_first=address.order == NEWEST,
        further=after,
        within=address.within(tenant),
    )
    articles = partial(beside_tickets, tenant, "" if after or address.is_narrowed else address.text)
    late = partial(watermark.read, TICKETS, tenant.repository)
    (found, beside), latest = alongside(partial(alongside, find, aside=articles), aside=late)
    is_new = not found.hits and not found.further and not after and NOTHING_INDEXED not in found.explanations
    meant = suggesting.meant(tenant, address.text, address.within(tenant)) if is_new else ""
    return presenters.results_page(tenant, address, found, Freshness.of(latest), after=after, meant=meant) | beside


@contextmanager
def place_for_a_search(tenant: TenantContext) -> Iterator[None]:
    """Take one of the tenant's places for searches. Raises TooHeavy where all are taken, and none is left soon."""
    if not tenant_limiter.searches.enter(tenant.tenant_id, wait=tenant_limiter.SEARCH_WAIT_SECONDS):
        measurement.note(tenant.tenant_id, NoiseTally(refused=1))
        raise TooHeavy(_("This desk has as many searches under way as it may have at a time."))
    try:
        yield
    finally:
        tenant_limiter.searches.leave(tenant.tenant_id)
