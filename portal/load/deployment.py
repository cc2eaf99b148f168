"""Declare the alarms over what processes say as metrics; those over queues and functions stand in their own packages.

Pollers say how far they are behind; where none says it, counting or delivering stands still, and that rings too. A
function is called for what is there, and AWS itself measures how old that is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from portal.deployment import parts
from portal.deployment.parts import StackPart, alarm, declare
from portal.load.reporting import DEARER, DUE_LAG, LAG, METRICS, NAMESPACE, PREFIX, PROCESS
from portal.schema.registry import Table

Json = dict[str, Any]

_LAG_SECONDS: Final = 150  # as long as pages say that numbers are late
_DUE_SECONDS: Final = 60  # a function looks once a minute, and ahead
_POLLERS: Final = {"StreamWorker": ("stream worker", "stream-lag"), "Dispatcher": ("dispatcher", "dispatch-lag")}
_LEAST_REQUESTS: Final = 100  # a minute, below which a share says nothing


def _resources(logical_id: Callable[[Table], str], roles: dict[str, str]) -> Json:
    refused = parts.expression(
        f"IF(requests + refused > {_LEAST_REQUESTS}, 100 * refused / (requests + refused), 0)",
        requests=_of_all("requests"),
        refused=_of_all("refused"),
    )
    return {
        "ThrottlesAlarm": alarm(
            "DynamoDB throttles more than a request a second: the page Noise says whose, and a hot tenant is resharded",
            _of_all("throttles"), above=60, minutes=5, runbook="throttles",
        ),
        "RefusedRequestsAlarm": alarm(
            "More than a fifth of all requests got 429: one tenant's flood, or a limit that is too low", refused,
            above=20, minutes=5, runbook="refused-requests",
        ),
        "DeadLettersAlarm": alarm(
            "A delivery or a change was given up; the dead letters in the admin say why", _of_all("dead"),
            above=0, minutes=1, runbook="dead-letters",
        ),
        "DearerRoutesAlarm": alarm(
            "A route costs more than under the release before; the page Costs of routes says which",
            parts.metric(NAMESPACE, DEARER, {PREFIX: {"Ref": "TablePrefix"}}, "Maximum"),
            above=0, minutes=1, runbook="dearer-routes",
        ),
        "DueLagAlarm": alarm(
            f"What waits for a moment happens more than {_DUE_SECONDS} seconds late",
            parts.metric(NAMESPACE, DUE_LAG, {PREFIX: {"Ref": "TablePrefix"}}, "Maximum"),
            above=_DUE_SECONDS, minutes=5, runbook="due-lag",
        ),
        **{
            f"{name}LagAlarm": alarm(
                f"The {kind} is more than {_LAG_SECONDS} seconds behind, or none runs", _lag(kind),
                above=_LAG_SECONDS, minutes=5, runbook=runbook, silence_is_bad=True, condition=parts.WANTED_OF_POLLERS,
            )
            for name, (kind, runbook) in _POLLERS.items()
        },
    }  # fmt: skip


def _of_all(field: str) -> Json:
    return parts.metric(NAMESPACE, METRICS[field], {PREFIX: {"Ref": "TablePrefix"}}, "Sum")


def _lag(kind: str) -> Json:
    return parts.metric(NAMESPACE, LAG, {PREFIX: {"Ref": "TablePrefix"}, PROCESS: kind}, "Maximum")


declare(StackPart("noise", resources=_resources))
