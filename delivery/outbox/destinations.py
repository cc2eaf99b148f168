"""Find who delivers to a destination. A room declares its kind of destination, so that it can go without a trace.

A destination is a text: "mail", or an endpoint's id, which begins with its kind ("ep_...").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from delivery.outbox.items import OutboxItem
from portal.dynamo.repository import TenantRepository
from portal.errors import NotFound


@dataclass(frozen=True)
class Work:
    """One event to be delivered to one destination. `index` is its place among the row's events; `attempt` counts
    from 1; `deadline` is a moment of this process's monotonic clock, after which nobody waits for the outcome."""

    tenant_id: str
    repository: TenantRepository
    row: OutboxItem
    index: int
    destination: str
    attempt: int
    deadline: float


@dataclass(frozen=True)
class Outcome:
    """Say what came of a delivery. `retry_after` is in seconds, None where the backoff decides; `note` a sentence."""

    state: Literal["answered", "failed", "dead", "paused"]
    retry_after: float | None = None
    note: str = ""


Deliver = Callable[[Work], Outcome]

_declared: Final[dict[str, Deliver]] = {}
_private: Final[set[str]] = set()


def declare_destination(beginning: str, deliver: Deliver, *, is_private: bool = False) -> None:
    """Let `deliver` do the work for all destinations that begin so. Raises ValueError where another does already.

    What is told to a private one goes from its row when it is delivered or given up, so that is never sent again.
    """
    if is_private:
        _private.add(beginning)
    if _declared.setdefault(beginning, deliver) is not deliver:
        raise ValueError(f"destinations {beginning} are declared twice")


def deliver_for(destination: str) -> Deliver:
    """Return who delivers to a destination. Raises NotFound where nobody does."""
    for beginning, deliver in _declared.items():
        if destination.startswith(beginning):
            return deliver
    raise NotFound("Nobody delivers to this destination.")


def is_private(destination: str) -> bool:
    """Tell whether what was told to a destination is not kept, so that it cannot be sent again."""
    return destination.startswith(tuple(_private))
