"""What a ticket adds to the months of its desk, its channel, group, assignee and tags."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.dynamo.meter import item_size
from portal.dynamo.store import Transaction
from tenants.tenancy.context import TenantContext
from tests.counting.test_sizes import LIMIT, table
from tests.support.aggregate_table import AggregateTable
from tests.support.folding import Follower, apply, contribution, image, kept_counts, poller, record, recounted
from tests.support.world import World
from tickets.counting import coding, contributions, merge, stored
from tickets.counting.contributions import MONTH, Part
from tickets.counting.months import MonthPlace, MonthScope
from tickets.desk import changing, creating
from tickets.ticket.fields import TAGS_LIMIT, Status
from tickets.verification import rebuild, verify

__all__ = ["table"]

ACME, ANN = "a" * 32, "1" * 32
FOUR_MONTHS = {
    "created_at": "2026-08-31T22:30:00.000000Z",
    "responded_at": "2026-09-30T10:00:00.000000Z",
    "resolved_at": "2026-10-02T10:00:00.000000Z",
    "status": "resolved",
    "rating": "good",
    "rated_at": "2026-11-02T10:00:00.000000Z",
}


def months(image: dict[str, Any]) -> dict[str, dict[str, int]]:
    return {part.date: dict(counts) for part, counts in contribution(image).items() if part.kind == MONTH}


def test_each_event_counts_in_its_month_in_the_zone_of_the_ticket() -> None:
    found = months(image(ACME, 1, **FOUR_MONTHS, zone="Europe/Berlin", count_form=1))
    assert {place: counts for place, counts in found.items() if place.startswith("a/")} == {
        "a/2026-09/": {"h.1.0": 1, "solved": 1, "first.2592000": 1},  # half past midnight of the first in Berlin
        "a/2026-10/": {"done.7776000": 1},
        "a/2026-11/": {"rated.good": 1},
    }


def test_a_ticket_counts_for_its_desk_channel_group_assignee_and_each_tag_alike() -> None:
    of = {"channel": "mail", "group": "group_7", "resolver": ANN, "tags": ["vpn", "os:linux", "a/b%"], "count_form": 1}
    found = months(image(ACME, 1, **of))
    scopes = [
        *((MonthScope.ALL, ""), (MonthScope.CHANNEL, "mail"), (MonthScope.GROUP, "group_7"), (MonthScope.PERSON, ANN)),
        *((MonthScope.TAG, tag) for tag in ("vpn", "os:linux", "a/b%")),
    ]
    assert found == {str(MonthPlace(scope, "2026-11", value)): {"h.2.10": 1} for scope, value in scopes}


@pytest.mark.parametrize("aside", [{"spam_at": "2026-11-18T10:00:00.000000Z"}, {"merged_into": 2}, {"count_form": 0}])
def test_spam_what_was_merged_and_tickets_of_before_months_count_in_none(aside: dict[str, Any]) -> None:
    assert months(image(ACME, 1, **{"count_form": 1} | aside)) == {}


@given(
    value=st.text(min_size=1, max_size=40),
    scope=st.sampled_from([scope for scope in MonthScope if scope is not MonthScope.ALL]),
    epoch=st.integers(0, 99),
)
def test_any_value_is_read_back_from_a_code_and_from_a_key(value: str, scope: MonthScope, epoch: int) -> None:
    place = MonthPlace(scope, "2026-11", value)
    part = Part(MONTH, str(place), epoch)
    assert coding.decode(coding.code(part, "done.300")) == (part, "done.300")
    assert stored.aggregate_parts(merge.holder(part)) == (MONTH, str(place), epoch)
    assert MonthPlace.parse(part.date) == place


def test_a_change_of_all_tags_that_fills_many_items_counts_exactly_and_once(table: AggregateTable) -> None:
    """It touches more items than one transaction takes, and more counts than one update."""
    few, many = ([f"{of}-{'x' * 30}-{n}" for n in range(TAGS_LIMIT)] for of in ("old", "new"))
    said = FOUR_MONTHS | {"count_form": 1, "resolver": ANN}
    old, new = (image(ACME, 1, tags=tags, **said) for tags in (few, many))
    batch = [record(1, None, image(ACME, 9, count_form=1)), record(2, None, old), record(3, old, new)]
    for records in (batch, batch, batch[2:]):
        assert apply(records).counts["dead"] == 0
    nine = contribution(image(ACME, 9, count_form=1))
    assert table.counts(ACME) == contributions.total([contribution(new), nine])
    assert max(map(item_size, table.items.values())) <= LIMIT


def test_a_month_with_tickets_of_every_hour_fits_into_a_small_item(table: AggregateTable) -> None:
    hours = [f"2026-11-{day:02}T{hour:02}:00:00.000000Z" for day in range(1, 15) for hour in range(24)]
    apply([record(n, None, image(ACME, n, created_at=at, count_form=1)) for n, at in enumerate(hours, 1)])
    whole = contributions.merged(table.counts(ACME))[MONTH, "a/2026-11/"]
    assert len(whole) == 7 * 24
    assert max(map(item_size, table.items.values())) <= LIMIT


def test_a_ticket_of_before_months_takes_nothing_back_and_is_added_by_a_rebuild(world: World) -> None:
    alice = world.context("alice", "acme")
    creating.create(alice, title="VPN", tags=["vpn"])
    forget_form(alice, 1)
    Follower().fold()
    changing.change_status(alice, 1, to=Status.CLOSED, version=1)
    Follower().fold()
    assert of_months(alice) == Counter()
    with poller():
        rebuild.rebuild(alice.repository)
        assert verify.verify(alice.repository, settle=120).state == verify.OK
    assert kept_counts(alice) == recounted(alice)
    assert of_months(alice)["solved"] == 3, "of the desk, its channel and its tag"


def forget_form(tenant: TenantContext, number: int) -> None:
    """Make a ticket one of before months."""
    item = changing.read(tenant, number)
    item.count_form = None
    transaction = Transaction()
    transaction.put(item)
    tenant.repository.transact(transaction)


def of_months(tenant: TenantContext) -> Counter[str]:
    counts = Counter[str]()
    for part, some in kept_counts(tenant).items():
        if part.kind == MONTH:
            counts.update(some)
    return counts


def test_new_tickets_of_a_desk_of_before_months_wait_for_the_rebuild_too(world: World) -> None:
    """A worker of the old version may still be at work."""
    alice = world.context("alice", "acme")
    creating.create(alice, title="VPN")
    forget_form(alice, 1)
    alice = replace(alice, counts_months=False)
    creating.create(alice, title="Printer")
    Follower().fold()
    assert of_months(alice) == Counter()
    with poller():
        rebuild.rebuild(alice.repository)
        creating.create(alice, title="Phone")
        assert verify.verify(alice.repository, settle=120).state == verify.OK
    months = contributions.merged(kept_counts(alice))[MONTH, f"a/{alice.today:%Y-%m}/"]
    assert months.total() == 3
