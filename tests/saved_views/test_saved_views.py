"""Lists are saved as views: personal ones and the desk's, in an order, starred, counted, and gone with their owner."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.errors import Forbidden, Invalid, NotFound
from portal.web.locales import Locale, shown_in
from tenants.api_keys.scopes import Scope
from tenants.audit_trail.recording import Actor
from tenants.membership import member_changes
from tenants.tenancy.context import TenantContext
from tenants.tenancy.personal_data import DeskPerson, NewName
from tests.desk.test_cost import IDENTITY, _watching, spent
from tests.support.api_client import api_client
from tests.support.fakes import tenant_in_memory
from tests.support.world import Browser, World
from tickets.counting import contributions
from tickets.counting.stored import Recent
from tickets.counting.stored_counts import Stored
from tickets.desk import filters
from tickets.saved_views import people_in_views, saved_views, view_counts
from tickets.saved_views.saved_views import STARS_LIMIT, VIEWS_LIMIT
from tickets.saved_views.view_counts import ListAsked, ViewCount
from tickets.ticket.fields import Channel, Priority, Rating, Status

QUEUE, VIEWS = "/acme/tickets/", "/acme/tickets/views/"
BOB = "b0" * 16


@pytest.fixture
def owner(world: World) -> Browser:
    return world.browser("alice", "acme")


@pytest.fixture
def bob(world: World) -> Browser:
    return world.browser("bob", "acme")


def by(tenant: TenantContext) -> Actor:
    return Actor(tenant.user_id, "", "127.0.0.1")


def save(tenant: TenantContext, name: str, query: str = "status=open", *, desk: bool = False, star: bool = True) -> str:
    return saved_views.save(tenant, name, query, is_desks=desk, is_starred=star, by=by(tenant)).id


def page(answer: Any) -> str:
    return unescape(answer.content.decode())


def beside(answer: Any) -> list[str]:
    """The names of the views beside a queue."""
    return re.findall(r'class="view-name" dir="auto">([^<]*)<', page(answer))


def names(views: Any) -> list[str]:
    return [view.name for view in views]


# --- saving ---


def test_a_list_is_saved_from_its_own_address_and_opens_as_it_was(bob: Browser) -> None:
    address = f"{VIEWS}new/?status=any&priority=high&resolver=me&sort=created"
    assert "All tickets, mine, priority: high, oldest ticket first" in page(bob.get(address))
    answer = bob.send(address, {"name": "  My fires ", "starred": "on"})
    assert (answer.status_code, answer["Location"]) == (
        302,
        f"{QUEUE}?status=any&resolver=me&priority=high&sort=created",
    )
    queue = bob.get(answer["Location"])
    assert beside(queue) == ["My fires"]
    assert re.search(r'data-view aria-current="page"><span class="view-name" dir="auto">My fires', page(queue))
    assert 'aria-current="page"><span class="view-name"' not in page(bob.get(QUEUE))


def test_a_view_keeps_no_name_of_a_person_and_no_place_in_the_list(alice: TenantContext) -> None:
    params = {"status": "open", "resolver": BOB, "name": "Bob Example", "after": "abc", "tag": ""}
    assert saved_views.query_of(params) == f"status=open&resolver={BOB}"


def test_nobody_else_sees_a_personal_view(world: World, bob: Browser, owner: Browser) -> None:
    bob.send(f"{VIEWS}new/?status=open", {"name": "Bobs own", "starred": "on"})
    (view,) = saved_views.read(world.context("bob", "acme")).own
    assert "Bobs own" not in page(owner.get(VIEWS))
    assert owner.get(f"{VIEWS}{view.id}/").status_code == 404
    for act in ("move", "star", "delete"):
        assert owner.send(f"{VIEWS}{view.id}/{act}/", {"on": "1"}).status_code == 404


def test_admins_make_views_of_the_desk_and_agents_star_them(world: World, owner: Browser, bob: Browser) -> None:
    owner.send(f"{VIEWS}new/?status=pending", {"name": "Waiting", "whose": "desk"})
    (view,) = saved_views.read(world.context("bob", "acme")).desk
    assert "Waiting" in page(bob.get(VIEWS))
    assert beside(bob.get(QUEUE)) == []
    bob.send(f"{VIEWS}{view.id}/star/", {"on": "1"})
    assert beside(bob.get(QUEUE)) == ["Waiting"]
    assert beside(owner.get(QUEUE)) == []
    bob.send(f"{VIEWS}{view.id}/star/", {"off": "1"})
    assert beside(bob.get(QUEUE)) == []
    for answer in (
        bob.get(f"{VIEWS}{view.id}/"),
        bob.send(f"{VIEWS}{view.id}/", {"name": "Mine now"}),
        bob.send(f"{VIEWS}{view.id}/move/", {"up": "1"}),
        bob.send(f"{VIEWS}{view.id}/delete/"),
    ):
        assert answer.status_code == 403
    bob.send(f"{VIEWS}new/?status=open", {"name": "Smuggled", "whose": "desk"})
    assert names(saved_views.read(world.context("bob", "acme")).desk) == ["Waiting"]


def test_the_audit_trail_tells_of_views_of_the_desk_and_not_of_personal_ones(
    alice: TenantContext, owner: Browser
) -> None:
    save(alice, "Private thing")
    first, second = save(alice, "Fires", desk=True), save(alice, "Floods", desk=True)
    saved_views.change(alice, first, name="Old fires", by=by(alice))
    saved_views.move(alice, second, -1, by=by(alice))
    saved_views.delete(alice, first, by=by(alice))
    trail = page(owner.get("/acme/desk/audit/"))
    for sentence in ("saved the view", "changed the view", "deleted the view"):
        assert sentence in trail
    assert "Private thing" not in trail


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("", "Enter a name."),
        ("x" * 61, "at most 60 characters"),
        ("FIRES", "There is a view with this name already."),
        ("\u200b", "A view needs a name."),
    ],
)
def test_a_bad_name_gets_its_sentence_and_loses_nothing(world: World, bob: Browser, name: str, sentence: str) -> None:
    save(world.context("bob", "acme"), "Fires")
    answer = bob.send(f"{VIEWS}new/?status=open&tag=fire", {"name": name, "starred": "on"})
    assert answer.status_code == 422
    assert sentence in page(answer)
    assert f'action="{VIEWS}new/?status=open&tag=fire"' in page(answer)
    assert names(saved_views.read(world.context("bob", "acme")).own) == ["Fires"]


def test_views_are_renamed_ordered_and_deleted_by_buttons(world: World, bob: Browser) -> None:
    tenant = world.context("bob", "acme")
    ids = {name: save(tenant, name) for name in ("One", "Two", "Three")}

    def own() -> list[str]:
        return names(saved_views.read(tenant).own)

    bob.send(f"{VIEWS}{ids['Three']}/move/", {"up": "1"})
    assert own() == ["One", "Three", "Two"] == beside(bob.get(QUEUE))
    bob.send(f"{VIEWS}{ids['One']}/move/", {"down": "1"})
    bob.send(f"{VIEWS}{ids['Three']}/move/", {"up": "1"})  # it is the first already
    assert own() == ["Three", "One", "Two"]
    bob.send(f"{VIEWS}{ids['Two']}/", {"name": "Second"})
    assert own() == ["Three", "One", "Second"]
    bob.send(f"{VIEWS}{ids['Three']}/delete/")
    assert own() == ["One", "Second"] == beside(bob.get(QUEUE))
    assert bob.get(f"{VIEWS}{ids['Three']}/").status_code == 404


def test_numbers_of_views_and_of_stars_are_limited(alice: TenantContext) -> None:
    first = save(alice, "View 0", desk=True, star=False)
    for number in range(1, VIEWS_LIMIT):
        save(alice, f"View {number}", desk=True, star=number < STARS_LIMIT)
    with pytest.raises(Invalid, match="up to 40 views"):
        save(alice, "One more", desk=True)
    save(alice, "A personal one", star=False)
    saved_views.star(alice, first, on=True, by=by(alice))
    (personal,) = saved_views.read(alice).own
    with pytest.raises(Invalid, match="Up to 12"):
        saved_views.star(alice, personal.id, on=True, by=by(alice))


def test_a_star_of_a_deleted_view_leaves_room_for_another(alice: TenantContext, world: World) -> None:
    ids = [save(alice, f"View {number}", desk=True) for number in range(STARS_LIMIT)]
    saved_views.delete(alice, ids[0], by=by(alice))
    more = save(alice, "Another")
    assert more in {view.id for view in saved_views.read(alice).starred}
    assert len(saved_views.read(alice).starred) == STARS_LIMIT


def test_an_api_key_has_no_views_of_its_own(alice: TenantContext) -> None:
    with pytest.raises(Forbidden):
        save(replace(alice, user_id="key_0123"), "Mine")


def test_words_that_this_version_does_not_know_are_left_out(alice: TenantContext, owner: Browser) -> None:
    save(alice, "Of tomorrow", "status=open&mood=bad&sort=mood&priority=high")
    assert "Open tickets, priority: high, latest update first" in page(owner.get(VIEWS))
    assert beside(owner.get(QUEUE)) == ["Of tomorrow"]
    assert owner.get(f"{VIEWS}counts/").status_code == 200


def test_a_view_of_a_person_whose_id_means_nothing_takes_no_page_along(alice: TenantContext, owner: Browser) -> None:
    save(alice, "Of nobody", "status=open&resolver=nobody")
    for address in (VIEWS, f"{VIEWS}counts/", QUEUE):
        answer = owner.get(address)
        assert (answer.status_code, "Of nobody" in page(answer)) == (200, True), address


def test_the_palette_offers_views_the_starred_ones_first(alice: TenantContext, owner: Browser, world: World) -> None:
    save(alice, "Desk's", desk=True, star=False)
    save(alice, "Plain", "status=any", star=False)
    save(alice, "<b>Starred</b>", "status=any&priority=high")
    told = re.findall(
        r'<a href="([^"]*)" data-command="Views"[^>]*>(.*?)</a>', page(owner.get("/acme/search/commands/"))
    )
    assert [name for _, name in told] == ["<b>Starred</b>", "Desk's", "Plain"]
    assert told[0][0] == "/acme/tickets/?status=any&priority=high"
    others = page(world.browser("bob", "acme").get("/acme/search/commands/"))
    assert ("Desk's" in others, "Plain" in others) == (True, False)


# --- counts ---


def image(draw: st.DrawFn, number: int) -> dict[str, Any]:
    status = draw(st.sampled_from(Status))
    rating = draw(st.sampled_from(["", *(rating.value for rating in Rating)]))
    return {
        "number": number,
        "status": status.value,
        "priority": draw(st.sampled_from(Priority)).value,
        "channel": draw(st.sampled_from(Channel)).value,
        "rating": rating,
        "resolver": draw(st.sampled_from(["", BOB, "c0" * 16])),
        "tags": draw(st.lists(st.sampled_from(["fire", "ice.cold"]), unique=True)),
        "created_at": "2026-11-20T10:00:00.000000Z",
    }


piles = st.composite(lambda draw: [image(draw, n) for n in range(draw(st.integers(0, 25)))])
words = st.sampled_from([*(s.value for s in Status), *filters.GROUPS])
asked_for = st.one_of(
    st.fixed_dictionaries({}),
    st.fixed_dictionaries({"resolver": st.sampled_from(["none", BOB, "d0" * 16])}),
    st.fixed_dictionaries({"priority": st.sampled_from(Priority).map(str)}),
    st.fixed_dictionaries({"channel": st.sampled_from(Channel).map(str)}),
    st.fixed_dictionaries({"rating": st.sampled_from(Rating).map(str)}),
    st.fixed_dictionaries({"tag": st.sampled_from(["fire", "ice.cold", "other"])}),
)


@given(piles(), words, asked_for)
def test_a_count_of_the_aggregates_is_the_number_of_tickets_in_the_list(
    pile: list[dict[str, Any]], word: str, asks: dict[str, str]
) -> None:
    tenant, _ = tenant_in_memory("ac" * 16)
    counts = contributions.total(contributions.contribution(one) for one in pile)
    stored = Stored(counts, {}, {}, Recent(), "")
    question = ListAsked.of(tenant, {"status": word, **asks})

    def matches(one: dict[str, Any]) -> bool:
        simple = {name: value for name, value in asks.items() if name in ("priority", "channel", "rating")}
        return (
            Status(one["status"]) in filters.statuses(word)
            and ("resolver" not in asks or one["resolver"] == asks["resolver"].replace("none", ""))
            and ("tag" not in asks or asks["tag"] in one["tags"])
            and all(one[name] == value for name, value in simple.items())
        )

    assert view_counts.counted(stored, question) == sum(map(matches, pile))


@pytest.mark.parametrize(
    "params",
    [
        {"priority": "high", "tag": "fire"},
        {"priority": "high", "resolver": "me"},
        {"created": "2026-11-20"},
        {"commented": "2026-11-20.."},
    ],
)
def test_what_no_aggregate_counts_is_not_guessed(params: dict[str, str]) -> None:
    tenant, _ = tenant_in_memory("ac" * 16)
    assert view_counts.counted(Stored({}, {}, {}, Recent(), ""), ListAsked.of(tenant, params)) is None


def test_people_and_tags_that_are_no_leaders_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    tenant, _ = tenant_in_memory("ac" * 16)
    monkeypatch.setattr(Recent, "has_tail", property(lambda self: True))
    stored = Stored({}, {}, {}, Recent(), "")
    for params in ({"resolver": BOB}, {"tag": "fire"}):
        assert view_counts.counted(stored, ListAsked.of(tenant, params)) is None
    assert view_counts.counted(stored, ListAsked.of(tenant, {"priority": "low"})) == 0


def test_counts_are_written_as_the_language_of_the_page_does() -> None:
    with shown_in(Locale(language="de")):
        assert str(ViewCount(1_200, is_least=True)) == "1.200+"


def test_a_long_list_that_no_aggregate_counts_says_fifty_or_more(world: World, owner: Browser) -> None:
    world.tickets("acme", 53)
    alice = world.context("alice", "acme")
    save(alice, "Long", "status=open&priority=normal&created=2000-01-01..")
    save(alice, "Short", "status=open&priority=urgent&tag=none")
    answer = page(owner.get(f"{VIEWS}counts/"))
    found = dict(re.findall(r'view-name" dir="auto">([^<]*)</span><span class="view-count">([^<]*)<', answer))
    assert found == {"Long": "50+", "Short": "0"}
    assert "or more tickets" in answer


def test_counts_cost_one_query_of_aggregates_and_one_round_of_lists(world: World) -> None:
    alice = world.context("alice", "acme")
    for number in range(5):
        save(alice, f"Counted {number}", f"status={[*Status][number % 4].value}")
    bill = spent(world.browser("alice", "acme"), f"{VIEWS}counts/")
    # The identity, the two items of views and the one of groups, and the aggregates beside them.
    assert (bill.trips, len(bill.calls), bill.read_units) == (2, 3, IDENTITY + 1.5 + 0.5)
    for number in range(3):
        save(alice, f"Looked at {number}", "status=open&priority=high&tag=fire")
    bill = spent(world.browser("alice", "acme"), f"{VIEWS}counts/")
    assert (bill.trips, len(bill.calls)) == (3, 3 + 3 * 2)  # each list has a partition, and one of noted tickets


def test_a_queue_that_is_loaded_in_place_reads_no_views(world: World) -> None:
    browser = world.browser("alice", "acme")
    browser.get(QUEUE)
    with _watching() as bills:
        browser.get(QUEUE, headers={"HX-Request": "true"})
    assert (bills[0].trips, len(bills[0].calls)) == (2, 3)


def test_a_change_of_a_view_costs_a_few_units(world: World) -> None:
    bob = world.browser("bob", "acme")
    with _watching() as bills:
        bob.send(f"{VIEWS}new/?status=open", {"name": "Mine"})
    assert (bills[0].trips, bills[0].write_units) == (3, 4)  # the item, and that Bob is a member still


# --- people ---


def test_a_members_views_go_with_the_membership(world: World) -> None:
    bob = world.context("bob", "acme")
    save(bob, "Bobs own")
    member_changes.remove(user_id=bob.user_id, tenant_id=bob.tenant_id, by=by(world.context("alice", "acme")))
    assert saved_views.read(bob).own == ()


def test_an_erased_person_is_replaced_in_names_and_filters(world: World, alice: TenantContext) -> None:
    bob = world.users["bob"]
    save(alice, "Of bob@example.com", f"status=open&resolver={bob.id}", desk=True)
    save(alice, "Others", f"status=open&resolver={alice.user_id}", desk=True)
    person = DeskPerson("bob@example.com", (bob.id,), "Bob Example")
    found = Counter[str]()
    for item in people_in_views.PEOPLE.read(alice, person):
        found.update(place.kind for place in people_in_views.PEOPLE.places(person, (), item))
        if item.owner == "DESK":
            assert people_in_views.PEOPLE.replace is not None
            people_in_views.PEOPLE.replace(alice, NewName(person, "e0" * 16, "Erased 1", (), texts=True), item)
    assert found == {"saved view, the member of its list": 1, "saved view, its name or filter": 1}
    first, second = saved_views.read(alice).desk
    assert (first.name, first.params["resolver"]) == ("Of Erased 1", "e0" * 16)
    assert (second.name, second.params["resolver"]) == ("Others", alice.user_id)


def test_a_view_that_is_gone_is_not_found(alice: TenantContext) -> None:
    for act in (saved_views.delete, lambda *a, **k: saved_views.move(*a, 1, **k)):
        with pytest.raises(NotFound):
            act(alice, "0" * 12, by=by(alice))


# --- the API ---


def test_the_api_lists_the_views_of_the_desk_with_the_parameters_of_their_lists(world: World) -> None:
    alice = world.context("alice", "acme")
    save(alice, "Fires", "status=any&priority=high&sort=-priority", desk=True)
    save(alice, "Her own")
    caller = api_client(world, Scope.TICKETS_READ)
    (view,) = caller.ask("/views").json()["data"]
    assert (view["name"], view["list"]) == ("Fires", {"status": "any", "priority": "high", "sort": "-priority"})
    assert caller.ask(f"/tickets?{urlencode(view['list'])}").status_code == 200
