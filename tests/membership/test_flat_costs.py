"""No page of a desk and no route of the API grows with members or tags: each costs the same in a small and in a large
desk, in round trips and read units. The routes are read from the URL configuration, as an outsider's walk does.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pytest

from portal import clock
from portal.dynamo import meter
from tenants.audit_trail.recording import Actor
from tenants.membership import members
from tenants.membership.stored import MemberItem
from tenants.sign_in.accounts import Profile
from tests.desk.test_cost import _watching
from tests.isolation.test_outsider import ACMES, API_CALLS, DESK_ROUTES, acme, filled  # noqa: F401
from tests.support import defined, folding
from tests.support.api_client import ApiClient, api_client
from tests.support.endpoints import endpoint
from tests.support.stored import put_all
from tests.support.world import Browser, World
from tickets.articles import sections
from tickets.desk import changing, commenting, creating
from tickets.desk.commenting import WrittenComment
from tickets.desk_setup.setup import Assigning
from tickets.saved_views import saved_views
from tickets.ticket.fields import Priority
from tickets.ticket.stored import entry_reference

Bill = tuple[int, int, float]  # round trips, items, read units

FEW, MANY = 10, 3 * members.AT_HAND  # members
ROOM = 1.05
TICKETS, TAGS = 15, 10  # that change their tags, and tags of each
ROW = 200  # bytes of a member in the index by name, of which AT_HAND fit one read unit

# Routes that cost more with many members than with few, and why.
NAMED = "names those who have tickets: who is not at hand is read by the id, once the counts tell who they are"
LONGER = {
    "<slug:desk>/tickets/dashboard/": NAMED,
    "api/v1/aggregates": NAMED,
    "api/v1/members": "a program reads all of them: pages of 500 cost what 25 of 20 do, without 24 requests",
}
# Routes that show nothing here, and why: what they cost is not held.
NO_SUCH = "the desk of this test has no such thing"
LEADS_ON = "it leads to another page or a file"
NOT_WALKED = {
    "<slug:desk>/": LEADS_ON,
    "<slug:desk>/desk/settings/webhooks/<str:endpoint>/deliveries/<str:delivery>/": NO_SUCH,
    "<slug:desk>/requesters/<str:requester>/beside/<ticket_number:number>/": LEADS_ON,
    "<slug:desk>/tickets/<ticket_number:number>/files/<str:file_id>/": LEADS_ON,
    "<slug:desk>/tickets/<ticket_number:number>/files/<str:file_id>/preview/": LEADS_ON,
    "<slug:desk>/tickets/<ticket_number:number>/linked/": LEADS_ON,
    "<slug:desk>/tickets/<ticket_number:number>/next/": LEADS_ON,
    "<slug:desk>/tickets/<ticket_number:number>/previous/": LEADS_ON,
    "<slug:desk>/tickets/live/": NO_SUCH,
    "<slug:desk>/tickets/tags/edit/": LEADS_ON,
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
    """The routes of `after` that take more round trips or read units than before, by more than 5%, or read more items
    than one unit of members has beside."""
    return {
        route: (then, now)
        for route, now in after.items()
        for then in [before[route]]
        if now[0] > ROOM * then[0] or now[1] > ROOM * then[1] + members.AT_HAND or now[2] > ROOM * then[2]
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
    """Members with rows of ROW bytes, whose names stand before those of the members whom pages name."""
    tenant_id, at, profile = world.tenants["acme"].tenant_id, clock.stamp(), str(Profile(zone="Europe/Berlin"))
    found = []
    for n in numbers:
        row = {"user_id": f"{n:032x}", "name": f"Aaron Number {n:04}", "role": "agent", "profile": profile}
        has = sum(len(key) + len(value) for key, value in {**row, "tenant_id": tenant_id, "email": ""}.items())
        found.append(MemberItem(tenant_id, email=f"p{n:04}@example.com".rjust(ROW - has, "p"), created_at=at, **row))
    return found


def make_objects(world: World, patch: pytest.MonkeyPatch) -> None:
    """What the walk of an outsider does without: definitions, a view, a comment, and a member whom pages are about."""
    alice, bob = world.context("alice", "acme"), world.users["bob"].id
    by, written = Actor(alice.user_id), list[WrittenComment]()
    commenting.comment(alice, 7, body="Who knows?", tell=written.append)
    made = {
        "user_id": bob,
        "member_id": bob,
        "group_id": defined.add_group(world, "Billing", Assigning.TURN),
        "field_id": defined.add_field(world, "Model"),
        "kind_id": defined.add_kind(world, "Repair"),
        "section": sections.add(alice, "First steps", by=by).id,
        "view": saved_views.save(alice, "Urgent", "priority=urgent", is_desks=True, by=by).id,
        "entry": entry_reference(written[0].entry.sk),
    }
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
    put_all(people(acme, range(FEW, MANY)))
    longer = grown(few, many := walk.bills())
    assert walk.shows_nothing == set(NOT_WALKED), walk.shows_nothing ^ set(NOT_WALKED)
    assert set(longer) == set(LONGER), longer
    tag(acme, follower, [[f"tag-{TAGS * n + i:03}" for i in range(TAGS)] for n in range(TICKETS)])
    more = grown(many, walk.bills())
    assert more == {}, "with ever more tags"
