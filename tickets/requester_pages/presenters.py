"""A ticket as its requester's page shows it, made of public entries alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.urls import reverse
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from portal import clock
from portal.plain_text import file_size
from portal.web import locales, markdown
from tickets.attachments import scanning
from tickets.desk import rating
from tickets.desk.timelines import TicketTimeline
from tickets.replies.public_entries import PublicEntry, PublicFile, all_public, opening, own_rating
from tickets.requester_pages.requester_page import OwnTickets, Visit
from tickets.ticket import checklists
from tickets.ticket.fields import Rating, Status
from tickets.ticket.stored import is_requester

_LAST: Final = "~"  # behind all sort keys
STATES: Final = {
    Status.OPEN: (gettext_lazy("Open"), gettext_lazy("We have your request and will answer it.")),
    Status.PENDING: (
        gettext_lazy("Waiting"),
        gettext_lazy("We wait for something before we can go on, perhaps for your answer."),
    ),
    Status.RESOLVED: (
        gettext_lazy("Resolved"),
        gettext_lazy("We think that this is done. If it is not, answer below: that opens it again."),
    ),
    Status.CLOSED: (gettext_lazy("Closed"), gettext_lazy("This request is closed. An answer below opens it again.")),
}
RATINGS: Final = {Rating.GOOD: gettext_lazy("Good"), Rating.BAD: gettext_lazy("Bad")}


@dataclass(frozen=True)
class GuestMessage:
    """A message of the page. `html` is the text of somebody of the desk, `text` of anybody outside."""

    author: str
    is_mine: bool
    at: str
    html: str
    text: str
    files: list[dict[str, str]]


def ticket(visit: Visit, found: TicketTimeline, *, token: str) -> dict[str, Any]:
    """Return what the page shows of a ticket. Its language is active."""
    entries = all_public(found.activity, before=_LAST)
    if found.earlier is None and (found.description or found.files):
        entries.insert(0, opening(found))
    summary = found.summary
    state, meaning = STATES[Status(summary.status)]
    return {
        "title": summary.title,
        "status": summary.status,
        "state": state,
        "meaning": meaning,
        "can_close": summary.status != Status.CLOSED,
        "can_rate": rating.can_be_rated(summary),
        "rating": summary.rating,
        "rating_label": RATINGS[Rating(summary.rating)] if summary.rating else "",
        "words": own_rating(found.activity),
        "conversation": [_message(visit, one, token) for one in entries],
        "earlier": found.earlier,
    }


def _message(visit: Visit, entry: PublicEntry, token: str) -> GuestMessage:
    is_mine = entry.author in visit.person.ids
    is_plain = entry.is_plain
    return GuestMessage(
        author=_("You") if is_mine else _name(visit, entry),
        is_mine=is_mine,
        at=_moment(clock.parse(entry.at)),
        html="" if is_plain else markdown.render(checklists.boxed(entry.body)),
        text=entry.body if is_plain else "",
        files=[_file(one, token) for one in entry.files],
    )


def _name(visit: Visit, entry: PublicEntry) -> str:
    """Return the name of somebody else, and never an address: people without a name are called by theirs."""
    if "@" not in entry.author_name:
        return entry.author_name
    return _("Somebody else") if is_requester(entry.author) else visit.looks.name


def _moment(at: datetime) -> str:
    wanted = _("j F Y, H:i")  # apart: a text inside an f-string is found by no extraction
    locale = locales.current()
    return f"{date_format(locale.local(at), wanted)} {clock.named(locale.zone, at)}"


def _file(file: PublicFile, token: str) -> dict[str, str]:
    can_have = file.state in (*scanning.READABLE, scanning.WAITING)
    url = reverse("tickets:r_file", args=[token, file.id]) if can_have else ""
    return {"name": file.name, "size": file_size(file.size), "url": url}


def tickets(found: OwnTickets, *, token: str) -> dict[str, Any]:
    rows = [
        {
            "title": row.title,
            "status": row.status,
            "state": STATES[Status(row.status)][0],
            "at": _moment(clock.parse(row.created_at)),
            "url": reverse("tickets:r_one", args=[token, int(row.number)]),
        }
        for row in found.rows
    ]
    return {"rows": rows, "next": found.next}
