"""Turn a line of export_tickets back into the ticket that it tells of, whole or not at all.

A ticket keeps its texts, times, numbers and the ids of its entries. It keeps the ids of people, who are known on the
whole platform; only the resolver has to be a member of this desk.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from datetime import date, datetime
from typing import Any, Final

from portal import clock
from portal.errors import Invalid
from portal.schema import keys
from tickets.counting import contributions
from tickets.desk.history import History, PastEntry
from tickets.exporting.ticket_lines import MOMENTS
from tickets.importing.archive_reader import RawRow
from tickets.importing.archive_texts import short, tag_list, type_name
from tickets.importing.row_values import NAME_LIMIT, Refused, RowValues, is_number
from tickets.importing.ticket_people import TicketPeople
from tickets.ticket import fields, texts
from tickets.ticket.fields import ASSIGNEE, FIELDS, OPTIONAL, TAGS, ChoiceField, LongTextField, TagsField, TicketField

CHANGES_LIMIT: Final = 20  # fields that one event changes
WORDS_LIMIT: Final = 200  # characters of a verb
_ENTRY_ID: Final = re.compile(r"[0-9a-z]{1,40}\Z")
_FIELD: Final = re.compile(r"[a-z_]{1,40}\Z")
_KINDS: Final = ("comment", "note", "event")
_EVENTS: Final = {name: letter for letter, name in contributions.EVENT_NAMES.items()}


@dataclass(frozen=True)
class ExportedTicket:
    """A ticket as a line tells it. Its history has no identity yet, and the resolver need not be a member."""

    number: int
    told: History
    remarks: tuple[str, ...] = field(compare=False)
    kind: str = "ticket"
    reviews: int = 0

    @property
    def id(self) -> str:
        """The sort key of the row's marker."""
        return f"{self.kind}-{self.number:012d}"

    @property
    def name(self) -> str:
        return f"Ticket {self.number}"

    @property
    def comments(self) -> int:
        return self.told.comment_count

    @property
    def own_number(self) -> int:
        """The number that it should have again."""
        return self.number

    @property
    def digest(self) -> str:
        """Equal as long as nothing has changed in the line."""
        told = asdict(self.told)
        told |= {name: value for name, value in told.pop("values").items() if value or name not in OPTIONAL}
        return hashlib.blake2b(repr(sorted(told.items())).encode(), digest_size=16).hexdigest()

    def history(self, identity: str, people: TicketPeople) -> tuple[History, list[str]]:
        """Return the ticket for this desk, and what could not be kept of it, each as the end of a sentence."""
        told, values = self.told, self.told.values
        assignee, name = values[ASSIGNEE.name], told.resolver_name
        left: list[str] = []
        if assignee and not people.has(assignee):
            found = people.find(name)
            values = {**values, ASSIGNEE.name: found.id if found else ""}
            if found is None:
                values[TAGS.name], left = tag_list([*values[TAGS.name], people.tag_for(name)])
            name = found.name if found else ""
        made = replace(told, identity=identity, values=values, resolver_name=name)
        return made, [f"has no room for the tag “{one}”" for one in left]


def read(raw: RawRow, now: datetime) -> ExportedTicket:
    """Return the row, checked. Raises Refused."""
    try:
        return _LineReader(raw, now).row()
    except Invalid as error:
        raise Refused(f"is none that could have been exported: {error.message.rstrip('.')}") from error


class _LineReader(RowValues):
    """Reads one line and gathers remarks on the way."""

    def row(self) -> ExportedTicket:
        number = self.value.get("number")
        if not is_number(number):
            raise Refused("has no usable number")
        created_at, updated_at = (self.moment(self.value.get(n), n) for n in ("created_at", "updated_at"))
        if updated_at < created_at:
            raise Refused("was changed before it was created")
        entries = self._entries()
        requester = self._person("requester", {n: self.value.get(f"requester_{n}") for n in ("id", "name")})
        resolver = ("", "") if self.value.get("resolver") is None else self._person("resolver", self.value["resolver"])
        told = History(
            identity="",
            values={field.name: self._value(field) for field in FIELDS if field is not ASSIGNEE}
            | {ASSIGNEE.name: resolver[0]},
            created_at=created_at,
            updated_at=updated_at,
            requester=requester[0],
            requester_name=requester[1],
            resolver_name=resolver[1],
            entries=entries,
            remembered=self._remembered(len(entries)),
        )
        for name, counted in (("comment_count", told.comment_count), ("version", told.version)):
            if self.value.get(name) != counted:
                self.remarks.append(f"says another {name.replace('_', ' ')} than its history, which has {counted}")
        return ExportedTicket(number, told, tuple(self.remarks))

    def _value(self, field: TicketField) -> Any:
        if isinstance(field, TagsField):
            return self._tags()
        if isinstance(field, ChoiceField):
            is_missing = field.is_optional and not self.value.get(field.name)
            return "" if is_missing else field.clean(self._word(self.value, field.name))
        text = self.text(self.value.get(field.name), field.name)
        return text if isinstance(field, LongTextField) else field.clean(text)

    def _person(self, what: str, value: Any) -> tuple[str, str]:
        if not isinstance(value, dict):
            raise Refused(f"has {type_name(value)} as {what}, not a person")
        user_id, name = value.get("id") or "", texts.line(self.text(value.get("name"), f"name of {what}"))
        if not isinstance(user_id, str) or (user_id and not keys.USER_ID.match(user_id)):
            raise Refused(f"has a {what} with an id that nobody can have")
        if len(name) > NAME_LIMIT:
            raise Refused(f"has a {what} whose name has {len(name):,} characters")
        return user_id, name

    def _word(self, value: dict[str, Any], name: str, limit: int = WORDS_LIMIT) -> str:
        word = value.get(name)
        if not isinstance(word, str) or len(word) > limit:
            raise Refused(f"has no usable {name}")
        return texts.line(word)

    def _tags(self) -> tuple[str, ...]:
        tags = self.list_of("tags")
        if not all(isinstance(tag, str) for tag in tags):
            raise Refused("has a tag that is not a text")
        return tuple(fields.tag_list(",".join(tags)))

    def _entries(self) -> tuple[PastEntry, ...]:
        entries = [self._entry(n, value) for n, value in enumerate(self.list_of("activity"), 1)]
        twice = [place for place, many in Counter((clock.stamp(e.at), e.id) for e in entries).items() if many > 1]
        if twice:
            raise Refused(f"has two entries with the id {twice[0][1]} of the same moment")
        return tuple(sorted(entries, key=lambda e: (clock.stamp(e.at), e.id)))

    def _entry(self, position: int, value: Any) -> PastEntry:
        what = f"entry {position}"
        if not isinstance(value, dict):
            raise Refused(f"has {type_name(value)} as {what}, not an object")
        kind, entry_id = value.get("kind"), value.get("id")
        if kind not in _KINDS or not isinstance(entry_id, str) or not _ENTRY_ID.match(entry_id):
            raise Refused(f"has an {what} without a usable kind and id")
        at, by = self.moment(value.get("at"), f"time of {what}"), self._person(f"author of {what}", value.get("by"))
        if kind == "event":
            verb, changes = self._word(value, "verb"), self._changes(what, value.get("changes") or [])
            return PastEntry(kind, at, *by, verb=verb, changes=changes, id=entry_id)
        body = self.text(value.get("body"), f"body of {what}")
        if not body:
            raise Refused(f"has an {what} in which nothing is written")
        return PastEntry(kind, at, *by, body=body, id=entry_id)

    def _changes(self, what: str, value: Any) -> tuple[tuple[str, str, str], ...]:
        if not isinstance(value, list) or len(value) > CHANGES_LIMIT:
            raise Refused(f"has no usable list of changes in {what}")
        made = []
        for change in value:
            if not isinstance(change, dict) or not _FIELD.match(str(change.get("field"))):
                raise Refused(f"has a change in {what} that names no field")
            made.append((change["field"], *(self.text(change.get(n), f"{n} of {what}") for n in ("before", "after"))))
        return tuple(made)

    def _remembered(self, entries: int) -> dict[str, Any]:
        """Return what the ticket remembers for the dashboard, as its summary holds it."""
        moments = {name: clock.stamp(at) for name in MOMENTS if (at := self.optional_moment(name))}
        told = self.value.get("days") or {}
        if not isinstance(told, dict) or len(told) > entries:
            raise Refused("has no usable days")
        days = {f"{_day(day)}{letter}": n for day, counts in told.items() for letter, n in _counts(counts, entries)}
        return moments | {"days": days}


def _day(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise Refused(f"has “{short(text)}” among its days") from None


def _counts(value: Any, most: int) -> list[tuple[str, int]]:
    if not isinstance(value, dict) or not all(
        name in _EVENTS and isinstance(n, int) and not isinstance(n, bool) and 0 <= n <= most
        for name, n in value.items()
    ):
        raise Refused("has days that count what it cannot have")
    return [(_EVENTS[name], n) for name, n in value.items()]
