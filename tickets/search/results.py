"""Hold what a search finds, in the words of pages and commands. Nothing here is escaped; a template does that."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tenants.membership.members import ListedMember
from tickets.ticket.stored import ActivityItem, SummaryItem


class Where(StrEnum):
    """Say in which part of a ticket a snippet stands."""

    TITLE = "title"
    DESCRIPTION = "description"
    COMMENT = "comment"
    NOTE = "note"
    TAGS = "tags"
    CUSTOM = "custom"
    REQUESTER = "requester"


@dataclass(frozen=True, slots=True)
class Piece:
    """Hold a stretch of text that was sought, or that was not."""

    text: str
    is_match: bool


@dataclass(frozen=True, slots=True)
class Hit:
    """Hold a ticket that was found: its title with what was sought, a stretch of its text, and where that stands.

    The snippet is empty where the title says it all. `entry` is the comment or note that it is taken from. Where the
    words stand in older comments that were not read, `unread` is the sort key of the entry that these come before.
    `is_in_head` says that the title, or the number, is all that was sought.
    """

    summary: SummaryItem
    title: tuple[Piece, ...]
    snippet: tuple[Piece, ...]
    where: Where
    entry: ActivityItem | None = None
    is_in_head: bool = False
    unread: str = ""


@dataclass(frozen=True)
class Found:
    """Hold a page of hits. `further` is a cursor to more of them, "" at the end. `nearly` are tickets that have only
    some of the words, on a first page where few have all of them.

    `explanations` are sentences about what was ignored in the query. `about` is how many tickets the index proposes,
    None where it cannot tell; `is_counted` says that this is how many there are, but for what changed lately. `rest` is
    how many tickets may follow behind `further`: proposals, and matches that had no room on the page.
    """

    hits: tuple[Hit, ...]
    further: str
    explanations: tuple[str, ...]
    about: int | None
    nearly: tuple[Hit, ...] = ()
    is_counted: bool = False
    rest: int = 0


@dataclass(frozen=True)
class Suggestions:
    """Hold what is offered while somebody types: tickets, tags and people, the best first."""

    tickets: tuple[SummaryItem, ...]
    tags: tuple[str, ...]
    people: tuple[ListedMember, ...]
