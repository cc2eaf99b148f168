"""What a page, a letter or a comment reads of a desk's members is bounded, however many the desk has."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator

import pytest

from portal import clock
from portal.dynamo import meter
from tenants.membership import members
from tenants.membership.stored import MemberByName, MemberItem
from tests.desk.test_cost import _watching, spent
from tests.notices.test_telling import say
from tests.support import defined, embedded, folding, mailing
from tests.support.stored import put_all
from tests.support.world import World
from tickets.desk import changing

MANY = 2000
ZOE = f"{MANY - 1:032x}"  # whose name stands last
LISTED = 3  # units of SEARCHED rows of the index


def _people(world: World, count: int) -> Iterator[MemberItem]:
    for n in range(count):
        name = "Zoë Last" if f"{n:032x}" == ZOE else f"Person Number {n:04}"
        address, at = f"p{n:04}@example.com", clock.stamp(offset=n)
        tenant_id = world.tenants["acme"].tenant_id
        yield MemberItem(tenant_id, f"{n:032x}", name=name, email=address, role="agent", created_at=at)


def team() -> World:
    """A desk with more members than are at hand, most of whom stand before Alice and Bob, with two namesakes."""
    world = World.create()
    tenant_id, at = world.tenants["acme"].tenant_id, clock.stamp()
    called = [*(f"Aaron Number {n:02}" for n in range(66)), "Carl Same", "Carl Same", "Vi Ewer", "Zoë Last"]
    put_all(
        MemberItem(
            tenant_id,
            f"{n:032x}",
            name=name,
            email=f"p{n:02}@example.com",
            role="viewer" if name == "Vi Ewer" else "agent",
            created_at=at,
        )
        for n, name in enumerate(called)
    )
    world.tickets("acme", 1)
    return world


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


def test_a_search_for_people_reads_a_hundred_members_at_most_by_a_query(engine: None) -> None:
    few, many = (spent(desk_of(count).browser("alice", "acme"), "/tickets/people/?q=person") for count in (10, MANY))
    assert len(many.calls) <= len(few.calls) + 4
    assert many.read_units <= few.read_units + 4 * LISTED
    assert not any(call.items > members.SEARCHED for call in many.calls)


def test_a_name_that_stands_last_is_found_by_its_beginning_in_any_case_by_a_part_and_by_the_address(
    large: World,
) -> None:
    repository = large.context("alice", "acme").repository
    for typed in ("Zoë", "zoë l", "ZOË", "Last", "p1999@"):
        assert [one.id for one in members.matching(repository, typed)] == [ZOE], typed
    assert members.matching(repository, "nobody at all") == []
    with meter.measure() as bill:  # a key that is too long for DynamoDB is not asked for
        assert members.matching(repository, "x" * 3000) == members.beginning_with(repository, ["x" * 3000]) == []
    assert len(bill.calls) == 1


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
    assert "10 of the 10 members on this page" in first.content.decode()
    second = browser.get(f"/desk/settings/sign-in/?after={first.context['more']}").context["without"]
    assert len({one.id for one in [*first.context["without"], *second]}) == 10 + 100


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
    assert not any(call.items > members.SEARCHED for call in bill.calls)


def test_the_dashboard_names_those_who_have_tickets_in_a_large_desk(large: World) -> None:
    alice = large.context("alice", "acme")
    follower = folding.Follower()
    changing.assign(alice, 1, to=ZOE, version=1)
    follower.fold()
    assert "Zoë Last" in large.browser("alice", "acme").get("/tickets/dashboard/").content.decode()


def test_inviting_and_asking_for_a_restore_cost_the_same_with_ten_members_and_with_thousands(engine: None) -> None:
    costs = []
    for count in (10, MANY):
        world = desk_of(count)
        browser, alice, at = world.browser("alice", "acme"), world.context("alice", "acme"), clock.stamp()
        changing.assign(alice, 1, to=world.users["bob"].id, version=1)
        with _watching() as bills:
            assert browser.send("/tickets/past/restore/", {"at": at, "tickets": ["1.2.open."]}).status_code == 200
            sent = {"addresses": "new@example.com\nbob@example.com", "role": "agent"}
            assert "Bob Example is already a member." in browser.send("/desk/invitations/", sent).content.decode()
        costs.append([(bill.trips, bill.read_units, bill.write_units) for bill in bills])
    assert costs[0] == costs[1]


TYPED = [  # in a field, and what it offers
    ("of=to&to=LAST", ["Zoë Last"]),
    ("of=to&to=number+6", [f"Aaron Number {n}" for n in range(60, 66)]),
    ("of=to&to=p65@", ["Aaron Number 65 <p65@example.com>"]),
    ("of=to&to=same", ["Carl Same <p66@example.com>", "Carl Same <p67@example.com>"]),
    ("of=to&to=ewer", []),  # has no tickets
    ("several=added&added=Zoë Last, bob exa", ["Zoë Last, Bob Example"]),
]


@pytest.fixture
def of_seventy(engine: None) -> World:
    return embedded.prepared("members-team", team)


@pytest.mark.parametrize(("asked", "offered"), TYPED, ids=[asked for asked, _ in TYPED])
def test_a_field_of_a_member_offers_those_with_a_text_anywhere_in_name_or_address(
    of_seventy: World, asked: str, offered: list[str]
) -> None:
    page = of_seventy.browser("alice", "acme").get(f"/tickets/people/options/?{asked}")
    assert page.context["options"][:6] == offered


@pytest.mark.parametrize(
    ("who", "sought", "shown"),
    [("bob", "same", ["p66@example.com", "p67@example.com"]), ("bob", "Zoë", []), ("vera", "same", [])],
    ids=["two", "one", "to a viewer"],
)
def test_people_to_choose_from_show_agents_their_addresses_where_several_have_the_name(
    of_seventy: World, who: str, sought: str, shown: list[str]
) -> None:
    page = of_seventy.browser(who, "acme").get(f"/tickets/people/?q={sought}").content.decode()
    assert re.findall(r"<bdi>([^<]+@[^<]+)</bdi>", page) == shown


def test_each_offered_name_is_taken_and_whoever_is_at_work_stands_first(of_seventy: World) -> None:
    browser = of_seventy.browser("bob", "acme")
    assert browser.get("/tickets/people/").context["people"][0]["is_me"]
    offered = browser.get("/tickets/new/").context["form"].fields["resolver"].widget.choices
    assert [label for _, label in offered][:3] == ["Unassigned", "Bob Example (you)", "Aaron Number 00"]
    for number, who in enumerate(["Bob Example (you)", "Carl Same <p67@example.com>", "unassigned"], 2):
        form = {"title": "Why?", "priority": "normal", "request_id": uuid.uuid4().hex, "resolver": who}
        assert browser.send("/tickets/new/", form).status_code == 302, who
        told = changing.read(of_seventy.context("alice", "acme"), number)
        assert (told.resolver or "") == {2: of_seventy.users["bob"].id, 3: f"{67:032x}", 4: ""}[number]


def test_several_members_are_added_to_a_group_at_once_by_what_is_typed(of_seventy: World) -> None:
    browser, group = of_seventy.browser("alice", "acme"), defined.add_group(of_seventy, "Billing")
    path = f"/desk/settings/groups/{group}/"
    form = {"name": "Billing", "assigns": "hand", "version": browser.get(path).context["version"]}
    refused = browser.send(path, form | {"added": "zoë last, same"})
    assert (refused.status_code, 'value="zoë last, same"' in refused.content.decode()) == (422, True)
    assert browser.send(path, form | {"added": "zoë last, p67@example.com"}).status_code == 302
    page = browser.get("/desk/settings/groups/")
    assert page.context["groups"][0]["members"] == ["Carl Same", "Zoë Last"]
    sought = browser.get("/desk/settings/groups/?q=number 59").context["agents"]
    assert [one["name"] for one in sought] == ["Aaron Number 59"]


def test_who_is_not_at_hand_is_named_and_many_of_them_cost_one_query(of_seventy: World) -> None:
    alice = of_seventy.context("alice", "acme")
    known = members.at_hand(alice)
    named = [f"{n:032x}" for n in range(30, 66)]
    with meter.measure() as bill:
        names = members.names_of(alice.repository, known, [*named, alice.user_id])
    assert {names[one] for one in named} == {f"Aaron Number {n}" for n in range(30, 66)}
    assert names[alice.user_id] == "Alice Example"
    assert [call.operation for call in bill.calls] == ["Query"]
