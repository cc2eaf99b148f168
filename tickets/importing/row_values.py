"""Take values out of a row that came from outside: each checked for its type and its size, or the row is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeGuard

from portal.dynamo.repository import ITEM_LIMIT
from tickets.importing.archive_reader import NESTING, RawRow
from tickets.importing.archive_texts import short, type_name
from tickets.ticket import texts

NAME_LIMIT: Final = 100  # characters of a person's name, as an account has it
NUMBER_LIMIT: Final = 10**12
GHOST: Final = "ghost"  # the name that GitHub shows for an account that was deleted
TEXT_LIMIT: Final = ITEM_LIMIT - 2048  # bytes of a body: what an item can hold beside its other attributes
OLDEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
FUTURE: Final = timedelta(days=1)  # clocks differ, and the archive was written before now


class Refused(Exception):
    """This row is not taken. The text says why, as the end of a sentence about the row."""


class RowValues:
    """The values of one row, and the remarks that were gathered on the way. Each method raises Refused."""

    def __init__(self, raw: RawRow, now: datetime) -> None:
        if raw.too_deep:
            raise Refused(f"is nested deeper than {NESTING} levels")
        if not isinstance(raw.value, dict):
            raise Refused(f"is {type_name(raw.value)}, not an object")
        self.kind, self.value = raw.kind, raw.value
        self.latest = now + FUTURE
        self.remarks: list[str] = []

    def moment(self, value: Any, what: str) -> datetime:
        if not isinstance(value, str):
            raise Refused(f"has {type_name(value)} as {what}, not a time")
        try:
            at = datetime.fromisoformat(value)
            at = (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError):
            raise Refused(f"has “{short(value)}” as {what}, which is no time") from None
        if not OLDEST <= at <= self.latest:
            raise Refused(f"has “{short(value)}” as {what}, which cannot be")
        return at

    def optional_moment(self, what: str) -> datetime | None:
        value = self.value.get(what)
        return None if value is None else self.moment(value, what)

    def text(self, value: Any, what: str) -> str:
        """Return a text as it is stored: lines end in LF, and no control characters."""
        if value is None:
            return ""
        if not isinstance(value, str):
            raise Refused(f"has {type_name(value)} as {what}, not a text")
        clean = texts.block(value)
        if len(clean.encode()) > TEXT_LIMIT:
            size = len(clean.encode()) // 1024
            raise Refused(f"has a {what} of {size:,} KB; DynamoDB takes items of up to {ITEM_LIMIT // 1024} KB")
        if clean.count(texts.REPLACEMENT) > value.count(texts.REPLACEMENT):
            self.remarks.append(f"has control characters in its {what}; they were replaced")
        return clean

    def person(self, value: Any, what: str) -> str:
        name = texts.line(self.text(value, what))
        if len(name) > NAME_LIMIT:
            self.remarks.append(f"has a name of {len(name):,} characters as {what}; it was cut to {NAME_LIMIT}")
            name = name[: NAME_LIMIT - 1] + "…"
        return name or GHOST

    def list_of(self, name: str) -> list[Any]:
        value = self.value.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise Refused(f"has {type_name(value)} as {name}, not a list")
        return value


def is_number(value: Any) -> TypeGuard[int]:
    """Tell whether a value can be the number of a row."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < NUMBER_LIMIT
