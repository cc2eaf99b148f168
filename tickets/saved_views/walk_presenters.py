"""Keep the list that a ticket was opened from in the ticket's address.

It says the list's own query, the place in it, and whether to go on to the next ticket after an action. So the way works
in each tab by itself, and without scripts; the page of a ticket reads nothing for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Self
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from portal import clock
from portal.errors import Invalid
from tenants.tenancy.context import TenantContext
from tenants.tenancy.request import TenantRequest
from tickets.desk import queue_presenters
from tickets.desk.queue_presenters import QueueAddress
from tickets.desk.ticket_presenters import ticket_url
from tickets.saved_views import list_walk

_NUMBER: Final = queue_presenters.PLACE
_TOTAL: Final = re.compile(r"[1-9][0-9]{0,8}\+?\Z")
GOES_ON: Final = "next"


@dataclass(frozen=True)
class ListPlace:
    """A ticket's place in the list that it was opened from. `total` is "43" or "50+", `at` when it had changed last."""

    listing: QueueAddress
    place: int
    total: str
    at: str
    goes_on: bool = False

    @classmethod
    def of(cls, params: Mapping[str, str]) -> Self | None:
        """Return what an address says, None where it says nothing that can be understood."""
        place, total, at = (params.get(name, "") for name in ("place", "of", "at"))
        if not (_NUMBER.match(place) and _TOTAL.match(total) and clock.is_stamp(at)):
            return None
        try:
            listing = QueueAddress.of(params)
        except Invalid:
            return None
        return cls(replace(listing, name=""), int(place), total, at, params.get("then") == GOES_ON)

    @property
    def query(self) -> str:
        """The part of an address that says this again, "?" included."""
        asked = self.listing.params | {"place": str(self.place), "of": self.total, "at": self.at}
        asked["then"] = GOES_ON if self.goes_on else ""
        return "?" + urlencode({name: value for name, value in asked.items() if value})

    def neighbour(self, tenant: TenantContext, number: int, *, backwards: bool) -> str | None:
        """Return the address of the ticket before or behind this one, None at the end of the list."""
        found = list_walk.neighbour(
            tenant,
            statuses=self.listing.statuses,
            resolver=self.listing.resolver(tenant),
            only=self.listing.only,
            order=self.listing.sorting,
            number=number,
            at=self.at,
            place=self.place,
            backwards=backwards,
        )
        if found is None:
            return None
        place = found.place or max(1, self.place + (-1 if backwards else 1))
        total = self.total if found.total is None else str(found.total)
        if place > int(total.rstrip("+")):
            total = f"{place}+"  # the list is longer than its first page, or has grown
        there = replace(self, place=place, total=total, at=found.row.updated_at)
        return ticket_url(int(found.row.number)) + there.query

    def page(self, number: int) -> dict[str, Any]:
        """Return what the page of a ticket shows of the way."""
        return {
            "label": _("%(count)s of %(all)s") % {"count": f"{self.place:,}", "all": self.total},
            "queue_url": self.listing.url(),
            "previous_url": reverse("tickets:ticket_previous", args=[number]) + self.query if self.place > 1 else "",
            "next_url": reverse("tickets:ticket_next", args=[number]) + self.query,
            "goes_on": self.goes_on,
            "toggle_url": ticket_url(number) + replace(self, goes_on=not self.goes_on).query,
            "query": self.query,
        }


def address_of(request: TenantRequest, number: int) -> str:
    """Return the address of a ticket, with its place in the list that this request's address names."""
    place = ListPlace.of(request.GET.dict())
    return reverse("tickets:ticket", args=[number]) + (place.query if place else "")


def onwards(request: TenantRequest, number: int, part: str = "") -> HttpResponse:
    """Answer after an action on a ticket: lead back to it, or on in its list where the person wants that."""
    place = ListPlace.of(request.GET.dict())
    if place is None or not place.goes_on:
        return redirect(address_of(request, number) + part)
    there = reverse("tickets:ticket_next", args=[number]) + place.query
    if "HX-Request" in request.headers:  # another ticket is another page, with its own address
        return HttpResponse(status=204, headers={"HX-Redirect": there})
    return redirect(there)
