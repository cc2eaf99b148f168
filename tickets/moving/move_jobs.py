"""Tell what is to be done for a move as it stands, and do it beside a stream where an operator has asked for it."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager
from typing import Any, Final

from portal.streams import beside
from tickets.jobs.job_follower import Again, JobFollower
from tickets.jobs.leased_job import LeasedJob
from tickets.moving import move_notes
from tickets.moving.discarding import CopyDiscard
from tickets.moving.items import MoveItem
from tickets.moving.tenant_mover import TenantMover

log = logging.getLogger("pooldesk.stream")

LOOK_SECONDS: Final = 5.0  # each look reads the last move of each tenant that was ever moved


def job_of(item: MoveItem, *, mover: dict[str, Any] | None = None, **how: Any) -> LeasedJob[MoveItem]:
    """Return what carries a move out, or its end, or the end of its old copy. `mover` is for the first two alone."""
    if item.state == move_notes.DISCARDING:
        return CopyDiscard(item, **how)
    return TenantMover(item, **(mover or {}), **how)


class MoveFollower:
    """Carries out the moves that nobody carries out, in a thread of its own, or `turn` is called now and then.

    It needs the rights of the lifecycle role.
    """

    def __init__(self, **how: Any) -> None:
        self._how = how
        self._jobs = JobFollower(self._job, unfinished=move_notes.UNFINISHED, name="move")

    def running(self) -> AbstractContextManager[None]:
        """Work while the context lasts."""
        return beside.working(self.turn, pause=lambda: LOOK_SECONDS, name="moving of desks", log=log)

    def turn(self, again: Again = lambda: True) -> int:
        """Look once what there is to do, and do it while `again` says so. Return how many jobs have ended.

        Raises Unavailable.
        """
        return self._jobs.turn(move_notes.MOVES.all_last(), again)

    def _job(self, item: MoveItem, again: Again) -> LeasedJob[MoveItem]:
        return job_of(item, again=again, **self._how)
