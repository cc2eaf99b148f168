"""The handler that AWS Lambda calls, the other host of indexing and counting beside `manage.py run_stream`.

The aggregates remember per stream shard what they have taken, and a plain stream event does not say which shard it
comes from. With a tumbling window it does: `shardId` beside `Records`. So the event source mapping sets
TumblingWindowInSeconds, although no window is needed here, and the answer carries `state`, because an answer without
it counts as a failed one. At the end of a window comes an invocation without records.

Only one invocation for a shard runs at a time (ParallelizationFactor 1): side by side, the later part of a shard could
be applied first, and the earlier one would be taken for known.

The event names the stream by its ARN, and from that follows whose it is: that of the table of all, or of one tenant's
own at a site of the settings.

A rule of EventBridge calls the same handler once a minute. Then it writes up to when the stream is applied, because the
stream itself calls nobody while nothing happens, and pages would say that counting has stopped. It does what is due
within this minute, and then carries out what is to be resharded, for as long as it may run.

Sources: AWS, "Implementing stateful DynamoDB stream processing in Lambda" (event, `state`, `batchItemFailures` in the
same answer) and "Configuring partial batch response with DynamoDB and Lambda"; "Events from AWS services" (`source` of
a scheduled event).
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import django
from django.apps import apps
from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
if not apps.ready:
    django.setup()

from delivery.timers import due
from delivery.timers.due_worker import DueWorker
from portal.dynamo.client import fan_out
from portal.errors import Invalid, Unavailable
from portal.load import reporting
from portal.streams import lambda_answer, positions, scheduled_watermark, stream_source  # need the settings
from portal.streams.batch import Batch, BatchResult, batch_of
from portal.streams.stream_source import StreamSource
from portal.streams.worker import WORKER
from tickets.following.ticket_stream import IF_LOST, concerns, handle, merges
from tickets.sharding.reshard_follower import ReshardFollower
from tickets.ticket.stored import TICKETS

SCHEDULED_SECONDS = 90  # of the two minutes that a call may take, so that a wait for all processes fits in
DUE_SECONDS = 60  # until the schedule calls again; rows that are due before are waited for
MERGE_SECONDS = 30  # after a batch, which itself may take some 20; the last merge may end somewhat later
LARGEST_MERGE = 16 << 20  # bytes, some 15 seconds' work: an index of many times that has more segments than otherwise
_SCHEDULED = "aws.events"  # the source of what a rule of EventBridge sends

log = logging.getLogger("pooldesk.stream")

_follower = ReshardFollower(hot=settings.HOT_PARTITION_UNITS)
_timers = DueWorker(look_seconds=DUE_SECONDS)


def stream_handler(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """Apply a batch of one shard, or write the watermark where the schedule calls.

    While the database is busy or away, all of a batch is asked for again, from its first record on: what was applied
    already counts once.

    Raises Invalid for an event that names no shard.
    """
    reporting.start("stream function", "worker", in_thread=False)
    reporting.turn()
    if event.get("source") == _SCHEDULED:
        return _write_watermark()
    arn, shard_id = event.get("eventSourceARN", ""), event.get("shardId", "")
    if not arn or not shard_id:
        raise Invalid(
            "The event does not say which shard it comes from, and without that nothing can be counted exactly once. "
            "Set TumblingWindowInSeconds on the event source mapping, as infra/template.yaml does."
        )
    batch = batch_of(arn, shard_id, event.get("Records", ()))
    with stream_source.of_arn(arn).entered():
        answer = lambda_answer.answer(batch, _apply)
    _merge()
    return {"state": {}, **answer}


def _apply(batch: Batch) -> BatchResult:
    own = stream_source.own(TICKETS, batch)
    result = handle(own)
    _follower.look(own)
    positions.advance_behind(batch, result)
    return result


def _merge() -> None:
    """Merge what is due of the indexes that this process has added to. There is no time beside a function's calls."""
    until = time.monotonic() + MERGE_SECONDS
    merges.turn(lambda: time.monotonic() < until, largest=LARGEST_MERGE)


def _write_watermark() -> dict[str, Any]:
    until = time.monotonic() + SCHEDULED_SECONDS
    try:
        as_of = scheduled_watermark.write(TICKETS, concerns=concerns, if_lost=IF_LOST)
        fan_out([partial(_write_own_watermark, source) for source in stream_source.placed()])
    except Unavailable as error:  # the next minute brings the next call
        log.warning("Up to when the stream is applied could not be written: %s", error.message)
        return {}
    _do_what_is_due()
    _reshard(until)
    return {"as_of": as_of}


def _do_what_is_due() -> None:
    try:
        reporting.say_gauges("stream function", {reporting.DUE_LAG: due.worst_lag(WORKER)}, at=int(time.time()))
        _timers.catch_up(seconds=DUE_SECONDS)
    except Unavailable as error:
        log.warning("What is due waits for the next minute: %s", error.message)


def _write_own_watermark(source: StreamSource) -> None:
    try:
        with source.entered():
            scheduled_watermark.write(TICKETS, concerns=concerns, if_lost=IF_LOST)
    except Unavailable as error:  # of one tenant's site the others do not hear
        log.warning("Up to when the stream of %s is applied could not be written: %s", source, error.message)


def _reshard(until: float) -> None:
    """Carry out what is to be resharded, until it has ended or time is up; the next minute's call goes on."""
    try:
        _follower.turn(lambda: time.monotonic() < until)
    except Unavailable as error:
        log.warning("Nothing can be resharded now: %s", error.message)
