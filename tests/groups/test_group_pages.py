"""Admins make groups and say who is in them; agents see their groups beside the queue and say when they are away."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest

from tenants.tenancy.context import Role
from tests.support import defined
from tests.support.folding import Follower
from tests.support.world import Browser, World
from tickets.custom_fields import definitions
from tickets.desk import changing, creating
from tickets.desk.changing import Wishes
from tickets.desk_setup.setup import Assigning
from tickets.groups import roster
from tickets.ticket.fields import GROUP, Status


@pytest.fixture
def follower(alice: Browser) -> Follower:
    return Follower()


PAGE = "/desk/settings/groups/"


@pytest.fixture
def alice(world: World) -> Browser:
    for name in ("Dora", "Erik"):
        world.add_user(name)
        world.join(name.lower(), "acme", Role.AGENT)
    return world.browser("alice", "acme")


def text(page: Any) -> str:
    return html.unescape(re.sub("<[^>]+>", "", page.content.decode()))


def sent(browser: Browser, address: str, **values: Any) -> Any:
    """Send the form of an address with these values, and the rest as the page has it."""
    form = browser.get(address).context["form"]
    data = {name: form[name].value() for name in form.fields if form[name].value() or name == "version"}
    return browser.send(address, {**data, **values})


def ids(world: World, *names: str) -> list[str]:
    return [world.users[one].id for one in names]


def test_an_admin_makes_a_group_changes_it_and_deletes_it(world: World, alice: Browser) -> None:
    assert "No groups yet" in text(alice.get(PAGE))
    made = sent(alice, f"{PAGE}new/", name="Billing", assigns="turn", members=ids(world, "bob", "dora"))
    assert made.status_code == 302
    assert "Bob Example, Dora Example" in text(alice.get(PAGE))
    changed = sent(alice, f"{PAGE}group_1/", name="Invoices", members=ids(world, "erik"), is_default="on")
    assert changed.status_code == 302
    listed = text(alice.get(PAGE))
    assert "Invoices" in listed
    assert "Default" in listed
    assert roster.read(world.context("alice", "acme")).members("group_1") == ids(world, "erik")
    version = str(alice.get(f"{PAGE}group_1/").context["version"])
    assert alice.send(f"{PAGE}group_1/delete/", {"version": "9" * 5000}).status_code == 302
    assert "Invoices" in text(alice.get(PAGE))
    alice.send(f"{PAGE}group_1/delete/", {"version": version})
    assert "No groups yet" in text(alice.get(PAGE))
    trail = text(alice.get("/desk/audit/"))
    assert "Invoices" in trail


def test_the_trail_names_who_came_into_a_group_and_who_went(world: World, alice: Browser) -> None:
    sent(alice, f"{PAGE}new/", name="Billing", assigns="turn", members=ids(world, "bob", "dora"))
    sent(alice, f"{PAGE}group_1/", members=ids(world, "dora", "erik"))
    trail = re.sub(r"\s+", " ", text(alice.get("/desk/audit/")))
    assert "members of group 1: Bob Example → Erik" in trail
    assert world.users["dora"].id not in trail


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"name": " "}, "Enter a name."),
        ({"name": "x" * 41}, "This text has 41 characters; 40 are allowed. Shorten it by 1."),
        ({"name": "Second level"}, "Another group has this name."),
        ({"name": "Fine", "members": ["0" * 32]}, "is no agent of this desk any more"),
        ({"name": "Fine", "version": "7"}, "Somebody else has just changed these settings"),
    ],
)
def test_bad_input_is_told_at_its_field_and_loses_nothing(
    world: World, alice: Browser, values: dict[str, Any], said: str
) -> None:
    defined.add_group(world, "Second level")
    page = sent(alice, f"{PAGE}new/", **{"assigns": "load"} | values)
    assert page.status_code in (409, 422)
    assert said in text(page)
    assert page.context["form"]["assigns"].value() == "load"
    assert len(definitions.of(world.context("alice", "acme")).groups) == 1


def test_a_group_with_unresolved_tickets_is_not_deleted(world: World, alice: Browser) -> None:
    group = defined.add_group(world, "Billing")
    tenant = world.context("alice", "acme")
    number = creating.create(tenant, title="One", group=group)
    version = str(alice.get(f"{PAGE}{group}/").context["version"])
    refused = alice.get(alice.send(f"{PAGE}{group}/delete/", {"version": version}).url)
    assert "still has unresolved tickets" in text(refused)
    changing.change(tenant, number, Wishes(status=Status.RESOLVED))
    alice.send(f"{PAGE}{group}/delete/", {"version": version})
    assert definitions.of(world.context("alice", "acme")).in_use_of(GROUP) == []
    assert "Billing" in text(alice.get(f"/tickets/{number}/")), "a resolved ticket keeps the name"


def test_an_agent_says_until_when_they_are_away_and_others_see_it(world: World, alice: Browser) -> None:
    defined.add_group(world, "Billing", members=("bob",))
    bob = world.browser("bob", "acme")
    assert "capacity" not in bob.get("/tickets/away/").context["form"].fields
    assert sent(bob, "/tickets/away/", away_until="2999-01-04", stand_in=world.users["dora"].id).status_code == 302
    assert "Away until 4 Jan 2999, to Dora Example" in text(alice.get(PAGE))
    assert sent(bob, "/tickets/away/", away_until="").status_code == 302
    assert "Away until" not in text(alice.get(PAGE))
    person = f"{PAGE}people/{world.users['bob'].id}/"
    assert sent(alice, person, capacity="7").status_code == 302
    assert "7 open tickets at most" in text(alice.get(PAGE))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"away_until": "soon"}, "Enter a day as 2026-11-30."),
        ({"away_until": "2020-01-01"}, "Choose a day after today"),
        ({"away_until": "2999-01-01", "stand_in": "0" * 32}, "Choose an agent from the list."),
        ({"version": "9"}, "Somebody else has just changed this"),
    ],
)
def test_a_bad_absence_is_told_at_its_field(world: World, alice: Browser, values: dict[str, Any], said: str) -> None:
    page = sent(world.browser("bob", "acme"), "/tickets/away/", **values)
    assert page.status_code in (409, 422)
    assert said in text(page)


def test_agents_see_their_groups_beside_the_queue_with_what_is_open_in_them(
    world: World, alice: Browser, follower: Follower
) -> None:
    mine = defined.add_group(world, "Billing", Assigning.TURN, members=("bob",))
    defined.add_group(world, "Second level", members=("dora",))
    tenant = world.context("alice", "acme")
    for n in range(3):
        creating.create(tenant, title=f"Ticket {n}", group=mine)
    creating.create(tenant, title="Elsewhere")
    follower.fold()
    bob = world.browser("bob", "acme")
    page = bob.get("/tickets/")
    shown = page.context["starred_views"]
    assert [one["name"] for one in shown] == ["Billing"]
    listed = text(bob.get(shown[0]["url"]))
    assert "Ticket 2" in listed
    assert "Elsewhere" not in listed
    assert "Billing3 tickets" in text(bob.get(page.context["counts_url"]))
    changed = bob.send("/tickets/1/change/", {"version": "2", "group": "group_2"})
    assert changed.status_code == 302
    summary = changing.read(tenant, 1)
    assert (summary.group, summary.resolver) == ("group_2", "")


def test_the_dashboard_has_the_tickets_of_each_group(world: World, alice: Browser, follower: Follower) -> None:
    group = defined.add_group(world, "Billing", members=("bob",))
    tenant = world.context("alice", "acme")
    first, second, _ = (creating.create(tenant, title=f"Ticket {n}", group=group) for n in range(3))
    changing.change(tenant, first, Wishes(status=Status.RESOLVED))
    changing.change(tenant, second, Wishes(resolver=world.users["bob"].id))
    follower.fold()
    (line,) = alice.get("/tickets/dashboard/").context["groups"]
    assert (line.name, [one.count for one in line.numbers]) == ("Billing", [2, 0, 1, 0, 1])
    for number in line.numbers:
        if number.count:
            assert len(alice.get(number.url).context["page"]["rows"]) == number.count
    (line,) = world.browser("bob", "acme").get("/tickets/dashboard/").context["groups"]
    assert [one.count for one in line.numbers] == [2, 0, 1, 0, 1]


@pytest.mark.parametrize(("chosen", "said"), [("group_2", "Group is now Technical."), ("", "Group is now none.")])
def test_a_changed_group_is_told_by_its_name(world: World, alice: Browser, chosen: str, said: str) -> None:
    first = defined.add_group(world, "Billing")
    defined.add_group(world, "Technical")
    creating.create(world.context("alice", "acme"), title="One", group=first)
    page = alice.get(alice.send("/tickets/1/change/", {"version": "1", "group": chosen}).url)
    assert said in text(page)
