"""What a page, a letter or a comment reads of a desk's members is bounded, however many the desk has."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from portal import clock
from portal.dynamo import meter
from tenants.membership import members
from tenants.membership.stored import MemberByName, MemberItem
from tests.desk.test_cost import spent
from tests.notices.test_telling import say
from tests.support import embedded, folding, mailing
from tests.support.stored import put_all
from tests.support.world import World
from tickets.desk import changing

MANY = 2000
ZOE = f"{MANY - 1:032x}"  # whose name stands last
LISTED = 3  # units of AT_HAND rows of the index


def _people(world: World, count: int) -> Iterator[MemberItem]:
    for n in range(count):
        name = "Zoë Last" if f"{n:032x}" == ZOE else f"Person Number {n:04}"
        address, at = f"p{n:04}@example.com", clock.stamp(offset=n)
        tenant_id = world.tenants["acme"].tenant_id
        yield MemberItem(tenant_id, f"{n:032x}", name=name, email=address, role="agent", created_at=at)


def desk_of(count: int) -> World:
    def make() -> World:
        world = World.create()
        put_all(_people(world, count))
        world.tickets("acme", 1)
        return world

    return embedded.prepared(f"members-{count}", make)


@pytest.fixture
def large(engine: None) -> World:
    return desk_of(MANY)


PAGES = [  # with the calls and units of a large desk that are there beside those of a small one
    ("/tickets/dashboard/", 0, 0),
    ("/tickets/people/", 0, 0),
    ("/tickets/1/assign/", 0, 0),
    ("/tickets/people/?q=person", 4, 3 * LISTED),
    ("/tickets/people/names/", 0, 0),
    ("/tickets/new/", 1, 0.5),
    ("/desk/settings/groups/", 1, 0.5),
    ("/desk/settings/rules/", 0, 0),
    ("/desk/settings/rules/new/", 0, 0),
    ("/tickets/answers/new/", 0, 0),
    ("/tickets/reports/", 0, 0),
    ("/tickets/bulk/jobs/", 0, 0),
    ("/desk/members/", 0, 0),
    ("/desk/invitations/", 0, 0),
]


@pytest.mark.parametrize(("path", "calls", "units"), PAGES, ids=[path for path, _, _ in PAGES])
def test_a_page_reads_a_hundred_members_at_most(engine: None, path: str, calls: int, units: float) -> None:
    few, many = (spent(desk_of(count).browser("alice", "acme"), path) for count in (10, MANY))
    assert len(many.calls) <= len(few.calls) + calls
    assert many.read_units <= few.read_units + units + LISTED
    assert not any(call.items > members.AT_HAND for call in many.calls)


def test_a_name_that_stands_last_is_found_by_its_beginning_in_any_case_by_a_part_and_by_the_address(
    large: World,
) -> None:
    repository = large.context("alice", "acme").repository
    for typed in ("Zoë", "zoë l", "ZOË", "Last", "p1999@"):
        assert [one.id for one in members.matching(repository, typed)] == [ZOE], typed
    assert members.matching(repository, "nobody at all") == []


def test_a_search_for_a_part_of_a_name_brings_back_those_who_have_it_alone(large: World) -> None:
    bill = spent(large.browser("alice", "acme"), "/tickets/people/?q=Last")
    assert [call.items for call in bill.calls if call.index == MemberByName.gsi.name][-1] == 1


def test_the_list_of_members_leads_to_all_of_them_page_by_page(large: World) -> None:
    browser, path, found = large.browser("alice", "acme"), "/desk/members/", set[str]()
    while path:
        context = browser.get(path).context
        found |= {one["id"] for one in context["people"]}
        path = f"/desk/members/?after={context['more']}" if context["more"] else ""
    assert len(found) == MANY + 3


def test_the_page_of_usage_counts_on_until_all_members_are_counted(large: World) -> None:
    browser, path, asked = large.browser("alice", "acme"), "/desk/settings/usage/", 0
    while path:
        page, asked = browser.get(path), asked + 1
        more = page.context["more"]
        path = f"/desk/settings/usage/?counted={page.context['members']}&after={more}" if more else ""
    assert (page.context["members"], asked) == (MANY + 3, 5)


def test_those_without_a_second_factor_are_listed_page_by_page(large: World) -> None:
    browser = large.browser("alice", "acme")
    first = browser.get("/desk/settings/sign-in/")
    assert f"{members.AT_HAND} of the {members.AT_HAND} members on this page" in first.content.decode()
    second = browser.get(f"/desk/settings/sign-in/?after={first.context['more']}").context["without"]
    assert len({one.id for one in [*first.context["without"], *second]}) == 2 * members.AT_HAND


def test_tickets_of_a_large_desk_are_handed_on_to_a_typed_name_and_a_wrong_one_is_kept(large: World) -> None:
    browser, alice = large.browser("alice", "acme"), large.context("alice", "acme")
    changing.assign(alice, 1, to=large.users["bob"].id, version=1)
    path = f"/tickets/handover/{large.users['bob'].id}/"
    refused = browser.send(path, {"to": "Zoe Nobody"})
    assert (refused.status_code, 'value="Zoe Nobody"' in refused.content.decode()) == (422, True)
    assert browser.send(path, {"to": "zoë last"}).status_code == 302
    assert changing.read(alice, 1).resolver == ZOE


def test_a_form_of_a_large_desk_takes_a_typed_name_and_an_address_where_several_have_it(large: World) -> None:
    browser = large.browser("alice", "acme")

    def sent(who: str) -> list[str]:
        form = {"title": "A question", "description": "Why?", "priority": "normal", "request_id": uuid.uuid4().hex}
        page = browser.send("/tickets/new/", {**form, "resolver": who})
        return [] if page.status_code == 302 else page.context["form"].errors["resolver"]

    assert (sent("Zoë Last"), sent("p0007@example.com")) == ([], [])
    assert "Several people" in sent("Person")[0]
    assert "Nobody here" in sent("Somebody Else")[0]
    tickets = [changing.read(large.context("alice", "acme"), n).resolver for n in (2, 3)]
    assert tickets == [ZOE, f"{7:032x}"]


@pytest.mark.parametrize("count", [10, MANY])
def test_a_mention_reads_those_who_are_called_so(engine: None, count: int) -> None:
    world = desk_of(count)
    say(world, "alice", "@Bob Example, please look.")
    with meter.measure() as bill:
        assert mailing.carry() == ["answered"]
    assert world.browser("bob", "acme").get("/tickets/").context["inbox_count"] == 1
    assert not any(call.items > members.AT_HAND for call in bill.calls)


def test_the_dashboard_names_those_who_have_tickets_in_a_large_desk(large: World) -> None:
    alice = large.context("alice", "acme")
    follower = folding.Follower()
    changing.assign(alice, 1, to=ZOE, version=1)
    follower.fold()
    assert "Zoë Last" in large.browser("alice", "acme").get("/tickets/dashboard/").content.decode()
