"""Pack for lists what a ticket waits for: its next target, its last missed one, and until when it is snoozed.

One short text in the indexes, words joined by blanks, moments in seconds since 1970:

    f1764158400   first answer until then; n is the next answer, s the solution; a capital where that is overdue
    w             the warning before it was given
    p             the clocks are paused
    x1764158400   when a target was missed last
    z1764158400   snoozed until then, or z0 until an answer

A word that is none of these is of a newer version, and is kept.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from django.utils.translation import gettext_noop

from portal import clock
from tickets.ticket import fields
from tickets.ticket.fields import FieldChange

if TYPE_CHECKING:
    from tickets.ticket.stored import SummaryItem

UNTIL_ANSWER: Final = "answer"
FIRST, NEXT, SOLUTION = "first", "next", "solution"
TARGETS: Final = {
    FIRST: gettext_noop("First answer"),
    NEXT: gettext_noop("Next answer"),
    SOLUTION: gettext_noop("Solution"),
}
_LETTERS: Final = {name[0]: name for name in TARGETS}
_WORD: Final = re.compile(r"([a-zA-Z])([0-9]{0,12})\Z")


@dataclass(frozen=True)
class DueMarks:
    """`target` is the name of the next one that runs, "" for none, and `at` its moment; `snoozed` is None for a ticket
    that is not. Moments are seconds since 1970, 0 for none."""

    target: str = ""
    at: int = 0
    is_overdue: bool = False
    is_warned: bool = False
    is_paused: bool = False
    missed: int = 0
    snoozed: int | None = None
    others: tuple[str, ...] = ()

    @classmethod
    def read(cls, text: str | None) -> DueMarks:
        """Return what `str` of some wrote."""
        found: dict[str, Any] = {}
        others: list[str] = []
        for word in (text or "").split():
            match = _WORD.match(word)
            letter, number = (match[1], int(match[2] or 0)) if match else ("", 0)
            if target := _LETTERS.get(letter.lower()):
                found |= {"target": target, "at": number, "is_overdue": letter.isupper()}
            elif letter == "w":
                found["is_warned"] = True
            elif letter == "p":
                found["is_paused"] = True
            elif letter == "x":
                found["missed"] = number
            elif letter == "z":
                found["snoozed"] = number
            else:
                others.append(word)
        return cls(**found, others=tuple(others))

    def __str__(self) -> str:
        letter = self.target[:1].upper() if self.is_overdue else self.target[:1]
        words = [
            f"{letter}{self.at}" if letter else "",
            "w" if self.is_warned else "",
            "p" if self.is_paused else "",
            f"x{self.missed}" if self.missed else "",
            "" if self.snoozed is None else f"z{self.snoozed}",
            *self.others,
        ]
        return " ".join(word for word in words if word)


OVERDUE, DUE_SOON, MISSED = "overdue", "due_soon", "missed"
STATES: Final = {
    OVERDUE: gettext_noop("Overdue"),
    DUE_SOON: gettext_noop("Due soon"),
    MISSED: gettext_noop("A target was missed"),
}


def states(marks: str | None) -> list[str]:
    """Return which of STATES a ticket with these marks has, as filters and counts have them."""
    if not marks:
        return []
    found = DueMarks.read(marks)
    has = {OVERDUE: found.is_overdue, DUE_SOON: found.is_warned, MISSED: bool(found.missed)}
    return [state for state in STATES if has[state]]


def snoozed(marks: str | None, status: str) -> int | None:
    """Return until when a ticket with these marks is snoozed, 0 for until an answer; None for one that is awake.

    One that is resolved is awake, and so is one whose moment has come, whether or not anybody has noted that yet.
    """
    if not marks or not fields.is_unresolved(status):
        return None
    until = DueMarks.read(marks).snoozed
    return None if until and until <= int(clock.now().timestamp()) else until


def snooze_text(until: int | None) -> str:
    """Return what the history and pages have for a snooze: "" for none, "answer", or a stamp."""
    return "" if until is None else stamp(until) if until else UNTIL_ANSWER


def snooze_until(text: str) -> int | None:
    """Take apart what `snooze_text` formed."""
    return (0 if text == UNTIL_ANSWER else seconds(text)) if text else None


def waking(marks: str | None) -> list[FieldChange]:
    """Return the change that ends the snooze of a ticket with these marks, none for one that is not snoozed."""
    until = DueMarks.read(marks).snoozed
    return [] if until is None else [(fields.SNOOZED, snooze_text(until), "")]


def is_marks(text: str) -> bool:
    """Tell whether a text, such as one in a file, can stand in a ticket."""
    return len(text) < 200 and all(_WORD.match(word) for word in text.split())


def unchanged(summary: SummaryItem) -> Any:
    """Return the condition that the marks of a ticket are as they were read: whoever writes them adds it."""
    attribute: Any = type(summary).due
    return attribute == summary.due if summary.due else attribute.does_not_exist()


def stamp(seconds: int) -> str:
    """Return a moment as it is stored elsewhere."""
    return clock.stamp(datetime.fromtimestamp(seconds, UTC))


def seconds(stamp: str) -> int:
    """Return the whole second of a stored moment."""
    return int(clock.parse(stamp).timestamp())
