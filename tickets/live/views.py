"""Answer open pages: who else is on a ticket, when something changed, and by which address they go on asking."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from django.conf import settings
from django.http import HttpRequest, JsonResponse
from django.urls import reverse
from django.utils.translation import gettext

from portal.errors import NotFound
from portal.schema import keys
from portal.web.access import guest, member, on_get, on_post
from tenants.tenancy import context
from tenants.tenancy.context import Role
from tenants.tenancy.request import TenantRequest, read_cookie
from tickets.counting import stored as counts
from tickets.counting.stored import Recent
from tickets.live import page_tokens, presence
from tickets.live.page_tokens import OpenPage
from tickets.live.presence import Other
from tickets.ticket import stored
from tickets.ticket.stored import SummaryItem


@guest(page_tokens.desk_of, of_member=True)
@on_post(get="aggregate, inbox, presence, ticket", write="presence", trips=3, reads=4, writes=2)
def look(request: HttpRequest, token: str) -> JsonResponse:
    """Answer one look of an open page: "people" notes that it is there by a write, and "change" costs a read of half a
    unit, with `people` two, or nothing where another page of this process has just asked for the same.

    `at` of a ticket is the stamp of its latest change, as this page or that of somebody else knows it; of a list it is
    a number that grows with each change of the desk.
    """
    page = OpenPage.read(token)  # not too old: `guest` has found the desk by it
    ids = read_cookie(request.COOKIES.get(settings.SESSION_COOKIE_NAME, ""))
    if ids is None or ids.user_id != page.desk.user_id:
        return JsonResponse({}, status=403)
    asked, desk, number = request.POST.get("for"), page.desk, page.number
    if asked == "news":
        return JsonResponse({"unread": _unread(page)})
    if asked == "people":
        if not number:
            return JsonResponse({})
        writes, leaves = "writes" in request.POST, "leaves" in request.POST
        return JsonResponse(_people(presence.announce(desk, number, shown=page.shown, writes=writes, leaves=leaves)))
    answer: dict[str, Any] = {"at": presence.latest(desk, "change", number, partial(_at, page))}
    if number and "people" in request.POST:
        others = _people(presence.others(desk, number))
        answer = others | {"at": max(answer["at"], others["at"])}
    return JsonResponse(answer)


def _people(others: Sequence[Other]) -> dict[str, Any]:
    """Return who else is there, and up to when one of their pages knows the ticket."""
    people = [{"name": one.name, "writes": one.writes} for one in others]
    return {"others": people, "at": max((one.shown for one in others), default="")}


@member(Role.VIEWER)
@on_get(get="tenant", trips=1, reads=1)
def renew(request: TenantRequest) -> JsonResponse:
    """Give the open page `page` of the person who asks another address. Raises NotFound where it may not ask any more.

    By this the person is identified again, and the place of the desk is known anew.
    """
    page, tenant = OpenPage.read(request.GET.get("page", "")), request.tenant
    is_same = (page.desk.tenant_id, page.desk.user_id) == (tenant.tenant_id, tenant.user_id)
    token = page_tokens.token(tenant, page.number, page.shown) if is_same else ""
    if not token:
        raise NotFound(gettext("This page is too old. Reload it."))
    return JsonResponse({"live": reverse("tickets:r_live", args=[token])})


def _at(page: OpenPage) -> str:
    """Return when the ticket was changed last, notes included, or how often the desk was. One read."""
    repository = page.desk.repository
    if not page.number:
        recent = repository.get(Recent, counts.aggregate, sort=counts.RECENT)
        return str(int(recent.version)) if recent else ""
    summary = repository.get(SummaryItem, stored.ticket, page.number, sort=stored.SUMMARY)
    return max(summary.updated_at, summary.noted_at or "") if summary else ""


def _unread(page: OpenPage) -> int:
    """Return how many tickets with news the person has: one read of the item that each page has with its desk."""
    model, _, sort = context.wanted_items(page.desk.tenant_id, page.desk.user_id, "")["inbox"]
    item: Any = page.desk.repository.get(model, keys.tenant, sort=sort)
    return len(item.unread or ()) if item else 0
