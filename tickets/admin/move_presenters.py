"""Turn moves into what the operators' page shows."""

from __future__ import annotations

from typing import Any, Final

from portal import clock
from portal.dynamo import fencing
from tickets.admin.presenters import UNEXPLAINED, cells
from tickets.moving import place_changes
from tickets.moving.stored import MoveItem

_STEPS: Final = {
    "preparing": "Step 1 of 6: tables are made at the new place.",
    "announcing": "Step 2 of 6: all processes learn of it.",
    "copying": "Step 3 of 6: tickets are copied.",
    "catching": "Step 4 of 6: the new place counts and indexes them.",
    "holding": "Step 5 of 6: writes wait for the switch.",
    "verifying": "Step 6 of 6: both copies are compared.",
    "comparing": "Step 1 of 2: both copies are compared.",
    "clearing": "Step 2 of 2: the old copy is deleted.",
}
_STATES: Final = {
    place_changes.RUNNING: "running",
    place_changes.CANCELLING: "being ended",
    place_changes.CANCELLED: "ended before its switch",
    place_changes.KEPT: "moved",
    place_changes.DISCARDING: "the old copy is being discarded",
    place_changes.DONE: "done, the old copy is gone",
}


_OPTIONS: Final = {place_changes.CANCELLING: "--roll-back", place_changes.DISCARDING: "--discard"}


def move_row(item: MoveItem) -> dict[str, Any]:
    """Return one move for a table: from where to where, why, who, when, how far, and how long writes wait."""
    begun = clock.parse(item.begun_at)
    change, state, why = f"{item.from_place} to {item.to_place}", _STATES[item.state], item.reason or UNEXPLAINED
    return {
        "slug": item.slug,
        "change": change,
        "option": _OPTIONS.get(item.state, f"--on {item.to_place}"),
        "why": why,
        "who": item.by,
        "begun": begun,
        "state": state,
        "runs": item.state in place_changes.MOVES.unfinished,
        "discards": item.state == place_changes.DISCARDING,
        "cancellable": item.state == place_changes.RUNNING and not item.switched_at,
        "kept_until": clock.parse(item.kept_until) if item.state == place_changes.KEPT else None,
        "discardable": item.state == place_changes.KEPT and item.kept_until <= clock.stamp(),
        "step": _STEPS.get(item.phase, item.phase),
        "done": int(item.done),
        "last": int(item.last_number),
        "changes": int(item.changes),
        "waits": not item.holder,
        "held": _held(item),
        "switched": bool(item.switched_at),
        "trouble": item.trouble,
        "cells": cells(
            Places=change,
            State=state,
            Why=why,
            By=item.by,
            Begun=begun,
            Waited=f"{int(item.held_ms) / 1000:.2f} s" if item.switched_at else "",
        ),
    }


def _held(item: MoveItem) -> str:
    if item.switched_at:
        return f"Writes waited for at most {int(item.held_ms) / 1000:.2f} s."
    limit = f"{fencing.HOLD_SECONDS:g} s"
    return f"Writes will wait once, some tenths of a second. A wait that comes to {limit} is given up and tried later."
