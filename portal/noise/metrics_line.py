"""Say sums as a line of JSON on stdout from which CloudWatch makes metrics: no call, and no agent of ours.

Tenants are no dimension: each value of one is a metric that is paid for. Who it is, the operators' page says.

Source: AWS, "Specification: Embedded metric format": the line is one JSON object and nothing else, Timestamp is in
milliseconds, and each dimension and metric that is named is a member of the object.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from django.conf import settings

from portal.noise.noise_tally import NoiseTally

NAMESPACE: Final = "Pooldesk"
PREFIX, PROCESS = "TablePrefix", "Process"  # the dimensions: an installation, and a kind of process
METRICS: Final = {
    "requests": "Requests",
    "refused": "RequestsRefused",
    "reads": "ReadUnits",
    "writes": "WriteUnits",
    "throttles": "Throttles",
    "deliveries": "Deliveries",
    "failed": "DeliveriesFailed",
    "put_off": "DeliveriesPutOff",
    "dead": "DeadLetters",
}
LAG: Final = "StreamLag"


def say(kind: str, total: NoiseTally, *, at: int) -> None:
    """Print what was done in a minute that began `at`, in seconds since the epoch; nothing where that is not wanted."""
    _print(kind, {name: getattr(total, field) for field, name in METRICS.items()}, "Count", at)


def say_gauges(kind: str, seconds: Mapping[str, float], *, at: int) -> None:
    """Print what was measured at a moment, in seconds each."""
    _print(kind, seconds, "Seconds", at)


def document(kind: str, values: Mapping[str, float], unit: str, at: int) -> dict[str, Any]:
    """Return the object of a line."""
    directive = {
        "Namespace": NAMESPACE,
        "Dimensions": [[PREFIX], [PREFIX, PROCESS]],
        "Metrics": [{"Name": name, "Unit": unit} for name in values],
    }
    return {
        "_aws": {"Timestamp": at * 1000, "CloudWatchMetrics": [directive]},
        PREFIX: settings.DYNAMODB_TABLE_PREFIX,
        PROCESS: kind,
        **{name: round(value, 1) for name, value in values.items()},
    }


def _print(kind: str, values: Mapping[str, float], unit: str, at: int) -> None:
    if settings.CLOUDWATCH_METRICS:
        line = json.dumps(document(kind, values, unit, at), separators=(",", ":"))
        with suppress(OSError):  # whoever read it is gone
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
