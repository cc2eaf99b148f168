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
from datetime import datetime
from typing import Final

from portal import plain_text
from tickets.importing.archive_reader import RawRow
from tickets.importing.archive_texts import short, tag_list, type_name
from tickets.importing.row_values import Refused, RowValues, is_number
from tickets.ticket import texts
from tickets.ticket.fields import DESCRIPTION_LIMIT, TAG_LIMIT, TAGS_LIMIT, TITLE_LIMIT

NAMES: Final = {"issue": "Issue", "pull": "Pull request", "ticket": "Ticket"}

_STATES: Final = {"OPEN": False, "CLOSED": True, "MERGED": True}


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
    def own_number(self) -> int:
        """None: it gets the next one."""
        return 0

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
    if is_number(number):
        return f"{NAMES[raw.kind]} {number}"
    return f"Row {raw.position} of {raw.kind}s"


def read(raw: RawRow, now: datetime) -> ArchivedTicket:
    """Return the row, checked. Raises Refused."""
    return _Reader(raw, now).row()


class _Reader(RowValues):
    """Reads one row and gathers remarks on the way."""

    def row(self) -> ArchivedTicket:
        number = self.value.get("number")
        if not is_number(number):
            raise Refused("has no usable number")
        closed = self._closed()
        created_at = self.moment(self.value.get("createdAt"), "createdAt")
        updated_at = self.optional_moment("updatedAt") or created_at
        closed_at = self.optional_moment("closedAt") if closed else None
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
            author=self.person(self.value.get("author"), "author"),
            created_at=created_at,
            updated_at=max(updated_at, *(c.at for c in comments), closed_at or created_at),
            closed_at=closed_at,
            closed_by=self.person(self.value["mergedBy"], "mergedBy") if self.value.get("mergedBy") else "",
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

    def _title(self, number: int) -> str:
        title = texts.line(self.text(self.value.get("title"), "title"))
        if not plain_text.has_visible_text(title):
            self.remarks.append("has no title and is called by its number")
            return f"{NAMES[self.kind]} {number}"
        if len(title) > TITLE_LIMIT:
            self.remarks.append(f"has a title of {len(title):,} characters; it was cut to {TITLE_LIMIT}")
            title = title[: TITLE_LIMIT - 1].rstrip() + "…"
        return title

    def _body(self) -> str:
        body = self.text(self.value.get("body"), "body")
        if len(body) > DESCRIPTION_LIMIT:
            self.remarks.append(
                f"has a body of {len(body):,} characters; whoever edits it must shorten it to {DESCRIPTION_LIMIT:,}"
            )
        return body

    def _labels(self) -> list[str]:
        labels = self.list_of("labels")
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
        return [self.person(name, "assignee") for name in self.list_of("assignees") if name]

    def _comments(self) -> list[ArchivedComment]:
        comments = []
        for position, value in enumerate(self.list_of("comments"), 1):
            what = f"comment {position}"
            if not isinstance(value, dict):
                raise Refused(f"has {type_name(value)} as {what}, not an object")
            body = self.text(value.get("body"), what)
            at = self.moment(value.get("createdAt"), f"createdAt of {what}")
            if body:
                comments.append(ArchivedComment(self.person(value.get("author"), f"author of {what}"), body, at))
            else:
                self.remarks.append(f"has nothing in {what}, which was left out")
        return comments
