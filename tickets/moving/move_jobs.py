"""Tell what is to be done for a move as it stands, and do it beside a stream where an operator has asked for it."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from tickets.jobs.job_follower import JobFollower
from tickets.jobs.leased_job import LeasedJob
from tickets.moving import move_notes
from tickets.moving.discarding import CopyDiscard
from tickets.moving.items import MoveItem
from tickets.moving.tenant_mover import TenantMover

_LOOK_SECONDS: Final = 5.0  # each look reads the last move of each tenant that was ever moved


def job_of(item: MoveItem, *, mover: dict[str, Any] | None = None, **how: Any) -> LeasedJob[MoveItem]:
    """Return what carries a move out, or its end, or the end of its old copy. `mover` is for the first two alone."""
    if item.state == move_notes.DISCARDING:
        return CopyDiscard(item, **how)
    return TenantMover(item, **(mover or {}), **how)


def follower(**how: Any) -> JobFollower[MoveItem]:
    """Return what carries out the moves that nobody carries out. It needs the rights of the lifecycle role."""
    job = partial(job_of, **how)
    look = move_notes.MOVES.all_last
    return JobFollower(look, job, unfinished=move_notes.UNFINISHED, name="move", look_seconds=_LOOK_SECONDS)
