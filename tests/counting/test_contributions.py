"""What a ticket adds to its tenant's numbers, and how changes of it are counted into them."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from portal import clock
from tenants.sign_in.accounts import new_id
from tests.support import fakes
from tests.support.folding import apply, contribution, created, image, kept_counts, record
from tickets.counting import coding, contributions, dead_letters, stored
from tickets.counting.contributions import Part
from tickets.counting.stored import DeadLetterItem
from tickets.ticket.fields import Channel, Priority, Rating, Status
from tickets.ticket.stored import day_count

ACME = "a" * 32
ANN, BEN = "1" * 32, "2" * 32
TOTALS, TAGS = Part("TOTALS", "", 0), Part("TAGS", "", 0)


def day(date: str) -> Part:
    return Part("DAY", date, 0)


# --- any changes, in any batches, however often they are delivered ---

FIRST, LAST = datetime.fromisoformat("2026-11-18"), datetime.fromisoformat("2026-11-20")
moments = st.datetimes(FIRST, LAST, timezones=st.just(UTC)).map(clock.stamp)
zones = st.sampled_from(["UTC", "Europe/Berlin", "Pacific/Kiritimati", "America/St_Johns"])
days = st.dictionaries(st.builds(day_count, st.sampled_from("cqro"), moments, zones), st.integers(1, 3), max_size=3)
ratings = st.sampled_from(["", *(r.value for r in Rating)])
facts = st.fixed_dictionaries(
    {
        "status": st.sampled_from([s.value for s in Status]),
        "priority": st.sampled_from([p.value for p in Priority]),
        "channel": st.sampled_from([c.value for c in Channel]),
        "resolver": st.sampled_from(["", ANN, BEN]),
        "tags": st.lists(st.sampled_from(["vpn", "mail", "a.b"]), unique=True, max_size=3),
        "days": days,
        "epoch": st.integers(0, 1),
    },
    optional={"responded_at": moments, "resolved_at": moments, "rating": ratings, "rated_at": moments, "zone": zones}
    | {"count_form": st.just(1)},
)


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[int, dict[str, Any] | None]]:
    """What becomes of four tickets, in order: each time one of them is written, or deleted (None)."""
    return draw(st.lists(st.tuples(st.integers(1, 4), st.none() | facts), max_size=25))


@st.composite
def deliveries(draw: st.DrawFn, length: int) -> list[tuple[int, int]]:
    """Batches, from and to, that bring all records in order but begin anywhere before what was delivered last."""
    found, done = [], 0
    while done < length:
        start, end = draw(st.integers(0, done)), draw(st.integers(1, length))
        if start < end:
            found.append((start, end))
            done = max(done, end)
    return found


@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(data=st.data(), history=histories())
def test_any_deliveries_of_any_changes_equal_the_recount(
    engine: None, data: st.DataObject, history: list[tuple[int, dict[str, Any] | None]]
) -> None:
    tenant_id = new_id()
    last: dict[int, dict[str, Any]] = {}
    shards: dict[str, list[dict[str, Any]]] = {"even": [], "odd": []}  # a ticket's changes are in one shard
    for sequence, (number, facts) in enumerate(history, start=9):
        old, new = last.pop(number, None), facts and image(tenant_id, number, **facts)
        if new:
            last[number] = new
        if old or new:
            shards["odd" if number % 2 else "even"].append(record(sequence, old, new))
    for shard, records in shards.items():
        for start, end in data.draw(deliveries(len(records))):
            apply(records[start:end], shard)
    assert kept_counts(tenant_id) == contributions.total(map(contribution, last.values()))


# --- single changes ---


def test_a_removal_by_ttl_counts_like_any_other(engine: None) -> None:
    service = {"userIdentity": {"type": "Service", "principalId": "dynamodb.amazonaws.com"}}
    apply([record(1, None, image(ACME, 1)), record(2, image(ACME, 1), None, **service)])
    assert kept_counts(ACME) == {}


def test_what_changes_nothing_is_not_written(engine: None) -> None:
    ticket = image(ACME, 1)
    outcome = apply([record(1, ticket, {**ticket, "title": {"S": "Another"}})])
    assert (outcome.counts["events"], outcome.counts["applied"], outcome.counts["updates"]) == (1, 0, 0)
    assert kept_counts(ACME) == {}


def test_other_items_are_passed_over(engine: None) -> None:
    comment = image(ACME, 1) | {"sk": {"S": "ACTIVITY#x#y"}}
    aggregate = {"pk": {"S": stored.aggregate(ACME)}, "sk": {"S": TOTALS}, "open.normal": {"N": "7"}}
    assert apply([record(1, None, comment), record(2, None, aggregate)]).counts["updates"] == 0


# --- what cannot be counted ---


def waiting() -> list[DeadLetterItem]:
    return list(dead_letters.all_letters())


@pytest.mark.parametrize(
    "broken",
    [
        {"status": {"S": "lost"}},
        {"created_at": {"S": "yesterday"}},
        {"days": {"M": {"": {"N": "1"}}}},
        {"tags": {"S": "vpn"}},
        {"resolver": {"NULL": True}},
    ],
    ids=lambda b: next(iter(b)),
)
def test_a_record_that_nobody_can_read_is_put_aside_and_the_others_count(engine: None, broken: dict[str, Any]) -> None:
    poison = image(ACME, 2) | broken
    batch = [record(1, None, image(ACME, 1)), record(2, None, poison), record(3, None, image(ACME, 3))]
    outcome = apply(batch)
    assert (outcome.counts["applied"], outcome.counts["dead"]) == (2, 1)
    assert kept_counts(ACME)[TOTALS]["open.normal"] == 2
    (dead_letter,) = waiting()
    assert dead_letter.tenant_id == ACME
    assert json.loads(dead_letter.record) == batch[1]


def test_a_summary_under_a_strange_key_is_of_no_tenant(engine: None) -> None:
    strange = image(ACME, 1) | {"pk": {"S": f"TENANT#{ACME}|TICKET#x"}}
    assert apply([record(1, None, strange)]).counts["dead"] == 1
    assert waiting()[0].tenant_id == ""


def test_what_the_database_never_takes_becomes_dead_letters_and_what_comes_next_counts(engine: None) -> None:
    tagged = created(ACME, range(1, 5), tags=["vpn"])
    with fakes.answering("worker", "UpdateItem", fakes.refusal("ValidationException")):
        outcome = apply(tagged[:2])
    assert outcome.counts["dead"] == 2
    assert apply(tagged[:2]).counts["applied"] == 0, "the first two are dead letters, and count no more"
    apply(tagged[2:])
    assert kept_counts(ACME)[TAGS] == {"open.vpn": 2}
    assert len(waiting()) == 2


def test_a_tenant_whose_aggregates_are_broken_delays_nobody(engine: None) -> None:
    globex = "b" * 32
    refused = fakes.refusal("ValidationException")

    def broken(params: dict[str, Any]) -> fakes.Answer | None:
        return refused if ACME in str(params["body"]) else None

    batch = [*created(ACME, range(1, 3)), *created(globex, range(3, 5))]
    with (
        fakes.answering("worker", "UpdateItem", *[broken] * 9),
        fakes.answering("worker", "TransactWriteItems", *[broken] * 9),
    ):
        outcome = apply(batch)
    assert (outcome.deferred, outcome.counts["dead"], outcome.counts["applied"]) == ((), 2, 2)
    assert kept_counts(globex)[TOTALS]["open.normal"] == 2
    assert {dead_letter.owner for dead_letter in waiting()} == {ACME}


def test_a_dead_letter_is_kept_without_its_images_where_they_are_too_long(engine: None) -> None:
    apply([record(1, None, image(ACME, 1, title="x" * 100_000) | {"status": {"S": "lost"}})])
    (dead_letter,) = waiting()
    assert len(dead_letter.record) < 1000
    assert dead_letters.ticket_of(dead_letter) == 1


def test_an_empty_map_without_its_type_is_an_empty_map(engine: None) -> None:
    """DynamoDB Local writes {} into its stream, where others write {"M": {}}."""
    ticket = image(ACME, 1)
    assert apply([record(1, None, ticket | {"days": {}})]).counts["applied"] == 1
    assert kept_counts(ACME) == contribution(ticket)


# --- the bookkeeping stays small ---


def test_more_counts_than_one_update_takes_are_all_there_and_count_once(engine: None) -> None:
    batch = [record(n, None, image(ACME, n, tags=[f"tag-{n}-{i}" for i in range(10)])) for n in range(1, 41)]
    apply(batch)
    apply(batch)
    apply(batch[3:])
    assert len(kept_counts(ACME)[TAGS]) == 400
    assert set(kept_counts(ACME)[TAGS].values()) == {1}


def test_a_hundred_changes_of_a_tenant_cost_less_than_half_a_write_unit_each(engine: None) -> None:
    apply(created(ACME, range(1, 2)))
    batch: list[dict[str, Any]] = []
    for n in range(2, 102):
        statuses, priorities = list(Status), list(Priority)
        ticket = {"status": statuses[n % 4].value, "priority": priorities[n % 3].value, "tags": [f"tag-{n % 30}"]}
        batch.append(record(n, None, image(ACME, n, resolver=[ANN, BEN, ""][n % 3], **ticket)))
    outcome = apply(batch)
    assert outcome.counts["applied"] == 100
    assert 0 < outcome.counts["write_units"] / 100 <= 0.4


# --- weeks ---

WEEKS = [(date(2020, 1, 6) + timedelta(weeks=n)).isoformat() for n in range(80)]


@given(
    weeks=st.lists(st.sampled_from(WEEKS), unique=True, min_size=coding.WEEKS_KEPT - 1),
    former=st.sampled_from(["", *WEEKS]),
)
def test_the_latest_weeks_are_held_one_by_one_and_of_the_older_ones_nothing_is_lost(
    weeks: list[str], former: str
) -> None:
    counts = Counter({"unassigned.open": 7, coding.OLDER_WEEKS: 1} | {f"w.{week}": 2 for week in weeks})
    start = coding.weeks_from(counts, former)
    assert start >= former
    held = coding.without_old_weeks(counts, start)
    latest = sorted(week for week in weeks if week >= former)[-coding.WEEKS_KEPT :]
    assert {name for name in held if name.startswith("w.")} == {coding.OLDER_WEEKS, *(f"w.{week}" for week in latest)}
    assert held.total() == counts.total()


@pytest.mark.parametrize(
    ("zone", "stamp", "on", "week"),
    [
        ("UTC", "2026-03-28T23:30:00.000000Z", "2026-03-28", "2026-03-23"),
        ("Europe/Berlin", "2026-03-28T23:30:00.000000Z", "2026-03-29", "2026-03-23"),
        ("Europe/Berlin", "2026-03-29T22:30:00.000000Z", "2026-03-30", "2026-03-30"),
        ("Europe/Berlin", "2026-10-25T22:59:59.999999Z", "2026-10-25", "2026-10-19"),
        ("Pacific/Kiritimati", "2028-02-28T10:00:00.000000Z", "2028-02-29", "2028-02-28"),
        ("America/St_Johns", "2027-01-01T03:29:00.000000Z", "2026-12-31", "2026-12-28"),
    ],
)
def test_a_ticket_counts_on_the_days_of_its_own_time_zone(zone: str, stamp: str, on: str, week: str) -> None:
    named = {} if zone == "UTC" else {"zone": zone}
    moments = {"created_at": stamp, "resolved_at": stamp, "rated_at": stamp, "rating": "good"}
    counts = contribution(image(ACME, 1, **moments, **named))
    assert {part.date for part in counts} == {"", on}
    assert counts[day(on)] == Counter({"created": 1, "rated.good": 1, "done.n": 1, "done.300": 1})
    assert counts[TOTALS][f"w.{week}"] == 1
