"""Take from a ticket what people outside may read: this is the one place that decides it for letters.

Letters are rendered of `PublicEntry` alone, and `public` is the one function that makes them of what is stored. Reading
is done with the rights of a viewer, to whom `timelines` shows no internal note either.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tickets.desk import rating
from tickets.desk.timelines import TicketTimeline
from tickets.ticket.fields import RATING, REQUESTER, Channel
from tickets.ticket.stored import ActivityItem, FileMap, is_requester

COMMENT, EVENT = "comment", "event"


@dataclass(frozen=True)
class PublicFile:
    """A file of a message. `state` is what is known of it, one of FILE_STATES; `size` is in bytes. `object` is the name
    of its object."""

    id: str
    name: str
    size: int
    type: str
    state: str
    object: str


@dataclass(frozen=True)
class PublicEntry:
    """A message of a ticket that its requester may read. `at` is a time stamp.

    The text of somebody outside, who has no Markdown in mind, `is_plain`.
    """

    sort: str
    at: str
    author: str
    author_name: str
    body: str
    files: tuple[PublicFile, ...] = ()

    @property
    def is_plain(self) -> bool:
        return is_requester(self.author)


def opening(ticket: TicketTimeline) -> PublicEntry:
    """Return a ticket's description as its first message, without a sort key: that is no entry.

    The words are those of its first requester, whoever it is for by now; of a ticket that a member made for somebody
    outside, the member's. `ticket` has all of its entries.
    """
    summary = ticket.summary
    author, name = summary.requester, summary.requester_name
    handed_on = ((entry, one) for entry in ticket.activity for one in entry.changes if one.field == REQUESTER)
    if first := next(handed_on, None):
        entry, change = first
        author, name = entry.former_requester or "", change.before
    if summary.channel == Channel.HAND and ticket.activity:
        author, name = ticket.activity[0].author, _outside_name(ticket.activity[0])
    return PublicEntry("", summary.created_at, author, name, ticket.description, _files(ticket.files))


def public(entry: ActivityItem | None) -> PublicEntry | None:
    """Return a comment as people outside may read it; None for an internal note, an event, a deleted comment, and for
    nothing."""
    if entry is None or entry.kind != COMMENT or entry.deleted_at:
        return None
    return PublicEntry(entry.sk, entry.at, entry.author, _outside_name(entry), entry.body, _files(entry.files or ()))


def _outside_name(entry: ActivityItem) -> str:
    """Return the name of an entry's author. An operator who acts as a member is written down as "operator as member":
    that is of no concern outside."""
    return entry.author_name.rpartition(" as ")[2]


def _files(listed: Iterable[FileMap]) -> tuple[PublicFile, ...]:
    return tuple(
        PublicFile(one.id, one.name, int(one.size), one.type, one.state, one.object or one.id) for one in listed
    )


def own_rating(entries: Iterable[ActivityItem]) -> str:
    """Return the words that the requester gave with the latest rating among these entries, oldest first."""
    said = [entry.body for entry in entries if entry.kind == EVENT and is_requester(entry.author) and _rates(entry)]
    return said[-1] if said else ""


def _rates(entry: ActivityItem) -> bool:
    return entry.verb == rating.SAID_MORE or any(change.field == RATING.name for change in entry.changes)


def all_public(entries: Iterable[ActivityItem], *, before: str) -> list[PublicEntry]:
    """Return the comments whose sort key is below `before`, in the order given."""
    found = (public(entry) for entry in entries if entry.sk < before)
    return [entry for entry in found if entry is not None]
