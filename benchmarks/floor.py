"""Measure the floor of a page: its own requests to the engine, sent again by a client that does nothing else.

The page is asked for within this process, and a hook of botocore's clients records each request. They are sent again
with the portal's own protocol, without Django, models, guard and meter, and in the same sequential trips.
"""

from __future__ import annotations

import copy
import gc
import time
from functools import partial
from typing import Any, Final

import botocore.config
from django.conf import settings

from benchmarks import stack
from benchmarks.exchange import in_process
from benchmarks.measure import Round
from benchmarks.measured_pages import MeasuredPage, SignedInVisitor
from portal import aws_session
from portal.dynamo import client, item_protocol, meter

_HOLDS: Final = "OR attribute_not_exists(no_such_attribute)"

Trips = list[list[tuple[str, dict[str, Any]]]]  # operation and parameters; calls of one trip are under way together


class Floor:
    """The recorded requests of pages, as one visitor asks for them, and the client that sends them again."""

    def __init__(self, visitor: SignedInVisitor, engine: int) -> None:
        self._visitor, self._engine = visitor, engine  # the engine's process id
        self._recorded: dict[str, Trips] = {}
        self._noting: dict[object, Any] | None = None
        client.each_client(lambda each: each.meta.events.register_last("before-parameter-build", self._note))
        session = aws_session.new_session(settings.DYNAMODB_ENDPOINT_URL)
        session.register("creating-client-class.dynamodb", item_protocol.straighten)
        self._bare = session.create_client(
            "dynamodb",
            settings.AWS_REGION,
            endpoint_url=settings.DYNAMODB_ENDPOINT_URL,
            config=botocore.config.Config(max_pool_connections=client.FAN_OUT_THREADS + 1, user_agent="floor"),
        )

    def record(self, page: MeasuredPage) -> int:
        """Keep the requests of a look at a page this process has shown; return its trips. Raises BenchmarkError."""
        # The last of the visitor's sequences is ours: bursts change other tickets.
        ask = partial(self._visitor.request, page, self._visitor.sequences - 1)
        for _ in range(2):
            page.check(in_process(ask()))
        self._noting = {}
        try:
            page.check(in_process(ask()))
            self._recorded[page.name] = list(self._noting.values())
            return len(self._noting)
        finally:
            self._noting = None

    def _note(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        if self._noting is None:
            return
        bill, group = meter.current(), meter._group.get()
        if bill is not None and group in bill._groups and group not in self._noting and self._noting:
            group = next(iter(self._noting))  # under way beside other trips
        self._noting.setdefault(group or object(), []).append((model.name, repeatable(copy.deepcopy(params))))

    def replay(self, page: MeasuredPage, times: int) -> Round:
        """Send a page's requests so many times. The round's `portal_cpu` is the processor time of this process."""
        trips = [[partial(self._bare._make_api_call, *call) for call in trip] for trip in self._recorded[page.name]]
        seconds = []
        gc.disable()
        try:
            cpu, started = (time.process_time(), stack.cpu_seconds(self._engine)), time.perf_counter()
            for _ in range(times):
                begun = time.perf_counter()
                for trip in trips:
                    client.fan_out(trip)
                seconds.append(time.perf_counter() - begun)
            wall = time.perf_counter() - started
            return Round(seconds, wall, time.process_time() - cpu[0], stack.cpu_seconds(self._engine) - cpu[1])
        finally:
            gc.enable()


def repeatable(value: Any) -> Any:
    """Return parameters with conditions that hold each time and without a transaction's token, so that a write can be
    sent again and costs the engine the same."""
    if isinstance(value, list):
        return [repeatable(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: f"{each} {_HOLDS}" if name == "ConditionExpression" and isinstance(each, str) else repeatable(each)
        for name, each in value.items()
        if name != "ClientRequestToken"
    }
