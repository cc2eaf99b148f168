"""Turn reshardings into what the operators' page shows."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from portal import clock
from tickets.sharding import reshard_requests
from tickets.sharding.stored import ReshardItem

_STEPS: Final = {
    "widening": "Step 1 of 5: lists are told to read all partitions, old and new.",
    "switching": "Step 2 of 5: writes are told to go to the new partitions.",
    "moving": "Step 3 of 5: tickets are moved to their places.",
    "narrowing": "Step 4 of 5: lists are told to leave the partitions that are empty.",
    "sweeping": "Step 5 of 5: a last look at the partitions that were left.",
}
_STATES: Final = {
    reshard_requests.RUNNING: "running",
    reshard_requests.STOPPING: "being stopped",
    reshard_requests.STOPPED: "stopped",
    reshard_requests.DONE: "done",
}


UNEXPLAINED: Final = "No reason was given."
_HEADINGS: Final = {"By": "Asked for by", "Begun": "Begun, UTC", "Waited": "Writes waited"}


def reshard_row(item: ReshardItem) -> dict[str, Any]:
    """Return one resharding for a table: what, why, who, when, how far."""
    change, why = f"{int(item.from_shards)} to {int(item.to_shards)}", item.reason or UNEXPLAINED
    state, who, took = _STATES[item.state], item.by or "the stream worker", _said(reshard_requests.duration(item))
    begun, moved = clock.parse(item.begun_at), int(item.moved)
    return {
        "slug": item.slug,
        "title": item.title,
        "change": change,
        "why": why,
        "who": who,
        "begun": begun,
        "took": took,
        "moved": moved,
        "runs": item.state in reshard_requests.RESHARDINGS.unfinished,
        "stoppable": item.state == reshard_requests.RUNNING,
        "step": _STEPS.get(item.phase, item.phase),
        "waits": not item.holder,
        "ended": _moment(item.ended_at),
        "cells": cells(Shards=change, State=state, Why=why, By=who, Begun=begun, Took=took, Moved=moved),
    }


def cells(**said: object) -> list[tuple[str, str, object]]:
    """Return the cells of a row: each with the heading of its column, a short one for narrow screens, and what it says.

    Moments are in UTC.
    """
    return [
        (_HEADINGS.get(name, name), name, f"{value:%-d %b %Y, %H:%M:%S}" if isinstance(value, datetime) else value)
        for name, value in said.items()
    ]


def _moment(stamp: str) -> datetime | None:
    return clock.parse(stamp) if stamp else None


def _said(seconds: float) -> str:
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
