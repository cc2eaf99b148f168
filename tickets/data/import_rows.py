"""Turn rows of an archive, and lines of an export, into tickets: checked, cut to size, and each change is reported.

A row is taken whole or refused whole. It is refused without a number, a state or a time of its own, with a value of a
wrong type, and with a text that no item can hold. It is taken with a remark where a title is missing or too long, tags
are more than a ticket has, or a comment is empty. Reviews of pull requests are counted and left out: a remark on a line
says nothing without its diff, and the archive holds none.

An exported ticket keeps its texts, times, numbers and the ids of its entries. It keeps the ids of people, who are known
on the whole platform; only the assignee has to be a member of this desk.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, TypeGuard

from portal import clock, plain_text
from portal.dynamo.store import ITEM_LIMIT
from portal.errors import Invalid
from portal.schema import keys
from tickets.counting import contributions
from tickets.data import imported_fields
from tickets.data.archive_reader import NESTING, RawRow
from tickets.data.exporting import MOMENTS
from tickets.desk.history import History, PastEntry
from tickets.requesters import requester_addresses
from tickets.requesters.requester_changes import ADDRESSES_LIMIT
from tickets.requesters.stored import is_requester
from tickets.ticket import fields
from tickets.ticket.fields import (
    ASSIGNEE,
    CUSTOM,
    DESCRIPTION_LIMIT,
    FIELDS,
    LATER,
    TAG_LIMIT,
    TAGS_LIMIT,
    TITLE_LIMIT,
    ChoiceField,
    DefinedField,
    LongTextField,
    TagsField,
    TicketField,
)
from tickets.ticket.stored import LINK_KINDS

_NOT_IN_TAGS = re.compile(rf"[\s,#|<>{plain_text.REPLACEMENT}]+")


def tag(label: str) -> str:
    """Return a label as a tag: lower case, hyphens for what a tag cannot have, at most TAG_LIMIT characters."""
    return plain_text.word(_NOT_IN_TAGS.sub(" ", label)).strip("-")[:TAG_LIMIT].strip("-")


def tag_list(labels: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the tags that a ticket can have, and the labels that were one too many."""
    tags: list[str] = []
    left: list[str] = []
    for label in labels:
        made = tag(label)
        if made and made not in tags:
            (tags if len(tags) < TAGS_LIMIT else left).append(made)
    return tags, left


def type_name(value: Any) -> str:
    """Name the type of a wrong value, without its content, which may be of any size and depth."""
    names: dict[type, str] = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}
    return "nothing" if value is None else names.get(type(value), "a number")


def short(text: str) -> str:
    """Return the beginning of a text from the archive, safe to print on a terminal."""
    clean = "".join(c if c.isprintable() else "\ufffd" for c in text[:41])
    return clean[:40] + "…" if len(text) > 40 else clean


# --- values ---


NAME_LIMIT: Final = 100  # characters of a person's name, as an account has it
NUMBER_LIMIT: Final = 10**12
GHOST: Final = "ghost"  # the name that GitHub shows for an account that was deleted
TEXT_LIMIT: Final = ITEM_LIMIT - 2048  # bytes of a body: what an item can hold beside its other attributes
OLDEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
FUTURE: Final = timedelta(days=1)  # clocks differ, and the archive was written before now


class Refused(Exception):
    """This row is not taken. The text says why, as the end of a sentence about the row."""


class RowValues:
    """The values of one row, and the remarks that were gathered on the way. Each method raises Refused."""

    def __init__(self, raw: RawRow, now: datetime) -> None:
        if raw.too_deep:
            raise Refused(f"is nested deeper than {NESTING} levels")
        if not isinstance(raw.value, dict):
            raise Refused(f"is {type_name(raw.value)}, not an object")
        self.kind, self.value = raw.kind, raw.value
        self.latest = now + FUTURE
        self.remarks: list[str] = []

    def moment(self, value: Any, what: str) -> datetime:
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

    def optional_moment(self, what: str) -> datetime | None:
        value = self.value.get(what)
        return None if value is None else self.moment(value, what)

    def text(self, value: Any, what: str) -> str:
        """Return a text as it is stored: lines end in LF, and no control characters."""
        if value is None:
            return ""
        if not isinstance(value, str):
            raise Refused(f"has {type_name(value)} as {what}, not a text")
        clean = plain_text.block(value)
        if len(clean.encode()) > TEXT_LIMIT:
            size = len(clean.encode()) // 1024
            raise Refused(f"has a {what} of {size:,} KB; DynamoDB takes items of up to {ITEM_LIMIT // 1024} KB")
        if clean.count(plain_text.REPLACEMENT) > value.count(plain_text.REPLACEMENT):
            self.remarks.append(f"has control characters in its {what}; they were replaced")
        return clean

    def person(self, value: Any, what: str) -> str:
        name = plain_text.line(self.text(value, what))
        if len(name) > NAME_LIMIT:
            self.remarks.append(f"has a name of {len(name):,} characters as {what}; it was cut to {NAME_LIMIT}")
            name = name[: NAME_LIMIT - 1] + "…"
        return name or GHOST

    def list_of(self, name: str) -> list[Any]:
        value = self.value.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise Refused(f"has {type_name(value)} as {name}, not a list")
        return value


def is_number(value: Any) -> TypeGuard[int]:
    """Tell whether a value can be the number of a row."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < NUMBER_LIMIT


# --- rows of an archive ---


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
    number = raw.value.get("number") if isinstance(raw.value, dict) else None
    if is_number(number):
        return f"{NAMES[raw.kind]} {number}"
    return f"Row {raw.position} of {raw.kind}s"


def read_archived(raw: RawRow, now: datetime) -> ArchivedTicket:
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
        title = plain_text.line(self.text(self.value.get("title"), "title"))
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


# --- lines of an export ---


CHANGES_LIMIT: Final = 150  # fields that one event changes
LINKS_LIMIT: Final = 1_000
FORMER_LIMIT: Final = 1_000  # earlier texts of one comment
WORDS_LIMIT: Final = 200  # characters of a verb
_ENTRY_ID: Final = re.compile(r"[0-9a-z]{1,40}\Z")
_FIELD: Final = re.compile(r"[a-z_ ]{1,40}(\.[a-z]{1,20}_[0-9]{1,2})?\Z")
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
    addresses: tuple[str, ...] = ()  # of the requester
    names: Mapping[str, str] = field(default_factory=dict, compare=False)  # of kinds and custom fields, by their ids

    @property
    def id(self) -> str:
        return f"{self.kind}-{self.number:012d}"

    @property
    def name(self) -> str:
        return f"Ticket {self.number}"

    @property
    def comments(self) -> int:
        return self.told.comment_count

    @property
    def own_number(self) -> int:
        return self.number

    @property
    def digest(self) -> str:
        """Equal as long as nothing has changed in the line."""
        told = asdict(self.told)
        values = told.pop("values").items()
        told |= {name: value for name, value in values if value != LATER.get(name) and (value or name != CUSTOM.name)}
        return hashlib.blake2b(repr(sorted(told.items())).encode(), digest_size=16).hexdigest()


def read_exported(raw: RawRow, now: datetime) -> ExportedTicket:
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
            links=self._links(),
        )
        for name, counted in (("comment_count", told.comment_count), ("version", told.version)):
            if self.value.get(name) != counted:
                self.remarks.append(f"says another {name.replace('_', ' ')} than its history, which has {counted}")
        names = self.value.get("names") or {}
        if not imported_fields.is_names(names):
            raise Refused("has no usable names of kinds and custom fields")
        return ExportedTicket(number, told, tuple(self.remarks), addresses=self._addresses(), names=names)

    def _links(self) -> tuple[tuple[str, int], ...]:
        """Return the links to other tickets, by the numbers that those have in the file."""
        found = self.value.get("links") or []
        is_list = isinstance(found, list) and len(found) <= LINKS_LIMIT and all(isinstance(one, dict) for one in found)
        links = [(one.get("kind"), one.get("number")) for one in found] if is_list else [(None, None)]
        if not all(kind in LINK_KINDS and type(other) is int and other > 0 for kind, other in links):
            raise Refused("has no usable links")
        return tuple(dict.fromkeys((str(kind), int(other or 0)) for kind, other in links))

    def _addresses(self) -> tuple[str, ...]:
        """Return the addresses of the requester, where it is a person outside the desk."""
        found = self.value.get("requester_addresses") or []
        if not isinstance(found, list) or len(found) > ADDRESSES_LIMIT:
            raise Refused("has no usable list of the requester's addresses")
        if not all(isinstance(one, str) and requester_addresses.is_address(one) for one in found):
            raise Refused("has an address of its requester that is none")
        return tuple(found)

    def _value(self, field: TicketField) -> Any:
        if isinstance(field, TagsField):
            return self._tags()
        if field is CUSTOM:
            return self._custom()
        if isinstance(field, DefinedField):
            return field.clean(self.value.get(field.name) or "")
        if isinstance(field, ChoiceField):
            is_missing = field.name in LATER and not self.value.get(field.name)
            return field.initial if is_missing else field.clean(self._word(self.value, field.name))
        text = self.text(self.value.get(field.name), field.name)
        return text if isinstance(field, LongTextField) else field.clean(text)

    def _custom(self) -> dict[str, str]:
        told = self.value.get(CUSTOM.name) or {}
        if not isinstance(told, dict) or not all(isinstance(text, str) for text in told.values()):
            raise Refused("has no usable custom fields")
        return CUSTOM.stored(CUSTOM.clean(told)) or {}

    def _person(self, what: str, value: Any) -> tuple[str, str]:
        if not isinstance(value, dict):
            raise Refused(f"has {type_name(value)} as {what}, not a person")
        user_id, name = value.get("id") or "", plain_text.line(self.text(value.get("name"), f"name of {what}"))
        is_outside = isinstance(user_id, str) and is_requester(user_id) and what != "resolver"
        if not isinstance(user_id, str) or (user_id and not keys.USER_ID.match(user_id) and not is_outside):
            raise Refused(f"has a {what} with an id that nobody can have")
        if len(name) > NAME_LIMIT:
            raise Refused(f"has a {what} whose name has {len(name):,} characters")
        return user_id, name

    def _word(self, value: dict[str, Any], name: str, limit: int = WORDS_LIMIT) -> str:
        word = value.get(name)
        if not isinstance(word, str) or len(word) > limit:
            raise Refused(f"has no usable {name}")
        return plain_text.line(word)

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
            said = self.text(value.get("body") or "", f"body of {what}")
            return PastEntry(kind, at, *by, verb=verb, changes=changes, body=said, id=entry_id)
        body, kept = self.text(value.get("body"), f"body of {what}"), self._kept(what, value)
        if not body and "deleted_at" not in kept:
            raise Refused(f"has an {what} in which nothing is written")
        return PastEntry(kind, at, *by, body="" if "deleted_at" in kept else body, id=entry_id, kept=kept)

    def _kept(self, what: str, value: dict[str, Any]) -> dict[str, Any]:
        """Return what a comment keeps of its editing or its deletion, as its item holds it."""
        if deleted := value.get("deleted"):
            if not isinstance(deleted, dict):
                raise Refused(f"has no usable deletion of {what}")
            by, name = self._person(f"deleter of {what}", deleted.get("by"))
            at = clock.stamp(self.moment(deleted.get("at"), f"deletion of {what}"))
            return {"deleted_at": at, "deleted_by": by, "deleted_by_name": name}
        former = value.get("former_texts") or []
        if not isinstance(former, list) or len(former) > FORMER_LIMIT or not all(isinstance(f, dict) for f in former):
            raise Refused(f"has no usable earlier texts of {what}")
        made = []
        for text in former:
            by, name = self._person(f"editor of {what}", text.get("by"))
            at = clock.stamp(self.moment(text.get("at"), f"edit of {what}"))
            body = self.text(text.get("body"), f"earlier text of {what}")
            made.append({"body": body, "at": at, "by": by, "by_name": name})
        return {"former_texts": made} if made else {}

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
