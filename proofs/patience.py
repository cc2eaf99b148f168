"""Wait for an engine that is busy with what a trial does to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from portal.dynamo.retry import retrying
from portal.errors import Unavailable

_T = TypeVar("_T")

_ATTEMPTS: Final = 20
_LONGEST: Final = 10.0  # seconds between two of them


def patiently(call: Callable[[], _T]) -> _T:
    """Call until the engine answers, and return its result. What it says after that many attempts is raised."""
    return retrying(
        call, again=lambda error: isinstance(error, Unavailable), attempts=_ATTEMPTS, first=1.0, longest=_LONGEST
    )
