"""Turn a row of an archive into what Pooldesk stores of it: checked, cut to size, and each change is reported.

A row is taken whole or refused whole. What is refused: a row without a number, a state or a time of its own, one
with a value of a wrong type, and one with a text that no item can hold. What is taken with a remark: a
title that is missing or too long, more tags than a ticket has, an empty comment.

Not taken at all are the reviews of pull requests: a remark on a line says nothing without its diff, and the
archive holds none. They are counted, so that the summary can say how many were left out.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from portal.dynamo.repository import ITEM_LIMIT
from tickets.importing.archive import NESTING, RawRow
from tickets.importing.archive_texts import short, tag_list, type_name
from tickets.ticket import texts
from tickets.ticket.fields import DESCRIPTION_LIMIT, TAG_LIMIT, TAGS_LIMIT, TITLE_LIMIT

NAMES: Final = {"issue": "Issue", "pull": "Pull request"}
NAME_LIMIT: Final = 100  # characters of a person's name, as an account has it
NUMBER_LIMIT: Final = 10**12
GHOST: Final = "ghost"  # the name that GitHub shows for an account that was deleted
TEXT_LIMIT: Final = ITEM_LIMIT - 2048  # bytes of a body: what an item can hold beside its other attributes
OLDEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
FUTURE: Final = timedelta(days=1)  # clocks differ, and the archive was written before now

_STATES: Final = {"OPEN": False, "CLOSED": True, "MERGED": True}


class Refused(Exception):
    """This row is not taken. The text says why, as the end of a sentence about the row."""


@dataclass(frozen=True)
class ArchivedComment:
    author: str
    body: str
    at: datetime


@dataclass(frozen=True)
class ArchivedTicket:
    """A row as it will be stored. `labels` are tags already; `assignees` are names as the archive has them."""

    kind: str
    number: int
    title: str
    body: str
    author: str
    created_at: datetime
    updated_at: datetime
    closed_at: datetime | None
    closed_by: str
    labels: tuple[str, ...]
    assignees: tuple[str, ...]
    comments: tuple[ArchivedComment, ...]
    reviews: int = field(compare=False)
    remarks: tuple[str, ...] = field(compare=False)

    @property
    def id(self) -> str:
        """The sort key of the row's marker: of fixed width, so that an archive in order is read in order."""
        return f"{self.kind}-{self.number:012d}"

    @property
    def name(self) -> str:
        return f"{NAMES[self.kind]} {self.number}"

    @property
    def digest(self) -> str:
        """Equal as long as nothing that is stored has changed in the archive."""
        taken = [
            [self.title, self.body, self.author, self.closed_by, self.labels, self.assignees],
            [str(t) for t in (self.created_at, self.updated_at, self.closed_at)],
            [[c.author, c.body, str(c.at)] for c in self.comments],
        ]
        return hashlib.blake2b(json.dumps(taken).encode(), digest_size=16).hexdigest()


def name_of(raw: RawRow) -> str:
    """Name a row in a report, even where it has no number."""
    number = raw.value.get("number") if isinstance(raw.value, dict) else None
    if _is_number(number):
        return f"{NAMES[raw.kind]} {number}"
    return f"Row {raw.position} of {raw.kind}s"


def read(raw: RawRow, now: datetime) -> ArchivedTicket:
    """The row, checked. Raises Refused."""
    if raw.too_deep:
        raise Refused(f"is nested deeper than {NESTING} levels")
    if not isinstance(raw.value, dict):
        raise Refused(f"is {type_name(raw.value)}, not an object")
    return _Reader(raw, now).row()


class _Reader:
    """Reads one row and gathers remarks on the way."""

    def __init__(self, raw: RawRow, now: datetime) -> None:
        self.kind, self.value = raw.kind, raw.value
        self.latest = now + FUTURE
        self.remarks: list[str] = []

    def row(self) -> ArchivedTicket:
        number = self.value.get("number")
        if not _is_number(number):
            raise Refused("has no usable number")
        closed = self._closed()
        created_at = self._moment(self.value.get("createdAt"), "createdAt")
        updated_at = self._optional_moment("updatedAt") or created_at
        closed_at = self._optional_moment("closedAt") if closed else None
        if closed and closed_at is None:
            self.remarks.append("is closed without a time; it is shown as closed when it was last changed")
            closed_at = updated_at
        if updated_at < created_at or (closed_at and closed_at < created_at):
            raise Refused("was changed before it was created")
        comments = tuple(self._comments())
        return ArchivedTicket(
            kind=self.kind,
            number=number,
            title=self._title(number),
            body=self._body(),
            author=self._person(self.value.get("author"), "author"),
            created_at=created_at,
            updated_at=max(updated_at, *(c.at for c in comments), closed_at or created_at),
            closed_at=closed_at,
            closed_by=self._person(self.value["mergedBy"], "mergedBy") if self.value.get("mergedBy") else "",
            labels=tuple(self._labels()),
            assignees=tuple(self._assignees()),
            comments=comments,
            reviews=len(reviews) if isinstance(reviews := self.value.get("reviews"), list) else 0,
            remarks=tuple(self.remarks),
        )

    def _closed(self) -> bool:
        state = self.value.get("state")
        if not isinstance(state, str) or state.upper() not in _STATES:
            shown = f"“{short(state)}”" if isinstance(state, str) else type_name(state)
            raise Refused(f"has the state {shown}, not OPEN, CLOSED or MERGED")
        return _STATES[state.upper()]

    def _moment(self, value: Any, what: str) -> datetime:
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

    def _optional_moment(self, what: str) -> datetime | None:
        value = self.value.get(what)
        return None if value is None else self._moment(value, what)

    def _text(self, value: Any, what: str) -> str:
        """A text as it is stored: lines end in LF, and no control characters."""
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

    def _title(self, number: int) -> str:
        title = texts.line(self._text(self.value.get("title"), "title"))
        if texts.shows_nothing(title):
            self.remarks.append("has no title and is called by its number")
            return f"{NAMES[self.kind]} {number}"
        if len(title) > TITLE_LIMIT:
            self.remarks.append(f"has a title of {len(title):,} characters; it was cut to {TITLE_LIMIT}")
            title = title[: TITLE_LIMIT - 1].rstrip() + "…"
        return title

    def _body(self) -> str:
        body = self._text(self.value.get("body"), "body")
        if len(body) > DESCRIPTION_LIMIT:
            self.remarks.append(
                f"has a body of {len(body):,} characters; whoever edits it must shorten it to {DESCRIPTION_LIMIT:,}"
            )
        return body

    def _person(self, value: Any, what: str) -> str:
        name = texts.line(self._text(value, what))
        if len(name) > NAME_LIMIT:
            self.remarks.append(f"has a name of {len(name):,} characters as {what}; it was cut to {NAME_LIMIT}")
            name = name[: NAME_LIMIT - 1] + "…"
        return name or GHOST

    def _labels(self) -> list[str]:
        labels = self._list("labels")
        if not all(isinstance(label, str) for label in labels):
            raise Refused("has a label that is not a text")
        for label in labels:
            if len(label) > TAG_LIMIT:
                self.remarks.append(f"has the label “{short(label)}” of {len(label)} characters; it was cut")
        tags, left = tag_list(labels)
        if left:
            self.remarks.append(f"has more than {TAGS_LIMIT} labels; left out: {', '.join(map(short, left[:20]))}")
        return tags

    def _assignees(self) -> list[str]:
        return [self._person(name, "assignee") for name in self._list("assignees") if name]

    def _comments(self) -> list[ArchivedComment]:
        comments = []
        for position, value in enumerate(self._list("comments"), 1):
            what = f"comment {position}"
            if not isinstance(value, dict):
                raise Refused(f"has {type_name(value)} as {what}, not an object")
            body = self._text(value.get("body"), what)
            at = self._moment(value.get("createdAt"), f"createdAt of {what}")
            if body:
                comments.append(ArchivedComment(self._person(value.get("author"), f"author of {what}"), body, at))
            else:
                self.remarks.append(f"has nothing in {what}, which was left out")
        return comments

    def _list(self, name: str) -> list[Any]:
        value = self.value.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise Refused(f"has {type_name(value)} as {name}, not a list")
        return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < NUMBER_LIMIT
