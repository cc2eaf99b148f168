"""The words of a ticket: statuses and how they follow each other, priorities, tags, and their limits."""

from __future__ import annotations

import re
from enum import StrEnum

from portal.errors import Invalid

TITLE_LIMIT = 200  # characters
DESCRIPTION_LIMIT = 50_000  # characters; at most 200 KB of UTF-8, half of DynamoDB's item limit
COMMENT_LIMIT = 20_000  # characters
TAG_LIMIT = 40  # characters
TAGS_LIMIT = 12

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


def tag_list(text: str) -> list[str]:
    """Tags from text separated by commas: lower case, inner white space as a hyphen, no duplicates, in order.

    Raises Invalid on too many, too long, or characters that a tag cannot have.
    """
    tags: list[str] = []
    for raw in text.split(","):
        tag = "-".join(raw.casefold().split())
        if not tag or tag in tags:
            continue
        if len(tag) > TAG_LIMIT:
            raise Invalid(f"The tag “{tag[:20]}…” has more than {TAG_LIMIT} characters.", field="tags")
        if not _TAG.match(tag):
            raise Invalid(f"The tag “{tag}” has a character that tags cannot have: # | < >", field="tags")
        tags.append(tag)
    if len(tags) > TAGS_LIMIT:
        raise Invalid(f"A ticket has at most {TAGS_LIMIT} tags.", field="tags")
    return tags
