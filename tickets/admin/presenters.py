"""Turn reshardings into what the operators' page shows."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from portal import clock
from tickets.sharding import reshard_notes, reshard_requests
from tickets.sharding.items import ReshardItem

_STEPS: Final = {
    "widening": "Step 1 of 5: lists are told to read all partitions, old and new.",
    "switching": "Step 2 of 5: writes are told to go to the new partitions.",
    "moving": "Step 3 of 5: tickets are moved to their places.",
    "narrowing": "Step 4 of 5: lists are told to leave the partitions that are empty.",
    "sweeping": "Step 5 of 5: a last look at the partitions that were left.",
}
_STATES: Final = {
    reshard_notes.RUNNING: "running",
    reshard_notes.STOPPING: "being stopped",
    reshard_notes.STOPPED: "stopped",
    reshard_notes.DONE: "done",
}


def reshard_row(item: ReshardItem) -> dict[str, Any]:
    """Return one resharding for a table: what, why, who, when, how far."""
    return {
        "slug": item.slug,
        "title": item.title,
        "change": f"{int(item.from_shards)} to {int(item.to_shards)}",
        "why": item.reason or "No reason was given.",
        "who": item.by or "the stream worker",
        "begun": clock.parse(item.begun_at),
        "took": _said(reshard_requests.duration(item)),
        "moved": int(item.moved),
        "state": _STATES.get(item.state, item.state),
        "runs": item.state in reshard_notes.UNFINISHED,
        "stoppable": item.state == reshard_notes.RUNNING,
        "step": _STEPS.get(item.phase, item.phase),
        "waits": not item.holder,
        "ended": _moment(item.ended_at),
    }


def _moment(stamp: str) -> datetime | None:
    return clock.parse(stamp) if stamp else None


def _said(seconds: float) -> str:
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
