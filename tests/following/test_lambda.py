"""The stream worker as a Lambda function: events as AWS builds them, and what Lambda reads out of the answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.core.cache import cache

from portal import clock
from portal.errors import Invalid
from portal.streams import positions, stored, watermark
from portal.streams.stored import WatermarkItem
from portal.streams.worker import WORKER
from tests.support.commands import run
from tests.support.fakes import answering, refusal
from tests.support.folding import Follower, numbers
from tests.support.world import World
from tickets.following.lambda_entry import stream_handler
from tickets.search import stored as search_keys
from tickets.search.index import merge_follower, merging
from tickets.search.index.index_store import IndexStore
from tickets.sharding.reshard_follower import ReshardFollower
from tickets.ticket.stored import TICKETS

DONE = {"state": {}, "batchItemFailures": []}


def event(follower: Follower, records: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """As Lambda sends it from a mapping with a tumbling window; through JSON, as everything that Lambda sends."""
    arn, shard_id = follower.arn, follower.shard_id
    for record in records:
        record["eventSourceARN"] = arn
    sent = {
        "Records": records,
        "window": {"start": "2026-11-20T10:00:00Z", "end": "2026-11-20T10:01:00Z"},
        "state": {},
        "shardId": shard_id,
        "eventSourceARN": arn,
        "isFinalInvokeForWindow": False,
        "isWindowTerminatedEarly": False,
    }
    read: dict[str, Any] = json.loads(json.dumps(sent | more))
    return read


def raw(follower: Follower) -> list[dict[str, Any]]:
    return [dict(record.raw) for record in follower.new()]


def opened(world: World) -> int:
    return numbers(world.context("alice", "acme")).get("open.normal", 0)


def test_a_batch_is_counted_and_the_answer_carries_the_state_that_a_window_wants(world: World) -> None:
    world.tickets("acme", 3)
    follower = Follower()
    assert stream_handler(event(follower, raw(follower)), None) == DONE
    assert opened(world) == 3


def test_function_and_poller_may_follow_the_same_stream(world: World) -> None:
    world.tickets("acme", 3)
    follower = Follower()
    sent = event(follower, raw(follower))
    assert run("run_stream", "--once").status == 0
    assert stream_handler(sent, None) == DONE
    assert opened(world) == 3


def test_while_the_database_is_busy_all_of_the_batch_is_asked_for_again(world: World) -> None:
    world.tickets("acme", 3)
    follower = Follower()
    sent = event(follower, raw(follower))
    busy = [refusal("ProvisionedThroughputExceededException")] * settings.DYNAMODB_MAX_ATTEMPTS
    with answering("worker", "UpdateItem", *busy):
        answer = stream_handler(sent, None)
    first = sent["Records"][0]["dynamodb"]["SequenceNumber"]
    assert answer == {"state": {}, "batchItemFailures": [{"itemIdentifier": first}]}
    assert stream_handler(sent, None) == DONE
    assert opened(world) == 3


def test_the_end_of_a_window_brings_no_records_and_is_fine(world: World) -> None:
    assert stream_handler(event(Follower(), [], isFinalInvokeForWindow=True), None) == DONE


@pytest.mark.parametrize("missing", ["shardId", "eventSourceARN"])
def test_an_event_that_names_no_shard_is_refused_with_the_way_out(world: World, missing: str) -> None:
    world.tickets("acme", 1)
    follower = Follower()
    sent = event(follower, raw(follower))
    del sent[missing]
    with pytest.raises(Invalid, match="Set TumblingWindowInSeconds on the event source mapping"):
        stream_handler(sent, None)
    assert opened(world) == 0


def test_a_process_of_lambdas_needs_no_secret_and_no_other_set_up() -> None:
    code = (
        "import json, sys; from tickets.following.lambda_entry import stream_handler as handler; "
        "print(handler(json.load(sys.stdin), None))"
    )
    sent = {"Records": [], "shardId": "shardId-1", "eventSourceARN": "arn:aws:dynamodb:eu-central-1:1:table/T/stream/1"}
    environ = {"PATH": os.environ["PATH"], "AWS_REGION": "eu-central-1", "DYNAMODB_TABLE_PREFIX": "Pooldesk.Prod"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(sent),
        env=environ,
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(DONE)


# --- the schedule ---

SCHEDULED = {
    "version": "0",
    "id": "53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa",
    "detail-type": "Scheduled Event",
    "source": "aws.events",
    "account": "123456789012",
    "time": "2026-11-20T16:53:06Z",
    "region": "eu-central-1",
    "resources": ["arn:aws:events:eu-central-1:123456789012:rule/pooldesk-WorkerSchedule"],
    "detail": {},
}


def dashboard(world: World) -> str:
    cache.clear()
    return str(world.browser("alice", "acme").get("/tickets/dashboard/").content.decode())


def test_pages_say_that_counting_has_stopped_until_the_first_call_of_the_schedule(world: World) -> None:
    world.tickets("acme", 1)
    assert run("run_stream", "--once").status == 0
    ended = clock.stamp(clock.now() - timedelta(seconds=watermark.LATE_SECONDS + 5))  # of the last poller
    expires_at = int(time.time()) + watermark.KEPT_SECONDS
    WORKER.put(WatermarkItem(
        TICKETS.name, stored.WATERMARK, as_of=ended, written_at=ended, expires_at=expires_at
    ))  # fmt: skip
    assert "Counting has stopped" in dashboard(world)
    assert stream_handler(SCHEDULED, None)["as_of"] > ended
    assert "Counting has stopped" not in dashboard(world)


def test_a_ticket_that_the_function_has_not_counted_holds_the_watermark_back(world: World) -> None:
    world.tickets("acme", 1)
    before = clock.stamp()
    follower = Follower()
    sent = event(follower, raw(follower))
    assert stream_handler(SCHEDULED, None)["as_of"] <= before
    assert stream_handler(sent, None) == DONE
    assert positions.read(follower.arn, follower.shard_id)


def test_a_schedule_that_meets_a_busy_database_waits_for_the_next_minute(world: World) -> None:
    busy = [refusal("ProvisionedThroughputExceededException")] * settings.DYNAMODB_MAX_ATTEMPTS
    with answering("worker", "Query", *busy):
        assert stream_handler(SCHEDULED, None) == {}


def test_both_hosts_look_for_tickets_in_the_wrong_place_in_what_they_have_applied(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[int] = []
    monkeypatch.setattr(ReshardFollower, "look", lambda self, batch: looked_at.append(len(batch.records)))
    world.tickets("acme", 1)
    follower = Follower()
    sent = event(follower, raw(follower))
    assert run("run_stream", "--once").status == 0
    assert sum(looked_at) >= len(sent["Records"])
    looked_at.clear()
    stream_handler(sent, None)
    assert looked_at == [len(sent["Records"])]


def test_what_a_function_has_indexed_it_merges_before_it_answers(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_follower, "LOOK_ADDITIONS", 1)
    monkeypatch.setattr(merging, "NEW_ITEMS", 1)
    world.tickets("acme", 2)
    follower = Follower()
    assert stream_handler(event(follower, raw(follower)), None) == DONE
    assert kinds_of_rows(world) == ["S"]


def test_a_poller_merges_beside_the_stream(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_follower, "LOOK_ADDITIONS", 1)
    monkeypatch.setattr(merge_follower, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(merging, "NEW_ITEMS", 1)
    world.tickets("acme", 2)
    run("run_stream", "--once")
    assert kinds_of_rows(world) == ["S"]


def kinds_of_rows(world: World) -> list[str]:
    """Of what a search reads first: N for what is new, S for a segment."""
    store = IndexStore(world.context("alice", "acme").tenant_id)
    return [str(row.sk)[0] for row in store.rows(search_keys.STATE)]
