"""Write tables as CSV, line by line, in which no spreadsheet finds a formula."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence

# At the beginning of a cell, or where a spreadsheet that separates cells by ";" would begin one. Excel takes the
# full-width characters of East Asian keyboards for the ordinary ones, and programs differ in which invisible ones they
# leave out before them.
_INVISIBLE = (
    "\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff"
)
_FORMULA = re.compile(rf"(^|[;\t\r\n])([\s\"'{_INVISIBLE}]*[=+\-@\uff1d\uff0b\uff0d\uff20])")


class _Echo:
    """Return the line that csv.writer writes, instead of storing it."""

    def write(self, line: str) -> str:
        return line


def lines(columns: Sequence[str], rows: Iterable[Sequence[str]], *, delimiter: str = ",") -> Iterator[str]:
    """Yield the line of the columns' names and that of each row, as the rows are taken."""
    writer = csv.writer(_Echo(), delimiter=delimiter)
    yield writer.writerow(columns)
    for row in rows:
        yield writer.writerow([harmless(cell) for cell in row])


def harmless(cell: str) -> str:
    """Return a cell in which no spreadsheet finds a formula. Source: OWASP, "CSV Injection"."""
    text = _FORMULA.sub(r"\1'\2", cell)
    return f"'{text}" if text[:1] in ("\t", "\r", "\n") else text
