"""The dashboard: numbers from the rules through the stream to the page, what they cost, and who sees which."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, timedelta
from html import unescape
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from portal import clock
from portal.errors import Unavailable
from portal.streams import watermark
from portal.streams.watermark import Watermark
from tenants.audit_trail.recording import SYSTEM
from tenants.lifecycle import desk_settings
from tenants.membership import member_changes, own_profile
from tenants.sign_in.accounts import Profile
from tenants.tenancy.context import TenantContext
from tests.desk.test_cost import IDENTITY, spent
from tests.support import embedded, folding
from tests.support.world import Browser, World
from tickets.counting import contributions, merge
from tickets.counting.contributions import Part
from tickets.dashboards import dashboard, presenters
from tickets.desk import changing, commenting, creating
from tickets.requesters import requesters
from tickets.ticket.fields import Channel, Priority, Status

PAGE = "/tickets/dashboard/"


@pytest.fixture
def follower(engine: None) -> folding.Follower:
    return folding.Follower()


@pytest.fixture
def desk(world: World, follower: folding.Follower) -> World:
    """Five tickets of Acme: two open with nobody, one open with Alice, one pending with Bob, one resolved by Bob."""
    alice, bob = world.context("alice", "acme"), world.context("bob", "acme")
    for priority, channel, tags in (
        (Priority.URGENT, Channel.MAIL, ["vpn"]),
        (Priority.NORMAL, Channel.MAIL, []),
        (Priority.NORMAL, Channel.API, ["vpn", "mail"]),
        (Priority.LOW, Channel.HAND, []),
        (Priority.LOW, Channel.MAIL, ["mail"]),
    ):
        creating.create(alice, title="Broken", priority=priority, channel=channel, tags=tags)
    changing.assign(alice, 3, to=alice.user_id, version=1)
    changing.assign(bob, 4, to=bob.user_id, version=1)
    changing.change_status(bob, 4, to=Status.PENDING, version=2)
    changing.assign(bob, 5, to=bob.user_id, version=1)
    commenting.comment(bob, 5, body="Done.", then=Status.RESOLVED)
    commenting.comment(bob, 1, body="Looking at it.")
    follower.fold()
    return world


@pytest.fixture
def owner(desk: World) -> Browser:
    return desk.browser("alice", "acme")


def shown(browser: Browser, path: str = PAGE) -> dict[str, Any]:
    """The page's links with a number: what each says, and where it leads."""
    response = browser.get(path)
    assert response.status_code == 200
    return {"html": response.content.decode(), "context": response.context}


def tiles(browser: Browser) -> dict[str, int]:
    context = shown(browser)["context"]
    return {t.id: t.number.count for t in [*context["now"], *context["lately"]] if t.number}


def drill_downs(html: str) -> list[tuple[int, str]]:
    """Every link to the queue whose text begins with a number: the number and the address."""
    found = []
    for url, text in re.findall(r'<a class="(?:number|tile-link)" href="([^"]+)">(.*?)</a>', html):
        number = re.search(r">?([\d,]+)<|^([\d,]+)$", text)
        assert number, text
        found.append((int((number[1] or number[2]).replace(",", "")), unescape(url)))
    return found


def says(monkeypatch: pytest.MonkeyPatch, *, as_of: int, written: int) -> None:
    """The watermark, in seconds ago."""
    now = clock.now()
    known = Watermark(now - timedelta(seconds=as_of), now - timedelta(seconds=written))
    monkeypatch.setattr(watermark, "read", lambda *_: known)


# --- the numbers ---


def test_what_the_rules_wrote_stands_on_the_page(owner: Browser) -> None:
    assert tiles(owner) == {
        "open": 3, "pending": 1, "unassigned": 2, "created": 5, "resolved": 1, "reopened": 0, "commented": 2,
    }  # fmt: skip


def test_a_change_shows_once_it_is_counted(desk: World, owner: Browser, follower: folding.Follower) -> None:
    changing.change_status(desk.context("bob", "acme"), 5, to=Status.OPEN, version=3)
    assert tiles(owner)["open"] == 3
    follower.fold()
    assert {name: tiles(owner)[name] for name in ("open", "resolved", "reopened")} == {
        "open": 4, "resolved": 0, "reopened": 1,
    }  # fmt: skip


def test_who_left_is_shown_as_a_former_member(desk: World, owner: Browser) -> None:
    bob = desk.users["bob"]
    member_changes.unseed_member(bob.id, desk.tenants["acme"].tenant_id)
    page = shown(owner)
    names = {line.name for line in page["context"]["loads"]["all"]}
    assert names == {"Unassigned", "Alice Example", "Former member"}
    assert "Bob Example" not in page["html"]


def test_tags_and_priorities_are_counted_by_status(desk: World) -> None:
    found = dashboard.read(desk.context("alice", "acme"), days=30)
    assert {load.name: (load.unresolved, load.total) for load in found.tags} == {"vpn": (2, 2), "mail": (1, 2)}
    assert found.matrix[Status.OPEN, Priority.URGENT] == 1
    assert found.of_status(*Status) == 5


def test_the_page_says_how_many_comments_came_from_outside(
    desk: World, owner: Browser, follower: folding.Follower
) -> None:
    assert "from outside" not in shown(owner)["html"]
    alice = desk.context("alice", "acme")
    jane = requesters.ensure(alice, "jane@example.org")
    commenting.comment(replace(alice, user_id=jane.id, user_name=jane.label), 1, body="It still does not work.")
    follower.fold()
    assert tiles(owner)["commented"] == 3
    assert "1 from outside" in shown(owner)["html"]


def test_channels_are_counted_by_status_and_by_day_and_the_rest_was_made_by_hand(
    desk: World, owner: Browser, follower: folding.Follower
) -> None:
    def counts() -> dict[str, list[int]]:
        return {line.name: [one.count for one in line.numbers] for line in shown(owner)["context"]["channels"]}

    assert counts() == {"Mail": [2, 0, 1, 0, 3], "Form": [0] * 5, "API": [1, 0, 0, 0, 1], "By hand": [0, 1, 0, 0, 1]}
    bob = desk.context("bob", "acme")
    changing.change_status(bob, 1, to=Status.CLOSED, version=1)
    creating.create(bob, title="Sent", channel=Channel.FORM)
    follower.fold()
    assert counts() == {
        "Mail": [1, 0, 1, 1, 3], "Form": [1, 0, 0, 0, 1], "API": [1, 0, 0, 0, 1], "By hand": [0, 1, 0, 0, 1],
    }  # fmt: skip


def test_the_backlog_is_told_by_calendar_weeks(world: World) -> None:
    tenant = world.context("alice", "acme")
    monday = date.fromisoformat(contributions.monday(clock.now().date()))
    for weeks, count in ((0, 1), (1, 2), (2, 4), (4, 8), (5, 16), (13, 32), (14, 64), (200, 128)):
        folding.plant(tenant, "TOTALS", **{f"w_{monday - timedelta(weeks=weeks)}": count})
    ages = dashboard.read(tenant, days=30).ages
    assert [age.count for age in ages] == [1, 2, 12, 48, 192]
    assert (ages[2].first, ages[2].last) == (monday - timedelta(weeks=4), monday - timedelta(days=8))
    assert (ages[0].last, ages[4].first) == (None, None)


@pytest.mark.parametrize(("asked", "days"), [("30", 30), ("90", 90), ("", 30), ("31", 30), ("0x5a", 30), ("-90", 30)])
def test_the_period_is_30_or_90_days(owner: Browser, asked: str, days: int) -> None:
    context = shown(owner, f"{PAGE}?days={asked}")["context"]
    assert (context["days"], len(context["daily"])) == (days, days)


@pytest.mark.parametrize("query", ["days=30&days=1e9", "days=%00", "days[]=90", "days=" + "9" * 5000, "%ff=%ff"])
def test_nonsense_in_the_address_shows_the_usual_page(owner: Browser, query: str) -> None:
    assert owner.get(f"{PAGE}?{query}").status_code == 200


# --- the lists behind the numbers ---


def test_every_number_leads_to_a_list_of_that_many_tickets(owner: Browser) -> None:
    checked = 0
    for count, url in dict.fromkeys(drill_downs(shown(owner)["html"])):
        rows = len(owner.get(url).context["page"]["rows"])
        if "commented=" in url or "reopened=" in url:  # each time is counted, tickets are listed
            assert 0 < rows <= count, url
        else:
            assert rows == count, url
        checked += 1
    assert checked > 20


def test_the_figures_of_the_period_lead_to_the_tickets_that_they_count(
    desk: World, owner: Browser, follower: folding.Follower
) -> None:
    bob = desk.context("bob", "acme")
    for to in (Status.OPEN, Status.RESOLVED, Status.OPEN):
        changing.change_status(bob, 5, to=to, version=int(changing.read(bob, 5).version))
    commenting.comment(bob, 1, body="Again.")
    follower.fold()
    lately = {tile.id: tile.number for tile in shown(owner)["context"]["lately"] if tile.number and tile.number.count}
    listed = {
        name: sorted(row.number for row in owner.get(number.url).context["page"]["rows"])
        for name, number in lately.items()
    }
    assert {name: number.count for name, number in lately.items()} == {"created": 5, "reopened": 2, "commented": 3}
    assert listed == {"created": [1, 2, 3, 4, 5], "reopened": [5], "commented": [1, 5]}


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Midway", "Asia/Kathmandu"])
def test_days_today_and_their_lists_are_those_of_the_desks_zone(
    world: World, follower: folding.Follower, zone: str
) -> None:
    alice = world.context("alice", "acme")
    desk_settings.change_defaults(alice, values={desk_settings.ZONE: zone}, by=SYSTEM)
    for title in ("One", "Two"):
        creating.create(world.context("bob", "acme"), title=title)
    bob = world.context("bob", "acme")
    commenting.comment(bob, 1, body="Done.", then=Status.RESOLVED)
    follower.fold()
    found = dashboard.read(world.context("alice", "acme"), days=30)
    today = clock.now().astimezone(ZoneInfo(zone)).date()
    assert found.period.last == today
    last = found.days[-1]
    assert (last.created, last.resolved, last.commented) == (2, 1, 1)
    owner = world.browser("alice", "acme")
    html = shown(owner)["html"]
    assert f", {zone}</span>" in html
    listed = [len(owner.get(url).context["page"]["rows"]) for _, url in drill_downs(html) if f"created={today}" in url]
    assert listed
    assert set(listed) == {2}


def test_weeks_begin_on_the_day_that_the_reader_has_chosen(desk: World, owner: Browser) -> None:
    user = desk.users["alice"]
    for day, name in (("0", "Monday"), ("6", "Sunday"), ("5", "Saturday")):
        own_profile.change(user.id, name=user.name, profile=Profile("UTC", first_weekday=day), by=SYSTEM)
        weeks = shown(owner)["context"]["weeks"]
        assert {f"{week['period'].first:%A}" for week in weeks[:-1]} == {name}


def test_the_figures_of_a_busy_period_lead_to_lists_too(desk: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presenters, "READ_LIMIT", 2)
    lately = shown(desk.browser("alice", "acme"))["context"]["lately"]
    assert all(tile.number.url for tile in lately if tile.number and tile.number.count)


def test_an_agents_numbers_lead_to_lists_too(desk: World) -> None:
    bob = desk.browser("bob")
    found = drill_downs(shown(bob)["html"])
    assert len(found) == 5
    for count, url in found:
        assert len(bob.get(url).context["page"]["rows"]) == count, url


# --- what it costs ---


def test_the_page_takes_one_trip_beside_identity(owner: Browser) -> None:
    bill = spent(owner, PAGE)
    assert bill.trips == 2
    assert sorted(c.operation for c in bill.calls) == ["BatchGetItem", "GetItem", "Query", "Query"]
    # A unit for aggregates, or less, and one for the watermark and the names of the members.
    assert bill.read_units <= IDENTITY + 2
    assert bill.write_units == 0


@pytest.mark.parametrize("days", [30, 90])
def test_a_hundred_thousand_tickets_cost_what_ten_do(engine: None, days: int) -> None:
    world = embedded.prepared("ten-and-a-hundred-thousand", _ten_and_a_hundred_thousand)
    few = spent(world.browser("alice", "acme"), f"{PAGE}?days={days}")
    many_bill = spent(world.browser("charlie"), f"{PAGE}?days={days}")
    assert (many_bill.trips, len(many_bill.calls), many_bill.items + 1) == (few.trips, len(few.calls), few.items)
    assert many_bill.read_units <= few.read_units + 0.5  # longer numbers
    beside_days = IDENTITY + 0.5 + 0.5 + 1  # the watermark, the members, totals with tags
    assert many_bill.read_units <= beside_days + days * 300 / 4096 * 0.5


def _ten_and_a_hundred_thousand() -> World:
    world = World.create(shards=1)
    _plant_everything(world.context("alice", "acme"), 1)
    _plant_everything(world.context("charlie", "globex"), 10_000)
    return world


def _plant_everything(tenant: TenantContext, many: int) -> None:
    """Aggregates of ten times `many` tickets: every count that a day can have, six people, twelve tags."""
    people = [f"{n:032x}" for n in range(6)]
    totals = {f"{s}_{p}": many for s in Status for p in Priority}
    folding.plant(tenant, "TOTALS", **totals)
    folding.plant(tenant, "PEOPLE", **{f"{w}_{s}": many for w in people for s in Status})
    folding.plant(tenant, "TAGS", **{f"{s}_tag{n}": many for s in Status for n in range(12)})
    buckets = {f"{what}_{bound}": many for what in ("first", "done") for bound in contributions.BUCKETS[4:12]}
    events = dict.fromkeys(("created", "resolved", "reopened", "commented", "first_n", "done_n"), many)
    today = clock.now().date()
    for start in range(0, 90, 10):  # the fewer are recent at once, the less each write copies
        folding.merge_all(tenant)
        days = [str(today - timedelta(days=back)) for back in range(start, start + 10)]
        folding.plant_all(tenant, {Part("DAY", day, 0): {**events, **buckets} for day in days})
    folding.merge_all(tenant)


def test_of_very_many_tags_and_people_the_page_shows_the_leading_ones_and_how_many_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, bob = world.context("alice", "acme"), world.context("bob", "acme")
    former = {f"{n:032x}": 1 for n in range(40)}
    folding.plant(alice, "TOTALS", open_normal=100)
    for start in range(0, 80, 20):
        folding.plant(alice, "TAGS", **{f"open_tag{n}": 100 - n for n in range(start, start + 20)})
        folding.merge_all(alice)
    folding.plant(alice, "PEOPLE", **{f"{who}_closed": n for who, n in former.items()}, **{f"{bob.user_id}_open": 7})
    folding.merge_all(alice)
    merge.compact(folding.store_of(alice), position=lambda mark: "")
    numbers = dashboard.read(alice, days=30)
    assert [tag.name for tag in numbers.tags[:3]] == ["tag0", "tag1", "tag2"]
    assert len(numbers.tags) + numbers.other_tags.most == 80
    assert next(load for load in numbers.loads if load.key == bob.user_id).unresolved == 7
    html = shown(world.browser("alice", "acme"))["html"]
    most = numbers.other_tags.unresolved_at_most
    assert most < numbers.tags[-1].unresolved
    assert f"And {numbers.other_tags.most} others, none with more than {most} unresolved tickets." in html


def test_an_agent_who_is_no_leader_sees_the_own_numbers_all_the_same(world: World) -> None:
    bob = world.context("bob", "acme")
    for start in range(0, 60, 20):
        folding.plant(bob, "PEOPLE", **{f"{n:032x}_open": 9 for n in range(start, start + 20)})
        folding.merge_all(bob)
    folding.plant(bob, "PEOPLE", **{f"{bob.user_id}_open": 2})
    folding.merge_all(bob)
    assert dashboard.share(bob).mine.unresolved == 2


def test_an_agents_page_costs_the_totals_alone(desk: World) -> None:
    bill = spent(desk.browser("bob"), PAGE)
    assert (bill.trips, sorted(c.operation for c in bill.calls)) == (2, ["BatchGetItem", "GetItem", "Query"])
    assert bill.read_units == IDENTITY + 1


# --- who sees what ---


def test_an_agent_sees_the_own_numbers_and_nobodys_names(desk: World) -> None:
    page = shown(desk.browser("bob"))
    assert {t.id: t.number.count for t in page["context"]["mine"]} == {"open": 0, "pending": 1, "resolved": 1}
    assert page["context"]["percent"] == 25
    assert "Alice Example" not in page["html"]


def test_a_viewer_is_refused_and_sees_no_link(desk: World) -> None:
    vera = desk.browser("vera")
    assert vera.get(PAGE).status_code == 403
    assert PAGE not in vera.get("/tickets/").content.decode()


def test_another_tenants_numbers_are_not_these(desk: World) -> None:
    assert "No numbers yet" in shown(desk.browser("charlie"))["html"]


def test_a_tag_cannot_write_into_the_page(desk: World, owner: Browser, follower: folding.Follower) -> None:
    creating.create(desk.context("alice", "acme"), title="x", tags=["\"onload='x'&amp;{{x}}"])
    follower.fold()
    assert 'title="&#34;onload=&#39;x&#39;&amp;amp;{{x}}"' in shown(owner)["html"]


# --- how old the numbers are ---


@pytest.mark.parametrize(
    ("as_of", "written", "words", "warned"),
    [
        (12, 2, r'as of <time datetime="[^"]+" title="\d+ \w+ \d{4}, [\d:]{8} UTC">1\d s ago</time>', False),
        (250, 2, "These numbers are 4 minutes behind and catching up.", True),
        (7300, 7290, "(?s)Counting has stopped. These numbers are from .*2 hours ago", True),
    ],
)
def test_the_page_says_how_old_its_numbers_are(
    desk: World, monkeypatch: pytest.MonkeyPatch, as_of: int, written: int, words: str, warned: bool
) -> None:
    says(monkeypatch, as_of=as_of, written=written)
    for browser in (desk.browser("alice", "acme"), desk.browser("bob")):
        html = shown(browser)["html"]
        assert re.search(words, html)
        assert ("notice-warning" in html) == warned


def test_without_a_watermark_the_last_count_speaks(owner: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watermark, "read", lambda *_: None)
    html = shown(owner)["html"]
    assert "last change counted" in html
    assert "notice-warning" not in html


def test_an_outage_is_the_usual_503(owner: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise Unavailable("The database cannot be reached.")

    monkeypatch.setattr(watermark, "read", fails)
    response = owner.get(PAGE)
    assert (response.status_code, response["Retry-After"]) == (503, "5")
