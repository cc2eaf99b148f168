"""What pages cost, as counts: sequential round trips, calls and capacity units. No clock is involved.

The floors are those of the design: an eventually consistent read costs 0.5 units per 4 KB begun. For those who may read
internal notes a list takes one Query more for each status, of the tickets whose last change is a note.
"""

from __future__ import annotations

import math

import pytest
from django.core.cache import cache

from portal import clock
from portal.dynamo import meter
from tenants.audit_trail.recording import Actor
from tenants.membership import own_profile
from tenants.sign_in.accounts import Profile
from tests.support import embedded
from tests.support.world import Browser, World
from tickets.desk import bulk, changing, commenting, lists, timelines
from tickets.desk.changing import TicketState
from tickets.ticket import stored
from tickets.ticket.fields import Priority, Status
from tickets.ticket.stored import DetailItem, SummaryItem

IDENTITY = 3.5  # session, account, membership, tenant, two counts, the setup: seven items of under 4 KB, 0.5 units each
VIEWS = 1.5  # of a whole page of the queue: saved views of the desk and of the person, and their groups, 0.5 units each


def fill(world: World, where: str, count: int) -> None:
    """Many open tickets, written in batches, each with the attributes that the rules write."""
    tenant = world.context("alice", where)
    items: list[SummaryItem | DetailItem] = []
    for number in range(1, count + 1):
        at = clock.stamp(offset=number)
        pk = tenant.repository.key(stored.ticket, number)
        derived = changing.derived(tenant, number, status="open", resolver="", updated_at=at)
        items.append(
            SummaryItem(
                pk,
                stored.SUMMARY,
                number=number,
                title=f"Ticket {number} " + "x" * 60,
                priority="normal",
                tags=["billing", "printer"],
                requester=tenant.user_id,
                requester_name=tenant.user_name,
                created_at=at,
                **derived,
            )
        )
        items.append(DetailItem(pk, stored.DETAIL, description="It broke." * 20))
    tenant.repository.put_all(items)


@pytest.fixture(params=[(1, 10), (1, 1000), (4, 10), (4, 1000)], ids=lambda p: f"S={p[0]}-{p[1]}-tickets")
def filled(request: pytest.FixtureRequest, engine: None) -> tuple[World, int, int]:
    shards, count = request.param
    return filled_world(shards, count), shards, count


def filled_world(shards: int, count: int) -> World:
    """The world with so many tickets in Acme, which are written once for all tests."""

    def make() -> World:
        world = World.create(shards=shards)
        fill(world, "acme", count)
        return world

    return embedded.prepared(f"tickets-{shards}-{count}", make)


def spent(browser: Browser, path: str) -> meter.Meter:
    cache.clear()  # as if the process had served nobody for a second
    with _watching() as bills:
        response = browser.get(path)
    assert response.status_code == 200, path
    return bills[0]


class _watching:
    """Collects the bill of each request: the middleware's own meter, seen from outside."""

    def __enter__(self) -> list[meter.Meter]:
        self.bills: list[meter.Meter] = []
        self.original = meter.Meter.__init__

        def remember(bill: meter.Meter, *args: object, **kwargs: object) -> None:
            self.original(bill, *args, **kwargs)  # type: ignore[arg-type]
            self.bills.append(bill)

        meter.Meter.__init__ = remember  # type: ignore[method-assign]
        return self.bills

    def __exit__(self, *exc: object) -> None:
        meter.Meter.__init__ = self.original  # type: ignore[method-assign]


def test_a_list_page_takes_two_trips_and_reads_no_more_than_its_rows(filled: tuple[World, int, int]) -> None:
    world, shards, count = filled
    bill = spent(world.browser("bob"), "/tickets/")
    reads = [c for c in bill.calls if c.operation == "Query"]
    assert bill.trips == 2
    assert len(reads) == shards + 1
    assert sum(c.items for c in reads) <= min(count, lists.PAGE_SIZE + 1 + shards * 7)
    assert bill.read_units == IDENTITY + VIEWS + sum(max(1, math.ceil(c.size / 4096)) * 0.5 for c in reads)
    assert bill.write_units == 0


def test_a_viewers_list_reads_nothing_of_notes(filled: tuple[World, int, int]) -> None:
    world, shards, _ = filled
    for query, partitions in (("", shards), ("?status=any", 4 * shards), ("?resolver=none", shards)):
        assert len(spent(world.browser("vera"), f"/tickets/{query}").calls) == 1 + partitions


def test_a_list_of_noted_tickets_takes_two_trips(engine: None) -> None:
    world = filled_world(1, 100)
    for number in range(1, 101, 2):
        commenting.comment(world.context("bob", "acme"), number, body="between us", internal=True)
    bill = spent(world.browser("bob"), "/tickets/")
    assert (bill.trips, len(bill.calls)) == (2, 3)
    assert sum(c.items for c in bill.calls[1:]) <= 2 * (lists.PAGE_SIZE + 1)


def test_the_list_of_one_resolver_takes_two_trips(filled: tuple[World, int, int]) -> None:
    world, shards, _ = filled
    for who in ("me", "none", world.users["alice"].id):
        bill = spent(world.browser("bob"), f"/tickets/?resolver={who}")
        assert (bill.trips, len(bill.calls)) == (2, 1 + shards + 1)


def test_a_second_page_costs_what_the_first_did(engine: None) -> None:
    browser = filled_world(1, 1000).browser("bob")
    first = browser.get("/tickets/")
    page = spent(browser, first.context["page"]["next_url"])
    assert (page.trips, len(page.calls)) == (2, 3)


def test_several_statuses_take_two_trips_and_a_query_for_each_status_and_shard(filled: tuple[World, int, int]) -> None:
    world, shards, count = filled
    browser = world.browser("bob")
    for status, partitions in (("unresolved", 2 * shards + 2), ("any", 4 * shards + 4)):
        bill = spent(browser, f"/tickets/?status={status}")
        assert (bill.trips, len(bill.calls)) == (2, 1 + partitions)
        assert sum(c.items for c in bill.calls[1:]) <= min(count, lists.PAGE_SIZE + 1 + shards * 7)


def test_a_filter_that_nothing_matches_reads_five_hundred_rows_in_three_rounds(
    filled: tuple[World, int, int],
) -> None:
    world, shards, count = filled
    bill = spent(world.browser("bob"), "/tickets/?priority=urgent")
    reads = [c for c in bill.calls if c.operation == "Query"]
    rounds = 3 if count > lists.READ_LIMIT else 1
    assert bill.trips == 1 + rounds
    assert len(reads) <= rounds * shards + 1
    assert sum(c.items for c in reads) <= min(count, lists.READ_LIMIT)
    # What DynamoDB charges is what was read, and the meter sees all of it.
    assert bill.read_units == IDENTITY + VIEWS + sum(max(1, math.ceil(c.size / 4096)) * 0.5 for c in reads)
    assert bill.read_units <= IDENTITY + VIEWS + 35


def test_a_filter_that_fills_a_page_at_once_costs_what_a_plain_page_does(filled: tuple[World, int, int]) -> None:
    world, shards, _ = filled
    browser = world.browser("bob")
    plain = spent(browser, "/tickets/")
    bill = spent(browser, "/tickets/?tag=printer&priority=normal")
    assert len(bill.calls) <= 1 + 2 * shards + 1  # where one shard has more of the newest, a filtered page reads on
    if shards == 1:
        assert (bill.trips, len(bill.calls), bill.items, bill.read_units) == (
            plain.trips,
            len(plain.calls),
            plain.items,
            plain.read_units,
        )


def test_days_keep_a_list_from_reading_what_lies_before_them(filled: tuple[World, int, int]) -> None:
    world, shards, _ = filled
    bill = spent(world.browser("bob"), "/tickets/?status=any&created=2999-01-01..")
    assert (bill.trips, len(bill.calls), bill.items - bill.calls[0].items) == (2, 1 + 4 * shards + 4, 0)


def test_a_ticket_page_takes_two_trips_and_one_query(filled: tuple[World, int, int]) -> None:
    world, _, _ = filled
    bill = spent(world.browser("bob"), "/tickets/3/")
    assert [c.operation for c in bill.calls] == ["BatchGetItem", "Query"]
    assert bill.trips == 2
    assert bill.read_units == IDENTITY + 0.5


def test_a_ticket_with_many_comments_costs_half_a_unit_per_4_kb(world: World) -> None:
    (number,) = world.tickets("acme", 1)
    bob = world.context("bob", "acme")
    for _ in range(20):
        commenting.comment(bob, number, body="x" * 1000)
    bill = spent(world.browser("bob"), f"/tickets/{number}/")
    query = bill.calls[1]
    assert bill.trips == 2
    assert query.read_units == math.ceil(query.size / 4096) * 0.5 == 3.5


def test_a_reader_with_zone_and_forms_of_their_own_costs_no_trip_and_no_read_more(world: World) -> None:
    world.tickets("acme", 1)
    browser, user = world.browser("bob", "acme"), world.users["bob"]
    before = [spent(browser, path) for path in ("/tickets/", "/tickets/1/")]
    profile = Profile("Asia/Kolkata", "dots", "dot", "6")
    own_profile.change(user.id, name=user.name, profile=profile, by=Actor(user.id, user.email))
    after = [spent(browser, path) for path in ("/tickets/", "/tickets/1/")]
    assert [(bill.trips, len(bill.calls)) for bill in after] == [(bill.trips, len(bill.calls)) for bill in before]


def test_the_page_of_a_profile_takes_one_trip_more_than_the_identity(world: World) -> None:
    bill = spent(world.browser("bob", "acme"), "/account/profile/")
    assert (bill.trips, len(bill.calls)) == (2, 2)


def test_an_earlier_page_of_a_long_ticket_takes_two_trips(world: World) -> None:
    (number,) = world.tickets("acme", 1)
    bob = world.context("bob", "acme")
    for _ in range(timelines.ACTIVITY_PAGE + 5):
        commenting.comment(bob, number, body="again")
    browser = world.browser("bob")
    page = browser.get(f"/tickets/{number}/")
    assert 'href="#latest">Go to the latest' in page.content.decode(), "a long way on a phone"
    assert spent(browser, page.context["earlier_url"]).trips == 2


@pytest.mark.parametrize(
    ("who", "headers", "beside"),
    [
        ("bob", {"HX-Request": "true", "HX-Target": "earlier"}, 2),  # "Show earlier activity": no form comes with it
        ("vera", {}, 2),
        ("bob", {}, timelines.ACTIVITY_PAGE + 2),  # its form follows on the latest entries
    ],
)
def test_an_earlier_page_reads_what_it_shows_and_the_head_of_the_ticket(
    world: World, who: str, headers: dict[str, str], beside: int
) -> None:
    (number,) = world.tickets("acme", 1)
    bob, browser = world.context("bob", "acme"), world.browser(who)
    for _ in range(2 * timelines.ACTIVITY_PAGE + 5):
        commenting.comment(bob, number, body="again")
    url = browser.get(f"/tickets/{number}/").context["earlier_url"]
    with _watching() as bills:
        assert len(browser.get(url, headers=headers).context["activity"]) == timelines.ACTIVITY_PAGE
    assert sorted(call.items for call in bills[0].calls[1:]) == sorted([timelines.ACTIVITY_PAGE + 1, beside])


def test_an_open_page_asks_for_updates_at_half_a_unit_and_one_more_trip(filled: tuple[World, int, int]) -> None:
    world, shards, _ = filled
    browser = world.browser("bob")
    for page, calls in (("/tickets/", shards + 1), ("/tickets/3/", 1)):
        url = browser.get(page).context["updates_url"]
        with _watching() as bills:
            assert browser.get(url).status_code == 204
        assert (bills[0].trips, bills[0].read_units) == (2, IDENTITY + calls * 0.5)


def test_news_of_a_ticket_take_one_query_more_at_the_same_price(world: World) -> None:
    (number,) = world.tickets("acme", 1)
    url = world.browser("bob").get(f"/tickets/{number}/").context["updates_url"]
    for _ in range(timelines.ACTIVITY_PAGE):
        commenting.comment(world.context("alice", "acme"), number, body="again")
    bill = spent(world.browser("bob"), url)
    assert [c.operation for c in bill.calls] == ["BatchGetItem", "GetItem", "Query"]
    assert (bill.trips, bill.calls[2].items) == (3, timelines.NEWS_READ + 2)


def test_a_comment_from_a_page_that_is_up_to_date_reads_nothing_more(world: World) -> None:
    (number,) = world.tickets("acme", 1)
    bob = world.context("bob", "acme")
    seen = changing.updated_at(bob, changing.read(bob, number))
    with meter.measure() as bill:
        commenting.comment(bob, number, body="Done.", seen=seen)
    assert [c.operation for c in bill.calls] == ["GetItem", "TransactWriteItems"]


def test_merging_with_what_others_changed_reads_one_page_of_the_timeline_more(world: World) -> None:
    (number,) = world.tickets("acme", 1)
    bob = world.context("bob", "acme")
    operations = []
    for to in (Priority.HIGH, Priority.LOW):
        changing.change_status(bob, number, to=Status.PENDING, version=1)
        with meter.measure() as bill:
            changing.edit(bob, number, priority=to, version=2 if to is Priority.HIGH else 3)
        operations.append([c.operation for c in bill.calls])
    with meter.measure() as bill:
        changing.assign(bob, number, to=bob.user_id, version=2)
    assert operations == [["GetItem", "TransactWriteItems"]] * 2
    assert [c.operation for c in bill.calls] == ["GetItem", "Query", "TransactWriteItems"]


def test_choosing_a_tenant_takes_two_trips_one_query_for_tenants_and_one_for_invitations(world: World) -> None:
    bill = spent(world.browser("alice", "acme"), "/tenants/")
    assert [c.operation for c in bill.calls] == ["BatchGetItem", "Query", "Query"]
    assert (bill.trips, bill.read_units) == (2, IDENTITY + 0.5 + 0.5)


def test_may_this_user_act_here_costs_half_a_unit(world: World) -> None:
    bill = spent(world.browser("bob"), "/account/")
    assert (bill.trips, bill.read_units) == (1, IDENTITY)


def test_a_visitor_costs_nothing(engine: None) -> None:
    with _watching() as bills:
        Browser().get("/login/")
    assert bills[0].calls == []


def test_one_summary_costs_half_a_unit(world: World) -> None:
    (number,) = world.tickets("acme", 1)
    tenant = world.context("bob", "acme")
    with meter.measure() as bill:
        tenant.repository.get(SummaryItem, stored.ticket, number, sort=stored.SUMMARY)
    assert (bill.trips, bill.read_units) == (1, 0.5)


@pytest.mark.parametrize("shards", [1, 4])
def test_forty_tickets_change_in_one_write_and_nothing_is_read(engine: None, shards: int) -> None:
    tenant = filled_world(shards, 40).context("bob", "acme")
    chosen = [TicketState(n, 1, Status.OPEN, "") for n in range(1, 41)]
    with meter.measure() as bill:
        assert bulk.change_status(tenant, chosen, to=Status.CLOSED).count == 40
    assert [c.operation for c in bill.calls] == ["TransactWriteItems"]
    # Per ticket of under 1 KB, in a transaction: 2 units for the summary, 2 for its timeline entry, and in each
    # of the two indexes a row removed and a row written, again at 2.
    assert bill.write_units <= 40 * (2 + 2 + 2 * 2 * 2)


def test_a_bulk_change_over_http_takes_two_trips(world: World) -> None:
    world.tickets("acme", 3)
    browser = world.browser("bob")
    mark = browser.mark()
    with _watching() as bills:
        browser.post("/tickets/bulk/", {"_page": mark, "tickets": ["1.1.open.", "2.1.open."], "to": "closed"})
    assert bills[0].trips == 2


def test_a_page_says_what_it_cost_where_debug_is_on(world: World, settings: object) -> None:
    settings.DEBUG = True  # type: ignore[attr-defined]
    header = world.browser("bob").get("/tickets/")["Server-Timing"]
    assert header.startswith("dynamodb;dur=")
    assert "2 trips, 3 calls" in header
    assert "RCU" in header


def test_a_page_says_nothing_of_its_cost_in_production(world: World) -> None:
    assert "Server-Timing" not in world.browser("bob").get("/tickets/")
