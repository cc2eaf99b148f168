"""Name the months for which reports count, each for the whole desk and for one channel, group, person or tag.

The place of such counts is written `<scope>/<month>/<value>`: "a/2026-11/" for the desk, "g/2026-11/group_7". All
values of a scope in a month are adjacent, and so are the months of the desk: a report is one Query of each.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final, NamedTuple
from urllib.parse import unquote

_RISKY: Final = re.compile(r"[%#|:/\s\x00-\x1f\x7f]")  # in keys, and in the names of counts
_MONTH: Final = re.compile(r"[0-9]{4}-[0-9]{2}\Z")
_LONGEST: Final = 500  # bytes of a value in a key


class MonthScope(StrEnum):
    """The tickets that counts of a month are about: all of the desk, or those with one value."""

    ALL = "a"
    CHANNEL = "c"
    GROUP = "g"
    PERSON = "p"
    TAG = "t"


class MonthPlace(NamedTuple):
    """Where counts of a month lie. `value` is "" for the whole desk."""

    scope: MonthScope
    month: str
    value: str

    def __str__(self) -> str:
        return f"{self.scope}/{self.month}/{escaped(self.value)}"

    @classmethod
    def parse(cls, text: str) -> MonthPlace:
        """Take apart what `str` wrote. Raises ValueError."""
        scope, month, value = text.split("/")
        return cls(MonthScope(scope), checked(month), unquote(value))


def checked(month: str) -> str:
    """Return a month, written as 2026-11. Raises ValueError for another text."""
    if not _MONTH.match(month) or not "01" <= month[5:] <= "12":
        raise ValueError("a month is written as 2026-11")
    return month


def escaped(value: str) -> str:
    """Return a value as it stands in places and keys. Raises ValueError for one that is too long."""
    text = _RISKY.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), value)
    if len(text.encode()) > _LONGEST:
        raise ValueError("this is too long to be counted by")
    return text
