"""Turn moves into what the operators' page shows."""

from __future__ import annotations

from typing import Any, Final

from portal import clock
from portal.dynamo import whereabouts
from tickets.moving import move_notes
from tickets.moving.items import MoveItem

_STEPS: Final = {
    "preparing": "Step 1 of 6: tables are made at the new place.",
    "announcing": "Step 2 of 6: all processes learn of it.",
    "copying": "Step 3 of 6: tickets are copied.",
    "catching": "Step 4 of 6: the new place counts and indexes them.",
    "holding": "Step 5 of 6: writes wait for the switch.",
    "verifying": "Step 6 of 6: both copies are compared.",
}
_STATES: Final = {
    move_notes.RUNNING: "running",
    move_notes.CANCELLING: "being ended",
    move_notes.CANCELLED: "ended before its switch",
    move_notes.KEPT: "moved",
    move_notes.DISCARDING: "the old copy is being discarded",
    move_notes.DONE: "done, the old copy is gone",
}


def move_row(item: MoveItem) -> dict[str, Any]:
    """Return one move for a table: from where to where, why, who, when, how far, and how long writes wait."""
    return {
        "slug": item.slug,
        "change": f"{item.from_place} to {item.to_place}",
        "option": "--roll-back" if item.state == move_notes.CANCELLING else f"--on {item.to_place}",
        "left": item.from_place,
        "why": item.reason or "No reason was given.",
        "who": item.by,
        "begun": clock.parse(item.begun_at),
        "state": _STATES.get(item.state, item.state),
        "runs": item.state in (move_notes.RUNNING, move_notes.CANCELLING),
        "cancellable": item.state == move_notes.RUNNING and not item.switched_at,
        "kept_until": clock.parse(item.kept_until) if item.state == move_notes.KEPT else None,
        "step": _STEPS.get(item.phase, item.phase),
        "done": int(item.done),
        "last": int(item.last_number),
        "changes": int(item.changes),
        "waits": not item.holder,
        "held": _held(item),
        "trouble": item.trouble,
    }


def _held(item: MoveItem) -> str:
    if item.switched_at:
        return f"Writes waited for {int(item.held_ms) / 1000:.2f} s at most."
    return f"Writes will wait once, some tenths of a second, and {whereabouts.HOLD_SECONDS:g} s at most for one try."
