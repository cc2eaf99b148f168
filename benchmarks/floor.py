"""Measure the floor of a page: its own requests to the engine, sent again by a client that does nothing else.

The page is asked for within this process, and a hook of botocore's clients records each request with its parameters.
The replay sends them with the portal's own protocol, without Django, models, guard and meter, and in the same
sequential trips.
"""

from __future__ import annotations

import copy
import time
from functools import partial
from typing import Any, Final

import botocore.config
from django.conf import settings

from benchmarks import stack
from benchmarks.exchange import Send, without_collection
from benchmarks.measure import LOOKS, Round
from benchmarks.measured_pages import MeasuredPage, SignedInVisitor
from portal import aws_session
from portal.dynamo import client, item_protocol, meter
from portal.schema.registry import ROLES

_ALWAYS: Final = "OR attribute_not_exists(no_such_attribute)"

Call = tuple[str, dict[str, Any]]  # operation and parameters
Trips = list[list[Call]]  # calls of one trip are under way at the same time


class Recorder:
    """Record the requests that the clients of all roles send while `calls` is a list."""

    def __init__(self) -> None:
        self._trips: dict[object, list[Call]] | None = None
        self._aside: list[Call] = []
        for role in ROLES:
            client.connection(role).client.meta.events.register_last("before-parameter-build", self._note)

    def record(self, send: Send, visitor: SignedInVisitor, page: MeasuredPage) -> Trips:
        """Return the requests of one look at a page, which this process has shown before."""
        # The last of the visitor's sequences is ours: bursts change other tickets.
        for _ in range(LOOKS):
            page.check(send(visitor.request(page, visitor.sequences - 1)), visitor.tenant)
        self._trips, self._aside = {}, []
        try:
            with meter.measure():
                page.check(send(visitor.request(page, visitor.sequences - 1)), visitor.tenant)
            first, *others = self._trips.values()
            return [[*first, *self._aside], *others]
        finally:
            self._trips = None

    def _note(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        if self._trips is None:
            return
        call = (model.name, repeatable(copy.deepcopy(params)))
        group, bill = meter._group.get(), meter.current()
        if bill is not None and group in bill._groups and group not in self._trips:
            self._aside.append(call)  # under way beside other trips
        else:
            self._trips.setdefault(group or object(), []).append(call)


def repeatable(value: Any) -> Any:
    """Return parameters with conditions that always hold and without a transaction's token, so that a write can be
    sent again and costs the engine the same."""
    if isinstance(value, list):
        return [repeatable(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: f"{each} {_ALWAYS}" if name == "ConditionExpression" and isinstance(each, str) else repeatable(each)
        for name, each in value.items()
        if name != "ClientRequestToken"
    }


class BareClient:
    """A client of the engine with the portal's protocol and none of its hooks."""

    def __init__(self) -> None:
        session = aws_session.new_session(settings.DYNAMODB_ENDPOINT_URL)
        session.register("creating-client-class.dynamodb", item_protocol.straighten)
        config = botocore.config.Config(max_pool_connections=client.FAN_OUT_THREADS + 1, user_agent="floor")
        self._call = session.create_client(
            "dynamodb", settings.AWS_REGION, endpoint_url=settings.DYNAMODB_ENDPOINT_URL, config=config
        )._make_api_call

    def replay(self, trips: Trips, times: int, *, engine_group: int) -> Round:
        """Send the requests so many times. The round's `portal_cpu` is the processor time of this process."""
        sends = [[partial(self._call, *call) for call in trip] for trip in trips]
        seconds = []
        with without_collection():
            cpu = time.process_time(), stack.cpu_seconds(engine_group)
            started = time.perf_counter()
            for _ in range(times):
                begun = time.perf_counter()
                for trip in sends:
                    client.fan_out(trip)
                seconds.append(time.perf_counter() - begun)
            wall = time.perf_counter() - started
            return Round(tuple(seconds), wall, time.process_time() - cpu[0], stack.cpu_seconds(engine_group) - cpu[1])
