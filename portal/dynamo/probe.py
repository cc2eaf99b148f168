"""Ask the engine for nothing but an answer, to learn how long it takes and what time it has."""

from __future__ import annotations

import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from portal import clock
from portal.dynamo import client
from portal.schema import registry


@dataclass(frozen=True)
class Probe:
    """Hold the milliseconds that an answer took, and the seconds by which our clock is ahead of the engine's.

    None stands for an engine that does not say its time. Engines say it in whole seconds.
    """

    ms: float
    ahead: float | None


def ask() -> Probe:
    """Describe one table. Raises Unavailable, Throttled."""
    begun = time.perf_counter()
    table = next(iter(registry.tables()))
    answer = client.connection("platform").call("DescribeTable", TableName=table.full_name)
    ms = (time.perf_counter() - begun) * 1000
    stated = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
    ahead = (clock.now() - parsedate_to_datetime(stated)).total_seconds() if stated else None
    return Probe(ms, ahead)
