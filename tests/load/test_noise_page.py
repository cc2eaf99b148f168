"""Operators see who is noisy now, who suffers, and what was done about it; by what processes noted of real work."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.cache import cache

from delivery import lambda_handlers
from delivery.outbox.destinations import Outcome
from delivery.queues import depths, holds
from delivery.queues.limits import DeliveryLimits, Schedule
from delivery.queues.queue_transport import Depth
from portal import clock
from portal.load.measurement import NoiseTally, TenantNotes
from portal.load.reporting import LoadReporter
from portal.load.tenant_limiter import TenantLimiter
from portal.schema import keys
from tenants.audit_trail.recording import SYSTEM
from tenants.tenancy import tenant_middleware
from tests.support import deliveries
from tests.support.noise import telling
from tests.support.operators import Operator, calls, text_of
from tests.support.queue_in_memory import QueuesInMemory
from tests.support.world import World
from tickets.sharding import reshard_requests

PAGE = "/admin/noise/"


def told(tallies: dict[str, NoiseTally], *, minutes_ago: float = 1, kind: str = "web") -> None:
    """A process did this so long ago."""
    at = (clock.now() - timedelta(minutes=minutes_ago)).timestamp()  # once: a minute may end meanwhile
    notes = TenantNotes(clock=lambda: at)
    for tenant_id, tally in tallies.items():
        notes.note(tenant_id, tally)
    assert LoadReporter(notes, kind=kind, role="platform").turn(last=True) == 1


def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """The minute is over."""
    after = clock.now() + timedelta(minutes=1)
    monkeypatch.setattr(clock, "now", lambda: after)


def test_what_people_asked_for_is_shown_with_its_share_of_the_limit(
    world: World, root: Operator, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TENANT_RATES = "standard=1"
    monkeypatch.setattr(tenant_middleware, "limiter", TenantLimiter(clock=lambda: 0.0))
    alice, charlie = world.browser("alice", "acme"), world.browser("charlie", "globex")
    with telling(settings) as board:
        charlie.get("/tickets/")
        answers = [alice.get("/tickets/").status_code for _ in range(13)]
    assert answers == [200] * 10 + [429] * 3
    acme, globex = (board().tenants[world.tenants[name].tenant_id].tally for name in ("acme", "globex"))
    assert (acme.requests, acme.units, acme.refused) == (10, 10, 3)
    assert (globex.requests, globex.refused) == (1, 0)
    assert acme.reads >= 10 * globex.reads > 0
    later(monkeypatch)
    shown = root.get(PAGE)
    first = shown.context["noisy"][0]
    assert (first["slug"], first["of_limit"], first["refused"]) == ("acme", 17, "3")  # 10 of 60 units a minute
    assert [row["slug"] for row in shown.context["suffering"]] == ["acme"]
    assert "3 requests were refused with 429." in text_of(shown)
    assert "told by 1 web" in text_of(shown)


def test_work_for_no_tenant_is_the_platforms(
    root: Operator, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    told({keys.PLATFORM: NoiseTally(requests=3, reads=9)})
    later(monkeypatch)
    assert [row["slug"] for row in root.get(PAGE).context["noisy"]] == ["Platform"]


def test_deliveries_are_noted_as_what_came_of_them(
    world: World, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues, acme = QueuesInMemory(), world.tenants["acme"].tenant_id
    monkeypatch.setattr(lambda_handlers, "QueueTransport", lambda: queues)
    few = DeliveryLimits(in_flight=1, per_second=1, burst=2)
    monkeypatch.setattr(lambda_handlers, "_schedule", Schedule(4, limits_of=lambda tenant_id: few))
    sent = clock.now() - timedelta(seconds=30)
    stamps = {"ApproximateReceiveCount": "1", "SentTimestamp": f"{sent.timestamp() * 1000:.0f}"}

    def deliver(work: Any) -> Outcome:
        return Outcome("answered")

    with deliveries.destination("test_noise", deliver), telling(settings, "delivery function", "delivery") as board:
        messages = [deliveries.message(deliveries.row(acme, "test_noise"), "test_noise") for _ in range(3)]
        arn = "arn:aws:sqs:eu-central-1:000000000000:Pooldesk-delivery-05"
        lambda_handlers.queue_handler(
            {
                "Records": [
                    {"messageId": f"{n}", "receiptHandle": "h", "body": one.body(), "attributes": stamps,
                     "eventSourceARN": arn}
                    for n, one in enumerate(messages)
                ]
            },
            None,
        )  # fmt: skip
    tally = board().tenants[acme].tally
    assert (tally.deliveries, tally.put_off) == (1, 2)
    assert 30 <= tally.wait < 600


def test_who_suffers_and_what_was_done_is_said(world: World, root: Operator) -> None:
    acme, globex = (world.tenants[name] for name in ("acme", "globex"))
    told({acme.tenant_id: NoiseTally(requests=900, units=900, reads=900, writes=20)})
    told({globex.tenant_id: NoiseTally(throttles=4, failed=2, wait=150)}, kind="delivery worker")
    holds.pause(globex, by=SYSTEM)
    reshard_requests.begin(acme, shards=4, by=SYSTEM)
    depths.write([Depth(number, 0, 0) for number in range(8)])
    shown = root.get(PAGE)
    says = text_of(shown)
    assert [row["slug"] for row in shown.context["noisy"]] == ["acme", "globex"]
    assert shown.context["noisy"][0]["share"] == 100
    assert "globex 4 0 2 0 2 min" in says
    assert "4 requests to the database were throttled." in says
    assert "acme is resharded from 1 to 4, by " in says
    assert f"Deliveries of {globex.name} are held back by an operator." in says
    assert "8 queues: 28 waiting, 0 in work, 0 delayed" in says
    assert "The oldest message that was taken up had waited 2 min." in says


def test_where_nobody_told_anything_it_says_so(root: Operator) -> None:
    says = root.says(PAGE)
    assert "No process has told of anything in the last 15 minutes." in says
    assert "No requests." in says
    assert "Nobody was throttled, refused or kept waiting." in says
    assert "Nothing had to be done." in says
    assert "No worker has told yet how full the queues are." in says


def test_what_is_old_is_marked_as_such_and_what_is_older_than_asked_is_not_shown(world: World, root: Operator) -> None:
    told({world.tenants["acme"].tenant_id: NoiseTally(requests=5)}, minutes_ago=8)
    assert "Nobody has told of anything for 3 minutes or more" in root.says(PAGE)
    assert "No process has told of anything in the last 5 minutes." in root.says(f"{PAGE}?minutes=5")
    told({world.tenants["acme"].tenant_id: NoiseTally(requests=5)})
    assert "This page looks again by itself." in root.says(PAGE)


def test_a_tenant_that_is_gone_is_shown_by_its_id(root: Operator) -> None:
    told({"f" * 32: NoiseTally(requests=5)})
    assert "f" * 32 in root.says(PAGE)


def test_the_page_costs_the_same_with_ten_tenants_in_the_notes_and_with_ten_thousand(root: Operator) -> None:
    made: dict[int, Any] = {}
    for tenants in (10, 10_000):
        told({f"{number:032x}": NoiseTally(requests=1, reads=number) for number in range(tenants)})
        cache.clear()
        with calls() as found:
            root.get(PAGE)
        made[tenants] = sorted(call.operation for call in found)
    # A Query for each minute, one for holds and one for reshardings; depths and watermark; identity and names.
    wanted = ["BatchGetItem"] * 2 + ["GetItem"] * 2 + ["Query"] * 17
    assert made == {10: wanted, 10_000: wanted}


def test_an_item_is_small_whatever_tenants_there_are(engine: None) -> None:
    notes = TenantNotes(clock=lambda: 0.0)
    for number in range(10_000):
        notes.note(f"{number:032x}", NoiseTally(*[number + 0.5] * 12))
    [minute] = notes.all()
    assert len(json.dumps([tally.stored() for tally in minute.tenants.values()])) < 64 * 150
