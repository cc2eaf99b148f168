"""Say where a tenant's content lies as somebody has read it, and wait while writes are held there.

A job that changes the location waits until no process can use the old answer. A request that still arrives late is
refused by a fence, reads the location again, and is sent there.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final, Protocol

from portal.dynamo import retry
from portal.dynamo.placement import POOL, Placement
from portal.errors import Conflict, Unavailable

HOLD_SECONDS: Final = 1.5  # after which whoever waits breaks the hold: whoever holds is slow or dead
PATIENCE_SECONDS: Final = 4.0  # after which a write that waits is given up
_LOOK_SECONDS: Final = 0.05


@dataclass(frozen=True)
class Move:
    """A move that is under way. `attempt` grows whenever somebody breaks a hold: what was held by then is not any
    more."""

    id: str
    to: Placement
    attempt: int = 0


@dataclass(frozen=True)
class Whereabouts:
    """Where a tenant's content lies, where an old copy of it still does, and the move that is under way.

    Where it is `purged`, nothing may be written any more.
    """

    placement: Placement = POOL
    former: Placement | None = None
    epoch: int = 0
    move: Move | None = None
    purged: bool = False

    def refuse_purged(self) -> None:
        """Raise Conflict where the tenant is being purged: what was written now might be found by nobody."""
        if self.purged:
            raise Conflict("This desk is being deleted. Nothing can be written to it any more.")


class BeingMoved(Unavailable):
    """Writes of this tenant are held, because its content is being moved."""

    code = "being_moved"
    retry_after = 2

    def __init__(self) -> None:
        super().__init__("This desk is being moved to another place at this moment. Try again in some seconds.")


class Knowledge(Protocol):
    """Know where a tenant's content lies, never by an answer that is too old."""

    def current(self) -> Whereabouts:
        """Return where it lies, read anew where the last answer is too old."""

    def again(self) -> Whereabouts:
        """Read it anew, and return it."""

    def break_hold(self, seen: Whereabouts) -> None:
        """Let writes pass that the move that was seen holds, unless it has ended."""


@dataclass(frozen=True)
class Stated:
    """Take what a caller has stated, who sees to it that nothing moves meanwhile."""

    where: Whereabouts

    def current(self) -> Whereabouts:
        """Return what was stated."""
        return self.where

    def again(self) -> Whereabouts:
        """Return what was stated."""
        return self.where

    def break_hold(self, seen: Whereabouts) -> None:
        """Raise BeingMoved: nobody knows what holds the write."""
        raise BeingMoved


class Patience:
    """Wait on behalf of one write that is held."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge, self._began = knowledge, time.monotonic()

    def wait(self, seen: Whereabouts) -> None:
        """Return once the content lies elsewhere than was seen, or nothing holds writes there any more.

        Raises BeingMoved after PATIENCE_SECONDS, counted from when this patience began.
        """
        while self._knowledge.again() == seen:
            waited = time.monotonic() - self._began
            if waited > PATIENCE_SECONDS:
                raise BeingMoved
            if waited > HOLD_SECONDS:
                self._knowledge.break_hold(seen)
            retry.sleep(_LOOK_SECONDS)
