"""A requester rates how their ticket was handled: when, once for each request, with words, and where it is found."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from portal import clock
from portal.errors import Invalid
from tenants.tenancy import context, tenant_directory
from tenants.tenancy.context import Role, TenantContext
from tests.support import outbox
from tests.support.commands import run
from tests.support.folding import Follower, kept_counts, numbers, recounted
from tests.support.world import World
from tickets.dashboards import dashboard, presenters
from tickets.desk import changing, commenting, creating, rating, timelines
from tickets.desk.rating import NotRatable
from tickets.requesters import requesters
from tickets.ticket.fields import Rating, Status
from tickets.ticket.stored import ActivityItem, SummaryItem

GOOD, BAD = Rating.GOOD, Rating.BAD


@pytest.fixture
def ada(world: World, bob: TenantContext) -> TenantContext:
    """The requester of ticket 1, which Bob has resolved."""
    person = requesters.ensure(bob, "ada@example.org", name="Ada Lovelace")
    number = creating.create(bob, title="The engine stops", requester=person, resolver=bob.user_id)
    changing.change_status(bob, number, to=Status.RESOLVED, version=2)
    tenant = tenant_directory.get(bob.tenant_id)
    return context.of_tenant(tenant, role=Role.VIEWER, user_id=person.id, user_name=person.label)


def rate(ada: TenantContext, to: Rating, words: str = "", request: str = "") -> None:
    rating.rate(ada, 1, to, words=words, request_id=request or changing.new_request_id())


def summary(bob: TenantContext) -> SummaryItem:
    return changing.read(bob, 1)


def rated(bob: TenantContext) -> list[tuple[str, str]]:
    """What the ratings in the history changed, and what was said with them."""
    entries = timelines.ticket(bob, 1).activity
    return [(told(entry), entry.body) for entry in entries if told(entry) or entry.verb == rating.SAID_MORE]


def told(entry: ActivityItem) -> str:
    return "".join(f"{c.before}>{c.after}" for c in entry.changes if c.field == "rating")


def test_a_rating_is_on_the_ticket_and_in_its_history(ada: TenantContext, bob: TenantContext) -> None:
    before = summary(bob)
    rate(ada, GOOD, "Thank you!\nQuick.")
    after = summary(bob)
    assert (after.rating, after.version, after.status) == ("good", before.version + 1, "resolved")
    assert after.updated_at == after.rated_at > before.updated_at
    assert after.comment_count == before.comment_count
    assert rated(bob) == [(">good", "Thank you!\nQuick.")]
    (entry,) = [one for one in timelines.ticket(bob, 1).activity if told(one)]
    assert entry.author_name == "Ada Lovelace"


def test_a_rating_can_be_changed_and_its_words_too(ada: TenantContext, bob: TenantContext) -> None:
    for to, words in ((BAD, "Too slow."), (GOOD, ""), (GOOD, "It works after all."), (GOOD, "")):
        rate(ada, to, words)
    assert rated(bob) == [(">bad", "Too slow."), ("bad>good", ""), ("", "It works after all.")]
    assert summary(bob).rating == "good"


def test_the_same_request_again_changes_nothing(ada: TenantContext, bob: TenantContext) -> None:
    for _ in range(2):
        rate(ada, BAD, "Too slow.", request="1" * 32)
    rate(ada, GOOD)
    rate(ada, BAD, "Too slow.", request="1" * 32)
    assert [change for change, _ in rated(bob)] == [">bad", "bad>good"], "the first request, sent late, is over"


@pytest.mark.parametrize(("status", "days", "can"), [
    (Status.OPEN, 0, False),
    (Status.PENDING, 0, False),
    (Status.RESOLVED, 400, True),
    (Status.CLOSED, 29, True),
    (Status.CLOSED, 31, False),
])  # fmt: skip
def test_a_ticket_can_be_rated_once_it_is_resolved_and_for_30_days_when_it_is_closed(
    ada: TenantContext, bob: TenantContext, status: Status, days: int, can: bool
) -> None:
    item = summary(bob)
    item.status = status.value
    item.resolved_at = clock.stamp(clock.now() - timedelta(days=days))
    assert rating.can_be_rated(item) is can
    if status in (Status.OPEN, Status.PENDING):
        changing.change_status(bob, 1, to=Status.OPEN, version=3)
        with pytest.raises(NotRatable):
            rate(ada, GOOD)


def test_words_that_are_too_long_are_refused_at_their_field(ada: TenantContext, bob: TenantContext) -> None:
    with pytest.raises(Invalid) as refused:
        rate(ada, GOOD, "x" * 2001)
    assert refused.value.field == "words"
    assert summary(bob).rating == ""


def test_a_rating_that_meets_other_changes_is_stored_beside_them(
    ada: TenantContext, bob: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = changing.read
    meanwhile = [lambda: changing.change_status(bob, 1, to=Status.CLOSED, version=3)]

    def overtaken(*args: Any, **how: Any) -> SummaryItem:
        found = read(*args, **how)
        if meanwhile:
            meanwhile.pop()()
        return found

    monkeypatch.setattr(changing, "read", overtaken)
    rate(ada, BAD, "Too slow.")
    assert (summary(bob).rating, summary(bob).status) == ("bad", "closed")
    assert rated(bob) == [(">bad", "Too slow.")]


def test_ratings_are_counted_by_status_by_day_and_by_assignee(
    world: World, ada: TenantContext, bob: TenantContext
) -> None:
    follower = Follower()
    for to in (BAD, GOOD):
        rate(ada, to)
    follower.fold()
    assert kept_counts(bob) == recounted(bob)
    today = clock.now().date().isoformat()
    # Counts of months, whose names have a slash, are those of reports.
    counts = {name: n for name, n in numbers(bob).items() if "/" not in name}
    assert {name: n for name, n in counts.items() if "good" in name or "bad" in name} == {
        "good.resolved": 1, f"r.{bob.user_id}.good": 1, f"{today} rated.good": 1,
    }  # fmt: skip
    changing.assign(bob, 1, to="", version=int(summary(bob).version))
    commenting.comment(ada, 1, body="No, it is not.", then=Status.OPEN)
    follower.fold()
    assert kept_counts(bob) == recounted(bob)
    counts = numbers(bob)
    assert {name for name in counts if "good" in name and "/" not in name} == {"good.open", f"{today} rated.good"}


def test_the_dashboard_leads_from_ratings_to_their_tickets(
    world: World, ada: TenantContext, bob: TenantContext
) -> None:
    follower = Follower()
    follower.fold()
    page = world.browser("alice", "acme").get("/tickets/dashboard/").content.decode()
    assert "No ticket is rated yet" in page
    rate(ada, BAD)
    follower.fold()
    alice = world.context("alice", "acme")
    shown = presenters.dashboard(alice, dashboard.read(alice, days=30))
    (line,) = shown["rated_people"]
    bad = next(one for one in shown["ratings"] if one.id == "rating-bad")
    numbers_of_bad = [*bad.numbers, *line.numbers]
    assert [one.count for one in numbers_of_bad] == [0, 0, 1, 0, 1, 0, 1]
    browser = world.browser("alice", "acme")
    for one in numbers_of_bad:
        if one.count:
            assert "The engine stops" in browser.get(one.url).content.decode(), one.url
    for asked in ("rating=good", "rating=bad&rated=2020-01-01"):
        assert "The engine stops" not in browser.get(f"/tickets/?status=any&{asked}").content.decode()


def test_an_export_has_a_rating_with_its_words_and_an_import_brings_both_back(
    world: World, ada: TenantContext, bob: TenantContext, tmp_path: Path
) -> None:
    rate(ada, BAD, "Too slow.")
    path = tmp_path / "acme.jsonl"
    assert run("export_tickets", "--tenant", "acme", "--output", path).status == 0
    (line,) = [json.loads(one) for one in path.read_text().splitlines()]
    assert (line["rating"], line["rated_at"]) == ("bad", summary(bob).rated_at)
    assert [entry["body"] for entry in line["activity"] if entry.get("body")] == ["Too slow."]
    assert run("import_archive", "--tenant", "globex", path).status == 0
    there = world.context("alice", "globex")
    assert changing.read(there, 1).rated_at == summary(bob).rated_at
    assert [body for _, body in rated(there)] == ["Too slow."]


def test_an_erasure_takes_a_persons_name_out_of_the_words_of_a_rating(
    world: World, ada: TenantContext, bob: TenantContext
) -> None:
    rate(ada, BAD, "Ask ada@example.org, please.")
    assert run("erase_person", "acme", "ada@example.org", "--texts").status == 0
    ((_, words),) = rated(bob)
    assert "ada@example.org" not in words
    assert summary(bob).rating == "bad", "a count of the desk, and nothing about a person"


def test_subscribers_are_told_of_a_rating(world: World, ada: TenantContext) -> None:
    outbox.subscribe(world, "acme")
    rating.rate(world_context(world, ada), 1, GOOD, words="", request_id="1" * 32)
    (event,) = [one for one in outbox.told() if one["type"] == "ticket.changed"]
    assert event["data"]["changes"] == [{"field": "rating", "before": None, "after": "good"}]


def world_context(world: World, ada: TenantContext) -> TenantContext:
    """Ada's context as it is now, with what the desk has subscribed to since."""
    tenant = tenant_directory.get(world.tenants["acme"].tenant_id)
    return context.of_tenant(tenant, role=Role.VIEWER, user_id=ada.user_id, user_name=ada.user_name)
