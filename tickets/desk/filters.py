"""Which tickets a list shows, beyond what a key serves, and in which order: words of an address turned into conditions
on rows and keys to sort them by.

Keys serve status and resolver, and an index the order by update. All else is asked of each row that is read: lists.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal import clock
from portal.errors import Invalid
from portal.web import locales
from tickets.ticket import custom_values, due_marks, fields
from tickets.ticket.custom_values import CustomFilter
from tickets.ticket.due_marks import DueMarks
from tickets.ticket.fields import DEFINED, STATUS, UNRESOLVED, Priority, Status, TicketField, is_unresolved

if TYPE_CHECKING:
    from tickets.ticket.stored import SummaryItem

# What `status` can say beside one status.
GROUPS: Final[dict[str, tuple[Status, ...]]] = {"unresolved": UNRESOLVED, "any": tuple(Status)}
# The days that can be asked for, and what each says of a ticket. All but the first tell of the last such event: a
# row knows no earlier one.
EVENTS: Final = {
    "created": gettext_noop("opened"),
    "resolved": gettext_noop("last resolved"),
    "reopened": gettext_noop("last reopened"),
    "commented": gettext_noop("last comment"),
    "rated": gettext_noop("last rated"),
}

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")
_LAST_OF_ALL: Final = "~"


def statuses(word: str) -> tuple[Status, ...]:
    """Return the statuses that a word stands for: a status itself, "unresolved" or "any". Raises Invalid."""
    return GROUPS.get(word) or (STATUS.clean(word),)


@dataclass(frozen=True, slots=True)
class Days:
    """Days in a time zone, both included, as 2026-11-20; "" where that end is open. One of the two is given."""

    first: str
    last: str
    zone: str = clock.UTC_NAME

    @classmethod
    def parse(cls, text: str, *, field: str) -> Days:
        """Parse 2026-11-20, 2026-11-01..2026-11-07, ..2026-11-07 or 2026-11-01.. ; raises Invalid for anything else."""
        first, dots, last = text.partition("..")
        days = cls(first, last if dots else first)
        if not (first or last) or not all(_is_day(end) for end in (first, last) if end):
            event = _(EVENTS[field])
            sentence = _("“%(event)s” takes a day as 2026-11-20, or days as 2026-11-01..2026-11-07.")
            raise Invalid(sentence % {"event": f"{event[0].upper()}{event[1:]}"}, field=field)
        if days.last and days.first > days.last:
            sentence = _("The days of “%(event)s” end before they begin.")
            raise Invalid(sentence % {"event": _(EVENTS[field])}, field=field)
        return days

    def __str__(self) -> str:
        return self.first if self.first == self.last else f"{self.first}..{self.last}"

    def hold(self, stamp: str | None) -> bool:
        """Tell whether a stored moment, None for never, lies in these days."""
        return self.first <= clock.day_of(stamp, self.zone) <= (self.last or _LAST_OF_ALL) if stamp else False

    @property
    def begins(self) -> str:
        """Return a text before the stamps of these days, and after all earlier ones; "" where that end is open."""
        if self.zone == clock.UTC_NAME or not self.first:
            return self.first
        return clock.stamp(clock.day_begins(date.fromisoformat(self.first), self.zone))


class TicketFilter:
    """Hold what a row must be, by the names of filters in addresses; one that is not there asks nothing."""

    def __init__(self, **asked: Any) -> None:
        if unknown := [name for name in asked if filter_named(name) is None]:
            raise TypeError(f"there is no filter {sorted(unknown)}")
        self._asked: dict[str, Any] = {name: asked[name] for name in in_order(asked) if asked[name]}

    @classmethod
    def parse(cls, params: Mapping[str, str]) -> TicketFilter:
        """Read a filter from an address's parameters, whatever else is among them. Raises Invalid with the field."""
        given = {name: filter_named(name) for name in in_order(params) if params[name]}
        return cls(**{name: found.parse(params[name]) for name, found in given.items() if found})

    def get(self, name: str) -> Any:
        """Return what is asked by this filter, None for nothing."""
        return self._asked.get(name)

    @property
    def custom(self) -> list[str]:
        """Return the ids of the custom fields that are asked for."""
        return [name for name in self._asked if name not in FILTERS]

    def without(self, name: str) -> TicketFilter:
        return TicketFilter(**(self._asked | {name: None}))

    def in_zone(self, zone: str) -> TicketFilter:
        """Return the same filter with its days in this time zone, which is that of the desk."""
        days = {name: replace(given, zone=zone) for name in EVENTS if (given := self.get(name))}
        return TicketFilter(**(self._asked | days)) if days else self

    @property
    def params(self) -> dict[str, str]:
        """The parameters that `parse` makes this filter of, in one spelling, without those that ask nothing."""
        return {name: str(value) for name, value in self._asked.items()}

    def __bool__(self) -> bool:
        return bool(self._asked)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TicketFilter) and self._asked == other._asked

    def __repr__(self) -> str:
        return f"TicketFilter({self.params})"

    def __hash__(self) -> int:
        return hash(tuple(self._asked.items()))

    @property
    def since(self) -> str:
        """The beginning of a stamp before which no ticket that matches can have changed last, "" where there is none.

        To be opened, resolved, reopened, commented on and rated are changes, each of which sets `updated_at`.
        """
        return max((days.begins for name in EVENTS if (days := self.get(name))), default="")

    def possible(self, among: tuple[Status, ...]) -> tuple[Status, ...]:
        """Return the statuses that can match at all: what is open or pending has lost the day on which it was
        resolved."""
        return tuple(s for s in among if s not in UNRESOLVED) if self.get("resolved") else among

    def matches(self, row: SummaryItem) -> bool:
        return all(takes(row, value) for takes, value in self._conditions)

    @cached_property
    def _conditions(self) -> list[tuple[Callable[[SummaryItem, Any], bool], Any]]:
        return [(found.takes, value) for name, value in self._asked.items() if (found := filter_named(name))]


def _is_day(text: str) -> bool:
    if not _DAY.match(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _tag(text: str) -> str:
    """Return one tag as tickets have it. Raises Invalid."""
    try:
        tags = fields.tag_list(text)
    except Invalid as refused:
        refused.field = "tag"  # as the address calls it
        raise
    if len(tags) > 1:
        raise Invalid(_("Filter by one tag at a time."), field="tag")
    return tags[0] if tags else ""


@dataclass(frozen=True)
class Filter:
    """Read one filter's text, raising Invalid, and tell whether a row is what it asks for."""

    parse: Callable[[str], Any]
    takes: Callable[[SummaryItem, Any], bool]


def _is(field: TicketField) -> Filter:
    return Filter(field.clean, lambda row, value: getattr(row, field.name) == value)


def _days(name: str) -> Filter:
    return Filter(partial(Days.parse, field=name), lambda row, days: days.hold(getattr(row, f"{name}_at")))


YES_NO: Final = ("yes", "no")


def _yes_no(text: str) -> str:
    if text not in YES_NO:
        raise Invalid(_("“Snoozed” is yes or no."), field="snoozed")
    return text


def _is_snoozed(row: SummaryItem, value: str) -> bool:
    return (due_marks.snoozed(row.due, row.status) is not None) == (value == "yes")


def _state(text: str) -> str:
    if text not in due_marks.STATES:
        raise Invalid(_("“Targets” is overdue, due_soon or missed."), field="sla")
    return text


# In the order in which they stand in an address.
FILTERS: Final[dict[str, Filter]] = {
    **{name: _is(choice) for name, choice in fields.FILTERS.items()},
    **{field.name: _is(field) for field in DEFINED},
    "snoozed": Filter(_yes_no, _is_snoozed),
    "sla": Filter(_state, lambda row, value: value in due_marks.states(row.due)),
    "tag": Filter(_tag, lambda row, tag: tag in row.tags),
    **{name: _days(name) for name in EVENTS},
}


def filter_named(name: str) -> Filter | None:
    """Return a filter by its name in addresses, which of a custom field is its id; None where there is none."""
    found = FILTERS.get(name)
    if found is None and custom_values.is_field_id(name):
        return Filter(partial(CustomFilter.parse, name), lambda row, value: value.takes(row.custom))
    return found


def in_order(names: Collection[str]) -> list[str]:
    """Return those names that are a filter's, in the order in which they stand in an address."""
    others = [name for name in names if name not in FILTERS and name not in _BEFORE and name not in _BEHIND]
    return [name for name in FILTERS if name in names] + sorted(filter(custom_values.is_field_id, others))


# Words of a list's address beside the filters: those before them, and those behind.
_BEFORE: Final = ("status", "resolver", "name")
_BEHIND: Final = ("sort", "after", "place")


@lru_cache(maxsize=4096)
def query(params: tuple[tuple[str, str | None], ...]) -> str:
    """Return the end of a list's address, "?" included; None and "" leave a word out. Raises TypeError for a word that
    means nothing."""
    given = dict(params)
    if unknown := [name for name in given if name not in (*_BEFORE, *_BEHIND) and filter_named(name) is None]:
        raise TypeError(f"the queue has no filter {sorted(unknown)}")
    names = (*_BEFORE, *in_order(given), *_BEHIND)
    found = urlencode({name: value for name in names if (value := given.get(name))})
    return f"?{found}" if found else ""


EVERYTHING: Final = TicketFilter()


# --- orders ---

Key = tuple[Any, str, int]  # of a row: what the order asks for, when the ticket was opened, and its number
KEY_VALUES: Final = 3
_RANKS: Final = {priority.value: rank for rank, priority in enumerate(Priority)}
_NEVER: Final = 1 << 40  # seconds
_NAME_LENGTH: Final = 40  # characters of a requester's name that count, so that a cursor stays short


@dataclass(frozen=True)
class Order:
    """`key` is None where an index has this order. Without it, `is_reversed` reads the index from its oldest row on;
    with it, rows come with the greatest key first."""

    word: str
    named: str  # in English
    is_reversed: bool = False
    key: Callable[[SummaryItem], Key] | None = None

    @property
    def label(self) -> str:
        return locales.said(self.named)

    def key_of(self, row: SummaryItem) -> Key:
        """Return the key of a row. Raises TypeError where an index has this order."""
        if self.key is None:
            raise TypeError(f"an index has the order {self.word}")
        return self.key(row)

    @property
    def column(self) -> str:
        return self.word.removeprefix("-")

    @property
    def is_descending(self) -> bool:
        return self.word.startswith("-")


def _created(row: SummaryItem) -> Key:
    return "", row.created_at, int(row.number)


def _urgency(row: SummaryItem) -> Key:
    """Order by priority, the oldest ticket first where two have the same."""
    return _RANKS[row.priority], row.created_at, int(row.number)


def _requester(row: SummaryItem) -> Key:
    return row.requester_name.casefold()[:_NAME_LENGTH], row.created_at, int(row.number)


def _due(row: SummaryItem) -> Key:
    """Order by the next target, overdue ones first; tickets without one come last, the oldest first."""
    marks = DueMarks.read(row.due) if row.due and is_unresolved(row.status) else None
    return (marks.at if marks and marks.at else _NEVER), row.created_at, int(row.number)


LATEST: Final = Order("-updated", gettext_noop("Latest update first"))
ORDERS: Final = {
    order.word: order
    for order in (
        LATEST,
        Order("updated", gettext_noop("Oldest update first"), is_reversed=True),
        Order("-created", gettext_noop("Newest ticket first"), True, _created),
        Order("created", gettext_noop("Oldest ticket first"), False, _created),
        Order("-priority", gettext_noop("Highest priority first"), False, _urgency),
        Order("priority", gettext_noop("Lowest priority first"), True, _urgency),
        Order("due", gettext_noop("Due first"), False, _due),
        Order("requester", gettext_noop("Requester, A to Z"), False, _requester),
        Order("-requester", gettext_noop("Requester, Z to A"), True, _requester),
    )
}


def order_of(word: str) -> Order:
    """Return the order of a word, the usual one for "". Raises Invalid."""
    try:
        return ORDERS[word or LATEST.word]
    except KeyError:
        raise Invalid(_("There is no such order of tickets."), field="sort") from None
