"""No page of a desk and no route of the API grows with members or tags: each costs the same in a small and in a large
desk, in round trips, items and read units. The routes are read from the URL configuration, as an outsider's walk does.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pytest

from api.v1 import member_routes
from portal import clock
from portal.dynamo import meter
from tenants.audit_trail.recording import Actor
from tenants.membership import members
from tenants.membership.stored import MemberItem
from tests.desk.test_cost import _watching
from tests.isolation.test_outsider import ACMES, API_CALLS, DESK_ROUTES, acme, filled  # noqa: F401
from tests.support import folding
from tests.support.api_client import ApiClient, api_client
from tests.support.endpoints import endpoint
from tests.support.stored import put_all
from tests.support.world import Browser, World
from tickets.desk import changing, creating
from tickets.desk_setup import setup
from tickets.desk_setup.group_names import Assigning
from tickets.groups import group_changes
from tickets.ticket.fields import Priority

Bill = tuple[int, int, float]  # round trips, items, read units

FEW, FULL, MANY = 10, members.AT_HAND + 5, 2 * members.AT_HAND + 50  # members
ROOM = 1.05
TICKETS, TAGS = 15, 10  # that change their tags, and tags of each

# Routes that cost more with FULL members than with FEW, and why. Beyond FULL they do not grow either.
AT_HAND = "offers or names the members at hand, a hundred at most"
PAGE = "a page of a list of members, a hundred at most, which leads to the next"
LONGER = {
    "<slug:desk>/desk/leave/": AT_HAND,
    "<slug:desk>/desk/members/": PAGE,
    "<slug:desk>/desk/invitations/": AT_HAND,
    "<slug:desk>/desk/access-review/": PAGE,
    "<slug:desk>/desk/auditors/": AT_HAND,
    "<slug:desk>/desk/settings/usage/": AT_HAND,
    "<slug:desk>/desk/settings/sign-in/": PAGE,
    "<slug:desk>/desk/settings/": AT_HAND,
    "<slug:desk>/tickets/new/": AT_HAND,
    "<slug:desk>/tickets/answers/new/": AT_HAND,
    "<slug:desk>/tickets/answers/<str:answer>/": AT_HAND,
    "<slug:desk>/tickets/away/": AT_HAND,
    "<slug:desk>/tickets/bulk/edit/": AT_HAND,
    "<slug:desk>/tickets/bulk/jobs/": AT_HAND,
    "<slug:desk>/tickets/bulk/jobs/<str:job>/": AT_HAND,
    "<slug:desk>/tickets/people/": AT_HAND,
    "<slug:desk>/tickets/people/names/": AT_HAND,
    "<slug:desk>/tickets/handover/<str:user>/": AT_HAND,
    "<slug:desk>/tickets/reports/": AT_HAND,
    "<slug:desk>/tickets/reports/file/": AT_HAND,
    "<slug:desk>/tickets/dashboard/": AT_HAND,
    "<slug:desk>/tickets/<ticket_number:number>/assign/": AT_HAND,
    "<slug:desk>/desk/settings/rules/": AT_HAND,
    "<slug:desk>/desk/settings/rules/new/": AT_HAND,
    "<slug:desk>/desk/settings/rules/<str:rule>/": AT_HAND,
    "<slug:desk>/desk/settings/rules/<str:rule>/edit/": AT_HAND,
    "<slug:desk>/desk/settings/rules/<str:rule>/runs/": AT_HAND,
    "<slug:desk>/desk/settings/rules/<str:rule>/runs/<str:run>/": AT_HAND,
    "<slug:desk>/desk/settings/rules/<str:rule>/rehearsal/": AT_HAND,
    "<slug:desk>/desk/settings/groups/": AT_HAND,
    "<slug:desk>/desk/settings/groups/new/": AT_HAND,
    "<slug:desk>/desk/settings/groups/<slug:group_id>/": AT_HAND,
    "<slug:desk>/desk/settings/groups/people/<str:user_id>/": AT_HAND,
    "api/v1/members": PAGE,
    "api/v1/aggregates": AT_HAND,
}
# Routes that cost more with 150 tags than with 10, and why.
TIMELINES = "samples the timelines of tickets, which tell of the change of tags"
RUNS = "counts of all who ever had tickets: read with the runs of merges, in which tags are as well"
MORE_TAGS = {
    "<slug:desk>/desk/settings/costs/": TIMELINES,
    "<slug:desk>/desk/settings/costs/file/": TIMELINES,
    "<slug:desk>/tickets/handover/": RUNS,
}


# Routes that show nothing here, and why: what they cost is not held.
NO_SUCH = "the desk of this test has no such thing"
LEADS_ON = "it leads to another page or a file"
NOT_WALKED = {
    "<slug:desk>/": LEADS_ON,
    "<slug:desk>/articles/sections/<str:section>/": NO_SUCH,
    "<slug:desk>/desk/settings/fields/<slug:field_id>/": NO_SUCH,
    "<slug:desk>/desk/settings/fields/kinds/<slug:kind_id>/": NO_SUCH,
    "<slug:desk>/desk/settings/webhooks/<str:endpoint>/deliveries/<str:delivery>/": NO_SUCH,
    "<slug:desk>/requesters/<str:requester>/beside/<ticket_number:number>/": LEADS_ON,
    "<slug:desk>/tickets/<ticket_number:number>/comments/<str:entry>/delete/": NO_SUCH,
    "<slug:desk>/tickets/<ticket_number:number>/comments/<str:entry>/edit/": NO_SUCH,
    "<slug:desk>/tickets/<ticket_number:number>/comments/<str:entry>/split/": NO_SUCH,
    "<slug:desk>/tickets/<ticket_number:number>/files/<str:file_id>/": LEADS_ON,
    "<slug:desk>/tickets/<ticket_number:number>/files/<str:file_id>/preview/": LEADS_ON,
    "<slug:desk>/tickets/<ticket_number:number>/next/": LEADS_ON,
    "<slug:desk>/tickets/<ticket_number:number>/previous/": LEADS_ON,
    "<slug:desk>/tickets/live/": NO_SUCH,
    "<slug:desk>/tickets/tags/edit/": LEADS_ON,
    "<slug:desk>/tickets/views/<str:view>/": NO_SUCH,
}


@dataclass(frozen=True)
class Walk:
    browser: Browser
    client: ApiClient
    shows_nothing: set[str] = field(default_factory=set)
    only_takes: set[str] = field(default_factory=set)  # forms

    def bills(self, routes: Collection[str] = ()) -> dict[str, Bill]:
        """What each route that shows something costs, of all or of these, and one of the API beside it."""
        asked: dict[str, Any] = {route: partial(self.browser.get, filled(route)) for route in DESK_ROUTES}
        for route, method in API_CALLS:
            if method == "GET":
                asked[route] = partial(self.client.call, "GET", filled(route), api="")
        found = {}
        for route in routes or asked.keys() - self.shows_nothing - self.only_takes:
            with _watching() as bills:
                answer = asked[route]()
                b"".join(answer.streaming_content) if answer.streaming else answer.content
            assert answer.status_code < 500, route
            if answer.status_code in (302, 404):
                self.shows_nothing.add(route)
            elif answer.status_code == 405:
                self.only_takes.add(route)
            else:
                found[route] = (bills[0].trips, bills[0].items, bills[0].read_units)
        return found


def grown(before: dict[str, Bill], after: dict[str, Bill]) -> dict[str, tuple[Bill, Bill]]:
    """The routes of `after` that cost more than before, by more than 5% of anything."""
    return {
        route: (before[route], bill)
        for route, bill in after.items()
        if any(now > ROOM * then for then, now in zip(before[route], bill, strict=True))
    }


@pytest.fixture(autouse=True)
def _counting_what_filters_leave_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Query that lets the engine filter reads the rows that it does not bring back."""
    bill = meter._bill

    def counted(operation: str, request: dict[str, Any], parsed: dict[str, Any], seconds: float) -> meter.Call:
        call = bill(operation, request, parsed, seconds)
        return replace(call, items=max(call.items, parsed.get("ScannedCount", 0)))

    monkeypatch.setattr(meter, "_bill", counted)


def people(world: World, numbers: range) -> list[MemberItem]:
    tenant_id, at = world.tenants["acme"].tenant_id, clock.stamp()
    about = [(f"{n:032x}", f"Person Number {n:04}", f"p{n:04}@example.com") for n in numbers]
    return [
        MemberItem(tenant_id, user_id, name=name, email=email, role="agent", created_at=at)
        for user_id, name, email in about
    ]


def make_objects(world: World, patch: pytest.MonkeyPatch) -> None:
    """What the walk of an outsider does without: a group, an endpoint, and a member whom pages are about."""
    alice, bob = world.context("alice", "acme"), world.users["bob"].id
    by = Actor(alice.user_id)
    made = {"user_id": bob, "member_id": bob}
    made["group_id"] = group_changes.add(alice, "Billing", Assigning.TURN, version=setup.read(alice).version, by=by)
    made["endpoint"] = made["webhook_id"] = endpoint(alice)[0].endpoint_id
    for name, value in made.items():
        patch.setitem(ACMES, name, value)


def tag(world: World, follower: folding.Follower, names: list[list[str]]) -> None:
    alice = world.context("alice", "acme")
    for number, tags in zip(range(13, 13 + TICKETS), names, strict=True):
        version = changing.read(alice, number).version
        changing.edit(alice, number, version=version, title="Tagged", description="", priority=Priority.HIGH, tags=tags)
    follower.fold()
    folding.merge_all(alice)  # so that counts lie where they lie in each desk before long


def test_no_route_of_a_desk_grows_with_its_members_or_its_tags(
    acme: World,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(member_routes, "_PAGE", members.AT_HAND)  # fewer people are enough
    walk = Walk(acme.browser("alice", "acme"), api_client(acme))
    make_objects(acme, monkeypatch)
    alice, follower = acme.context("alice", "acme"), folding.Follower()
    for _ in range(TICKETS):
        creating.create(alice, title="Tagged")
    few_tags = [f"tag-{n:03}" for n in range(TAGS)]
    tag(acme, follower, [few_tags] * TICKETS)
    put_all(people(acme, range(FEW - 3)))
    walk.bills()  # what a process reads once
    few = walk.bills()
    put_all(people(acme, range(FEW, FULL)))
    longer = grown(few, full := walk.bills())
    assert walk.shows_nothing == set(NOT_WALKED), walk.shows_nothing ^ set(NOT_WALKED)
    assert set(longer) == set(LONGER), longer
    put_all(people(acme, range(FULL, MANY)))
    assert grown(full, walk.bills(longer)) == {}, "with ever more members"
    tag(acme, follower, [[f"tag-{TAGS * n + i:03}" for i in range(TAGS)] for n in range(TICKETS)])
    more = grown(full, walk.bills())
    assert set(more) == set(MORE_TAGS), more
