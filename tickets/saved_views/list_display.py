"""Keep how a person wants lists of tickets shown in a browser: which columns, and how dense.

A cookie holds it, so that it costs no read and no list waits for it. The number and the title always stay.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

from django.utils.translation import gettext_lazy

from tickets.desk.sorting import LATEST
from tickets.ticket.fields import FILTERS, PLAIN, ChoiceField

COOKIE: Final = "pooldesk_lists"
COMPACT: Final = "compact"
COLUMNS: Final = {
    **{name: gettext_lazy(choice.named) for name, choice in FILTERS.items()},
    "tags": gettext_lazy("Tags"),
    "requester": gettext_lazy("Requester"),
    "resolver": gettext_lazy("Assignee"),
    "comments": gettext_lazy("Comments"),
    "created": gettext_lazy("Opened"),
    "updated": gettext_lazy("Updated"),
}
_USUAL: Final = frozenset(COLUMNS) - {"created"}


@dataclass(frozen=True)
class ListDisplay:
    columns: frozenset[str] = _USUAL
    is_compact: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a cookie. Words that this version does not know mean nothing; "" is what nobody has changed."""
        return cls.of(text.split(".")) if text else cls()

    @classmethod
    def of(cls, words: Iterable[str]) -> Self:
        chosen = frozenset(words)
        return cls(chosen & COLUMNS.keys(), COMPACT in chosen)

    def __str__(self) -> str:
        words = [name for name in COLUMNS if name in self.columns]
        return ".".join([COMPACT if self.is_compact else "comfortable", *words])

    def classes(self, sorted_by: str) -> str:
        """Return the classes of a table that is sorted by a column."""
        hidden = [f"without-{name}" for name in COLUMNS if not self.shows(name, sorted_by)]
        return " ".join([*hidden, *([COMPACT] if self.is_compact else [])])

    def shows(self, column: str, sorted_by: str) -> bool:
        """Tell whether a column is shown. The one that a list is sorted by is, but for that of the usual order."""
        return column in self.columns or (column == sorted_by and column != LATEST.column)

    def plain_choices(self, sorted_by: str) -> list[ChoiceField]:
        """Return the fields with a few values whose columns are shown, but for the status and the priority."""
        return [choice for choice in PLAIN if self.shows(choice.name, sorted_by)]

    def choices(self) -> list[tuple[str, str, bool]]:
        """Return name, label, and whether it is shown, of each column."""
        return [(name, str(label), name in self.columns) for name, label in COLUMNS.items()]
