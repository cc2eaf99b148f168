"""Say what a ticket waits for, and how a target that was missed was counted."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from portal import clock
from tickets.sla.policy import duration_text
from tickets.ticket.due_marks import DUE_SOON, OVERDUE, TARGETS, DueMarks
from tickets.ticket.fields import Status, is_unresolved


@dataclass(frozen=True)
class DueLine:
    """The next target of a ticket: `words` count down to it, or say by how much it is late. `state` is OVERDUE,
    DUE_SOON, "paused" or ""; `missed_at` is when a target was missed last, and `now` when this was written."""

    label: str
    words: str
    at: datetime | None
    state: str
    missed_at: datetime | None
    now: int = 0


def due_line(marks: str, status: str) -> DueLine | None:
    """Return what pages show of the marks of a ticket, None where they say nothing of targets."""
    found = DueMarks.read(marks)
    missed_at = _moment(found.missed) if found.missed else None
    if found.target and is_unresolved(status):
        now = int(clock.now().timestamp())
        seconds = found.at - now
        words = _counted_down(seconds)
        state = OVERDUE if seconds <= 0 else DUE_SOON if found.is_warned else ""
        return DueLine(_(TARGETS[found.target]), words, _moment(found.at), state, missed_at, now)
    if found.is_paused and status == Status.PENDING:
        return DueLine(_("Targets"), _("paused"), None, "paused", missed_at)
    return DueLine("", "", None, "", missed_at) if missed_at else None


def _counted_down(seconds: int) -> str:
    """Return how long it is until then, or for how long it is past."""
    minutes, is_ahead = max(1, abs(seconds) // 60), seconds > 0
    if minutes >= 2 * 1440:
        days = minutes // 1440
        if is_ahead:
            return ngettext("in %(num)s day", "in %(num)s days", days) % {"num": days}
        return ngettext("%(num)s day late", "%(num)s days late", days) % {"num": days}
    time = f"{minutes // 60} h" if minutes >= 600 else duration_text(minutes * 60)
    return (_("in %(time)s") if is_ahead else _("%(time)s late")) % {"time": time}


def _moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def receipt_lines(text: str) -> dict[str, Any]:
    """Return a receipt as the history shows it: the pieces of time that counted, and the pauses between them."""
    told = json.loads(text)
    pieces: list[dict[str, Any]] = [
        {
            "begin": _moment(piece["from"]),
            "end": _moment(piece["until"]),
            "counted": duration_text(sum(b - a for a, b in piece["open"])) or _("nothing"),
            "open": [(_moment(a), _moment(b)) for a, b in piece["open"]],
            "policy": _moment(piece["policy"]),
        }
        for piece in told["pieces"]
    ]
    pauses = [(one["end"], other["begin"]) for one, other in pairwise(pieces) if one["end"] < other["begin"]]
    return {
        "due": _moment(told["due"]),
        "allowed": duration_text(told["allowed"]),
        "counted": duration_text(told["counted"]) or "0 min",
        "zone": told["zone"],
        "pieces": pieces,
        "pauses": pauses,
    }
