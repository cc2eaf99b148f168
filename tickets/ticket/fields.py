"""The words of a ticket: statuses and how they follow each other, priorities, tags, and their limits."""

from __future__ import annotations

import re
from enum import StrEnum

from portal import plain_text
from portal.errors import Invalid
from tickets.ticket import texts

TITLE_LIMIT = 200  # characters
DESCRIPTION_LIMIT = 50_000  # characters; at most 200 KB of UTF-8, half of DynamoDB's item limit
COMMENT_LIMIT = 20_000  # characters
TAG_LIMIT = 40  # characters
TAGS_LIMIT = 12
# A ticket of an archive keeps its number across a hole of so many; whoever counts all tickets reads those in it, too.
NUMBER_GAP = 1000

_TAG = re.compile(r"[^\s,#|<>]+\Z")


class Status(StrEnum):
    OPEN = "open"  # needs an answer from us
    PENDING = "pending"  # waits for somebody else
    RESOLVED = "resolved"  # answered, may come back
    CLOSED = "closed"  # done; can only be reopened

    @property
    def label(self) -> str:
        return self.value.capitalize()


MOVES: dict[Status, tuple[Status, ...]] = {
    Status.OPEN: (Status.PENDING, Status.RESOLVED, Status.CLOSED),
    Status.PENDING: (Status.OPEN, Status.RESOLVED, Status.CLOSED),
    Status.RESOLVED: (Status.OPEN, Status.CLOSED),
    Status.CLOSED: (Status.OPEN,),
}


class Priority(StrEnum):
    URGENT = "urgent"
    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"

    @property
    def label(self) -> str:
        return self.value.capitalize()


def status(value: str) -> Status:
    try:
        return Status(value)
    except ValueError as error:
        raise Invalid("There is no such status.", field="status") from error


def priority(value: str) -> Priority:
    try:
        return Priority(value)
    except ValueError as error:
        raise Invalid("There is no such priority.", field="priority") from error


def title(text: str) -> str:
    """Return a title as it is stored: one line. Raises Invalid where it shows nothing or is too long."""
    stored = texts.line(text)
    if not plain_text.has_visible_text(stored):
        raise Invalid("A ticket needs a title.", field="title")
    return _within(stored, TITLE_LIMIT, "title")


def description(text: str) -> str:
    """Return a description as it is stored, perhaps empty. Raises Invalid where it is too long."""
    return _within(texts.block(text), DESCRIPTION_LIMIT, "description")


def comment(text: str) -> str:
    """Return a comment as it is stored. Raises Invalid where it shows nothing or is too long."""
    stored = texts.block(text)
    if not plain_text.has_visible_text(stored):
        raise Invalid("Write something first.", field="body")
    return _within(stored, COMMENT_LIMIT, "comment", field="body")


def _within(text: str, limit: int, name: str, *, field: str = "") -> str:
    if len(text) > limit:
        raise Invalid(
            f"This {name} has {len(text):,} characters; {limit:,} are allowed. Shorten it by {len(text) - limit:,}.",
            field=field or name,
        )
    return text


def tag_list(text: str) -> list[str]:
    """Return tags from text separated by commas, as `texts.word` writes them, no duplicates, in order.

    Raises Invalid on too many, too long, or characters that a tag cannot have.
    """
    tags: list[str] = []
    for typed in text.split(","):
        tag = texts.word(typed)
        if not tag and typed.strip():
            raise Invalid("A tag needs characters that can be seen.", field="tags")
        if not tag or tag in tags:
            continue
        if len(tag) > TAG_LIMIT:
            raise Invalid(f"The tag “{tag[:20]}…” has {len(tag)} characters; {TAG_LIMIT} are allowed.", field="tags")
        if texts.REPLACEMENT in tag:
            raise Invalid(f"The tag “{tag}” contains a character that cannot be stored, shown as �.", field="tags")
        if not _TAG.match(tag):
            raise Invalid(f"The tag “{tag}” contains one of # | < >, which tags cannot have.", field="tags")
        tags.append(tag)
    if len(tags) > TAGS_LIMIT:
        raise Invalid(f"A ticket can have at most {TAGS_LIMIT} tags; these are {len(tags)}.", field="tags")
    return tags
