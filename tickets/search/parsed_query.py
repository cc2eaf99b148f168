"""Hold a query as it was understood: what is sought, and what a ticket must be besides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Final

from tickets.desk.filters import EVERYTHING, TicketFilter
from tickets.ticket.fields import Status

ME: Final = "me"
NOBODY: Final = "nobody"


@dataclass(frozen=True, slots=True)
class Phrase:
    """Hold what was typed between spaces or quotes: one word, or several that stand one behind the other.

    An exact one is found as it is spelt, another one also in its other forms; a prefix is the beginning of its last
    word.
    """

    text: str
    is_exact: bool = False
    is_prefix: bool = False


@dataclass(frozen=True)
class SearchQuery:
    """Hold what tickets have (`phrases`) and do not have (`without`), and what they are besides.

    None and "" ask nothing. `number` stands for the ticket of this number, which is found beside what has it as a word.
    `assignee` is ME, NOBODY, or (a part of) a name or mail address; so is `requester`, but for NOBODY. `choices` are
    words by the names of fields. Days are in UTC: tickets were opened before `before`, and on the day `after` or later.
    """

    text: str
    phrases: tuple[Phrase, ...] = ()
    without: tuple[Phrase, ...] = ()
    number: int | None = None
    statuses: tuple[Status, ...] | None = None
    assignee: str = ""
    tags: tuple[str, ...] = ()
    requester: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)
    before: date | None = None
    after: date | None = None


@dataclass(frozen=True)
class Filters:
    """Hold what a list asks beside the words, as the queue does. `resolver` is a user id, "" for nobody."""

    statuses: tuple[Status, ...] | None = None
    resolver: str | None = None
    only: TicketFilter = EVERYTHING
